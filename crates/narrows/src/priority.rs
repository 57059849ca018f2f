//! `--priority`: the command goes before all other programs of this machine, with the systems and the generator that it starts.
//!
//! It runs once more in a session of its own, because the kernel may weigh sessions against each other. This process waits, and passes
//! on what asks it to end.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use systems::machine;

use crate::common::{self, End, Usage};

/// Tells the command that it has its priority.
const GIVEN: &str = "NARROWS_HAS_PRIORITY";

/// How often it is looked whether the command has ended.
const TURN: Duration = Duration::from_millis(20);

/// Whether this process has been started by [`run_first`].
pub fn is_given() -> bool {
    std::env::var_os(GIVEN).is_some()
}

/// Runs this program once more with the same arguments, before all other programs of this machine.
///
/// # Errors
/// The user may not do this.
pub fn run_first() -> End {
    let cancel = common::cancellation()?;
    let mut command = Command::new(std::env::current_exe().context("cannot find the running program")?);
    command.args(std::env::args_os().skip(1)).env(GIVEN, "1");
    machine::go_first(&mut command);
    let child = command.spawn().map_err(|error| {
        Usage(format!("--priority needs root, or the capability CAP_SYS_NICE: leave it out ({error})"))
    })?;
    let ended = wait(child, &cancel)?;
    let code = ended.code().or_else(|| Some(128 + ended.signal()?)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Waits for its end. Asks it to end as soon as this process is asked.
fn wait(mut child: Child, cancel: &AtomicBool) -> anyhow::Result<ExitStatus> {
    let mut asked = false;
    loop {
        if let Some(ended) = child.try_wait().context("cannot wait for the command")? {
            return Ok(ended);
        }
        if !asked && cancel.load(Ordering::Relaxed) {
            asked = true;
            let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = number.map(|number| kill_process(number, Signal::INT));
        }
        thread::sleep(TURN);
    }
}
