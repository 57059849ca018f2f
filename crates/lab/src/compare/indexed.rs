//! A figure of a run, with what is looked up for each of its scenarios. A file may have thousands of them, so that a walk over all of
//! them for each would take too long.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use stats::FEWEST_ROUNDS;
use systems::Value;

use crate::findings::{Estimate, FigureView, Findings, Rows, log_ratios};
use crate::observation::Scenario;

/// By what a figure of a run is known: the names of its experiment and of itself.
pub(super) type Name<'a> = (&'a str, &'static str);

/// An experiment's findings as one of its figures sees them, whose estimates are found by their scenarios.
pub(crate) struct Indexed<'a> {
    view: FigureView<'a>,
    /// Of several estimates of a scenario, the first.
    places: BTreeMap<&'a Scenario, usize>,
    reference: Option<usize>,
    varied: Varied<'a>,
    rows: OnceCell<Rows>,
}

impl<'a> Deref for Indexed<'a> {
    type Target = FigureView<'a>;

    fn deref(&self) -> &Self::Target {
        &self.view
    }
}

impl<'a> Indexed<'a> {
    /// Looks at each estimate of a figure once.
    pub fn new(view: FigureView<'a>) -> Self {
        let mut places = BTreeMap::new();
        for (at, estimate) in view.estimates.iter().enumerate() {
            places.entry(&estimate.scenario).or_insert(at);
        }
        let reference = view.estimates.iter().position(Estimate::is_reference);
        Self { view, places, reference, varied: Varied::of(view.estimates), rows: OnceCell::new() }
    }

    /// The figures of all experiments, in their order.
    pub fn all(findings: &'a Findings) -> Vec<Self> {
        findings.views().map(Self::new).collect()
    }

    /// The name of the experiment and that of the figure.
    pub fn name(&self) -> Name<'a> {
        (self.view.shared.name.as_str(), self.view.figure.name())
    }

    /// Where the estimate of a scenario is.
    pub fn place(&self, scenario: &Scenario) -> Option<usize> {
        self.places.get(scenario).copied()
    }

    /// The estimate of a scenario.
    pub fn estimate(&self, scenario: &Scenario) -> Option<&'a Estimate> {
        self.view.estimates.get(self.place(scenario)?)
    }

    /// The estimates as rows that can be compared.
    pub fn rows(&self) -> &Rows {
        self.rows.get_or_init(|| Rows::of(&self.view))
    }

    /// The yardstick of a scenario at its own point, or else the only one.
    pub fn yardstick_of(&self, scenario: &Scenario) -> Option<&'a Estimate> {
        let own = self.estimate(&self.view.yardstick(scenario));
        own.or_else(|| self.view.estimates.get(self.reference?))
    }

    /// The logarithms of the ratios of an estimate to its yardstick in the same rounds. None if it is the base itself, and if they
    /// share too few rounds.
    pub fn to_yardstick(&self, estimate: &Estimate) -> Option<Vec<f64>> {
        if self.view.base.is_some() && self.view.is_yardstick(&estimate.scenario) {
            return None; // A base beside itself says nothing of two runs.
        }
        let reference = self.yardstick_of(&estimate.scenario)?;
        let ratios = log_ratios(self.view.figure, &estimate.by_round, &reference.by_round);
        (ratios.len() >= FEWEST_ROUNDS).then(|| ratios.into_iter().map(|(_, ratio)| ratio).collect())
    }

    /// The system of a scenario, and the knobs that vary in the experiment or differ in this system's scenarios of the `other` run.
    pub fn label_beside(&self, scenario: &Scenario, other: Option<&Indexed<'_>>) -> String {
        let Scenario { system, point, .. } = scenario;
        let varies = |knob: &str, value: &Value| {
            self.varied.has_several(knob)
                || other.is_some_and(|other| other.varied.differs(system, knob, value))
        };
        let knobs = point.iter().filter(|(knob, value)| varies(knob, value));
        let knobs = knobs.map(|(knob, value)| format!("{knob}={value}"));
        std::iter::once(system.clone()).chain(knobs).collect::<Vec<_>>().join(" ")
    }
}

/// Which values the knobs of some scenarios have.
struct Varied<'a> {
    /// The knobs with several values, whatever the system.
    several: BTreeSet<&'a str>,
    systems: BTreeMap<&'a str, OfSystem<'a>>,
}

/// Which values the knobs of a system's scenarios have.
#[derive(Default)]
struct OfSystem<'a> {
    scenarios: usize,
    /// By knob: the scenarios that have it, and its value. None if it has several.
    knobs: BTreeMap<&'a str, (usize, Option<&'a Value>)>,
}

impl<'a> Varied<'a> {
    fn of(estimates: &'a [Estimate]) -> Self {
        let mut first: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut varied = Self { several: BTreeSet::new(), systems: BTreeMap::new() };
        for Scenario { system, point, .. } in estimates.iter().map(|estimate| &estimate.scenario) {
            let own = varied.systems.entry(system).or_default();
            own.scenarios += 1;
            for (knob, value) in point {
                if *first.entry(knob).or_insert(value) != value {
                    varied.several.insert(knob);
                }
                let (scenarios, known) = own.knobs.entry(knob).or_insert((0, Some(value)));
                *scenarios += 1;
                *known = known.filter(|known| *known == value);
            }
        }
        varied
    }

    fn has_several(&self, knob: &str) -> bool {
        self.several.contains(knob)
    }

    /// Whether a scenario of the system has another value of the knob, or none.
    fn differs(&self, system: &str, knob: &str, value: &Value) -> bool {
        self.systems.get(system).is_some_and(|own| {
            own.knobs
                .get(knob)
                .is_none_or(|(scenarios, known)| *scenarios < own.scenarios || *known != Some(value))
        })
    }
}
