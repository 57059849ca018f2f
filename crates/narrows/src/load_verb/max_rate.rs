//! `narrows load --find-max-rate`: the highest open-loop rate at which the objectives hold.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use lab::doubt::GENERATOR_BUSY;
use load::search::Search;
use load::{ArrivalSchedule, Arrivals, Job, Stop, Tally};
use report::number::exact_rate;
use serde::Serialize;

use super::slo::Slo;
use crate::common::Usage;

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
/// No rate below this share of the first is tried.
const LOWEST: f64 = 1.0 / 1024.0;
/// A try at a low rate is lengthened to the answers that its objectives take, by this factor at most.
const LONGEST: f64 = 4.0;
/// Twice what it takes: what is under way at the end is no answer, and may be much of a short window.
const SPARE: f64 = 2.0;

/// How long each try lasts: what was asked, or longer where the objectives take more answers.
#[derive(Clone, Copy)]
struct Window {
    asked_s: f64,
    answers: f64,
}

impl Window {
    fn at(self, rate: f64) -> Duration {
        Duration::from_secs_f64(self.asked_s.max(self.answers / rate))
    }

    /// The lowest rate whose window is not too long.
    fn lowest(self) -> f64 {
        self.answers / (LONGEST * self.asked_s)
    }
}

/// Tries rates until the bracket is narrow.
///
/// # Errors
/// The first rate has not enough answers in any try for the objectives; nothing could be driven.
pub fn find(
    job: &Job,
    schedule: ArrivalSchedule,
    slo: &Slo,
    cancel: &AtomicBool,
    mut told: impl FnMut(&Step),
) -> anyhow::Result<Found> {
    let Stop::After(asked) = job.stop else { bail!("--find-max-rate takes a length, not a number") };
    let window = Window { asked_s: asked.as_secs_f64(), answers: slo.answers_needed() as f64 * SPARE };
    if window.lowest() > schedule.from {
        bail!(Usage(format!(
            "the objectives take {} answers, for which {} a second take more than {LONGEST} times -d: give -d {:.1}s or more, \
             or --rate {:.0} or more",
            slo.answers_needed(),
            schedule.from,
            (window.answers / schedule.from / LONGEST).max(0.1),
            window.lowest().ceil()
        )));
    }
    let lowest = window.lowest().max(schedule.from * LOWEST);
    let mut search = Search::new(schedule.from, lowest, HIGHEST);
    let mut steps = Vec::new();
    while let Some(rate) = search.next() {
        let mut job = job.clone();
        job.arrivals = Arrivals::Open(ArrivalSchedule { from: rate, to: rate, ..schedule });
        job.stop = Stop::After(window.at(rate));
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
    let busy = tally.busiest > GENERATOR_BUSY;
    let why = slo.broken(tally).map(|why| match busy {
        true => format!("{why}; the generator was at its limit, and the target may hold more"),
        false => why,
    });
    Step { rate, throughput_per_s: tally.throughput(), holds: why.is_none(), why }
}

impl Step {
    /// A line for people.
    pub fn line(&self) -> String {
        let end = self.why.as_ref().map_or("holds".to_owned(), |why| format!("fails: {why}"));
        let (offered, verified) = (exact_rate(self.rate), exact_rate(self.throughput_per_s));
        format!("  {offered:>12} offered, {verified:>12} verified: {end}\n")
    }
}

impl Found {
    /// The last line for people.
    pub fn line(&self) -> String {
        match (self.holds, self.fails) {
            (Some(holds), Some(fails)) => {
                format!("holds at {}, fails at {}\n", exact_rate(holds), exact_rate(fails))
            }
            (Some(holds), None) => format!("holds at {}; nothing higher was tried\n", exact_rate(holds)),
            (None, Some(fails)) => format!(
                "fails at {} and at every higher rate tried; a longer -d tries lower ones\n",
                exact_rate(fails)
            ),
            (None, None) => "nothing was tried\n".to_owned(),
        }
    }

    /// 0 when some rate held, 3 (a threshold failed) when none did.
    pub fn code(&self) -> ExitCode {
        if self.holds.is_some() { ExitCode::SUCCESS } else { ExitCode::from(3) }
    }
}
