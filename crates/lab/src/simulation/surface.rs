//! Surfaces with a known truth, over which simulated searches go: sums that the model of the race can fit, and four kinds that it
//! cannot.

use stats::{Noise, SplitMix64};
use systems::{Point, Value, Workload};

use super::{axis, setup};
use crate::observation::{Failure, Outcome, Scenario, Trial};
use crate::plan::{Base, Plan, Planned};
use crate::rounds;
use crate::search::Cell;
use crate::session::{Executor, Fake, Interrupted, Rule};

/// The most values of a knob that has few.
const MANY: usize = 8;

/// What a surface has beside the sum of what its knobs and pairs of them do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing.
    Sum,
    /// The slowest of three stages decides. Each knob changes one of them.
    Stages,
    /// Three knobs help by 10 to 50 % more, but only if each has one of the better half of its values.
    Together,
    /// Beyond a line in the plane of two knobs everything is 1.6 to 4.5 times slower.
    Cliff,
    /// Beyond such a line nothing starts.
    Fails,
}

impl Shape {
    /// The shapes that the model of the race cannot fit.
    pub const STRANGE: [Self; 4] = [Self::Stages, Self::Together, Self::Cliff, Self::Fails];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sums",
            Self::Stages => "the slowest stage decides",
            Self::Together => "three knobs help together",
            Self::Cliff => "a cliff",
            Self::Fails => "settings that fail",
        }
    }
}

/// The parts of a shape that were drawn.
enum Drawn {
    Nothing,
    /// The stage of each knob, and what each stage does by itself.
    Stages(Vec<usize>, [f64; 3]),
    /// The knobs, which of their values help, and by how much.
    Together([usize; 3], Vec<Vec<bool>>, f64),
    /// The two knobs, whether each falls from its first or its last value on, and what is lost behind the line; infinite if nothing
    /// starts there.
    Beyond([(usize, bool); 2], f64),
}

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
    drawn: Drawn,
}

/// Where the line lies behind which everything falls: the sum of two positions, each from 0 to 1.
const LINE: f64 = 1.3;

impl Surface {
    /// A surface on which all settings are equal.
    pub fn flat(sizes: &[usize], seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let default = sizes.iter().map(|values| rng.below(*values as u64) as usize).collect();
        let ordered = vec![true; sizes.len()];
        Self {
            default,
            ordered,
            values: sizes.iter().map(|values| vec![0.0; *values]).collect(),
            pairs: Vec::new(),
            drawn: Drawn::Nothing,
        }
    }

    /// A random surface of a shape.
    pub fn shaped(shape: Shape, sizes: &[usize], seed: u64) -> Self {
        let mut surface = Self::random(sizes, seed);
        let mut rng = SplitMix64::new(seed + 9_000_000);
        let mut two = || {
            let first = rng.below(sizes.len() as u64) as usize;
            let second = (first + 1 + rng.below(sizes.len() as u64 - 1) as usize) % sizes.len();
            [(first, rng.unit() < 0.5), (second, rng.unit() < 0.5)]
        };
        let two = two();
        surface.drawn = match shape {
            Shape::Sum => Drawn::Nothing,
            Shape::Stages => {
                surface.pairs.clear();
                let stages = sizes.iter().map(|_| rng.below(3) as usize).collect();
                Drawn::Stages(stages, [0; 3].map(|_| 0.3 * rng.unit()))
            }
            Shape::Together => {
                let apart = rng.below(sizes.len() as u64) as usize;
                let mut knobs = (0..sizes.len()).filter(|knob| *knob != apart || sizes.len() == 3);
                let knobs = [0; 3].map(|_| knobs.next().expect("three knobs"));
                let helps = |knob: usize, upper: bool| {
                    let upper = |at: usize| (2 * at >= sizes[knob]) == upper;
                    (0..sizes[knob]).map(upper).collect()
                };
                let helps = knobs.iter().map(|knob| helps(*knob, rng.unit() < 0.5)).collect();
                Drawn::Together(knobs, helps, 0.1 + 0.4 * rng.unit())
            }
            Shape::Cliff => Drawn::Beyond(two, 0.5 + rng.unit()),
            Shape::Fails => Drawn::Beyond(two, f64::INFINITY),
        };
        // Nobody begins with a setting that does not start.
        while surface.worth(&surface.default).is_infinite() {
            surface.default = sizes.iter().map(|values| rng.below(*values as u64) as usize).collect();
        }
        surface
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

    /// The worth of a setting, as a logarithm; negative infinity if it does not start.
    pub fn worth(&self, cell: &Cell) -> f64 {
        let alone = || self.values.iter().zip(cell).map(|(values, at)| values[*at]);
        let pairs: f64 = self.pairs.iter().map(|(a, b, table)| table[cell[*a]][cell[*b]]).sum();
        let sum = alone().sum::<f64>() + pairs;
        match &self.drawn {
            Drawn::Nothing => sum,
            Drawn::Stages(stages, own) => {
                let mut each = *own;
                stages.iter().zip(alone()).for_each(|(stage, worth)| each[*stage] += worth);
                each.into_iter().fold(f64::INFINITY, f64::min)
            }
            Drawn::Together(knobs, helps, gain) => {
                let all = knobs.iter().zip(helps).all(|(knob, helps)| helps[cell[*knob]]);
                if all { sum + gain } else { sum }
            }
            Drawn::Beyond(knobs, loss) => {
                let along = knobs.iter().map(|(knob, falls)| {
                    let share = cell[*knob] as f64 / (self.values[*knob].len() - 1) as f64;
                    if *falls { share } else { 1.0 - share }
                });
                if along.sum::<f64>() > LINE { sum - loss } else { sum }
            }
        }
    }

    /// All settings.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::new()];
        for of_knob in &self.values {
            let longer = |cell: &Cell, value: usize| cell.iter().copied().chain([value]).collect();
            cells = cells
                .iter()
                .flat_map(|cell| (0..of_knob.len()).map(move |value| longer(cell, value)))
                .collect();
        }
        cells
    }

    /// The worth of the best setting.
    pub fn best(&self) -> f64 {
        self.cells().iter().map(|cell| self.worth(cell)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether a knob changes nothing, alone or with others.
    pub fn is_flat(&self, knob: usize) -> bool {
        let with_others = match &self.drawn {
            Drawn::Nothing | Drawn::Stages(..) => false,
            Drawn::Together(knobs, ..) => knobs.contains(&knob),
            Drawn::Beyond(knobs, _) => knobs.iter().any(|(other, _)| *other == knob),
        };
        !with_others && self.values[knob].iter().all(|worth| *worth == 0.0)
    }

    /// The setting with which others are compared.
    pub fn default_cell(&self) -> &Cell {
        &self.default
    }

    /// The number of values of each knob, and whether their order means something.
    pub fn knobs(&self) -> Vec<(usize, bool)> {
        self.values.iter().map(Vec::len).zip(self.ordered.iter().copied()).collect()
    }

    /// An executor with this truth.
    pub fn fake(&self, noise: Noise, seed: u64) -> Known<'_> {
        Known { surface: self, fake: Fake::new(1e6, Vec::new(), noise, seed) }
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
        let planned =
            Planned { setup, scenarios: Vec::new(), apply: Default::default(), search: None, is_test: false };
        let mut plan = Plan::new(seed, vec![planned]);
        rounds::begin_search(&mut plan, trials, &[]).expect("a search");
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

pub(super) fn name(knob: usize) -> String {
    format!("knob{knob}")
}

/// An executor that knows the worth of each setting.
pub(crate) struct Known<'a> {
    surface: &'a Surface,
    fake: Fake,
}

impl Executor for Known<'_> {
    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        let worth = self.surface.worth(&self.surface.cell(&trial.scenario.point));
        let failure = || Failure {
            stage: crate::observation::Stage::Start,
            reason: "it ended".to_owned(),
            output: String::new(),
        };
        let fail = worth.is_infinite().then(failure);
        self.fake.rule(Rule { better: Some(worth.exp()), fail, ..Rule::default() });
        self.fake.execute(trial)
    }

    fn now_unix_s(&self) -> f64 {
        self.fake.now_unix_s()
    }
}
