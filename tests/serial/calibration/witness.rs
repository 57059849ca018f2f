//! Keeps the machine awake and watches it: what happens outside the endpoint and the generator.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::machine::{self, now};

/// While it exists, idle-priority threads keep both cores awake, because waking a virtual machine's idle core costs a
/// tenth of a millisecond. Two more threads measure how long a small message takes from the endpoint's core to the
/// generator's: any generator would see that in addition to the truth.
pub struct Witness {
    over: Arc<AtomicBool>,
    took: Arc<Mutex<Vec<u64>>>,
    threads: Vec<JoinHandle<()>>,
}

/// The pause between two messages.
const EVERY: Duration = Duration::from_millis(2);

impl Witness {
    pub fn new() -> Self {
        let (over, took) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (here, there) = machine::cores();
        let mut threads: Vec<_> = [here, there].map(|core| keep_awake(core, Arc::clone(&over))).into();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut sender =
            TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        let mut receiver = listener.accept().expect("a connection").0;
        sender.set_nodelay(true).expect("no delay");
        let (ended, list) = (Arc::clone(&over), Arc::clone(&took));
        threads.push(thread::spawn(move || {
            machine::steady(here);
            while !ended.load(Relaxed) && sender.write_all(&now().to_ne_bytes()).is_ok() {
                thread::sleep(EVERY);
            }
        }));
        threads.push(thread::spawn(move || {
            machine::steady(there);
            let mut sent = [0; 8];
            while receiver.read_exact(&mut sent).is_ok() {
                let time = now().saturating_sub(u64::from_ne_bytes(sent));
                list.lock().expect("the times").push(time);
            }
        }));
        Self { over, took, threads }
    }

    /// The median so far, in microseconds.
    pub fn median(&self) -> f64 {
        let mut times = self.took.lock().expect("the times").clone();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(0.0, |time| *time as f64 / 1000.0)
    }

    /// The share of exchanges, at most 1, that the machine may have held up by more than so many microseconds. It is
    /// twice the share of messages, plus three messages for what so few can miss (the rule of three: Hanley and
    /// Lippman-Hand, 1983).
    pub fn held(&self, micros: f64) -> f64 {
        let times = self.took.lock().expect("the times");
        let late = times.iter().filter(|time| **time as f64 > micros * 1000.0).count();
        (2.0 * (late + 3) as f64 / times.len().max(1) as f64).min(1.0)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn keep_awake(core: usize, over: Arc<AtomicBool>) -> JoinHandle<()> {
    thread::spawn(move || {
        // Without idle priority it must not spin.
        if machine::pin(core) && machine::order(libc::SCHED_IDLE, 0) {
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        }
    })
}
