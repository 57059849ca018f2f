//! What a run has found so far. For each experiment this is its first sentence, whose interval narrows with each round,
//! and the latest warning.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use lab::findings::{Code, Warning, findings};
use lab::observation::{Observation, Trial};
use lab::plan::{Plan, Planned};

/// Computing interim findings takes at most one part in this many of the run's time.
const COST: u32 = 50;

/// The experiments and their observations, from which findings are computed from time to time.
pub struct InterimFindings {
    questions: Vec<SoFar>,
    /// The question of each experiment, and the experiment's position in it.
    places: HashMap<String, (usize, usize)>,
    /// Whether findings are computed before the last trial of an experiment.
    early: bool,
    /// Whether the end of an experiment's trials is no news, because another round may follow whatever they show.
    growing: bool,
    warned: BTreeSet<String>,
    /// No findings are computed before this time.
    next_look: Option<Instant>,
}

/// Experiments whose comparisons are judged together: a plan that contains nothing else, and its observations.
struct SoFar {
    plan: Plan,
    /// The index of its first experiment in the whole plan.
    first: usize,
    seen: Vec<Observation>,
    /// How many trials of each experiment have not ended, so that the end of one is known without counting all.
    left: Vec<usize>,
}

impl SoFar {
    /// Adds an observation of the experiment at this position. Returns whether all of its trials have ended.
    fn see(&mut self, at: usize, observation: Observation) -> bool {
        self.seen.push(observation);
        let Some(left) = self.left.get_mut(at) else { return false };
        *left = left.saturating_sub(1);
        *left == 0
    }
}

/// The interim findings of one experiment.
pub struct Standing {
    /// The index of the experiment in the plan.
    pub experiment: usize,
    /// The name, the number of complete rounds, and what they show.
    pub line: String,
    /// A new warning.
    pub warning: Option<String>,
}

impl InterimFindings {
    /// The findings of a plan with these earlier observations. With `early`, experiments are judged before their last
    /// trial too.
    pub fn new(plan: &Plan, seen: &[Observation], early: bool) -> Self {
        let Plan { seed, design, budget_s, together, .. } = *plan;
        let size = if together { plan.experiments.len().max(1) } else { 1 };
        let question = |(index, experiments): (usize, &[Planned])| SoFar {
            plan: Plan { design, budget_s, together, ..Plan::new(seed, experiments.to_vec()) },
            first: index * size,
            seen: Vec::new(),
            left: vec![0; experiments.len()],
        };
        let questions = plan.experiments.chunks(size).enumerate().map(question).collect();
        let place =
            |(index, planned): (usize, &Planned)| (planned.name.clone(), (index / size, index % size));
        let places = plan.experiments.iter().enumerate().map(place).collect();
        let growing = budget_s.is_some() && design.is_once();
        let mut interim =
            Self { questions, places, early, growing, warned: BTreeSet::new(), next_look: None };
        interim.added(&plan.trials);
        for observation in seen {
            if let Some((question, at)) = interim.find(&observation.trial) {
                question.see(at, observation.clone());
            }
        }
        interim
    }

    /// The question of a trial, and the position of the trial's experiment in it.
    fn find(&mut self, trial: &Trial) -> Option<(&mut SoFar, usize)> {
        let (question, at) = *self.places.get(&trial.scenario.experiment)?;
        Some((self.questions.get_mut(question)?, at))
    }

    /// Adds trials to the plan.
    pub fn added(&mut self, trials: &[Trial]) {
        for trial in trials {
            let Some((SoFar { plan, left, .. }, at)) = self.find(trial) else { continue };
            if let Some(planned) = plan.experiments.get_mut(at) {
                planned.setup.rounds = planned.setup.rounds.max(trial.round.saturating_add(1));
            }
            plan.trials.push(trial.clone());
            if let Some(left) = left.get_mut(at) {
                *left += 1;
            }
        }
    }

    /// Adds an observation. Returns the interim findings of its experiment if all of its trials have ended and the plan
    /// does not grow whatever they show, or with `early` if computing them is cheap enough.
    pub fn ended(&mut self, observation: &Observation) -> Option<Standing> {
        let (question, at) = self.find(&observation.trial)?;
        let all_ended = question.see(at, observation.clone());
        let news = all_ended && !self.growing;
        if !news && (!self.early || self.next_look.is_some_and(|time| Instant::now() < time)) {
            return None;
        }
        let began = Instant::now();
        let standing = self.look(&observation.trial);
        self.next_look = Some(Instant::now() + (began.elapsed() * COST).max(Duration::from_millis(100)));
        standing
    }

    fn look(&mut self, trial: &Trial) -> Option<Standing> {
        let (SoFar { plan, first, seen, .. }, at) = self.find(trial)?;
        let (name, experiment) = (&trial.scenario.experiment, *first + at);
        let own = |trial: &&Trial| trial.scenario.experiment == *name;
        let planned: Vec<Trial> = plan.trials.iter().filter(own).cloned().collect();
        let rounds = whole_rounds(&planned, seen.iter().map(|seen| &seen.trial).filter(own));
        let all = findings(plan, seen);
        let found = all.views().find(|found| found.name == *name)?;
        let line = format!("{name} ({rounds} of {} rounds): {}", found.rounds, report::answer(&found));
        // That there are few trials yet is no news while more are on their way.
        let early = |warning: &&Warning| !matches!(warning.code, Code::Incomplete | Code::TooFewTrials);
        let message = |warning: &Warning| report::advice(warning, report::Asked::of(&found)).message;
        let mut fresh = found.warnings.iter().filter(early).map(message);
        let fresh = fresh.rfind(|message| !self.warned.contains(message));
        let warning = fresh.map(|message| format!("{name}: warning: {message}"));
        self.warned.extend(found.warnings.iter().map(message));
        Some(Standing { experiment, line, warning })
    }
}

/// The number of rounds whose trials have all been observed.
fn whole_rounds<'a>(planned: &[Trial], done: impl Iterator<Item = &'a Trial>) -> usize {
    let done: BTreeSet<u32> = done.map(|trial| trial.index).collect();
    let all: BTreeSet<u32> = planned.iter().map(|trial| trial.round).collect();
    let open = planned.iter().filter(|trial| !done.contains(&trial.index));
    all.len() - open.map(|trial| trial.round).collect::<BTreeSet<u32>>().len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use lab::experiment::grid::{Overrides, Request};
    use lab::experiment::{Experiment, Form};
    use lab::observation::{Scenario, Timing};
    use lab::plan;
    use lab::session::{Executor, Fake};
    use stats::Noise;
    use systems::{Catalog, Manifest, Point, Source, Workload};

    use super::*;

    #[test]
    fn a_round_counts_when_all_of_its_trials_have_ended() {
        let scenario = Scenario::new("e", "s", Workload::Requests, Point::new()).expect("the defaults");
        let timing = Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 };
        let trial = |index| Trial { index, round: index / 2, ..Trial::alone(scenario.clone(), timing) };
        let planned: Vec<Trial> = (0..6).map(trial).collect();
        for (done, whole) in [
            (&[][..], 0),
            (&[0], 0),
            (&[1, 0], 1),
            (&[0, 1, 2, 4], 1),
            (&[3, 2, 5, 4], 2),
            (&[0, 1, 2, 3, 4, 5], 3),
        ] {
            let done = done.iter().map(|index| &planned[*index]);
            assert_eq!(whole_rounds(&planned, done.clone()), whole, "{:?}", done.collect::<Vec<_>>());
        }
    }

    /// A plan of so many experiments, each with one scenario besides the reference, and what a fake machine sees of it.
    fn seen(count: usize) -> (Plan, Vec<Observation>) {
        let manifest = "name='x'\nrole='server'\nworkloads=['requests']\nlanguage=''\nabout=''\n[start]\ncommand=['x','{port}']";
        let systems = Manifest::parse(&Source::new("system.toml", manifest), Path::new("/h/systems/x"));
        let catalog = Catalog::of_systems(Path::new("/h"), systems.expect("a manifest"));
        let form = |name: &str| {
            format!("[{name}]\nrounds=3\nwarmup_s=0\nmeasure_s=1\n[[{name}.grid]]\nconnections=1\n")
        };
        let request = |at: usize| {
            let text = format!(
                "name='e{at}'\ntitle=''\nworkload='requests'\nsystems=['x']\nfigure='requests_per_s'\n{}{}",
                form("quick"),
                form("full")
            );
            let experiment =
                Experiment::parse(&Source::new(format!("e{at}.toml"), text)).expect("an experiment");
            Request { experiment, form: Form::Quick, overrides: Overrides::default() }
        };
        let requests: Vec<Request> = (0..count).map(request).collect();
        let plan = plan::plan(&requests, &catalog, &BTreeMap::new(), 1).expect("a plan");
        let mut fake = Fake::new(1e6, Vec::new(), Noise::SHARED_MACHINE, 1);
        let observation = |trial: &Trial| {
            let outcome = fake.execute(trial).expect("it is not interrupted");
            Observation { trial: trial.clone(), outcome, began_unix_s: 0.0, took_s: 1.0, duet: None }
        };
        let seen = plan.trials.iter().map(observation).collect();
        (plan, seen)
    }

    #[test]
    fn interim_findings_take_as_long_as_there_are_experiments() {
        cost::is_near_linear(50, |count| {
            let (plan, seen) = seen(count);
            move || {
                let mut interim = InterimFindings::new(&plan, &[], false);
                let shown = seen.iter().filter_map(|observation| interim.ended(observation)).count();
                assert_eq!(shown, count);
                assert_eq!(InterimFindings::new(&plan, &seen, false).questions.len(), count);
            }
        });
    }
}
