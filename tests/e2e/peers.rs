//! Hostile and broken peers: what each did, and in which class it ended, while a healthy connection beside it saw no error.
//!
//! docs/peers.md has the table that these tests make. `NARROWS_WRITE_PEERS=1` writes it anew, if they run one after the other.

mod clients;
mod http2;
mod http2_clients;
mod servers;

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{checkout, say_skipped};

/// The most memory that a process may have used when a peer has done its worst, in bytes. Without tests' symbols and checks
/// it is far less.
const MEMORY: u64 = 192 << 20;

/// A row of the table.
#[derive(Debug, Clone)]
struct Row {
    /// What the peer did.
    peer: &'static str,
    /// How it ended.
    class: String,
    /// What is written for the reader, and differs a little from one time to the next: how long it took, and the memory.
    seen: String,
}

impl Row {
    fn new(peer: &'static str, class: &str, time: Duration, memory: Option<u64>) -> Self {
        let time = match time.as_secs_f64() {
            seconds if seconds < 0.1 => "< 0.1 s".to_owned(),
            seconds => format!("{seconds:.1} s"),
        };
        let memory = memory.map_or(String::new(), |bytes| format!(" | {} MiB", bytes.div_ceil(1 << 20)));
        Self { peer, class: class.to_owned(), seen: time + &memory }
    }
}

/// Whether a test may have so many mute connections. It is said where files are too few.
fn allow_mute(connections: usize) -> bool {
    let files = connections as u64 + 2000;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives both calls.
    let allowed = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_cur.max(files).min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 && limit.rlim_cur >= files
    };
    if !allowed {
        say_skipped(&format!("{connections} mute connections"), &format!("`ulimit -Hn` is below {files}"));
    }
    allowed
}

/// Tries all cases, some at a time, and returns their rows in order.
fn rows<C: Sync>(cases: &[C], attempt: impl Fn(&C) -> Row + Sync) -> Vec<Row> {
    const AT_ONCE: usize = 8;
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![None; cases.len()]));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((place, case)) = {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(place).map(|case| (place, case))
                } {
                    let row = attempt(case);
                    done.lock().unwrap()[place] = Some(row);
                }
            });
        }
    });
    done.into_inner().unwrap().into_iter().flatten().collect()
}

/// Asserts that the document has these rows below its heading, or writes them there. What was [seen](Row::seen) is only written.
fn assert_documented(heading: &str, columns: &[&str], rows: &[Row]) {
    let path = checkout().join("docs/peers.md");
    let page = std::fs::read_to_string(&path).expect("docs/peers.md");
    let mut table = format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
    rows.iter().for_each(|row| writeln!(table, "| {} | {} | {} |", row.peer, row.class, row.seen).unwrap());
    let (before, rest) = page.split_once(&format!("## {heading}\n")).expect(heading);
    let begin = rest.find("\n| ").expect("a table") + 1;
    let end = rest[begin..].find("\n\n").map_or(rest.len(), |end| begin + end + 1);
    if std::env::var_os("NARROWS_WRITE_PEERS").is_some() {
        let page = format!("{before}## {heading}\n{}{table}{}", &rest[..begin], &rest[end..]);
        std::fs::write(&path, page).expect("docs/peers.md can be written");
    } else {
        let write = "write it anew: NARROWS_WRITE_PEERS=1 cargo test --workspace --test e2e peers:: -- --test-threads=1";
        let exact = |table: &str| -> Vec<String> {
            table.lines().map(|line| line.split(" | ").take(2).collect::<Vec<_>>().join(" | ")).collect()
        };
        assert_eq!(exact(&rest[begin..end]), exact(&table), "{heading} in docs/peers.md; {write}");
    }
}
