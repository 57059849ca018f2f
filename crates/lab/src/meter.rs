//! Another program that drives the servers of an experiment in the place of Narrows' generator, and measures them: a *meter*
//! (`narrows try --driver`). Its figures are those that it prints. Narrows does not see the answers, so it cannot verify them.
//!
//! Values only. [`session`](crate::session) runs the program. It is not a client driver (docs/contracts.md, "A client driver"):
//! that one is measured itself.

mod read;
mod readers;

use std::path::Path;
use std::time::Duration;

use answers::Capture;
use serde::{Deserialize, Serialize};
use systems::{Figure, template};

pub use read::{Found, place};
pub use readers::Reader;

/// The placeholders in a meter's command.
pub const PLACES: [&str; 5] = ["host", "port", "socket", "connections", "duration"];

/// A program that drives servers and measures them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Meter {
    /// The name of the program. It measured; the answers are not verified.
    pub name: String,
    /// The words of its command, with the placeholders `host`, `port`, `socket`, `connections` and `duration`.
    pub command: Vec<String>,
    /// Where figures are in its output, in place of or beside those of the reader that is built in for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub reads: Vec<Capture>,
    /// The percentiles of latencies that it must print, because they are asked for: 50, 99.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<u32>,
}

impl Meter {
    /// A meter with this command. A program for which a reader is built in may also be called by a shell in the command.
    ///
    /// # Errors
    /// The command is empty, has an unknown placeholder, or nobody knows where its rate is.
    pub fn new(command: Vec<String>, reads: Vec<Capture>) -> Result<Self, String> {
        let first = command.first().ok_or("it is empty")?;
        for name in command.iter().map(|word| template::names(word)).collect::<Result<Vec<_>, _>>()?.concat()
        {
            if !PLACES.contains(&name.as_str()) {
                return Err(format!("{{{name}}} is no placeholder of a driver: it has {}", shown(&PLACES)));
            }
        }
        let name = match tokens(&command).filter_map(Reader::of).last() {
            Some(reader) => reader.name().to_owned(),
            None => base_name(first).to_owned(),
        };
        let meter = Self { name, command, reads, percentiles: Vec::new() };
        match meter.reader() {
            None if !meter.reads.iter().any(|read| read.name() == "rate") => Err(format!(
                "no reader is built in for `{}`, only for {}: say where its rate is, with --read rate=json.a.b or --read 'rate=/REGEX/'",
                meter.name,
                Reader::ALL.map(Reader::name).join(", ")
            )),
            _ => Ok(meter),
        }
    }

    /// The reader that is built in for it.
    pub fn reader(&self) -> Option<Reader> {
        Reader::of(&self.name)
    }

    /// The words of its command.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &str> {
        tokens(&self.command)
    }

    /// Whether its command has this placeholder.
    pub fn has(&self, place: &str) -> bool {
        let names = self.command.iter().filter_map(|word| template::names(word).ok());
        names.flatten().any(|name| name == place)
    }

    /// Whether Narrows says how long it drives. Otherwise it ends when it has done its work.
    pub fn is_timed(&self) -> bool {
        self.has("duration")
    }

    /// How long it drives if it is to drive for this time: whole seconds, at least one, because few programs take parts of them.
    pub fn duration(time: Duration) -> Duration {
        Duration::from_secs((time.as_secs_f64().ceil() as u64).max(1))
    }

    /// Why it cannot give a figure. None if it can, as far as is known before it has run.
    pub fn lacks(&self, figure: Figure) -> Option<String> {
        let name = &self.name;
        match figure {
            Figure::P50Us | Figure::P99Us => {
                let word = if figure == Figure::P50Us { "p50" } else { "p99" };
                let read = self.reads.iter().any(|each| read::of_time(each.name(), word).is_some());
                let built_in = self.reader().is_some_and(Reader::has_percentiles);
                (!read && !built_in).then(|| {
                    format!(
                        "{name} prints no {word} that Narrows knows: say where it is with --read {word}=…"
                    )
                })
            }
            Figure::RequestsPerS | Figure::MemoryBytes | Figure::IdleMemoryBytes | Figure::IdleCpu => None,
            Figure::CpuPerUnit | Figure::CallsPerUnit | Figure::InstructionsPerUnit => None,
            _ => Some(format!(
                "{name} measures requests as a whole, and only Narrows' own generator sees single answers"
            )),
        }
    }
}

/// The parts of words at white space and the signs of a shell.
fn tokens(command: &[String]) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || ";&|()'\"".contains(c);
    command.iter().flat_map(move |word| word.split(ends)).filter(|part| !part.is_empty())
}

/// A program's name without its folder.
fn base_name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}

fn shown(places: &[&str]) -> String {
    places.iter().map(|place| format!("{{{place}}}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(words: &[&str], reads: &[&str]) -> Result<Meter, String> {
        let reads = reads.iter().map(|read| place(read)).collect::<Result<_, _>>()?;
        Meter::new(words.iter().map(|word| (*word).to_owned()).collect(), reads)
    }

    #[test]
    fn a_meter_is_called_by_the_program_whose_output_is_read() {
        for (words, name) in [
            (&["/usr/bin/wrk", "-d", "{duration}", "http://{host}:{port}/"][..], "wrk"),
            (&["sh", "-c", "until pg_isready -p {port}; do :; done; exec pgbench -p {port}"], "pgbench"),
            (&["taskset", "-c", "1", "redis-benchmark", "-p", "{port}"], "redis-benchmark"),
        ] {
            assert_eq!(meter(words, &[]).map(|meter| meter.name), Ok(name.to_owned()), "{words:?}");
        }
        assert_eq!(
            meter(&["/opt/k6", "run"], &["rate=json.rps"]).map(|meter| meter.name),
            Ok("k6".to_owned())
        );
    }

    #[test]
    fn a_command_that_cannot_be_read_is_refused() {
        for (words, reads, said) in [
            (&[][..], &[][..], "it is empty"),
            (&["k6", "run"], &[], "no reader is built in for `k6`"),
            (&["k6", "run"], &["p99_ms=json.p99"], "say where its rate is"),
            (&["wrk", "{prot}"], &[], "{prot} is no placeholder of a driver"),
            (&["wrk", "{"], &[], "a single `{`"),
        ] {
            let wrong = meter(words, reads).expect_err(said);
            assert!(wrong.contains(said), "{words:?}: {wrong}");
        }
    }

    #[test]
    fn figures_that_a_program_does_not_print_are_known_before_it_runs() {
        let lacks = |words: &[&str], reads: &[&str], figure| {
            meter(words, reads).map(|meter| meter.lacks(figure).is_some())
        };
        for (words, reads, figure, lacking) in [
            (&["wrk"][..], &[][..], Figure::P99Us, false),
            (&["pgbench"], &[], Figure::P99Us, true),
            (&["pgbench"], &["p99_ms=/p99 (.*)/"], Figure::P99Us, false),
            (&["pgbench"], &["p99_ms=/p99 (.*)/"], Figure::P50Us, true),
            (&["pgbench"], &[], Figure::CpuPerUnit, false),
            (&["wrk"], &[], Figure::FirstEventUs, true),
            (&["wrk"], &[], Figure::StartMs, true),
        ] {
            assert_eq!(lacks(words, reads, figure), Ok(lacking), "{words:?} {figure:?}");
        }
    }

    #[test]
    fn it_drives_for_whole_seconds() {
        let seconds = |millis| Meter::duration(Duration::from_millis(millis)).as_secs();
        assert_eq!([0, 200, 1000, 1001, 2500].map(seconds), [1, 1, 1, 2, 3]);
        let timed = |words: &[&str]| meter(words, &[]).map(|meter| meter.is_timed());
        assert_eq!((timed(&["wrk", "-d", "{duration}"]), timed(&["wrk"])), (Ok(true), Ok(false)));
    }
}
