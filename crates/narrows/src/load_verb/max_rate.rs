//! `narrows load --find-max-rate`: the highest open-loop rate at which the objectives hold.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use load::search::Search;
use load::{Arrivals, Job, LoadError, Schedule, Tally};
use serde::Serialize;

use super::slo::Slo;

/// One rate that was tried.
#[derive(Debug, Serialize)]
pub struct Step {
    rate: f64,
    throughput_per_s: f64,
    holds: bool,
    /// What did not hold.
    why: Option<String>,
}

/// The bracket, and how it was found.
#[derive(Debug, Serialize)]
pub struct Found {
    /// The highest rate that held; null if none did.
    pub holds: Option<f64>,
    /// The lowest rate that failed; null if none did.
    pub fails: Option<f64>,
    steps: Vec<Step>,
}

/// Rates above this are beyond what one machine generates.
const HIGHEST: f64 = 10_000_000.0;

/// Tries rates until the bracket is narrow.
pub fn find(
    job: &Job,
    schedule: Schedule,
    slo: &Slo,
    cancel: &AtomicBool,
    mut told: impl FnMut(&Step),
) -> Result<Found, LoadError> {
    let mut search = Search::new(schedule.from, HIGHEST);
    let mut steps = Vec::new();
    while let Some(rate) = search.next() {
        let mut job = job.clone();
        job.arrivals = Arrivals::Open(Schedule { from: rate, to: rate, ..schedule });
        let tally = load::drive(&job, cancel, &|_| {})?;
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let step = step(rate, slo, &tally);
        search.tried(rate, step.holds);
        told(&step);
        steps.push(step);
    }
    Ok(Found { holds: search.holds, fails: search.fails, steps })
}

fn step(rate: f64, slo: &Slo, tally: &Tally) -> Step {
    let why = slo.broken(tally);
    Step { rate, throughput_per_s: tally.throughput(), holds: why.is_none(), why }
}

impl Step {
    /// A line for people.
    pub fn line(&self) -> String {
        let end = self.why.as_ref().map_or("holds".to_owned(), |why| format!("fails: {why}"));
        format!("  {:>10.0}/s offered, {:>10.0}/s verified: {end}\n", self.rate, self.throughput_per_s)
    }
}

impl Found {
    /// The last line for people.
    pub fn line(&self) -> String {
        match (self.holds, self.fails) {
            (Some(holds), Some(fails)) => format!("holds at {holds:.0}/s, fails at {fails:.0}/s\n"),
            (Some(holds), None) => format!("holds at {holds:.0}/s; nothing higher was tried\n"),
            (None, Some(fails)) => format!("fails at {fails:.0}/s and at every higher rate tried\n"),
            (None, None) => "nothing was tried\n".to_owned(),
        }
    }

    /// 0 when some rate held, 3 (a threshold failed) when none did.
    pub fn code(&self) -> ExitCode {
        if self.holds.is_some() { ExitCode::SUCCESS } else { ExitCode::from(3) }
    }
}
