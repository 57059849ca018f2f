//! What earlier runs in the store tell about the next one: the noise of this machine.

use lab::compare::is_another_machine;
use lab::findings;
use lab::plan::Planned;
use lab::store::RunHeader;

use super::Run;
use crate::common;

/// So many of the newest runs that fit are enough to know the noise.
const ENOUGH: usize = 5;

/// At most so many of the runs before are read.
const MOST_RUNS: usize = 20;

/// Runs of more trials are not read, because that takes longer than a reader of the first line waits.
const MOST_TRIALS: usize = 1000;

/// The noise of the run's deciding figure in earlier runs on this machine: the median of their noises. None if there are none. What
/// cannot be read is passed over, because nothing depends on it.
pub fn noise(run: &Run) -> Option<f64> {
    let planned = run.header.plan.experiments.first()?;
    let figure = planned.figures.first;
    let asks = |e: &Planned| {
        e.workload == planned.workload && e.duet == planned.duet && e.figures.iter().any(|f| f == figure)
    };
    let fits = |header: &RunHeader| {
        !is_another_machine(&header.environment, &run.header.environment)
            && header.plan.trials.len() <= MOST_TRIALS
            && header.plan.experiments.iter().any(asks)
    };
    let earlier = run.store.before(Some(run.id)).ok()?.into_iter().take(MOST_RUNS);
    // A long run takes a moment to be read.
    let earlier = earlier.take_while(|_| !common::is_interrupted());
    let noises = run.store.readable(earlier, fits).filter_map(|(_, header, observations)| {
        findings::noise(&header.plan, &observations, planned.workload, figure)
    });
    stats::median(noises.take(ENOUGH))
}
