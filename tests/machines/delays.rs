//! A server that answers each request after a delay of its own: 50 ms at least, exponential above, and the same for the n-th request
//! of every server.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A server. Its threads end with their connections, and the one that accepts with the program.
pub struct Delays {
    address: SocketAddr,
    served: Arc<AtomicU64>,
}

impl Delays {
    pub fn serve(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("an address");
        let address = listener.local_addr().expect("an address");
        let served = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&served);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                thread::spawn(move || answer(stream, &counted));
            }
        });
        Self { address, served }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// How many requests it has begun to answer.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::SeqCst)
    }
}

/// The delay of the n-th request. Multiples of the golden ratio spread evenly between 0 and 1, in any part of them.
fn delay(n: u64) -> Duration {
    let share = ((n as f64 + 0.5) * 0.618_033_988_749_895).fract();
    Duration::from_secs_f64(0.05 * (1.0 - (1.0 - share).ln()))
}

fn answer(stream: TcpStream, served: &AtomicU64) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut requests = BufReader::new(stream.try_clone().ok()?);
    let mut answers = stream;
    loop {
        let mut line = String::new();
        // The head of a request ends with an empty line, and there is no body.
        while line != "\r\n" {
            line.clear();
            if requests.read_line(&mut line).ok()? == 0 {
                return None;
            }
        }
        thread::sleep(delay(served.fetch_add(1, Ordering::SeqCst)));
        answers.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").ok()?;
    }
}
