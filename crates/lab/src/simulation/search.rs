//! Verifies the search by simulation: how near the advised setting is to the best, and how often the default is left for
//! nothing. The searches go through the real plan, the real rule for rounds and the real comparisons.

use std::sync::OnceLock;

use stats::{Noise, SplitMix64, Verdict};
use systems::{Point, Value, Workload};

use super::{axis, setup};
use crate::findings::{Advice, Tuned, findings};
use crate::observation::{Observation, Scenario};
use crate::plan::{Base, Plan, Planned};
use crate::rounds;
use crate::search::{self, Cell};
use crate::session::{Fake, Rule, observe};

/// The numbers of values of the knobs: 480 settings.
pub(super) const SIZES: [usize; 4] = [6, 5, 4, 4];

/// The numbers of values of the knobs where they are fine: 2,304 settings.
const FINE_SIZES: [usize; 3] = [32, 24, 3];

/// The most values of a knob that has few.
const MANY: usize = 8;

/// 15 % of the trials of three rounds of all settings of `SIZES`.
const TRIALS: usize = 480 * 3 * 15 / 100;

/// The seed of the first surface. The constants of the race were chosen with the surfaces of lower seeds.
pub(super) const FIRST_SEED: u64 = 10_000;

/// The surfaces of each noise.
const SURFACES: u64 = 200;

/// The flat surfaces of each noise.
const FLAT_SURFACES: u64 = 1000;

/// The noises of the table: that of a shared machine, and 3.3 times as much.
pub(super) const NOISES: [(&str, Noise); 2] = [
    ("that of a shared machine", Noise::SHARED_MACHINE),
    ("3.3 times as much", Noise { spread: 0.05, slow_by: 1.65, ..Noise::SHARED_MACHINE }),
];

/// What each setting is truly worth, as a logarithm: the sum of what the values of the knobs do, and of what pairs of values
/// do together.
pub(crate) struct Surface {
    default: Cell,
    /// Whether the order of each knob's values means something.
    ordered: Vec<bool>,
    /// By knob and value.
    values: Vec<Vec<f64>>,
    /// By pair of knobs and their values.
    pairs: Vec<(usize, usize, Vec<Vec<f64>>)>,
}

impl Surface {
    /// A surface on which all settings are equal.
    fn flat(sizes: &[usize], seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let default = sizes.iter().map(|values| rng.below(*values as u64) as usize).collect();
        let ordered = vec![true; sizes.len()];
        Self {
            default,
            ordered,
            values: sizes.iter().map(|values| vec![0.0; *values]).collect(),
            pairs: Vec::new(),
        }
    }

    /// A random surface. 45 % of the knobs are flat. The values of the others differ by 5 to 70 %. Three in four are ordered,
    /// with a single peak, and so are all with many values. Half of the pairs of such knobs depend on each other by a quarter
    /// of what the weaker one does: by chance, or, if one has many values, as the product of both.
    pub fn random(sizes: &[usize], seed: u64) -> Self {
        let mut surface = Self::flat(sizes, seed);
        let mut rng = SplitMix64::new(seed + 5_000_000);
        let mut heights = Vec::new();
        for (of_knob, ordered) in surface.values.iter_mut().zip(&mut surface.ordered) {
            let (is_flat, has_peak) = (rng.unit() < 0.45, rng.unit() < 0.75 || of_knob.len() > MANY);
            *ordered = has_peak;
            let height = 0.05 + 0.65 * rng.unit();
            let (peak, last) = (rng.below(of_knob.len() as u64) as f64, of_knob.len() as f64 - 1.0);
            for (value, worth) in of_knob.iter_mut().enumerate().filter(|_| !is_flat) {
                let lost = if has_peak { (value as f64 - peak).abs() / last } else { rng.unit() };
                *worth = -height * lost;
            }
            heights.push(if is_flat { 0.0 } else { height });
        }
        for (b, second) in heights.iter().enumerate() {
            for (a, first) in heights[..b].iter().enumerate() {
                let spread = 0.25 * first.min(*second);
                if spread > 0.0 && rng.unit() < 0.5 {
                    let smooth = sizes[a].max(sizes[b]) > MANY;
                    let tilt = spread * rng.normal();
                    let from_middle =
                        |at: usize, knob: usize| 2.0 * at as f64 / (sizes[knob] - 1) as f64 - 1.0;
                    let mut both = |i: usize, j: usize| match smooth {
                        true => tilt * from_middle(i, a) * from_middle(j, b),
                        false => spread * rng.normal(),
                    };
                    let mut row = |i: usize| (0..sizes[b]).map(|j| both(i, j)).collect();
                    surface.pairs.push((a, b, (0..sizes[a]).map(&mut row).collect()));
                }
            }
        }
        surface
    }

    pub fn worth(&self, cell: &Cell) -> f64 {
        let alone: f64 = self.values.iter().zip(cell).map(|(values, at)| values[*at]).sum();
        alone + self.pairs.iter().map(|(a, b, table)| table[cell[*a]][cell[*b]]).sum::<f64>()
    }

    pub fn worth_of_default(&self) -> f64 {
        self.worth(&self.default)
    }

    /// The worth of the best setting.
    pub fn best(&self) -> f64 {
        let mut cells = vec![Cell::new()];
        for of_knob in &self.values {
            let longer = |cell: &Cell, value: usize| cell.iter().copied().chain([value]).collect();
            cells = cells
                .iter()
                .flat_map(|cell| (0..of_knob.len()).map(move |value| longer(cell, value)))
                .collect();
        }
        cells.iter().map(|cell| self.worth(cell)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether a knob changes nothing, alone or with others.
    fn is_flat(&self, knob: usize) -> bool {
        self.values[knob].iter().all(|worth| *worth == 0.0)
    }

    /// An executor with this truth.
    pub fn fake(&self, noise: Noise, seed: u64) -> Fake {
        let rule = |point: Point, worth: &f64| Rule { point, better: Some(worth.exp()), ..Rule::default() };
        let alone = self.values.iter().enumerate().flat_map(|(knob, values)| {
            values.iter().enumerate().map(move |(value, worth)| rule(self.point(&[(knob, value)]), worth))
        });
        let pairs = self.pairs.iter().flat_map(|(a, b, table)| {
            table.iter().enumerate().flat_map(move |(i, row)| {
                row.iter().enumerate().map(move |(j, worth)| rule(self.point(&[(*a, i), (*b, j)]), worth))
            })
        });
        let rules = alone.chain(pairs).filter(|rule| rule.better != Some(1.0)).collect();
        Fake::new(1e6, rules, noise, seed)
    }

    /// A search of this space.
    pub fn plan(&self, trials: usize, seed: u64) -> Plan {
        let values = |knob: usize| (0..self.values[knob].len()).map(|at| self.value(knob, at)).collect();
        let axes = (0..self.values.len()).map(|knob| axis(&name(knob), values(knob))).collect();
        let default: Vec<(usize, usize)> = self.default.iter().copied().enumerate().collect();
        let scenario =
            Scenario::new("e", "s", Workload::Requests, self.point(&default)).expect("the defaults are work");
        let mut setup = setup(axes);
        setup.base = Some(Base { scenario, command: String::new() });
        let planned = Planned { setup, scenarios: Vec::new(), apply: Default::default(), search: None };
        let mut plan = Plan::new(seed, vec![planned]);
        assert!(search::begin(&mut plan, trials, &[]));
        plan
    }

    fn value(&self, knob: usize, at: usize) -> Value {
        if self.ordered[knob] { Value::Integer(at as i64) } else { Value::Text(format!("v{at}")) }
    }

    fn point(&self, values: &[(usize, usize)]) -> Point {
        values.iter().map(|(knob, at)| (name(*knob), self.value(*knob, *at))).collect()
    }

    /// The setting of a point.
    pub fn cell(&self, point: &Point) -> Cell {
        let at = |knob: usize| {
            let position =
                (0..self.values[knob].len()).find(|at| self.value(knob, *at) == point[&name(knob)]);
            position.expect("a value of the knob")
        };
        (0..self.values.len()).map(at).collect()
    }
}

fn name(knob: usize) -> String {
    format!("knob{knob}")
}

/// Carries out a search without a store.
pub(crate) fn carried_out(mut plan: Plan, fake: &mut Fake) -> (Plan, Vec<Observation>) {
    let mut seen = Vec::new();
    loop {
        for trial in &plan.trials[seen.len()..] {
            seen.push(observe(fake, trial).unwrap());
        }
        if !rounds::extend(&mut plan, &seen) {
            return (plan, seen);
        }
    }
}

/// What the search of a plan found.
pub(crate) fn tuned(plan: &Plan, seen: &[Observation]) -> Tuned {
    findings(plan, seen).experiments.remove(0).tuned.expect("the plan is a search")
}

pub(super) fn search(surface: &Surface, noise: Noise, seed: u64) -> (Advice, usize) {
    let (plan, seen) = carried_out(surface.plan(TRIALS, seed), &mut surface.fake(noise, seed + 1_000_000));
    (tuned(&plan, &seen).advice.expect("all trials were measured"), seen.len())
}

/// What searches of random surfaces found, as shares of them.
pub(super) struct Searched {
    pub sizes: &'static [usize],
    pub noise: &'static str,
    pub surfaces: u64,
    /// The advised setting is within 2 % of the best.
    pub near: f64,
    /// Within 5 %.
    pub close: f64,
    /// Another setting than the default is advised, and it is worse.
    pub worse: f64,
    /// A knob that changes nothing is said to contribute.
    pub idle: f64,
    pub mean_trials: f64,
    pub most_trials: usize,
}

/// The searches of random surfaces, for each space and noise.
pub(super) fn searched() -> &'static [Searched] {
    static SEARCHED: OnceLock<Vec<Searched>> = OnceLock::new();
    SEARCHED.get_or_init(|| {
        let spaces: [&[usize]; 2] = [&SIZES, &FINE_SIZES];
        let of_space =
            |sizes| NOISES.iter().map(move |(label, noise)| of_random_surfaces(sizes, label, *noise));
        spaces.into_iter().flat_map(of_space).collect()
    })
}

fn of_random_surfaces(sizes: &'static [usize], label: &'static str, noise: Noise) -> Searched {
    let share = 1.0 / SURFACES as f64;
    let mut all = Searched {
        sizes,
        noise: label,
        surfaces: SURFACES,
        near: 0.0,
        close: 0.0,
        worse: 0.0,
        idle: 0.0,
        mean_trials: 0.0,
        most_trials: 0,
    };
    let add = |to: &mut f64, when: bool| *to += if when { share } else { 0.0 };
    for seed in FIRST_SEED..FIRST_SEED + SURFACES {
        let surface = Surface::random(sizes, seed);
        let (advice, trials) = search(&surface, noise, seed);
        let advised = surface.worth(&surface.cell(&advice.point));
        let lost = 1.0 - (advised - surface.best()).exp();
        let mut counts = advice.contributions.iter().filter(|one| one.verdict == Verdict::Faster);
        let knob = |of: &str| (0..sizes.len()).find(|knob| name(*knob) == of).unwrap();
        add(&mut all.near, lost <= 0.02);
        add(&mut all.close, lost <= 0.05);
        add(&mut all.worse, advised < surface.worth_of_default() - 1e-9);
        add(&mut all.idle, counts.any(|one| surface.is_flat(knob(&one.knob))));
        all.mean_trials += trials as f64 * share;
        all.most_trials = all.most_trials.max(trials);
    }
    all
}

/// The searches of flat surfaces: the noise, the number of surfaces, and how many keep the default, as a share.
pub(super) fn flat() -> &'static [(&'static str, u64, f64)] {
    static FLAT: OnceLock<Vec<(&str, u64, f64)>> = OnceLock::new();
    FLAT.get_or_init(|| {
        let kept = |noise: Noise| {
            let keeps = |seed: &u64| !search(&Surface::flat(&SIZES, *seed), noise, *seed).0.changes();
            (FIRST_SEED..FIRST_SEED + FLAT_SURFACES).filter(keeps).count() as f64 / FLAT_SURFACES as f64
        };
        NOISES.iter().map(|(name, noise)| (*name, FLAT_SURFACES, kept(*noise))).collect()
    })
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn a_search_comes_within_five_percent_of_the_best() {
    for (searched, required) in searched().iter().zip([0.95, 0.9, 0.95, 0.9]) {
        assert!(searched.close >= required, "{}: {}", searched.noise, searched.close);
        assert!(searched.worse <= 0.025, "{}: {}", searched.noise, searched.worse);
        assert!(searched.most_trials <= TRIALS, "{}: {}", searched.noise, searched.most_trials);
    }
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn a_search_of_equal_settings_keeps_the_default() {
    for (noise, _, kept) in flat() {
        assert!(*kept >= 0.975, "{noise}: {kept}");
    }
}
