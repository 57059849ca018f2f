//! Commands as systems: the options that say how a command is started and what is sent to it. `try` and `tune` share them.
//!
//! [`arms`] makes manifests of commands, [`names`] calls them, [`knobs`] reads lists and ranges of values, [`learn`] looks at a command
//! once, [`size`] counts their memory, and [`upstream`] gives commands a server behind them.

pub mod arms;
pub mod budget;
pub mod knobs;
pub mod learn;
mod names;
pub mod pace;
pub mod size;
mod upstream;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{anyhow, bail};
use lab::ask::{Ask, Payload};
use lab::experiment::Figure;
use lab::findings::SPARE;
use lab::plan::Plan;
use lab::session::Executor;
use load::Slo;
use load::target::Http;
use serde::{Deserialize, Serialize};
use systems::input::Source;
use systems::machine::Placement;
use systems::{Service, Value, Workload};
use wire::frames::Prefix;

use crate::common::{self, Usage};
use crate::fleet_args::FleetArgs;
use crate::reach::WayArgs;
use crate::requests_args::{FileArgs, Scripted};
use crate::tls_args::TlsArgs;
use crate::traffic::TrafficArgs;

/// Why no duet of this work can be had on these machines, in words that follow `--duet`. None if one can.
pub fn prevents_duets(workload: Workload, fleet: &FleetArgs) -> Option<&'static str> {
    if workload != Workload::Requests {
        return Some(
            "needs requests: a window of other work ends with its last operation, so two windows are not one",
        );
    }
    fleet.any().then_some("needs generator and servers on this machine: leave out --sut and --gen")
}

/// How commands are started, with which values of knobs, and what is sent to them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct CommandArgs {
    /// A knob with its values: w=1,2,4 or w=1..64*2 or w=1..16+1. {w} stands for the value in commands and in --env. The
    /// knobs `cores`, `memory` and `files` need no placeholder
    #[arg(short = 'k', long = "knob", value_name = "NAME=VALUES", display_order = 0)]
    pub knobs: Vec<String>,
    /// The same in hyperfine's form: -L w 1,2,4
    #[arg(short = 'L', long = "parameter-list", num_args = 2, value_names = ["NAME", "VALUES"], display_order = 0)]
    pub parameter_lists: Vec<String>,
    #[command(flatten, next_help_heading = "How commands are started")]
    #[serde(flatten)]
    pub start: StartArgs,
    #[command(flatten, next_help_heading = "What is sent")]
    #[serde(flatten)]
    pub sent: SentArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub tls: TlsArgs,
}

/// How commands are started.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct StartArgs {
    /// Set a variable in the environment of every command; the value may contain {w}
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Set a variable in the environment of every command, so that its runtime names the functions that it makes. With
    /// `NODE_OPTIONS=--perf-basic-prof`, `PYTHONPERFSUPPORT=1` or `ERL_FLAGS='+JPperf true'`, the answer says which of them takes
    /// more CPU time
    #[arg(long, value_name = "NAME=VALUE")]
    pub profile_env: Vec<String>,
    /// Give commands to `sh -c` instead of splitting them into words
    #[arg(long)]
    pub shell: bool,
    /// Run this command once for each point, before its first trial
    #[arg(long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Run this command before each trial
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run this command after each trial
    #[arg(long, value_name = "COMMAND")]
    pub conclude: Option<String>,
    /// Start this command before all trials and keep it running beside them: a database, an upstream
    #[arg(long = "service", value_name = "COMMAND")]
    pub services: Vec<String>,
    /// Start `narrows serve` on this port before all trials and keep it running beside them: a server for {upstream} in commands, which
    /// stands for its URL. It streams at /events/N and /v1/chat/completions
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "18080")]
    pub upstream: Option<u16>,
    /// How long a command may take until it listens [default: 10s, and up to 5m while it is busy, as `go run` is]
    #[arg(long, value_name = "TIME", value_parser = common::duration)]
    pub ready: Option<Duration>,
    /// Measure the process that holds the port even if it is outside the command's process group, as with a container
    #[arg(long)]
    pub attach: bool,
}

/// What is sent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct SentArgs {
    /// The path to request [default: that of the URL, or /]
    #[arg(long = "path", value_name = "PATH")]
    pub request_path: Option<String>,
    /// Send length-prefixed frames instead of requests
    #[arg(long)]
    pub frames: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub way: WayArgs,
}

/// The seed of what is random in files of requests: all trials send the same.
const SEED: u64 = 1;

/// The default of `--ready`.
const READY: Duration = Duration::from_secs(10);

/// A command that the shell split into words because it was not quoted, up to the word with the placeholder.
fn unquoted(words: &[String]) -> Option<String> {
    let bare = |word: &&String| !word.contains(char::is_whitespace);
    let words: Vec<&String> = words.iter().take_while(bare).collect();
    let end = words.iter().position(|word| word.contains("{port}") || word.contains("{socket}"))?;
    let command = words.get(..=end).filter(|command| command.len() > 1)?;
    Some(common::command_line(command.iter().map(|word| (*word).clone())))
}

fn quote(command: &str) -> String {
    format!("a command is one argument, so quote it: '{}'", command.replace('\'', ""))
}

/// What to say instead of clap's error when an option of an unquoted command was taken for one of Narrows: `try python3 -m
/// http.server {port}`.
pub fn misread(error: &clap::Error, words: &[String]) -> Option<String> {
    let (verb, words) = words.split_first()?;
    let ours =
        error.kind() == clap::error::ErrorKind::UnknownArgument && ["try", "tune"].contains(&verb.as_str());
    let from = words.iter().position(|word| !word.starts_with('-')).filter(|_| ours)?;
    unquoted(words.get(from..)?).map(|command| quote(&command))
}

impl CommandArgs {
    /// The options of the traffic.
    pub fn traffic(&self) -> &TrafficArgs {
        &self.sent.traffic
    }

    /// The work that these commands and URLs do.
    pub fn workload(&self, texts: &[String]) -> Workload {
        match self.sent.frames || texts.iter().all(|text| text.starts_with("frames://")) {
            true => Workload::Frames,
            false => Workload::Requests,
        }
    }

    /// Checks that no option contradicts another. `measured` is the time of a trial's window.
    ///
    /// # Errors
    /// The first that does.
    pub fn check(&self, workload: Workload, texts: &[String], measured: Duration) -> anyhow::Result<()> {
        let traffic = self.traffic();
        if let Some(why) = traffic.contradiction(workload.about().scheme) {
            bail!(Usage(why.to_owned()));
        }
        if let Some(command) = unquoted(texts) {
            bail!(Usage(quote(&command)));
        }
        self.check_tls(workload, texts).map_err(Usage)?;
        self.check_file(workload, texts).map_err(Usage)?;
        self.check_way(workload, texts).map_err(Usage)?;
        if traffic.rate.is_some_and(|(rate, _)| rate < 1.0 || rate.fract() != 0.0) {
            bail!(Usage("--rate is a whole number of arrivals per second here".to_owned()));
        }
        if measured < Duration::from_millis(10) || traffic.timeout.is_zero() {
            bail!(Usage("-d is 10ms or more, and --timeout above zero".to_owned()));
        }
        if traffic.frame_prefix.is_some_and(|prefix| prefix != Prefix::Four) {
            bail!(Usage("--frame-prefix is 4 here: `narrows load` can use others".to_owned()));
        }
        if traffic.rate.is_some_and(|(from, to)| from != to) {
            bail!(Usage("--rate must not be a ramp here: every trial has the same arrivals".to_owned()));
        }
        Ok(())
    }

    /// What contradicts the way of connections.
    fn check_way(&self, workload: Workload, texts: &[String]) -> Result<(), String> {
        let way = &self.sent.way;
        match () {
            () if way.proxy_protocol.is_some() && workload != Workload::Requests => Err(
                "--proxy-protocol works only with requests here; `narrows load` has it for frames".to_owned(),
            ),
            () if way.leads_elsewhere() && !texts.is_empty() && !texts.iter().any(|text| arms::is_url(text)) => Err(
                "--unix and --connect-to are for servers that run already, which URLs name: a command with {socket} listens on a \
                 Unix socket of Narrows' own"
                    .to_owned(),
            ),
            () => Ok(()),
        }
    }

    /// What contradicts a file of requests.
    fn check_file(&self, workload: Workload, texts: &[String]) -> Result<(), String> {
        if !self.sent.file.any() {
            return Ok(());
        }
        let has_path =
            texts.iter().filter(|text| arms::is_url(text)).any(|url| arms::split_path(url).1.len() > 1);
        match () {
            () if workload != Workload::Requests => {
                Err("--requests works only with requests, not with frames".to_owned())
            }
            () if self.sent.request_path.is_some() => {
                Err("the file of --requests has the paths: leave --path out".to_owned())
            }
            () if has_path => {
                Err("the file of --requests has the paths: end the URLs after their ports".to_owned())
            }
            () => Ok(()),
        }
    }

    /// The requests of the file that is to be sent. None if there is no file.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong.
    pub fn script(&self) -> anyhow::Result<Option<Scripted>> {
        let traffic = self.traffic();
        let http = Http {
            headers: traffic.headers.clone(),
            expect: traffic.checks.expect(),
            ..Http::get("127.0.0.1:65535", "/")
        };
        self.sent.file.script(&http, SEED, &traffic.first.names())
    }

    /// The first option of TLS that means nothing here.
    fn check_tls(&self, workload: Workload, texts: &[String]) -> Result<(), String> {
        let secured = texts.iter().any(|text| text.starts_with("https://"));
        let told = texts.iter().chain(&self.start.env).any(|text| text.contains("{cert}"));
        if (secured || told) && workload.knob("tls").is_none() {
            return Err(format!("TLS is spoken with requests, not with {workload}"));
        }
        if self.tls.any() && !secured && !told {
            return Err("options of TLS need an arm with https:// or with {cert} in its command".to_owned());
        }
        match self.tls.of_certificates() {
            Some(option) if !secured => Err(format!(
                "{option} is for https:// arms: Narrows makes the certificate of a command with {{cert}}"
            )),
            _ => self.tls.version().map(|_| ()),
        }
    }

    /// What is sent. None for frames, whose contract says it. `scripted` are the requests of a file.
    ///
    /// # Errors
    /// The path or the body is not one, or URLs have different paths.
    pub fn ask(
        &self,
        workload: Workload,
        texts: &[String],
        scripted: Option<&Scripted>,
        unequal: bool,
    ) -> anyhow::Result<Option<Ask>> {
        if workload != Workload::Requests {
            return Ok(None);
        }
        let traffic = self.traffic();
        let body = traffic.body()?;
        let path = self.path_asked(texts)?;
        let first = traffic.first.read(&traffic.headers)?;
        if scripted.is_none() {
            let body = match &body {
                Payload::Bytes(bytes) => std::str::from_utf8(&bytes.0).unwrap_or_default(),
                Payload::None | Payload::Size(_) => "",
            };
            traffic.check_values(&path, body)?;
        }
        Ok(Some(Ask {
            first,
            method: traffic.method(&body),
            headers: traffic.headers.clone(),
            body,
            expect_continue: traffic.expect_continue,
            status: traffic.checks.expect_status,
            expect: traffic.checks.expect.clone(),
            compressed: traffic.checks.compressed,
            stream: traffic.checks.stream.map(Into::into),
            unequal,
            list: scripted.map(|scripted| scripted.listed.clone()),
            proxy_protocol: self.sent.way.proxy_protocol,
            ..Ask::get(path)
        }))
    }

    /// The path of `--path`, or that of the URLs.
    fn path_asked(&self, texts: &[String]) -> anyhow::Result<String> {
        let urls = texts.iter().filter(|text| arms::is_url(text));
        let mut paths = urls.map(|url| arms::split_path(url).1).filter(|path| !path.is_empty());
        let first = paths.next();
        if self.sent.request_path.is_none() && paths.any(|path| Some(path) != first) {
            bail!(Usage("the URLs have different paths: give one with --path".to_owned()));
        }
        let path = self.sent.request_path.as_deref().or(first).unwrap_or("/");
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!(Usage(format!("{path:?} is not a path: write one such as /users?id=1, without spaces")));
        }
        Ok(path.to_owned())
    }

    /// The knobs of the workload that are held fixed, with their values. `rate` is in arrivals per second; None for a closed
    /// loop.
    pub fn held(&self, workload: Workload, rate: Option<f64>) -> Vec<(&'static str, Value)> {
        let (traffic, given) = (self.traffic(), self.traffic().given());
        let value = |knob: &str| match given.iter().find(|(_, known, _)| *known == knob) {
            Some((_, _, value)) => Some(value.clone()),
            None if knob == "connections" => i64::try_from(traffic.connections()).ok().map(Value::Integer),
            None => workload.knob(knob).map(|knob| knob.default.clone()),
        };
        let knobs: &[&str] = match workload {
            Workload::Frames => &["connections", "frame_size"],
            _ if traffic.http2 => &["connections", "keep_alive", "http", "streams"],
            _ => &["connections", "keep_alive", "pipeline"],
        };
        let mut held: Vec<(&str, Value)> =
            knobs.iter().filter_map(|knob| Some((*knob, value(knob)?))).collect();
        let of_allowance = given.iter().filter(|(_, knob, _)| ["window", "hpack_table"].contains(knob));
        held.extend(of_allowance.map(|(_, knob, value)| (*knob, value.clone())));
        if let Some(rate) = rate.filter(|_| workload != Workload::Frames) {
            held.push(("rate", Value::Integer((rate.round() as i64).max(1))));
            held.extend(value("gaps").map(|gaps| ("gaps", gaps)));
        }
        held
    }

    /// The knobs of TLS with their values: of systems that are spoken to in TLS, or of others.
    ///
    /// # Errors
    /// The options name several versions.
    pub fn of_scheme(&self, secured: bool) -> anyhow::Result<Vec<(&'static str, Value)>> {
        let word = |word: &str| Value::Text(word.to_owned());
        if !secured {
            return Ok(vec![("tls", word("off"))]);
        }
        let version = self.tls.version().map_err(Usage)?;
        let sessions = if self.tls.offers_sessions() { "always" } else { "never" };
        Ok(vec![("tls", word(version.name())), ("sessions", word(sessions))])
    }

    /// Whether services run beside the system.
    pub fn has_services(&self) -> bool {
        !self.start.services.is_empty() || self.start.upstream.is_some()
    }

    /// It with the URL of `--upstream` in its commands and in these.
    ///
    /// # Errors
    /// No command has a place for it, or one has a place and there is no server.
    pub fn with_upstream(mut self, texts: &mut [String]) -> Result<Self, Usage> {
        let given = self.knobs.iter().filter_map(|knob| Some(knob.split_once('=')?.0));
        let listed = self.parameter_lists.iter().step_by(2).map(String::as_str);
        self.start.put_upstream(texts, given.chain(listed)).map_err(Usage)?;
        Ok(self)
    }

    /// Starts the services. They stop when they are dropped.
    ///
    /// # Errors
    /// One cannot be started, with the end of its output.
    pub fn services(
        &self,
        dir: &Path,
        placement: &Placement,
        cancel: &AtomicBool,
    ) -> anyhow::Result<Vec<Service>> {
        let ready = self.start.ready.unwrap_or(READY);
        let typed = self.start.services.iter();
        let typed =
            typed.map(|text| Ok(arms::words(&Source::new("--service", text.as_str()), self.start.shell)?));
        let own = self.start.upstream_words().transpose();
        let start = |words: anyhow::Result<Vec<String>>| {
            let started = Service::start(&words?, dir, &placement.system, ready, cancel);
            started
                .map_err(|error| anyhow!("{}: {}\n{}", error.system, error.reason, error.output.trim_end()))
        };
        own.into_iter().chain(typed).map(start).collect()
    }

    /// The first given option that a system with a manifest does not take, and what to do instead.
    pub fn of_commands_only(&self) -> Option<(&'static str, &'static str)> {
        const STARTED: &str = "the manifest of a system says how it is started";
        const SENT: &str = "its workload says what is sent";
        let (start, sent, traffic) = (&self.start, &self.sent, self.traffic());
        let options = [
            (!start.env.is_empty(), "--env", STARTED),
            (!start.profile_env.is_empty(), "--profile-env", STARTED),
            (start.shell, "--shell", STARTED),
            (start.setup.is_some(), "--setup", STARTED),
            (start.prepare.is_some(), "--prepare", STARTED),
            (start.conclude.is_some(), "--conclude", STARTED),
            (!start.services.is_empty(), "--service", STARTED),
            (start.upstream.is_some(), "--upstream", STARTED),
            (start.ready.is_some(), "--ready", STARTED),
            (start.attach, "--attach", STARTED),
            (sent.request_path.is_some(), "--path", SENT),
            (sent.frames, "--frames", "choose the work with --workload frames"),
            (sent.file.any(), "--requests", SENT),
            (sent.way.proxy_protocol.is_some(), "--proxy-protocol", SENT),
            (sent.way.leads_elsewhere(), "--unix or --connect-to", STARTED),
            (traffic.of_own_requests(), "an option of requests or of their checks", SENT),
            (traffic.frame_prefix.is_some(), "--frame-prefix", SENT),
            (self.tls.any(), "an option of TLS", "choose a version with --set tls=1.3"),
        ];
        options.into_iter().find(|(given, ..)| *given).map(|(_, option, why)| (option, why))
    }
}

/// Brings the requests of a file to the executor of a saved run.
///
/// # Errors
/// They are no longer those of its plan.
pub fn bring_again(
    scripted: Option<Scripted>,
    plan: &Plan,
    executor: &mut dyn Executor,
) -> anyhow::Result<()> {
    let Some(Scripted { script, listed }) = scripted else { return Ok(()) };
    let mut asked = plan.experiments.iter().filter_map(|planned| planned.ask.as_ref()?.list.as_ref());
    if asked.any(|known| known.sha256 != listed.sha256) {
        bail!(
            "{}, its data or a body has changed since the run began: restore it, or begin another run",
            listed.file
        );
    }
    executor.bring(script);
    Ok(())
}

/// Checks that a trial of this length has enough answers at this rate, in arrivals per second, for the percentiles of its figures
/// and of its objectives.
///
/// # Errors
/// It has not, and how long it must be.
pub fn check_answers(
    figures: &[Figure],
    slo: Option<&Slo>,
    rate: f64,
    duration: Duration,
) -> Result<(), Usage> {
    // A row's percentile needs as many in all its trials. There may be three of these, and one alone should not be a matter of luck.
    let of_figures = figures.iter().filter_map(|figure| {
        let option = if *figure == Figure::P50Us { "--figure p50" } else { "--figure p99" };
        Some((option, figure.percentile().and_then(stats::samples_needed)?))
    });
    let of_objectives = slo.map(|slo| ("--slo", slo.answers_needed()));
    for (option, needed) in of_figures.chain(of_objectives) {
        let least_s = needed as f64 / rate.max(1e-3);
        if duration.as_secs_f64() < least_s {
            return Err(Usage(format!(
                "{option} needs {needed} answers in each trial, and {rate:.0} arrive in a second: use -d {:.0}s or more",
                (least_s * SPARE).ceil()
            )));
        }
    }
    Ok(())
}

/// Says if a knob that sets a number of workers has a value above the number of cores that systems get.
pub fn warn_of_workers(knobs: &[(String, Vec<Value>)], cores: usize) {
    if let Some((knob, most)) = knobs::more_than_cores(knobs, cores) {
        let cores = report::number::several(cores as u64, "core");
        common::say(format_args!("warning: {knob}={most} is more than the {cores} that a system gets here"));
    }
}

/// Stops the services. Says if one had ended by itself.
pub fn stop(services: Vec<Service>) {
    if services.iter().any(|service| !service.runs()) {
        common::say("warning: a service ended during the run, so later trials lacked it");
    }
}
