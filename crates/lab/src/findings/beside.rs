//! What others published, beside a run: values that the crate `published` finds and `report` words.

use serde::{Deserialize, Serialize};
use systems::{Point, Value};

use super::table::Table;

/// What a run says to the published figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// The published table's name.
    pub published: String,
    /// The document.
    pub source: String,
    /// Each shape that the document shows, and whether it is found again.
    pub shapes: Vec<Shape>,
    /// What stood otherwise than in the document, and what of it did not run.
    pub differences: Vec<Difference>,
    /// What the ratios of the table are taken to.
    pub best: BestOf,
    /// Both figures of each row, as ratios.
    pub table: Table,
}

/// The best of which rows a ratio is taken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BestOf {
    /// Of all rows that both have, with the same runtime.
    Rows,
    /// Of those that upload the same size, too.
    Size,
    /// Of the clients at the same point.
    Point,
    /// Of all clients: then each at its best row with few errors, today all at one point.
    Clients,
}

/// One shape, then and today.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shape {
    /// Whether the shape is the same; None where it cannot be said.
    pub agrees: Option<bool>,
    /// Whether it cannot be said because the generator was at its limit: some of today's figures are lower bounds.
    pub at_limit: bool,
    /// What was checked.
    #[serde(flatten)]
    pub figures: ShapeFigures,
}

/// What of the document's figures was checked, with the figures of then and of today. Ratios are plain: 2 is twice as much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum ShapeFigures {
    /// The order of the systems.
    Order {
        /// The order then, the best first.
        then: Vec<Placed>,
        /// The order today, the best first.
        today: Vec<Placed>,
        /// The point of all of today's rows: the values of the knobs in which the document's rows differ.
        at: Point,
        /// Whether the document's rows are at this point, too. If not, each is the best of its system.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        same_point: bool,
        /// How many systems have a figure in both.
        in_both: usize,
        /// The pairs of systems whose order is not the same, or is not known.
        pairs: Vec<OrderOfTwo>,
    },
    /// A system that failed too often for a rank then, and ran at the same point today.
    Failing {
        /// The system, as the document calls it.
        system: String,
        /// The point: the values of the knobs in which the document's rows differ.
        at: Point,
        /// The share of requests that failed then.
        then: f64,
        /// The share that failed today.
        today: f64,
    },
    /// A system without a published figure that counts.
    Void {
        /// The system, as the document calls it.
        system: String,
        /// What there is of it today.
        today: Presence,
    },
    /// How much a knob changes the time from its worst to its best value, and which value is the best.
    Knob {
        /// The knob.
        knob: String,
        /// The ratios then.
        then: Range,
        /// The ratios today.
        today: Range,
        /// The best values; None where the knob changes nothing.
        best: Option<BestValues>,
    },
    /// The time of one system, or with one runtime, as a ratio to that of another.
    Times {
        /// The system or the runtime whose time is compared ...
        of: String,
        /// ... with the time of this one.
        against: String,
        /// The system, if runtimes are compared.
        system: Option<String>,
        /// Bytes of an upload.
        size: Option<i64>,
        /// The ratios then.
        then: Range,
        /// The ratios today; None if one of the two is missing.
        today: Option<Range>,
        /// Which of the two have no figure today.
        missing: Vec<String>,
    },
    /// A fall of the rate between two sizes of frames that the larger frames do not explain.
    Cliff {
        /// How frames are told apart.
        framing: String,
        /// The receiver's `active`.
        active: String,
        /// The smaller size, bytes.
        from: i64,
        /// The larger size, bytes.
        to: i64,
        /// How many times fewer frames there were then.
        then: f64,
        /// How many times fewer there are today; None if it was not measured.
        today: Option<f64>,
    },
    /// The rate with one framing as a ratio to that with another, size by size.
    Framings {
        /// The framing whose rate is compared ...
        of: String,
        /// ... with the rate of this one.
        against: String,
        /// The receiver's `active`, the same for both.
        active: String,
        /// The sizes that both have.
        sizes: Vec<SizeRatio>,
    },
}

/// A system in an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placed {
    /// The system, as the document calls it.
    pub system: String,
    /// How many times less its figure is than that of the first.
    pub behind: f64,
    /// Whether the figure is a lower bound, because the generator was at its limit.
    pub at_least: bool,
}

/// Two systems that are not in the same order then and today, or of which that is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderOfTwo {
    /// The system that the document names first.
    pub first: String,
    /// The other.
    pub second: String,
    /// What their order is.
    pub order: ChangedOrder,
}

/// Why the order of two systems is not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangedOrder {
    /// They are the other way round today.
    Turned,
    /// They are level, either then or today.
    Level,
    /// The rounds do not decide it.
    Undecided,
    /// The generator was at its limit, so that the slower one may be faster than it looks.
    AtLimit,
}

/// Whether something of the document is there today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It has a figure.
    Measured,
    /// It ran, and has no figure.
    NoFigure,
    /// It did not run.
    NotRun,
}

/// The smallest and the largest of some ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Range {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

/// The best values of a knob: one for each series of rows in which only that knob varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BestValues {
    /// Those of then.
    pub then: Vec<Value>,
    /// Those of today.
    pub today: Vec<Value>,
    /// Whether no other value is better today than the best value of then; None if the rounds do not decide it.
    pub as_good: Option<bool>,
}

/// The ratio of two rates at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeRatio {
    /// Bytes of a frame.
    pub size: i64,
    /// The ratio then.
    pub then: f64,
    /// The ratio today.
    pub today: f64,
    /// Whether the same one is ahead; None if the rounds do not decide it.
    pub same: Option<bool>,
}

/// What is not as in the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "difference", rename_all = "snake_case")]
pub enum Difference {
    /// A knob had one value in all published rows, and has another today.
    Knob {
        /// The knob.
        knob: String,
        /// Its value then.
        then: Value,
        /// Its other values today.
        today: Vec<Value>,
    },
    /// A system stands for another: another version, another runtime, or what the other is based on.
    StandIn {
        /// The system that ran.
        system: String,
        /// The system that it stands for, as the document calls it.
        stands_for: String,
        /// The runtime that it stands for.
        runtime: Option<String>,
    },
    /// A system that ran in another version than in the document.
    Version {
        /// The system, as the document calls it.
        system: String,
        /// Its version then.
        then: String,
        /// What it reported today.
        today: String,
    },
    /// Systems that did not run.
    NotRun {
        /// The systems, as the document calls them.
        systems: Vec<String>,
    },
    /// A system that ran, and of which no row may be ranked.
    Unranked {
        /// The system, as the document calls it.
        system: String,
    },
    /// A system of which no row may be ranked at the point at which the others are compared.
    UnrankedThere {
        /// The system, as the document calls it.
        system: String,
    },
    /// A client that ran, and that has no pool, then as today. It opens more connections than pools may.
    Unpooled {
        /// The client, as the document calls it.
        system: String,
    },
    /// Rows of a system that did not run, or that have no figure that may be compared.
    RowsMissing {
        /// The system, as the document calls it.
        system: String,
        /// The published rows.
        rows: Vec<String>,
        /// The number of published rows of the system.
        of: usize,
    },
}
