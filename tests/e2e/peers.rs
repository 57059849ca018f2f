//! Hostile and broken peers: what each did, and in which class it ended, while a healthy connection beside it saw no error.
//!
//! docs/peers.md has the table that these tests make. `NARROWS_WRITE_PEERS=1` writes it anew.

mod clients;
mod servers;

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::checkout;

/// The most memory that a process may have used when a peer has done its worst, in bytes. Without tests' symbols and checks
/// it is far less.
const MEMORY: u64 = 192 << 20;

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    /// What the peer did.
    peer: &'static str,
    /// How it ended.
    class: String,
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

/// Asserts that the document has these rows below its heading, or writes them there.
fn assert_documented(heading: &str, columns: [&str; 2], rows: &[Row]) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap();
    let path = checkout().join("docs/peers.md");
    let page = std::fs::read_to_string(&path).expect("docs/peers.md");
    let mut table = format!("| {} | {} |\n|---|---|\n", columns[0], columns[1]);
    rows.iter().for_each(|row| writeln!(table, "| {} | {} |", row.peer, row.class).unwrap());
    let (before, rest) = page.split_once(&format!("## {heading}\n")).expect(heading);
    let begin = rest.find("\n| ").expect("a table") + 1;
    let end = rest[begin..].find("\n\n").map_or(rest.len(), |end| begin + end + 1);
    if std::env::var_os("NARROWS_WRITE_PEERS").is_some() {
        let page = format!("{before}## {heading}\n{}{table}{}", &rest[..begin], &rest[end..]);
        std::fs::write(&path, page).expect("docs/peers.md can be written");
    } else {
        let write = "write it anew: NARROWS_WRITE_PEERS=1 cargo test --workspace --test e2e peers";
        assert_eq!(&rest[begin..end], table, "{heading} in docs/peers.md; {write}");
    }
}
