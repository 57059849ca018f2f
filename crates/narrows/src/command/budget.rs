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
    let round_s = plan.round_s();
    let long_s = (FEWEST_ROUNDS * round_s).min(LONGEST_S);
    BUDGET_S.max(long_s).max(stats::FEWEST_ROUNDS as f64 * round_s)
}

/// Checks that the fewest rounds of a comparison fit into the budget.
pub fn check(plan: &Plan, budget: Option<Duration>) -> Result<(), Usage> {
    let needed_s = plan.round_s() * stats::FEWEST_ROUNDS as f64;
    match budget {
        Some(budget) if needed_s > budget.as_secs_f64() => Err(Usage(format!(
            "--budget is too short for a comparison: that takes {} rounds of {}, so use --budget {:.0}s or more",
            stats::FEWEST_ROUNDS,
            report::number::seconds(plan.round_s()),
            needed_s.ceil()
        ))),
        _ => Ok(()),
    }
}
