//! Checks that the figures of an experiment have what they need: a rate, or an objective under which each trial searches
//! the rate itself. Pure.

use load::Slo;
use systems::{InputError, Source};

use super::file::ExperimentFile;
use super::{Experiment, Figure};
use crate::observation::Scenario;

/// An objective, as an example.
const EXAMPLE: &str = "objective = \"p99<20ms,errors<0.1%\"";

/// The objective of an experiment.
///
/// # Errors
/// It is none; or there is one without the figure that needs it, or the other way round.
pub(super) fn objective(source: &Source, file: &ExperimentFile) -> Result<Option<Slo>, InputError> {
    let mut figures = std::iter::once(&file.figure).chain(&file.also);
    let needs = figures.find(|figure| figure.get_ref().needs_objective());
    match (needs, &file.objective) {
        (None, None) => Ok(None),
        (Some(figure), None) => {
            let message = "this figure is the highest rate at which an objective holds, and there is none";
            Err(source.error(figure.span(), message, format!("write {EXAMPLE}")))
        }
        (None, Some(objective)) => {
            let help = "name `max_rate` as the figure or in `also`, or remove the objective";
            Err(source.error(objective.span(), "an objective, and no figure that needs one", help))
        }
        (Some(_), Some(objective)) => {
            let wrong = |why: String| source.error(objective.span(), why, format!("such as {EXAMPLE}"));
            Slo::parse(objective.get_ref()).map(Some).map_err(wrong)
        }
    }
}

/// Checks that a figure that counts from when a request was due has a schedule, and that no rate is given where each
/// trial searches it.
pub(super) fn check(experiment: &Experiment, scenario: &Scenario) -> Result<(), InputError> {
    // Another program times its requests as it makes them.
    if experiment.ask.as_ref().is_some_and(|ask| ask.meter.is_some()) {
        return Ok(());
    }
    let open = scenario.work().is_open_loop();
    let (message, help) = match experiment.subject.objective {
        Some(_) if open => (
            "the figure `max_rate` is a rate that each trial searches itself",
            "remove the knob `rate`, or the figure `max_rate` with its objective",
        ),
        None if !open && experiment.subject.figures.iter().any(Figure::needs_rate) => (
            "this figure counts from when a request was due, and a closed loop has no schedule",
            "give `rate` a value above 0 in every block",
        ),
        _ => return Ok(()),
    };
    Err(experiment.source.error(experiment.figure.clone(), message, help))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use systems::Catalog;

    use super::*;
    use crate::experiment::Form;
    use crate::experiment::grid::{Overrides, Request};
    use crate::experiment::tests::{home, text};
    use crate::plan::{Plan, plan};

    /// The plan of an experiment of requests with this figure and these lines; `set` replaces values of knobs.
    fn planned(figure: &str, lines: &str, set: &[&str]) -> Result<Plan, String> {
        let figure = format!("figure = \"{figure}\"\n{lines}");
        let text = text("[[quick.grid]]\nconnections = 4\n")
            .replace("\"upload\"", "\"requests\"")
            .replace("size = 1", "connections = 4")
            .replace("figure = \"ms_per_upload\"\n", &figure);
        let experiment = Experiment::parse(&Source::new("experiments/e.toml", text));
        let set = set.iter().map(|word| (*word).to_owned()).collect();
        let overrides = Overrides { set, ..Overrides::default() };
        let home = home();
        let plan = experiment.and_then(|experiment| {
            let request = Request { experiment, form: Form::Quick, overrides };
            plan(&[request], &Catalog::load(home.path()), &BTreeMap::new(), 1)
        });
        plan.map_err(|error| error.one_line())
    }

    #[test]
    fn the_highest_rate_and_its_objective_need_each_other() {
        let objective = "objective = \"p99<20ms,errors<0.1%\"\n";
        let both = format!("{objective}also = [\"max_rate\"]\n");
        for (figure, lines, set, said) in [
            (
                "max_rate",
                "",
                &[][..],
                "e.toml:5:10: this figure is the highest rate at which an objective holds",
            ),
            ("requests_per_s", "also = [\"max_rate\"]\n", &[], "e.toml:6:9: this figure is the highest rate"),
            ("requests_per_s", objective, &[], "e.toml:6:13: an objective, and no figure that needs one"),
            ("max_rate", "objective = \"fast\"\n", &[], "e.toml:6:13: \"fast\" is not an objective"),
            (
                "max_rate",
                objective,
                &["rate=1000"],
                "e.toml:5:10: the figure `max_rate` is a rate that each trial",
            ),
            ("requests_per_s", &both, &["rate=1000"], "a rate that each trial searches itself"),
            ("p99_us", "", &[], "e.toml:5:10: this figure counts from when a request was due"),
        ] {
            let wrong = planned(figure, lines, set).expect_err(said);
            assert!(wrong.contains(said), "{said}: {wrong}");
        }
        let upload = text("[[quick.grid]]\nsize = 1\n").replace("ms_per_upload", "max_rate");
        let wrong = Experiment::parse(&Source::new("e.toml", upload)).expect_err("uploads").one_line();
        assert!(wrong.contains("this figure does not exist for the workload `upload`"), "{wrong}");
    }

    #[test]
    fn trials_know_the_objective_and_take_longer() {
        let objective = "objective = \"p99<20ms\"\nalso = [\"p99_us\"]\n";
        let climbing = planned("max_rate", objective, &["gaps=poisson"]).expect("a plan");
        let usual = planned("requests_per_s", "", &[]).expect("a plan");
        let slo = Slo::parse("p99<20ms").expect("an objective");
        assert!(climbing.trials.iter().all(|trial| trial.objective.as_ref() == Some(&slo)));
        assert!(climbing.estimate_s() > 4.0 * usual.estimate_s(), "a trial drives several windows");
        let json = |plan: &Plan| serde_json::to_string(plan).expect("a plan is written");
        assert_eq!(serde_json::from_str::<Plan>(&json(&climbing)).expect("a plan is read"), climbing);
        assert!(!json(&usual).contains("objective"), "old stores look the same");
    }
}
