//! The question of a search: its figures, the rate at which they are measured, and the plan.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use lab::ask::Ask;
use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{Experiment, Figure, Figures, Form, Subject};
use lab::observation::{Outcome, Timing, Trial};
use lab::plan::{self, Plan};
use lab::rounds;
use lab::search::{Bounded, FEWEST_TRIALS, Limit};
use lab::session::{Executor, Pace};
use load::Slo;
use systems::{Value, Workload};

use super::target::Target;
use super::{Args, Limits};
use crate::command::pace::{self, Chosen, Tempo, WARMUP, WINDOW};
use crate::command::{self, learn};
use crate::common::{self, Usage};
use crate::condition::{self, FigureChoice};

/// A checked question.
pub struct Question<'a> {
    args: &'a Args,
    target: &'a Target,
    /// The first decides.
    figures: Vec<Figure>,
    /// Whether they are measured at half of the base's highest rate, which is not known yet.
    needs_rate: bool,
    seed: u64,
}

/// What is known of the target when a plan is made.
struct Known {
    /// What is sent, and what every answer must be.
    ask: Option<Ask>,
    /// How long a start takes, seconds.
    starts: BTreeMap<String, f64>,
    timing: Timing,
}

impl Known {
    /// Before the first look.
    fn before(args: &Args, ask: Option<Ask>) -> Self {
        Self { ask, starts: BTreeMap::new(), timing: args.timing() }
    }
}

impl Args {
    /// Checks the figures and the budget.
    ///
    /// # Errors
    /// The first that contradicts another or the target.
    pub(super) fn question<'a>(&'a self, target: &'a Target) -> anyhow::Result<Question<'a>> {
        let prevented = command::prevents_duets(target.workload, &self.lab.fleet);
        if let Some(why) = prevented.filter(|_| self.duet) {
            bail!(Usage(format!("--duet {why}")));
        }
        let (figures, slo) = (self.figures(target)?, self.limits.slo.as_ref());
        let climbs = figures.contains(&Figure::MaxRate);
        let timed = slo.is_some_and(|slo| slo.has_percentiles());
        let below = self.figures.iter().any(|choice| choice.is_below_saturation());
        let at_saturation = self.figures.contains(&FigureChoice::Rate);
        let has_knob = target.workload.knob("rate").is_some();
        if at_saturation && timed && has_knob {
            bail!(Usage(
                "--slo: at saturation a percentile says how long the queue is: leave --figure out to search the highest rate at \
                 which the objectives hold, or use --figure cpu or memory"
                    .to_owned()
            ));
        }
        let needs_rate = (below || timed) && !at_saturation && !climbs && has_knob && target.rate().is_none();
        let seed = self.seed.unwrap_or_else(common::new_seed);
        let question = Question { args: self, target, figures, needs_rate, seed };
        // What is too short is refused before anything starts.
        let known = Known::before(self, None);
        target.rate().map_or(Ok(()), |rate| question.check_answers(rate, known.timing))?;
        question.plan(&known, None)?;
        Ok(question)
    }

    fn figures(&self, target: &Target) -> anyhow::Result<Vec<Figure>> {
        let workload = target.workload;
        let climbs = workload.about().figures.contains(&Figure::MaxRate);
        let slo = self.limits.slo.as_ref().filter(|slo| climbs || slo.goal().is_some());
        if slo.is_some_and(|slo| slo.goal().is_some()) && !target.is_command {
            bail!(Usage(
                "--slo: limits of single answers are about the answers of a command: name it, such as \
                 `narrows tune './server -w {w} --port {port}' --knob w=1..16`"
                    .to_owned()
            ));
        }
        let asked = FigureChoice::asked(&self.figures, slo).map_err(Usage)?;
        let figures: Vec<Figure> = match asked.is_empty() {
            true => usual(workload).to_vec(),
            false => asked.iter().map(|choice| choice.figure(workload)).collect(),
        };
        if figures.contains(&Figure::MaxRate) && target.rate().is_some() {
            bail!(Usage(
                "--slo searches the highest rate in each trial: leave --rate out, or choose what decides at this rate, such as \
                 --figure cpu"
                    .to_owned()
            ));
        }
        if let Some(figure) = figures.iter().find(|figure| !workload.about().figures.contains(figure)) {
            bail!(Usage(format!(
                "{workload} has no figure {}; it has: {}; without --figure, {} decides",
                figure.name(),
                names(workload),
                usual(workload).first().map_or("none", |figure| figure.name())
            )));
        }
        let is_rate = |figure: &Figure| *figure == FigureChoice::Rate.figure(workload);
        let rate = figures.iter().find(|figure| is_rate(figure));
        if let (Some(rate), Some(timed)) = (rate, figures.iter().find(|figure| figure.needs_rate())) {
            bail!(Usage(format!(
                "--figure: all figures of a search come from the same trials, but {} needs trials at saturation, and {} needs \
                 trials below: leave one of them out",
                rate.name(),
                timed.name()
            )));
        }
        if let (Some(rate), true) = (rate, target.rate().is_some()) {
            bail!(condition::offered(rate.name(), "at every setting"));
        }
        Ok(figures)
    }
}

/// The figures of a workload, as the command line names them.
fn names(workload: Workload) -> String {
    let all = clap::ValueEnum::value_variants().iter();
    let own =
        all.filter(|choice: &&FigureChoice| workload.about().figures.contains(&choice.figure(workload)));
    let names = own.filter_map(clap::ValueEnum::to_possible_value);
    names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
}

impl Question<'_> {
    /// The plan, after a first look at the base. It shows what a right answer of a command is, and how fast the base is if the
    /// figures need to know that. None if the user interrupted.
    ///
    /// # Errors
    /// The base does not start or does not answer.
    pub fn learnt(&self, executor: &mut dyn Executor) -> anyhow::Result<Option<Plan>> {
        let Self { args, target, .. } = self;
        let mut known = Known::before(args, target.ask.clone());
        let mut per_s = None;
        if target.is_command {
            let mut first = self.plan(&known, None)?;
            // Only the base must start and answer rightly. Another setting that does not costs its own trials.
            first.experiments.iter_mut().for_each(|planned| planned.scenarios.truncate(1));
            let look = pace::look(known.timing);
            let Some(learnt) = learn::learn(executor, &first, known.ask, look, self.needs_pace())? else {
                return Ok(None);
            };
            per_s = learnt.paces.first().map(|pace| pace.per_s);
            let timing = self.timing_for(&learnt.paces);
            known = Known { ask: learnt.ask, starts: learnt.starts, timing };
        }
        if !self.needs_rate {
            return self.plan(&known, None).map(Some);
        }
        if per_s.is_none() {
            per_s = self.reached(executor, &self.plan(&known, None)?)?;
        }
        let Some(rate) = per_s.map(|per_s| per_s / 2.0) else { return Ok(None) };
        self.check_answers(rate, known.timing)?;
        self.plan(&known, Some(rate)).map(Some)
    }

    /// Whether the look at a command finds out how fast it is.
    fn needs_pace(&self) -> bool {
        let Args { duration, warmup, .. } = self.args;
        let needs = self.needs_rate || duration.is_none() || warmup.is_none();
        needs && self.target.workload == Workload::Requests
    }

    /// The timing that suits a command of this speed.
    fn timing_for(&self, paces: &[Pace]) -> Timing {
        let args = self.args;
        let chosen = Chosen { warmup: args.warmup.is_some(), window: args.duration.is_some() };
        let open = self.needs_rate || self.target.rate().is_some() || self.figures.contains(&Figure::MaxRate);
        let most_s = args.budget.as_secs_f64() / FEWEST_TRIALS as f64;
        pace::suited(args.timing(), chosen, paces, !open, most_s)
    }

    /// How many answers per second the base gives at saturation, in a short look. None if the user interrupted.
    fn reached(&self, executor: &mut dyn Executor, plan: &Plan) -> anyhow::Result<Option<f64>> {
        let base = plan.experiments.first().and_then(|planned| Some((planned.base.as_ref()?, &planned.ask)));
        let Some((base, ask)) = base else { bail!("the plan has no base") };
        let timing = Timing { warmup_s: 0.3, measure_s: 0.5, ..self.args.timing() };
        let trial = Trial { ask: ask.clone(), ..Trial::alone(base.scenario.clone(), timing) };
        let Ok(outcome) = executor.execute(&trial) else { return Ok(None) };
        match outcome {
            Outcome::Failed(failure) => bail!(learn::failed(&self.target.system, &failure)),
            Outcome::Measured(m) if m.successes == 0 => {
                bail!(
                    "{}: no answer in half a second at full speed: give a rate with --rate",
                    self.target.system
                )
            }
            Outcome::Measured(m) => Ok(Some(m.successes as f64 / m.elapsed_s.max(f64::MIN_POSITIVE))),
        }
    }

    /// The plan: the base, and the search that begins there. `rate` is in arrivals per second. If a rate is needed and not
    /// known yet, the plan is that of a look at saturation.
    fn plan(&self, known: &Known, rate: Option<f64>) -> anyhow::Result<Plan> {
        let Self { args, target, .. } = self;
        let experiment = self.experiment(known.ask.clone(), Tempo { rate, timing: known.timing })?;
        let request = Request { experiment, form: Form::Quick, overrides: Overrides::default() };
        let mut plan = plan::plan(&[request], &target.catalog, &Default::default(), self.seed)?;
        plan.starts = known.starts.clone();
        let excluded = plan.experiments.iter().flat_map(|planned| &planned.excluded).next();
        if let Some(excluded) = excluded.filter(|_| plan.trials.is_empty()) {
            let (system, reason) = (&target.system, &excluded.reason);
            bail!(
                "{system} cannot be tuned: {reason}; --set tls=1.3 or --set tls=off says how it is spoken to"
            );
        }
        // A search compares too many settings to explain each.
        plan.trials.iter_mut().for_each(|trial| trial.profiled = false);
        let each_s = plan.estimate_s() / plan.trials.len().max(1) as f64;
        let budget_s = args.budget.as_secs_f64();
        let trials = (budget_s / each_s.max(1e-3)) as usize;
        if trials < FEWEST_TRIALS {
            let least = (each_s * FEWEST_TRIALS as f64).ceil();
            bail!(Usage(format!("--budget is too short for {FEWEST_TRIALS} trials: give at least {least}s")));
        }
        plan.budget_s = Some(budget_s);
        rounds::begin_search(&mut plan, trials, &self.limits())
            .map_err(|why| Usage(format!("{} cannot be tuned: {why}", target.system)))?;
        Ok(plan)
    }

    /// What the advised setting must keep. An objective whose highest rate decides is kept by every trial.
    fn limits(&self) -> Vec<Limit> {
        let Limits { slo, memory } = &self.args.limits;
        let slo = slo.iter().filter(|_| !self.figures.contains(&Figure::MaxRate)).flat_map(Limit::of_slo);
        let memory = memory.map(|bytes| Limit { of: Bounded::Memory, below: bytes as f64 });
        slo.chain(memory).collect()
    }

    /// Checks that trials at this rate have enough answers for the percentiles of the figures and limits.
    fn check_answers(&self, rate: f64, timing: Timing) -> anyhow::Result<()> {
        let window = Duration::from_secs_f64(timing.measure_s);
        Ok(command::check_answers(&self.figures, self.args.limits.slo.as_ref(), rate, window)?)
    }

    fn experiment(&self, ask: Option<Ask>, Tempo { rate, timing }: Tempo) -> anyhow::Result<Experiment> {
        let Self { args, target, .. } = self;
        // The figures of a look do not matter.
        let looks = self.needs_rate && rate.is_none();
        let figures = if looks { usual(target.workload) } else { &self.figures };
        let [first, others @ ..] = figures else { bail!("a search needs a figure") };
        let subject = Subject {
            name: "tune".to_owned(),
            title: format!("The best setting of {}", args.target),
            about: String::new(),
            workload: target.workload,
            figures: Figures { first: *first, others: others.to_vec() },
            asks: None,
            objective: self.args.limits.slo.clone().filter(|_| figures.contains(&Figure::MaxRate)),
            published: Vec::new(),
            threshold: args.threshold,
        };
        let rate = rate.map(|per_s| Value::Integer((per_s.round() as i64).max(1)));
        let held = target.held.iter().map(|(knob, value)| (knob.as_str(), value.clone()));
        let held: Vec<(&str, Vec<Value>)> =
            held.chain(rate.map(|rate| ("rate", rate))).map(|(knob, value)| (knob, vec![value])).collect();
        // One block for each knob has all of its values, and not all settings. The first scenario is the base.
        let block = |searched: usize| -> Vec<(&str, Vec<Value>)> {
            let knobs = target.knobs.iter().enumerate().map(|(at, (knob, values))| {
                let tried = if at == searched { values.len() } else { 1 };
                (knob.as_str(), values.iter().take(tried).cloned().collect())
            });
            knobs.chain(held.iter().cloned()).collect()
        };
        let blocks: Vec<_> = (0..target.knobs.len()).map(block).collect();
        let mut experiment = Experiment::new(subject, &[&target.system], 1, timing, &blocks)?;
        experiment.base = Some(target.system.clone());
        experiment.duet = args.duet;
        let goal = args.limits.slo.as_ref().and_then(Slo::goal).cloned();
        experiment.ask = ask.map(|ask| Ask { goal, ..ask });
        Ok(experiment)
    }
}

/// The figure that decides if none is asked for: that which is usually published.
fn usual(workload: Workload) -> &'static [Figure] {
    workload.about().figures.get(..1).unwrap_or_default()
}

impl Args {
    fn timing(&self) -> Timing {
        Timing {
            warmup_s: self.warmup.unwrap_or(WARMUP).as_secs_f64(),
            measure_s: self.duration.unwrap_or(WINDOW).as_secs_f64(),
            timeout_s: self.command.traffic().timeout.as_secs_f64(),
        }
    }
}
