//! A run that has lost a generator for good, and goes on without it if that was asked for: as another run, which begins from the
//! beginning. So no figure is of trials with different generators.

use std::os::unix::process::CommandExt;
use std::process::Command;

use lab::session::Without;

use crate::common;

/// The error of a run that has lost a machine.
#[derive(Debug)]
pub struct Bereft {
    /// Which machine it is, and what is kept.
    pub why: String,
    /// The command that began the run.
    pub command: String,
    /// How another run can begin without the machine.
    pub without: Option<Without>,
}

impl std::fmt::Display for Bereft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Bereft {}

impl Bereft {
    /// Replaces this program by the run without the machine, if that was asked for. Returns if it was not, or cannot be done.
    pub fn go_on(&self) {
        let Some(without) = &self.without else { return };
        let words = shlex::split(&self.command).unwrap_or_default();
        let words = commanded(words, without);
        common::say(format_args!(
            "{}; another run begins: narrows {}",
            self.why,
            common::command_line(words.iter().cloned())
        ));
        let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let why = Command::new(own).args(words).exec();
        common::say(format_args!("the other run cannot begin: {why}"));
    }
}

/// The words of a command with other generators.
fn commanded(words: Vec<String>, without: &Without) -> Vec<String> {
    let mut words = words.into_iter();
    let mut commanded: Vec<String> = words.next().into_iter().collect();
    for machine in &without.others {
        commanded.extend(["--gen".to_owned(), machine.clone()]);
    }
    commanded.extend(["--without".to_owned(), without.lost.clone()]);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                commanded.push(word);
                break;
            }
            "--gen" => _ = words.next(),
            other if other.starts_with("--gen=") => {}
            _ => commanded.push(word),
        }
    }
    commanded.extend(words);
    commanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_the_other_run_names_the_other_generators() {
        let without = Without {
            lost: "ssh://b".to_owned(),
            others: vec!["ssh://a".to_owned(), "exec:x -o 'c,d'".to_owned()],
        };
        for (before, after) in [
            ("run e --gen ssh://a,ssh://b --quiet", "e --quiet"),
            ("run --gen=ssh://a e --gen ssh://b", "e"),
            ("run e --gen ssh://b --without ssh://z", "e --without ssh://z"),
            ("try --gen ssh://b -- --gen './server --gen x'", "-- --gen './server --gen x'"),
        ] {
            let words = shlex::split(before).expect("words");
            let verb = words[0].clone();
            let beginning = [&*verb, "--gen", "ssh://a", "--gen", "exec:x -o 'c,d'", "--without", "ssh://b"];
            let mut expected = beginning.map(str::to_owned).to_vec();
            expected.extend(shlex::split(after).expect("words"));
            assert_eq!(commanded(words, &without), expected, "{before}");
        }
    }
}
