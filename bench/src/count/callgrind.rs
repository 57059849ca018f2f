//! Runs a program under callgrind, and reads what it counted.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::compare::output::complaint;

/// What callgrind counted in one run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Count {
    /// Instructions in user space.
    pub instructions: u64,
    /// Calls of `clock_gettime`.
    pub clocks: u64,
}

/// The version of valgrind.
pub fn version() -> anyhow::Result<String> {
    let output = Command::new("valgrind").arg("--version").output();
    let output = output.context("valgrind is not installed: run scripts/install --count")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Callgrind counts each repetition of a string instruction, so the C library must not copy or clear memory with them.
const WITHOUT_STRINGS: &str =
    "glibc.cpu.x86_rep_movsb_threshold=0x7fffffffffff:glibc.cpu.x86_rep_stosb_threshold=0x7fffffffffff";

/// Counts a run of this command. Callgrind writes to `file`.
pub fn count(words: &[String], file: &Path) -> anyhow::Result<Count> {
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .args(words)
        .env("GLIBC_TUNABLES", WITHOUT_STRINGS)
        .stdin(Stdio::null())
        .output()
        .context("valgrind")?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        // Valgrind's own remarks begin with its process's number in dashes or equals signs.
        let lines = err.lines().filter(|line| !line.starts_with(['-', '=']));
        let said = lines.collect::<Vec<_>>().join(" ");
        bail!("{} under valgrind: {}: {said}", words.join(" "), output.status);
    }
    if let Some(errors) = complaint("narrows", &out) {
        bail!("{} under valgrind: requests failed: {errors}", words.join(" "));
    }
    let text = fs::read_to_string(file).context("callgrind wrote no file")?;
    read(&text).context("callgrind's file has no summary")
}

/// Reads callgrind's file: the summary, and how often the clock was read. A function's name is written once, behind a number
/// that stands for it from then on.
fn read(text: &str) -> Option<Count> {
    let summary = text.lines().find_map(|line| line.strip_prefix("summary:"))?;
    let mut count = Count { instructions: summary.trim().parse().ok()?, clocks: 0 };
    let mut clock: Option<&str> = None;
    let mut called = "";
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if name.starts_with("clock_gettime") {
                clock = Some(number);
            }
            called = number;
        } else if let Some(calls) = line.strip_prefix("calls=")
            && clock == Some(called)
        {
            count.clocks += calls.split(' ').next()?.parse::<u64>().ok()?;
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_summary_and_the_calls_of_the_clock_only() {
        let text = "events: Ir\nsummary: 1234\n\nfn=(1) main\n16 5\ncfn=(2) clock_gettime@@GLIBC_2.17\n\
                    calls=3 0\n16 90\ncfn=(4) memcmp\ncalls=50 0\n16 9\n\nfn=(7) turn\ncfn=(2)\ncalls=4 +2\n* 7\n\
                    totals: 1234\n";
        assert_eq!(read(text), Some(Count { instructions: 1234, clocks: 7 }));
        assert_eq!(read("events: Ir\nsummary: 9\n"), Some(Count { instructions: 9, clocks: 0 }));
        assert_eq!(read("events: Ir\n"), None);
    }
}
