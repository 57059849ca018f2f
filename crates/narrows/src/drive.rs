//! What every drive of a target needs: the wait until it accepts connections, the disturbances of its window, and errors that say
//! what to do. `load` and the agents share it.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use load::LoadError;
use reactor::Address;
use report::number;
use systems::machine::Disturbance;
use systems::unread::Unread;

use crate::common::Usage;

/// The disturbances so far when the first thread's window opens and when the last one's closes. Disturbances during the
/// warm-up do not count.
#[derive(Default)]
pub struct Window(Mutex<[Option<SoFar>; 2]>);

/// What was read at a moment. `None` if it could not be read.
type SoFar = Option<Disturbance>;

impl Window {
    /// Notes the disturbances at this moment.
    pub fn record(&self, moment: load::Moment<'_>) {
        let [opened, closed] = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let so_far = || {
            let unread = Unread::from_now();
            Some(Disturbance::so_far(None)).filter(|_| unread.found().is_none())
        };
        match moment {
            load::Moment::Opened => _ = opened.get_or_insert_with(so_far),
            load::Moment::Closed => *closed = Some(so_far()),
            load::Moment::Passed { .. } => {}
        }
    }

    /// The disturbances between the two moments. All are zero if they could not be read at one of the moments.
    pub fn disturbed(&self) -> Disturbance {
        let [opened, closed] = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened
            .flatten()
            .zip(closed.flatten())
            .map_or_else(Disturbance::default, |(opened, closed)| closed.since(opened))
    }
}

/// The pause between two questions whether the target accepts connections.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// The longest that one question may take.
const LONGEST_TRY: Duration = Duration::from_millis(200);

/// Waits until the target accepts a connection.
///
/// # Errors
/// None was accepted in time, or the user interrupted.
pub fn wait_for(address: &Address, patience: Duration, cancel: &AtomicBool) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let accepted = match address {
            Address::Tcp(address) => connect(*address),
            Address::Unix(path) => UnixStream::connect(path).map(drop),
        };
        let Err(why) = accepted else { return Ok(()) };
        if cancel.load(Ordering::Relaxed) {
            bail!("interrupted while waiting for {address}");
        }
        if began.elapsed() >= patience {
            bail!(
                "nothing accepted a connection at {address} within {}: {why}",
                number::seconds(patience.as_secs_f64())
            );
        }
        std::thread::sleep(ASK_AGAIN);
    }
}

/// Makes a connection and closes it.
fn connect(address: SocketAddr) -> io::Result<()> {
    let stream = TcpStream::connect_timeout(&address, LONGEST_TRY)?;
    // Where nothing listens at a port that the kernel gives to clients, a connection can meet itself.
    if stream.local_addr()? == address {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(())
}

/// Makes usage errors of the errors that the user's arguments caused, and says what to do if nothing listens.
pub fn classify(error: LoadError) -> anyhow::Error {
    match error {
        LoadError::NothingListens { .. } => {
            anyhow!("{error}. Start the server first, or use --wait 10s to wait for it")
        }
        error if error.is_usage() => Usage(error.to_string()).into(),
        error => error.into(),
    }
}
