//! The options of `narrows try` that let another program drive the servers and measure them.

use std::path::Path;
use std::time::Duration;

use answers::Capture;
use anyhow::anyhow;
use lab::experiment::Figure;
use lab::meter::{self, Meter};
use lab::observation::Timing;
use serde::{Deserialize, Serialize};
use systems::input::Source;
use systems::{Workload, debian, template};

use crate::command::{CommandArgs, arms};
use crate::common::{self, Usage};

/// Another generator.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Another generator")]
pub struct DriverArgs {
    /// Let this command drive the servers in place of Narrows' generator, such as 'wrk -d {duration} http://{host}:{port}/'. Its figures
    /// are those that it prints, and its answers are not verified. {host}, {port} or {socket} say where a server listens, {connections}
    /// has the number of -c, and {duration} the time of -d in whole seconds. The outputs of h2load, wrk, memtier_benchmark, pgbench and
    /// redis-benchmark are known
    #[arg(long, value_name = "COMMAND")]
    driver: Option<String>,
    /// Where a figure is in the output of --driver: rate=json.a.b, p99_ms=json.latency.p99 or 'rate=/([0-9.]+) req/' with the first
    /// group. Figures are rate, requests, failed, p50 and p99; may be repeated
    #[arg(long = "read", value_name = "FIGURE=PLACE", requires = "driver", value_parser = meter::place)]
    reads: Vec<Capture>,
    /// How long the command of --driver may take, beside {duration} if it has that, before it is killed [default: 5m]
    #[arg(long, value_name = "TIME", requires = "driver", value_parser = common::duration)]
    driver_timeout: Option<Duration>,
}

/// The default of `--driver-timeout`.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The default of `--timeout`, which is no option of another program.
const TIMEOUT_OF_REQUESTS: Duration = Duration::from_secs(30);

impl DriverArgs {
    /// Whether another program drives.
    pub fn given(&self) -> bool {
        self.driver.is_some()
    }

    /// Whether its command has this placeholder.
    pub fn has(&self, place: &str) -> bool {
        let names = self.driver.as_deref().and_then(|text| template::names(text).ok());
        names.is_some_and(|names| names.iter().any(|name| name == place))
    }

    /// The program that drives. `shell` gives its command to `sh -c`. It must print the percentiles among these figures.
    ///
    /// # Errors
    /// The command is none, its program is not there, or nobody can read its output.
    pub fn meter(&self, shell: bool, figures: &[Figure]) -> anyhow::Result<Option<Meter>> {
        let Some(text) = &self.driver else { return Ok(None) };
        let wrong = |why: String| Usage(format!("--driver {text:?}: {why}"));
        let words = arms::words(&Source::new("--driver", text.as_str()), shell).map_err(|e| anyhow!(e));
        let words = words.map_err(common::of_usage)?;
        let program = words.first().map_or("", String::as_str);
        let there =
            if program.contains('/') { Path::new(program).is_file() } else { debian::is_installed(program) };
        if !there && !program.is_empty() {
            return Err(wrong(format!(
                "there is no program `{program}`: is it installed, or is its path wrong?"
            ))
            .into());
        }
        let meter = Meter::new(words, self.reads.clone()).map_err(wrong)?;
        if let Some(why) = figures.iter().find_map(|figure| meter.lacks(*figure)) {
            return Err(Usage(format!("--figure: {why}")).into());
        }
        let percentiles = figures.iter().filter_map(|figure| figure.percentile()).map(|p| p as u32).collect();
        Ok(Some(Meter { percentiles, ..meter }))
    }

    /// The timing of its trials. A window has whole seconds if the command has `{duration}`.
    pub fn timing(&self, warmup: Option<Duration>, window: Duration) -> Timing {
        let whole = |time: Duration| if self.has("duration") { Meter::duration(time) } else { time };
        Timing {
            warmup_s: warmup.map_or(0.0, |warmup| whole(warmup).as_secs_f64()),
            measure_s: whole(window).as_secs_f64(),
            timeout_s: self.driver_timeout.unwrap_or(TIMEOUT).as_secs_f64(),
        }
    }

    /// Checks that no option is given beside it that only Narrows' own generator knows. `others` are options of the verb, and whether
    /// they are given.
    ///
    /// # Errors
    /// The first option that is.
    pub fn check(
        &self,
        command: &CommandArgs,
        workload: Workload,
        others: &[(bool, &str)],
    ) -> Result<(), Usage> {
        if !self.given() {
            return Ok(());
        }
        if workload != Workload::Requests {
            return Err(Usage("--driver drives servers of its own protocol: leave frames out".to_owned()));
        }
        if let Some(option) = of_our_generator(command, others) {
            return Err(Usage(format!(
                "{option} is an option of Narrows' own generator: leave it out, or --driver"
            )));
        }
        let unknown = |option: &str, place: &str| {
            Err(Usage(format!("{option} does not reach the command of --driver, which has no {{{place}}}")))
        };
        let knobs = command.knobs.iter().filter_map(|knob| Some(knob.split_once('=')?.0));
        let listed = command.parameter_lists.iter().step_by(2).map(String::as_str);
        for knob in knobs.chain(listed).filter(|knob| workload.knob(knob).is_some()) {
            match knob {
                "connections" if self.has("connections") => {}
                "connections" => return unknown("-k connections", "connections"),
                _ => {
                    return Err(Usage(format!(
                        "-k {knob} is a knob of Narrows' own generator: leave it out, or --driver"
                    )));
                }
            }
        }
        if command.traffic().connections.is_some() && !self.has("connections") {
            return unknown("-c", "connections");
        }
        let timed = [(others_given(others, DURATION), "-d"), (others_given(others, WARMUP), "--warmup")];
        match timed.into_iter().find(|(given, _)| *given && !self.has("duration")) {
            Some((_, option)) => unknown(option, "duration"),
            None => Ok(()),
        }
    }
}

/// Options of the verb that reach the command by a placeholder.
pub const DURATION: &str = "-d";
pub const WARMUP: &str = "--warmup";

fn others_given(others: &[(bool, &str)], option: &str) -> bool {
    others.iter().any(|(given, known)| *given && *known == option)
}

/// The first given option that only Narrows' own generator knows.
fn of_our_generator(command: &CommandArgs, others: &[(bool, &str)]) -> Option<String> {
    let (traffic, sent) = (command.traffic(), &command.sent);
    let of_knobs =
        traffic.given().into_iter().map(|(option, ..)| option).find(|option| *option != "--connections");
    let options = [
        (traffic.timeout != TIMEOUT_OF_REQUESTS, "--timeout"),
        (traffic.request.is_some(), "--request"),
        (!traffic.headers.is_empty(), "--header"),
        (traffic.body.is_some(), "--body"),
        (traffic.body_size.is_some(), "--body-size"),
        (traffic.expect_continue, "--expect-continue"),
        (traffic.frame_prefix.is_some(), "--frame-prefix"),
        (!traffic.checks.expect.is_empty(), "--expect"),
        (traffic.checks.expect_status.is_some(), "--expect-status"),
        (traffic.checks.compressed, "--compressed"),
        (traffic.checks.stream.is_some(), "--stream"),
        (traffic.first.any(), "--first"),
        (sent.request_path.is_some(), "--path"),
        (sent.file.any(), "--requests"),
        (sent.way.proxy_protocol.is_some(), "--proxy-protocol"),
        (sent.way.leads_elsewhere(), "--unix or --connect-to"),
        (command.tls.any(), "an option of TLS"),
    ];
    let of_verb = others.iter().copied().filter(|(_, option)| ![DURATION, WARMUP].contains(option));
    let given = options.into_iter().chain(of_verb).find(|(given, _)| *given).map(|(_, option)| option);
    of_knobs.or(given).map(str::to_owned)
}
