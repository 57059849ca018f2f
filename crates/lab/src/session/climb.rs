//! A trial that searches the highest rate at which its objective holds, with the server that it has started.

use std::time::{Duration, Instant};

use load::{ArrivalSchedule, Arrivals, Slo, Tally};
use measurement::Measurement;
use systems::{Work, trace};

use crate::climb::{self, Climb};
use crate::observation::Stage;
use crate::session::driver::{Orders, gaps};
use crate::session::trial_error::TrialError;

/// Drives at one rate after the other: `once` drives for one window. Returns the measurement at the highest rate at which the
/// objective held, and its orders.
pub(super) fn climb(
    once: impl Fn(&Orders) -> Result<(Measurement, Tally), TrialError>,
    objective: &Slo,
    usual: &Orders,
    round: u32,
) -> Result<(Orders, Measurement), TrialError> {
    let (began, timing) = (Instant::now(), usual.timing);
    let (_, tally) = once(&Orders { timing: climb::probe(timing), ..usual.clone() })?;
    let mut climb = Climb::new(objective, timing, tally.throughput());
    let poisson = matches!(&usual.work, Work::Requests(work) if work.poisson);
    let gaps = gaps(poisson, round);
    let mut best = None;
    while let Some(made) = climb.next() {
        if began.elapsed() > Duration::from_secs_f64(climb::longest_s(timing)) {
            break;
        }
        let arrivals = Arrivals::Open(ArrivalSchedule { from: made.per_s, to: made.per_s, gaps });
        let orders = Orders { timing: made.timing, arrivals, ..usual.clone() };
        let (measured, tally) = once(&orders)?;
        let broken = objective.broken(&tally);
        trace::say(|| {
            let end = broken.as_ref().map_or("holds".to_owned(), |why| format!("fails: {why}"));
            format!("objective at {:.0}/s: {end}", made.per_s)
        });
        let held = broken.is_none();
        climb.tried(made, broken, measured.generator.busiest_core);
        if held {
            best = Some((orders, measured));
        }
    }
    let failed = |why| TrialError::failed(Stage::Objective, why);
    let found = climb.found().map_err(failed)?;
    let (orders, mut measured) = best.ok_or_else(|| failed(format!("`{objective}` held at no rate")))?;
    measured.max_rate = Some(found);
    Ok((orders, measured))
}
