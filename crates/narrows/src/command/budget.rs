//! How long a comparison may take.

use std::time::Duration;

use lab::plan::Plan;

use crate::common::Usage;

/// The default budget.
pub const BUDGET_S: f64 = 60.0;

/// The rounds that there are without a budget, however many points there are, unless they take longer than this.
pub const FEWEST_ROUNDS: f64 = 6.0;
const LONGEST_S: f64 = 240.0;

/// The budget of a plan without one, seconds.
pub fn usual_s(plan: &Plan) -> f64 {
    let long_s = (FEWEST_ROUNDS * plan.round_s()).min(LONGEST_S);
    BUDGET_S.max(long_s).max(fewest_s(plan))
}

/// How long the fewest rounds of a comparison are expected to take, seconds.
fn fewest_s(plan: &Plan) -> f64 {
    plan.round_times().of_s(0..stats::FEWEST_ROUNDS as u32)
}

/// Checks that the fewest rounds of a comparison fit into the budget.
pub fn check(plan: &Plan, budget: Option<Duration>) -> Result<(), Usage> {
    let needed_s = fewest_s(plan);
    match budget {
        Some(budget) if needed_s > budget.as_secs_f64() => Err(Usage(format!(
            "--budget is too short for a comparison: that takes {} rounds of {}, so use --budget {:.0}s or more",
            stats::FEWEST_ROUNDS,
            report::number::seconds(needed_s / stats::FEWEST_ROUNDS as f64),
            needed_s.ceil()
        ))),
        _ => Ok(()),
    }
}
