//! What findings cost: a grid of twice as many scenarios takes about twice as long.

use std::time::Duration;

use stats::Noise;

use crate::findings::findings;
use crate::session::Fake;
use crate::simulation::{Rounds, observed, plan};

/// The CPU time of the findings of so many scenarios in three rounds: the least of three times.
fn cpu(scenarios: i64) -> Duration {
    let plan = plan(scenarios, Rounds::Fixed(3), 1);
    let seen = observed(&plan, Fake::new(1e6, Vec::new(), Noise::SHARED_MACHINE, 1));
    let once = || {
        let began = reactor::thread_cpu();
        let found = findings(&plan, &seen);
        assert_eq!(found.experiments[0].figures[0].estimates.len() as i64, scenarios + 1);
        reactor::thread_cpu().saturating_sub(began)
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

#[test]
fn twice_as_many_scenarios_take_about_twice_as_long() {
    let (some, twice) = (cpu(500), cpu(1000));
    // What is quadratic would take four times as long.
    assert!(twice < 3 * some, "{some:?} and {twice:?}");
}
