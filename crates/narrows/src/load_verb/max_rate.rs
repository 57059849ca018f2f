//! `narrows load --find-max-rate`: the highest open-loop rate at which the objectives hold.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use load::search::{Course, HIGHEST, Ladder, Search, Window};
use load::{ArrivalSchedule, Arrivals, Job, Slo, Stop, Tally};
use measurement::doubt::{GENERATOR_BUSY, more_generators};
use report::number::exact_rate;
use serde::Serialize;

use crate::common::Usage;

/// A rate that was tried.
#[derive(Debug, Serialize)]
pub struct Tried {
    rate: f64,
    throughput_per_s: f64,
    holds: bool,
    /// The objective that does not hold.
    why: Option<String>,
}

/// The bracket around the highest rate, and the rates that were tried to find it.
#[derive(Debug, Serialize)]
pub struct Bracket {
    /// The highest rate that held. Null if none did.
    pub holds: Option<f64>,
    /// The lowest rate that failed. Null if none did.
    pub fails: Option<f64>,
    steps: Vec<Tried>,
}

/// The lowest rate that is tried, as a share of the first.
const LOWEST: f64 = 1.0 / 1024.0;
/// The rungs from a rate to its double. Trials at one rate differ by about as much as two neighbours.
const OCTAVE: i32 = 16;
/// The number of tries at most.
const MOST: usize = 60;

/// Tries rates until the bracket is narrow.
///
/// # Errors
/// The first rate is too low for the objectives, or the target could not be driven.
pub fn find(
    job: &Job,
    schedule: ArrivalSchedule,
    slo: &Slo,
    (drive, cancel): (&mut DriveWith<'_>, &AtomicBool),
    mut report: impl FnMut(&Tried),
) -> anyhow::Result<Bracket> {
    let Stop::After(requested) = job.stop else { bail!("--find-max-rate needs a duration, not a number") };
    let window = Window::new(slo, requested);
    if window.lowest_rate() > schedule.from {
        bail!(Usage(format!(
            "the objectives need {} answers, and at {} per second these take more than {} times -d: use -d {:.1}s or \
             more, or --rate {:.0} or more",
            slo.answers_needed(),
            schedule.from,
            Window::LONGEST,
            window.needed_s(schedule.from).max(0.1),
            window.lowest_rate().ceil()
        )));
    }
    // Rung 0 is the user's own rate.
    let ladder = Ladder { base: schedule.from, octave: OCTAVE };
    let lowest = ladder.above(window.lowest_rate().max(schedule.from * LOWEST));
    let rungs = lowest..=ladder.below(HIGHEST).max(lowest);
    let mut search = Search::new(ladder, Course { rungs, start: 0, stride: OCTAVE, most: MOST });
    let mut steps = Vec::new();
    while let Some(rung) = search.next() {
        let rate = search.rate(rung);
        let mut job = job.clone();
        job.arrivals = Arrivals::Open(ArrivalSchedule { from: rate, to: rate, ..schedule });
        job.stop = Stop::After(window.length(rate));
        let (tally, generators) = drive(&job)?;
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let step = step(rate, slo, &tally, generators);
        search.tried(rung, step.holds);
        report(&step);
        steps.push(step);
    }
    let rate = |rung: Option<i32>| rung.map(|rung| search.rate(rung));
    Ok(Bracket { holds: rate(search.holds()), fails: rate(search.fails()), steps })
}

/// Drives a job once. Returns what was counted, and how many generators there were.
pub type DriveWith<'a> = dyn FnMut(&Job) -> anyhow::Result<(Tally, usize)> + 'a;

fn step(rate: f64, slo: &Slo, tally: &Tally, generators: usize) -> Tried {
    let busy = tally.busiest > GENERATOR_BUSY;
    let why = slo.broken(tally).map(|why| match busy {
        true => format!("{why}; {}", at_limit(rate, tally.throughput(), generators)),
        false => why.to_string(),
    });
    Tried { rate, throughput_per_s: tally.throughput(), holds: why.is_none(), why }
}

/// Says that the generators were at their limit, and how many do for this rate as far as they can tell.
fn at_limit(rate: f64, reached: f64, generators: usize) -> String {
    if generators < 2 {
        return "the generator was at its limit, so the target may sustain more".to_owned();
    }
    let more = more_generators(generators as u64, reached, rate);
    format!(
        "the {generators} generators were at their limit, so the target may sustain more; {more} more would do for this rate"
    )
}

impl Tried {
    /// The line that is printed for this try.
    pub fn line(&self) -> String {
        let end = self.why.as_ref().map_or("holds".to_owned(), |why| format!("fails: {why}"));
        let (offered, verified) = (exact_rate(self.rate), exact_rate(self.throughput_per_s));
        format!("  {offered:>12} offered, {verified:>12} verified: {end}\n")
    }
}

impl Bracket {
    /// The last line that is printed.
    pub fn line(&self) -> String {
        match (self.holds, self.fails) {
            (Some(holds), Some(fails)) => {
                format!("holds at {}, fails at {}\n", exact_rate(holds), exact_rate(fails))
            }
            (Some(holds), None) => format!("holds at {}; no higher rate was tried\n", exact_rate(holds)),
            (None, Some(fails)) => format!(
                "fails at {} and at every higher rate that was tried; a longer -d tries lower rates\n",
                exact_rate(fails)
            ),
            (None, None) => "no rate was tried\n".to_owned(),
        }
    }

    /// The exit code: 0 if a rate held, 3 if none did.
    pub fn code(&self) -> ExitCode {
        if self.holds.is_some() { ExitCode::SUCCESS } else { ExitCode::from(3) }
    }
}
