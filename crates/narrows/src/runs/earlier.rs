//! What earlier runs in the store tell about the next one: the noise of this machine.

use lab::compare::is_another_machine;
use lab::findings;
use lab::plan::Planned;
use lab::store::{RunHeader, Store};

use super::Run;

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
    let of_run = |id: i64| {
        let header = like(&run.store, id, &run.header)?;
        let asks = |e: &Planned| e.workload == planned.workload && e.figures().any(|f| f == planned.figure);
        // Observations take longer to read than a plan.
        header.plan.experiments.iter().any(asks).then_some(())?;
        let observations = run.store.observations(id).ok()?;
        findings::noise(&header.plan, &observations, planned.workload, planned.figure)
    };
    let earlier = run.store.before(Some(run.id)).ok()?.into_iter().take(MOST_RUNS);
    stats::median(earlier.filter_map(of_run).take(ENOUGH))
}

/// The header of a run, if it was on the same machine.
fn like(store: &Store, id: i64, wanted: &RunHeader) -> Option<RunHeader> {
    let header = store.header(id).ok()?;
    let another = is_another_machine(&header.environment, &wanted.environment);
    (!another && header.plan.trials.len() <= MOST_TRIALS).then_some(header)
}
