//! The noise of a run: by how much trials of one scenario differ, apart from what the rounds did to all of them. The plan of the next
//! run says from it which differences that can find.

use stats::{Design, FEWEST_ROUNDS, Location};
use systems::Workload;

use super::asked::asked;
use super::comparison::log_ratios;
use super::estimate;
use crate::experiment::Figure;
use crate::observation::{Observation, by_experiment};
use crate::plan::Plan;

/// The standard deviation of the logarithm of this figure between the trials of a scenario, within rounds, over all comparisons of
/// the plan's experiments of this workload. None if none of them has three rounds, or if they show no noise. Searches are left out,
/// because their rounds are not alike.
pub fn noise(plan: &Plan, observations: &[Observation], workload: Workload, figure: Figure) -> Option<f64> {
    let (mut squares, mut df) = (0.0, 0.0);
    let seen = by_experiment(observations);
    for planned in plan.experiments.iter().filter(|e| e.workload == workload && e.search.is_none()) {
        let own = seen.get(planned.name.as_str()).map_or(&[][..], Vec::as_slice);
        for view in planned.views().filter(|view| view.figure == figure) {
            let (estimates, _) = estimate::estimates(&view, Design::ONCE, own);
            for pair in asked(&view) {
                let (a, b) = (&estimates[pair.scenario], &estimates[pair.against]);
                if !a.compares() || !b.compares() {
                    continue;
                }
                let ratios = log_ratios(figure, &a.by_round, &b.by_round).into_iter();
                let location = Location::of(&ratios.map(|(_, ratio)| ratio).collect::<Vec<f64>>());
                let Some(location) = location.filter(|location| location.n >= FEWEST_ROUNDS) else {
                    continue;
                };
                // A difference has the noise of both.
                squares += location.df * location.error.powi(2) * location.n as f64 / 2.0;
                df += location.df;
            }
        }
    }
    Some((squares / df).sqrt()).filter(|noise| *noise > 0.0)
}

#[cfg(test)]
mod tests {
    use stats::Noise;

    use super::*;
    use crate::session::Fake;
    use crate::simulation::{Rounds, observed, plan};

    #[test]
    fn the_noise_is_that_of_a_trial_whatever_the_rounds_do() {
        let plan = plan(4, Rounds::Fixed(20), 1);
        let seen = |noise: Noise| observed(&plan, Fake::new(1e6, Vec::new(), noise, 5));
        let of = |spread: Noise| noise(&plan, &seen(spread), Workload::Requests, Figure::RequestsPerS);
        let drifting = Noise { spread: 0.06, drift: 0.2, ..Noise::default() };
        let found = of(drifting).unwrap();
        assert!((0.045..0.085).contains(&found), "{found}");
        assert_eq!(of(Noise::NONE), None);
        let other = |workload, figure| noise(&plan, &seen(drifting), workload, figure);
        assert_eq!(other(Workload::Frames, Figure::FramesPerS), None);
        assert_eq!(noise(&plan, &[], Workload::Requests, Figure::RequestsPerS), None);
    }
}
