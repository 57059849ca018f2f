//! The question that a command line asks: its options, checked; its figures, and the experiments and the plan that answer it.

use std::time::Duration;

use anyhow::bail;
use lab::ask::Ask;
use lab::condition::Condition;
use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{Experiment, Figure, Figures, Form, Subject};
use lab::observation::Timing;
use lab::plan::{self, Plan};
use lab::session::Pace;
use load::Slo;
use systems::{Catalog, Manifest, Value, Workload};

use super::Args;
use crate::command::learn::Learnt;
use crate::command::pace::{self, Chosen, Tempo, WARMUP, WINDOW};
use crate::command::{self, arms::Arms, budget};
use crate::common::{self, Usage};
use crate::condition::{self, FigureChoice};
use crate::driver_args;

/// The experiment of figures at saturation, and that of those below.
const CLOSED: &str = "try";
const OPEN: &str = "try-at-rate";

/// Knobs with their values.
type Axes<'a> = Vec<(&'a str, Vec<Value>)>;

impl Args {
    /// Whether the first look finds out how fast each point is, because the timing of the trials or their rate depends on it.
    pub(super) fn needs_paces(&self, workload: Workload) -> bool {
        // Whether another program does its work, and for how long, is seen only when it does it.
        if self.driver.given() {
            return true;
        }
        let open = self.figures().iter().any(|choice| choice.is_below_saturation());
        let rate = open && self.objective().is_none() && self.command.traffic().rate.is_none();
        let timing = self.duration.is_none() || (self.warmup.is_none() && !self.cold);
        workload == Workload::Requests && (rate || timing)
    }

    /// The usual timing of a trial, as far as no option says another.
    pub(super) fn timing(&self) -> Timing {
        if self.driver.given() {
            return self.driver.timing(self.warmup, self.duration.unwrap_or(WINDOW));
        }
        let warmup = if self.cold { Duration::ZERO } else { self.warmup.unwrap_or(WARMUP) };
        Timing {
            warmup_s: warmup.as_secs_f64(),
            measure_s: self.duration.unwrap_or(WINDOW).as_secs_f64(),
            timeout_s: self.command.traffic().timeout.as_secs_f64(),
        }
    }

    /// The timing that suits points of these speeds, if so many trials make a round.
    fn timing_for(&self, paces: &[Pace], round: usize) -> Timing {
        if self.driver.given() {
            let longest_s = paces.iter().map(|pace| pace.took_s).fold(0.0, f64::max);
            let timed = self.driver.has("duration") || longest_s == 0.0;
            return if timed { self.timing() } else { Timing { measure_s: longest_s, ..self.timing() } };
        }
        let chosen = Chosen { warmup: self.warmup.is_some() || self.cold, window: self.duration.is_some() };
        let closed = self.command.traffic().rate.is_none() && self.objective().is_none();
        let rounds = self.rounds.map_or(budget::FEWEST_ROUNDS, f64::from);
        let all_s = self.budget.map_or(budget::BUDGET_S, |budget| budget.as_secs_f64());
        pace::suited(self.timing(), chosen, paces, closed, all_s / (rounds * round.max(1) as f64))
    }

    /// The objective of max-rate. Limits of single answers are none.
    fn objective(&self) -> Option<&Slo> {
        self.slo.as_ref().filter(|slo| !slo.objectives().is_empty())
    }

    /// The figures to measure.
    pub(super) fn figures(&self) -> Vec<FigureChoice> {
        match (self.objective(), &self.figures[..]) {
            (Some(_), []) => vec![FigureChoice::MaxRate],
            (None, []) if self.slo.is_some() => vec![FigureChoice::Goodput],
            // The rate that is offered would be the same for all arms.
            (None, []) if self.command.traffic().rate.is_some() => vec![FigureChoice::P50],
            (None, []) => vec![FigureChoice::Rate],
            (_, given) => given.to_vec(),
        }
    }

    /// What is asked, with the program that drives in the place of Narrows' generator.
    pub(super) fn asked(&self, ask: Option<Ask>) -> anyhow::Result<Option<Ask>> {
        let figures: Vec<Figure> =
            self.figures().iter().map(|choice| choice.figure(Workload::Requests)).collect();
        let meter = self.driver.meter(self.command.start.shell, &figures)?;
        Ok(ask.map(|ask| Ask { meter, ..ask }))
    }

    /// Checks that another program can do what is asked.
    fn check_driver(&self, workload: Workload) -> anyhow::Result<()> {
        let others = [
            (self.slo.is_some(), "--slo"),
            (self.unequal, "--unequal"),
            (self.cold, "--cold"),
            (self.save.is_some(), "--save"),
            (self.lab.fleet.any(), "--sut or --gen"),
            (self.duration.is_some(), driver_args::DURATION),
            (self.warmup.is_some(), driver_args::WARMUP),
        ];
        self.driver.check(&self.command, workload, &others)?;
        self.asked(None).map(drop)
    }

    /// Checks the figures and what they need.
    fn check_figures(&self, workload: Workload) -> Result<(), Usage> {
        let asked = FigureChoice::asked(&self.figures, self.slo.as_ref()).map_err(Usage)?;
        let wrong = |why: &str| Err(Usage(why.to_owned()));
        let of_requests = |figure: Figure| figure.is_of_streams() || figure.is_before_load();
        if asked.iter().any(|choice| of_requests(choice.figure(Workload::Requests)))
            && workload != Workload::Requests
        {
            return wrong("figures of streams and of the start are about requests, not about frames");
        }
        match asked.contains(&FigureChoice::MaxRate) {
            false if self.objective().is_some() => {
                wrong("--slo is the objective of max-rate: add max-rate to --figure, or leave --slo out")
            }
            false if asked.contains(&FigureChoice::Rate) && self.command.traffic().rate.is_some() => {
                Err(condition::offered("rate", "for every arm"))
            }
            true if workload != Workload::Requests => wrong("max-rate is a rate of requests, not of frames"),
            true if self.command.traffic().rate.is_some() => {
                wrong("--slo searches the rate in each trial: leave --rate out")
            }
            _ => Ok(()),
        }
    }

    /// Checks that each window has enough answers for its figures at this rate.
    fn check_answers(&self, workload: Workload, rate: f64, window: Duration) -> Result<(), Usage> {
        let figures: Vec<Figure> = self.figures().iter().map(|choice| choice.figure(workload)).collect();
        command::check_answers(&figures, None, rate, window)
    }

    /// The plan of the whole run. Without a fixed number of rounds it grows.
    pub(super) fn grown(&self, catalog: &Catalog, arms: &Arms, learnt: Learnt) -> anyhow::Result<Plan> {
        // Two that share their cores reach half of what each does alone.
        let sharing = if self.is_duet(arms.workload)? { 4.0 } else { 2.0 };
        let half = learnt.paces.iter().map(|pace| pace.per_s / sharing).reduce(f64::min);
        let rate =
            self.command.traffic().rate.map(|(from, _)| from).or(half).filter(|_| !self.driver.given());
        let mut plan = self.plan(catalog, arms, learnt.ask, Tempo { rate, timing: self.timing() })?;
        let round = plan.trials.iter().filter(|trial| trial.round == 0).count();
        let timing = self.timing_for(&learnt.paces, round);
        plan.retime(timing).map_err(Usage)?;
        if let Some(rate) = rate.filter(|_| self.objective().is_none()) {
            self.check_answers(arms.workload, rate, Duration::from_secs_f64(timing.measure_s))?;
        }
        plan.starts = learnt.starts;
        match (self.rounds, self.budget) {
            (Some(_), _) => {}
            (None, _) if self.has_ledger() => {
                self.check_budget(&plan)?;
                plan.fill(self.budget.map_or_else(|| budget::usual_s(&plan), |budget| budget.as_secs_f64()));
            }
            (None, Some(budget)) => {
                let budget_s = budget.as_secs_f64();
                self.check_budget(&plan)?;
                plan = plan.within(budget_s);
                plan.grow_within(budget_s, false);
            }
            (None, None) => {
                plan.grow_within(budget::usual_s(&plan), true);
            }
        }
        Ok(plan)
    }

    /// Checks that the rounds that a comparison takes fit into the budget.
    pub(super) fn check_budget(&self, plan: &Plan) -> Result<(), Usage> {
        let compared = !self.unequal && plan.experiments.iter().any(|planned| planned.scenarios.len() > 1);
        if compared { budget::check(plan, self.budget) } else { Ok(()) }
    }

    /// The conditions of `--fail-if`.
    ///
    /// # Errors
    /// The first option that contradicts another.
    pub(super) fn conditions(&self, workload: Workload) -> anyhow::Result<Vec<Condition>> {
        self.command.check(workload, &self.arms, self.duration.unwrap_or(WINDOW))?;
        if self.commits.git.is_empty() && self.names.len() > self.arms.len() {
            bail!(Usage(format!("--names has {} names for {} arms", self.names.len(), self.arms.len())));
        }
        self.check_figures(workload)?;
        self.check_driver(workload)?;
        if let Some((rate, _)) = self.command.traffic().rate {
            self.check_answers(workload, rate, self.duration.unwrap_or(WINDOW))?;
        }
        let conditions = condition::conditions(&self.fail_if).map_err(Usage)?;
        self.check_duet(workload, &conditions)?;
        if let Some(condition) = conditions.iter().find(|c| self.unequal && c.needs_baseline()) {
            let text = &condition.text;
            bail!(Usage(format!(
                "--fail-if {text} is about a ratio, and --unequal compares nothing: limit a figure itself, such as p99<20ms"
            )));
        }
        let measured =
            |c: &Condition| self.figures().iter().any(|choice| c.is_about(choice.figure(workload)));
        if let Some(condition) = conditions.iter().find(|condition| !measured(condition)) {
            let text = &condition.text;
            bail!(Usage(format!("--fail-if {text}: name this figure in --figure, so that it is measured")));
        }
        Ok(conditions)
    }

    /// The plan: one experiment at saturation and one below, as far as figures ask for them. Without a rate that is not
    /// known yet, only the first is planned.
    pub(super) fn plan(
        &self,
        catalog: &Catalog,
        arms: &Arms,
        ask: Option<Ask>,
        Tempo { rate, timing }: Tempo,
    ) -> anyhow::Result<Plan> {
        let asked = self.figures();
        let first = asked.first().copied();
        let open = self.objective().is_none() && asked.iter().any(|choice| choice.is_below_saturation());
        let workload = arms.workload;
        let own_rate = self.command.traffic().rate.map(|(from, _)| from);
        let groups = match rate.filter(|_| open && own_rate.is_none()) {
            // The rate is given, nothing needs one, or it is not known yet.
            None => vec![(CLOSED, asked, own_rate)],
            Some(rate) => {
                // Memory is measured where other costs are.
                let below = |choice: &FigureChoice| {
                    *choice != FigureChoice::Rate && !choice.figure(workload).is_of_streams()
                };
                let (below, at) = asked.into_iter().partition::<Vec<FigureChoice>, _>(below);
                // The deciding figure comes first.
                let first_is_below = first.is_some_and(|choice| below.contains(&choice));
                let groups = [(CLOSED, at, None), (OPEN, below, Some(rate))];
                if first_is_below { groups.into_iter().rev().collect() } else { groups.into() }
            }
        };
        let mut requests = Vec::new();
        for (name, figures, rate) in groups.into_iter().filter(|(_, figures, _)| !figures.is_empty()) {
            let mut figures: Vec<Figure> =
                figures.into_iter().map(|choice| choice.figure(workload)).collect();
            if rate.is_none()
                && !self.driver.given()
                && self.objective().is_none()
                && figures.iter().any(|figure| figure.needs_rate())
            {
                // This plan only says which points there are.
                figures = vec![Figure::RequestsPerS];
            }
            for (build, systems) in arms.by_build().enumerate() {
                let tempo = Tempo { rate, timing };
                let mut experiment = self.experiment(name, &figures, arms, systems, ask.clone(), tempo)?;
                if build > 0 {
                    experiment.subject.name = format!("{name}-build-{}", build + 1);
                    experiment.repeats = Some(name.to_owned());
                }
                let overrides = Overrides { rounds: self.rounds, ..Overrides::default() };
                requests.push(Request { experiment, form: Form::Quick, overrides });
            }
        }
        let seed = self.seed.unwrap_or_else(common::new_seed);
        let mut plan = plan::plan(&requests, catalog, &Default::default(), seed)?;
        plan.conditions = condition::conditions(&self.fail_if).map_err(Usage)?;
        plan.together = true;
        Ok(plan)
    }

    /// The blocks of the grid: one for the arms that are spoken to in TLS, and one for the others. A knob `tls` decides it
    /// itself.
    fn by_scheme<'a>(
        &self,
        arms: &Arms,
        systems: &[Manifest],
        mut axes: Axes<'a>,
    ) -> anyhow::Result<Vec<Axes<'a>>> {
        let given = |knob: &str| arms.knobs.iter().any(|(name, _)| name == knob);
        if let Some((knob, option)) = self.command.tls.instead_of_knobs().find(|(knob, _)| given(knob)) {
            bail!(Usage(format!("{option} and -k {knob} set the same: give one of them")));
        }
        let (secured, plain): (Vec<_>, Vec<_>) = systems.iter().partition(|system| system.speaks(true));
        if secured.is_empty() {
            return Ok(vec![axes]);
        }
        if given("tls") {
            let sessions = self.command.of_scheme(true)?.into_iter().filter(|(knob, _)| *knob == "sessions");
            axes.extend(sessions.filter(|(knob, _)| !given(knob)).map(|(knob, value)| (knob, vec![value])));
            return Ok(vec![axes]);
        }
        let mut blocks = Vec::new();
        for (systems, secured) in [(secured, true), (plain, false)] {
            if systems.is_empty() {
                continue;
            }
            let names = systems.into_iter().map(|system| Value::Text(system.name.clone())).collect();
            let mut block = axes.clone();
            block.push(("systems", names));
            let of_scheme = self.command.of_scheme(secured)?.into_iter().filter(|(knob, _)| !given(knob));
            block.extend(of_scheme.map(|(knob, value)| (knob, vec![value])));
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// The commands, and the commits in which they run.
    fn title(&self, arms: &Arms) -> String {
        let commands = self.arms.join(" | ");
        match &arms.note {
            Some(note) => format!("{commands} at {note}"),
            None => commands,
        }
    }

    pub(super) fn experiment(
        &self,
        name: &str,
        figures: &[Figure],
        arms: &Arms,
        of_build: &[Manifest],
        ask: Option<Ask>,
        Tempo { rate, timing }: Tempo,
    ) -> anyhow::Result<Experiment> {
        let [first, others @ ..] = figures else { bail!("an experiment needs a figure") };
        let workload = arms.workload;
        let systems: Vec<&str> = of_build.iter().map(|system| system.name.as_str()).collect();
        let subject = Subject {
            name: name.to_owned(),
            title: self.title(arms),
            about: String::new(),
            workload,
            figures: Figures { first: *first, others: others.to_vec() },
            asks: None,
            objective: self.objective().cloned(),
            published: Vec::new(),
            threshold: self.threshold,
        };
        let held = self.command.held(workload, rate).into_iter();
        let held = held
            .filter(|(knob, _)| !self.driver.given() || (*knob == "connections" && self.driver.has(knob)));
        let mut axes: Axes = held.map(|(knob, value)| (knob, vec![value])).collect();
        for (knob, values) in &arms.knobs {
            axes.retain(|(known, _)| known != knob);
            axes.push((knob, values.clone()));
        }
        let blocks = self.by_scheme(arms, of_build, axes)?;
        let mut experiment = Experiment::new(subject, &systems, self.rounds.unwrap_or(3), timing, &blocks)?;
        experiment.base = systems.first().map(|name| (*name).to_owned());
        experiment.duet = self.is_duet(workload)?;
        let goal = self.slo.as_ref().and_then(Slo::goal).cloned();
        experiment.ask = ask.map(|ask| Ask { goal, ..ask });
        Ok(experiment)
    }
}
