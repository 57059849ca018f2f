//! The output of programs: its end is kept. Output never fills the memory and never blocks the program.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use printable::printable;

/// How many bytes of a system's output are kept. In them is the line that tells why it crashed, even if the stack of each thread
/// follows.
pub(crate) const KEPT: usize = 64 << 10;
/// How many bytes of a system's output are shown.
const SHOWN: usize = 4096;
/// The longest line that a driver may print, in bytes. A result with a full histogram is a tenth of it.
pub(crate) const LONGEST_LINE: usize = 4 << 20;
/// How many lines may wait for a reader. A driver prints three in all.
const WAITING_LINES: usize = 16;

/// The last bytes of one or more streams.
#[derive(Clone)]
pub(crate) struct Tail(Arc<(Mutex<State>, Condvar)>);

struct State {
    bytes: VecDeque<u8>,
    keep: usize,
    open: usize,
}

/// A driver's line; the error means that it was too long.
pub(crate) type Line = Result<String, ()>;

impl Tail {
    pub(crate) fn new(keep: usize) -> Self {
        Self(Arc::new((Mutex::new(State { bytes: VecDeque::new(), keep, open: 0 }), Condvar::new())))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts streams that are read, or are no longer.
    fn count(&self, more: isize) {
        let mut state = self.lock();
        state.open = state.open.saturating_add_signed(more);
    }

    fn push(&self, bytes: &[u8]) {
        let mut state = self.lock();
        let bytes = bytes.get(bytes.len().saturating_sub(state.keep)..).unwrap_or_default();
        let excess = state.bytes.len().saturating_add(bytes.len()).saturating_sub(state.keep);
        state.bytes.drain(..excess);
        state.bytes.extend(bytes);
    }

    /// Reads a stream to its end in a separate thread. The thread ends with the stream, and nobody waits for it.
    pub(crate) fn drain(&self, stream: impl Read + Send + 'static) {
        self.pump(stream, |_| {});
    }

    /// Does the same and delivers the lines.
    pub(crate) fn lines(&self, stream: impl Read + Send + 'static) -> Receiver<Line> {
        let (sender, receiver) = sync_channel(WAITING_LINES);
        let mut line = Vec::new();
        let mut too_long = false;
        self.pump(stream, move |bytes| {
            for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                too_long |= line.len().saturating_add(piece.len()) > LONGEST_LINE;
                if !too_long {
                    line.extend_from_slice(piece);
                }
                if piece.ends_with(b"\n") {
                    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                    // If the reader is gone, go on draining, so that the program does not block.
                    let _ = sender.send(if too_long { Err(()) } else { Ok(text) });
                    line.clear();
                    too_long = false;
                }
            }
        });
        receiver
    }

    #[expect(clippy::indexing_slicing, reason = "a read fills in no more than the buffer has")]
    fn pump(&self, mut stream: impl Read + Send + 'static, mut deliver: impl FnMut(&[u8]) + Send + 'static) {
        self.count(1);
        let tail = self.clone();
        let pump = move || {
            let mut buffer = [0; 16 << 10];
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => {
                        tail.push(&buffer[..n]);
                        deliver(&buffer[..n]);
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            tail.count(-1);
            tail.0.1.notify_all();
        };
        // Without the thread the program may block on a full pipe. It then misses its deadline, which is reported.
        if thread::Builder::new().name("output".to_owned()).spawn(pump).is_err() {
            self.count(-1);
        }
    }

    /// The end of the kept output, as it is shown to people.
    pub(crate) fn end(&self) -> String {
        shown(&self.text())
    }

    /// The same of a dead program: waits a moment for its streams to end.
    pub(crate) fn settled_end(&self) -> String {
        shown(&self.settled())
    }

    /// The kept output as text.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.lock().bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }

    /// The kept output of a dead program: waits a moment for its streams to end.
    pub(crate) fn settled(&self) -> String {
        let moment = Duration::from_millis(500);
        let state = self.0.1.wait_timeout_while(self.lock(), moment, |state| state.open > 0);
        drop(state);
        self.text()
    }
}

/// The end of a program's output, as much as is shown. The line that tells why the program failed comes first if it would be cut off.
pub(crate) fn shown(output: &str) -> String {
    let cut = (output.len().saturating_sub(SHOWN)..=output.len()).find(|at| output.is_char_boundary(*at));
    let (before, end) = output.split_at_checked(cut.unwrap_or(0)).unwrap_or(("", output));
    match telling(output) {
        Some(line) if before.contains(&line) && !end.contains(&line) => {
            let room = SHOWN.saturating_sub(line.len()).saturating_sub(BETWEEN.len());
            let cut = (end.len().saturating_sub(room)..=end.len()).find(|at| end.is_char_boundary(*at));
            format!("{line}{BETWEEN}{}", cut.and_then(|at| end.get(at..)).unwrap_or_default())
        }
        _ => end.to_owned(),
    }
}

/// Stands for what was left out.
const BETWEEN: &str = "\n…\n";

/// The line of a program's output that tells most, on one line: why it failed, or else what it printed last. None if it printed
/// nothing.
pub fn said(output: &str) -> Option<String> {
    let last = || output.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    telling(output).or_else(last).map(|line| printable(&line))
}

/// The line of a program's output that tells why it failed, if it has one: the first that a runtime prints when it gives up, or else
/// the last that calls itself an error.
fn telling(output: &str) -> Option<String> {
    const GIVES_UP: [&str; 7] = [
        "FATAL",
        "fatal error",
        "panic: ",
        "panicked at",
        "Exception in thread",
        "OutOfMemoryError",
        "out of memory",
    ];
    const LONGEST: usize = 300;
    let says = |line: &str, words: &[&str]| words.iter().any(|word| line.contains(word));
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let found = match lines.iter().position(|line| says(line, &GIVES_UP)) {
        // Rust says where it panicked, and in the next line why.
        Some(at) if lines.get(at).is_some_and(|line| line.ends_with(':')) => {
            lines.get(at..at.saturating_add(2)).map(|both| both.join("\n"))
        }
        Some(at) => lines.get(at).map(|line| (*line).to_owned()),
        None => {
            let error =
                |line: &&&str| says(line, &["Error: ", "error: ", "ERROR: "]) || line.starts_with("error[");
            lines.iter().rev().find(error).map(|line| (*line).to_owned())
        }
    };
    found.filter(|line| line.len() <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_the_end() {
        let tail = Tail::new(4);
        tail.push(b"abcdef");
        assert_eq!(tail.text(), "cdef");
        tail.push(b"g");
        assert_eq!(tail.text(), "defg");
    }

    #[test]
    fn the_line_that_tells_why_a_program_failed_is_found() {
        for (output, expected) in [
            ("starting\nlistening", None),
            ("a\nError: listen EADDRINUSE\n    at Server\n\nNode.js v20", Some("Error: listen EADDRINUSE")),
            ("error: one\nTraceback:\n  File x\nKeyError: 'a'\nOSError: two", Some("OSError: two")),
            (
                "<--- Last few GCs --->\nFATAL ERROR: Reached heap limit\n 1: 0xb8",
                Some("FATAL ERROR: Reached heap limit"),
            ),
            ("panic: first\n\tpanic: again\ngoroutine 1", Some("panic: first")),
            (
                "thread 'main' panicked at a.rs:1:2:\nno port\nnote: run",
                Some("thread 'main' panicked at a.rs:1:2:\nno port"),
            ),
            ("error[E0308]: mismatched types\n --> a.rs", Some("error[E0308]: mismatched types")),
        ] {
            assert_eq!(telling(output).as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn what_a_program_said_is_one_line() {
        assert_eq!(
            said("up\nthread 'main' panicked at a.rs:1:2:\nno port\nend").as_deref(),
            Some("thread 'main' panicked at a.rs:1:2: no port")
        );
        assert_eq!(said("a\n\u{1b}[2Jgone \n\n").as_deref(), Some(" [2Jgone"));
        assert_eq!(said(" \n"), None);
    }

    #[test]
    fn what_is_shown_is_the_end_and_the_telling_line() {
        let stack = " 1: 0x7f00\n".repeat(1000);
        let output = format!("up\nFATAL ERROR: Reached heap limit\n{stack}the end");
        let text = shown(&output);
        assert!(
            text.starts_with("FATAL ERROR: Reached heap limit\n…\n") && text.ends_with("\nthe end"),
            "{text}"
        );
        assert!(text.len() <= SHOWN);
        assert_eq!(telling(&text), telling(&output));
        assert_eq!(shown("panic: a\nb"), "panic: a\nb");
        let wide = "é".repeat(SHOWN);
        assert!(wide.ends_with(&shown(&wide)) && shown(&wide).len() == SHOWN);
        assert_eq!(shown(""), "");
    }

    #[test]
    fn long_lines_are_reported_and_skipped() {
        let tail = Tail::new(8);
        let mut text = vec![b'x'; LONGEST_LINE + 1];
        text.extend_from_slice(b"\nnext\r\nunfinished");
        let lines: Vec<Line> = tail.lines(std::io::Cursor::new(text)).iter().collect();
        assert_eq!(lines, [Err(()), Ok("next".to_owned())]);
        assert_eq!(tail.settled(), "finished");
    }
}
