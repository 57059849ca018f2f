//! The question that a command line asks: its options, checked; its figures, and the experiments and the plan that answer it.

use std::time::Duration;

use anyhow::bail;
use lab::ask::Ask;
use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{Experiment, Figure, Form, Subject};
use lab::observation::Timing;
use lab::plan::{self, Plan};
use systems::{Catalog, Manifest, Value, Workload};
use wire::frames::Prefix;

use super::Args;
use super::arms::Arms;
use super::learn::Learnt;
use crate::common::Usage;
use crate::condition::{Condition, FigureChoice};
use crate::run_verb;
use crate::traffic::GapsChoice;

/// The default budget.
const BUDGET_S: f64 = 60.0;

/// The fewest rounds that the default budget allows, however many points there are.
const FEWEST_ROUNDS: f64 = 6.0;

/// The experiment of figures at saturation, and that of those below.
const CLOSED: &str = "try";
const OPEN: &str = "try-at-rate";

/// Knobs with their values.
type Axes<'a> = Vec<(&'a str, Vec<Value>)>;

impl Args {
    /// The timing of the first look.
    pub(super) fn look(&self) -> Timing {
        Timing { warmup_s: 0.3, measure_s: 0.5, timeout_s: self.traffic.timeout.as_secs_f64() }
    }

    /// Whether the first look finds out how fast each point is, because the rate of another experiment depends on it.
    pub(super) fn saturated(&self, workload: Workload) -> bool {
        let open = self.figures.iter().any(|choice| choice.is_below_saturation());
        open && self.traffic.rate.is_none() && workload == Workload::Requests
    }

    /// The plan of the whole run. Without a fixed number of rounds it grows.
    pub(super) fn grown(&self, catalog: &Catalog, arms: &Arms, learnt: Learnt) -> anyhow::Result<Plan> {
        let half = learnt.slowest_per_s.map(|per_s| per_s / 2.0);
        let rate = self.traffic.rate.map(|(from, _)| from).or(half);
        let mut plan = self.plan(catalog, arms, learnt.ask, rate)?;
        match (self.rounds, self.budget) {
            (Some(_), _) => {}
            (None, Some(budget)) => {
                plan = plan.within(budget.as_secs_f64());
                plan.grow_within(budget.as_secs_f64(), false);
            }
            (None, None) => plan.grow_within(BUDGET_S.max(FEWEST_ROUNDS * plan.round_s()), true),
        }
        Ok(plan)
    }

    /// The conditions of `--fail-if`.
    ///
    /// # Errors
    /// The first option that contradicts another.
    pub(super) fn conditions(&self, workload: Workload) -> anyhow::Result<Vec<Condition>> {
        if let Some(why) = self.traffic.contradiction(workload.about().scheme) {
            bail!(Usage(why.to_owned()));
        }
        self.check_tls(workload).map_err(Usage)?;
        if self.traffic.rate.is_some_and(|(rate, _)| rate < 1.0 || rate.fract() != 0.0) {
            bail!(Usage("--rate is a whole number of arrivals per second here".to_owned()));
        }
        if self.duration < Duration::from_millis(10) || self.traffic.timeout.is_zero() {
            bail!(Usage("-d is 10ms or more, and --timeout above zero".to_owned()));
        }
        if self.traffic.frame_prefix.is_some_and(|prefix| prefix != Prefix::Four) {
            bail!(Usage("--frame-prefix is 4 here: `narrows load` can use others".to_owned()));
        }
        if self.commits.git.is_empty() && self.names.len() > self.arms.len() {
            bail!(Usage(format!("--names has {} names for {} arms", self.names.len(), self.arms.len())));
        }
        let twice = |(index, figure): &(usize, &FigureChoice)| self.figures[..*index].contains(figure);
        if self.figures.iter().enumerate().any(|each| twice(&each)) {
            bail!(Usage("--figure names a figure twice".to_owned()));
        }
        if self.traffic.rate.is_some_and(|(from, to)| from != to) {
            bail!(Usage("--rate must not be a ramp here: every trial has the same arrivals".to_owned()));
        }
        let conditions = Condition::all(&self.fail_if).map_err(Usage)?;
        let measured = |c: &Condition| self.figures.iter().any(|choice| c.is_about(choice.figure(workload)));
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
        rate: Option<f64>,
    ) -> anyhow::Result<Plan> {
        let open = self.figures.iter().any(|choice| choice.is_below_saturation());
        let workload = arms.systems[0].workloads[0];
        let own_rate = self.traffic.rate.map(|(from, _)| from);
        let groups = match rate.filter(|_| open && own_rate.is_none()) {
            // The rate is given, nothing needs one, or it is not known yet.
            None => vec![(CLOSED, self.figures.clone(), own_rate)],
            Some(rate) => {
                // Memory is measured where other costs are.
                let below = |choice: &FigureChoice| *choice != FigureChoice::Rate;
                let (below, at) = self.figures.iter().partition::<Vec<FigureChoice>, _>(|c| below(c));
                vec![(CLOSED, at, None), (OPEN, below, Some(rate))]
            }
        };
        let mut requests = Vec::new();
        for (name, figures, rate) in groups.into_iter().filter(|(_, figures, _)| !figures.is_empty()) {
            let mut figures: Vec<Figure> =
                figures.into_iter().map(|choice| choice.figure(workload)).collect();
            if rate.is_none() && figures.iter().any(|figure| figure.needs_rate()) {
                // This plan only says which points there are.
                figures = vec![Figure::RequestsPerS];
            }
            for (build, systems) in arms.by_build().enumerate() {
                let mut experiment = self.experiment(name, &figures, arms, systems, ask.clone(), rate)?;
                if build > 0 {
                    experiment.subject.name = format!("{name}-build-{}", build + 1);
                    experiment.repeats = Some(name.to_owned());
                }
                let overrides = Overrides { rounds: self.rounds, ..Overrides::default() };
                requests.push(Request { experiment, form: Form::Quick, overrides });
            }
        }
        let seed = self.seed.unwrap_or_else(run_verb::new_seed);
        Ok(plan::plan(&requests, catalog, &Default::default(), seed)?)
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
        if let Some((knob, option)) = self.tls.instead_of_knobs().find(|(knob, _)| given(knob)) {
            bail!(Usage(format!("{option} and -k {knob} set the same: give one of them")));
        }
        let (secured, plain): (Vec<_>, Vec<_>) = systems.iter().partition(|system| system.speaks(true));
        if secured.is_empty() {
            return Ok(vec![axes]);
        }
        let word = |word: &str| vec![Value::Text(word.to_owned())];
        let version = self.tls.version().map_err(Usage)?;
        let sessions = if self.tls.offers_sessions() { "always" } else { "never" };
        let sessions = Some(sessions).filter(|_| !given("sessions"));
        if given("tls") {
            axes.extend(sessions.map(|sessions| ("sessions", word(sessions))));
            return Ok(vec![axes]);
        }
        let blocks = [(secured, version.name(), sessions), (plain, "off", None)];
        let blocks = blocks.into_iter().filter(|(systems, ..)| !systems.is_empty());
        let block = |(systems, tls, sessions): (Vec<&Manifest>, &str, Option<&str>)| {
            let names = systems.into_iter().map(|system| Value::Text(system.name.clone())).collect();
            let mut block = axes.clone();
            block.extend([("systems", names), ("tls", word(tls))]);
            block.extend(sessions.map(|sessions| ("sessions", word(sessions))));
            block
        };
        Ok(blocks.map(block).collect())
    }

    /// The first option of TLS that means nothing for these arms.
    fn check_tls(&self, workload: Workload) -> Result<(), String> {
        let secured = self.arms.iter().any(|arm| arm.starts_with("https://"));
        let told = [&self.arms, &self.env].into_iter().flatten().any(|text| text.contains("{cert}"));
        if (secured || told) && workload.knob("tls").is_none() {
            return Err(format!("TLS is spoken with requests, not with {workload}"));
        }
        if self.tls.any() && !secured && !told {
            return Err("options of TLS need an arm with https:// or with {cert} in its command".to_owned());
        }
        match self.tls.of_certificates() {
            Some(option) if !secured => Err(format!(
                "{option} is for https:// arms: Narrows makes the certificate of a command with {{cert}}"
            )),
            _ => self.tls.version().map(|_| ()),
        }
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
        rate: Option<f64>,
    ) -> anyhow::Result<Experiment> {
        let workload = arms.systems[0].workloads[0];
        let systems: Vec<&str> = of_build.iter().map(|system| system.name.as_str()).collect();
        let subject = Subject {
            name: name.to_owned(),
            title: self.title(arms),
            about: String::new(),
            workload,
            figure: figures[0],
            also: figures[1..].to_vec(),
            published: Vec::new(),
            threshold: self.threshold,
        };
        let timing = Timing {
            warmup_s: self.warmup.as_secs_f64(),
            measure_s: self.duration.as_secs_f64(),
            timeout_s: self.traffic.timeout.as_secs_f64(),
        };
        let integer = |number: u64| vec![Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))];
        let mut axes: Axes = vec![("connections", integer(self.traffic.connections as u64))];
        match workload {
            Workload::Frames => axes.push(("frame_size", integer(self.traffic.frame_size.unwrap_or(1000)))),
            _ => {
                axes.push(("keep_alive", vec![Value::Boolean(!self.traffic.close)]));
                axes.push(("pipeline", integer(self.traffic.pipeline as u64)));
                if let Some(rate) = rate {
                    axes.push(("rate", integer((rate.round() as u64).max(1))));
                    let gaps = match self.traffic.gaps {
                        GapsChoice::Constant => "constant",
                        GapsChoice::Poisson => "poisson",
                    };
                    axes.push(("gaps", vec![Value::Text(gaps.to_owned())]));
                }
            }
        }
        for (knob, values) in &arms.knobs {
            axes.retain(|(known, _)| known != knob);
            axes.push((knob, values.clone()));
        }
        let blocks = self.by_scheme(arms, of_build, axes)?;
        let mut experiment = Experiment::new(subject, &systems, self.rounds.unwrap_or(3), timing, &blocks)?;
        experiment.base = systems.first().map(|name| (*name).to_owned());
        experiment.ask = ask;
        Ok(experiment)
    }
}
