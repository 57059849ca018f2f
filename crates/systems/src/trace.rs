//! A trace of what Narrows starts, asks and stops, for whoever has to find out why a trial fails. Writes to one file.
//!
//! As long as no trace is written, a line costs one comparison, and its words are not made.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

/// The environment variable that names the file.
pub const VARIABLE: &str = "NARROWS_TRACE";
/// How many bytes of a request or an answer are shown.
const SHOWN: usize = 200;

struct Sink {
    file: File,
    began: Instant,
}

static SINK: OnceLock<Sink> = OnceLock::new();

/// Appends the trace of this process to a file from now on. Only the first call counts.
///
/// # Errors
/// The file cannot be opened.
pub fn begin(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    SINK.get_or_init(|| Sink { file, began: Instant::now() });
    Ok(())
}

/// Whether a trace is written.
pub fn on() -> bool {
    SINK.get().is_some()
}

/// Writes a line, after the seconds since the trace began. A line that cannot be written is lost: a full disk must not
/// change how a trial ends.
pub fn say(line: impl FnOnce() -> String) {
    if let Some(sink) = SINK.get() {
        let text = format!("{:9.3} {}\n", sink.began.elapsed().as_secs_f64(), line());
        // One call for the whole line, so that the lines of several threads do not mix.
        let _ = (&sink.file).write_all(text.as_bytes());
    }
}

/// Writes why a server is not ready, if the reason is new, and keeps it.
pub(crate) fn not_ready(last: &mut String, why: String) {
    if why != *last {
        say(|| format!("not ready: {why}"));
    }
    *last = why;
}

/// Writes that a server serves, and whether the socket belongs to what was started.
pub(crate) fn ready(address: SocketAddr, own: bool) {
    let whose = if own { "to what was started" } else { "elsewhere" };
    say(|| format!("{address} serves, and its socket belongs {whose}"));
}

/// The beginning of what was sent or received, with its line ends and other control characters written out.
pub(crate) fn beginning(bytes: &[u8]) -> String {
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    format!("{} bytes \"{}\"{more}", bytes.len(), bytes.get(..SHOWN).unwrap_or(bytes).escape_ascii())
}

/// A command with its folder, what it adds to the environment, and its cores.
pub(crate) fn command(command: &Command, cores: &[usize]) -> String {
    let typed = |word: &OsStr| quoted(&word.to_string_lossy());
    let words: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(typed).collect();
    let mut text = words.join(" ");
    if let Some(dir) = command.get_current_dir() {
        text += &format!("\n{:10}in {}", "", dir.display());
    }
    for (name, value) in command.get_envs() {
        text += &match value {
            Some(value) => format!("\n{:10}with {}={}", "", name.to_string_lossy(), typed(value)),
            // This is not known to what is started, and goes without saying.
            None if name == VARIABLE => String::new(),
            None => format!("\n{:10}without {}", "", name.to_string_lossy()),
        };
    }
    if !cores.is_empty() {
        text += &format!("\n{:10}on cores {cores:?}", "");
    }
    text
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let mut traced = Command::new("sh");
        traced.args(["-c", "echo 'it''s'", ""]).current_dir("/tmp").env("A", "b c").env_remove("D");
        let text = command(&traced, &[0, 2]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let first = r"sh -c 'echo '\''it'\'''\''s'\''' ''";
        assert_eq!(lines, [first, "in /tmp", "with A='b c'", "without D", "on cores [0, 2]"]);
    }

    #[test]
    fn long_bytes_are_cut() {
        assert_eq!(beginning(b"GET /\r\n\xff"), r#"8 bytes "GET /\r\n\xff""#);
        let long = beginning(&[b'x'; 201]);
        assert!(long.starts_with("201 bytes \"x") && long.ends_with("x\"…"), "{long}");
    }
}
