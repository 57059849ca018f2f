//! Matches published rows with rows of today.
//!
//! Rows that are compared with each other are all taken at one point of today's workload, so that no system is compared
//! with another at a harder or easier point. The plan and the document choose the point, never today's figures. Clients are
//! compared at each point at which two of them have a row in both. If there is none, the best published row of each is taken.

use std::collections::{BTreeMap, BTreeSet};

use systems::{Point, Value};

use super::super::{PublishedTable, Rows};
use lab::findings::{Difference, Estimate, FigureView};
use lab::observation::projection;

/// A published row, and the row of today that corresponds to it.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    /// The index of the row in the published table.
    pub row: usize,
    /// The system, as the document calls it.
    pub system: &'a str,
    pub variant: &'a str,
    pub point: &'a Point,
    /// The published figure. None if it may not be compared.
    pub then: Option<f64>,
    /// Today's estimate, if it may be compared.
    pub now: Option<&'a Estimate>,
}

impl Pair<'_> {
    /// Today's figure, the median over rounds.
    pub fn today(&self) -> Option<f64> {
        self.now?.figure
    }

    /// Both figures, if both exist.
    pub fn both(&self) -> Option<(f64, f64)> {
        Some((self.then?, self.today()?))
    }

    pub fn integer(&self, knob: &str) -> Option<i64> {
        match self.point.get(knob) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        }
    }
}

/// The published figure of each row. None for rows that may not be compared.
fn figures(table: &PublishedTable) -> Vec<Option<f64>> {
    match &table.rows {
        Rows::Upload(rows) => rows.iter().map(|row| Some(row.measured.mean_ms)).collect(),
        Rows::Frames(rows) => rows.iter().map(|row| Some(row.measured.mean())).collect(),
        Rows::Requests(rows) => {
            rows.iter().map(|row| (!row.measured.void()).then_some(row.measured.requests_per_s)).collect()
        }
        Rows::Clients(rows) => {
            rows.iter().map(|row| row.measured.few_errors().then_some(row.measured.requests_per_s)).collect()
        }
    }
}

/// How far an estimate's system is from one of the document's. Less is better. The order in which the table names
/// systems decides first; then the order of the variants for the row's runtime, with the plain system last. None if the
/// system does not stand for the document's, or is a variant for another runtime.
pub(super) fn stands_for(
    table: &PublishedTable,
    system: &str,
    variant: &str,
    estimate: &Estimate,
) -> Option<(usize, usize)> {
    let name = estimate.scenario.system.as_str();
    let (plain, name_variant) = name.split_once('@').unwrap_or((name, ""));
    let place = table.systems[system].iter().position(|known| known == plain || known == name)?;
    let other = match table.runtimes.get(variant) {
        Some(variants) if name_variant.is_empty() => variants.len(),
        Some(variants) => variants.iter().position(|known| known == name_variant)?,
        None if name_variant == variant => 0,
        None => 1 + usize::from(!name_variant.is_empty()),
    };
    Some((place, other))
}

/// Whether a row of today may stand for a published one. Clients are compared in a ranking.
pub(super) fn may_stand(table: &PublishedTable, estimate: &Estimate) -> bool {
    // All published figures are of plain text.
    let alike = estimate.scenario.work().tls().is_none();
    alike && if matches!(table.rows, Rows::Clients(_)) { estimate.ranks() } else { estimate.compares() }
}

/// Today's rows that may stand for a published one, by the point of the workload's knobs that may differ from it.
type Candidates<'a> = BTreeMap<Point, Vec<&'a Estimate>>;

/// A table, and a run beside which it is set.
pub(super) struct Matching<'a> {
    table: &'a PublishedTable,
    found: &'a FigureView<'a>,
    /// The knobs in which the published rows differ.
    varied: BTreeSet<&'a str>,
    /// The knobs in which a row of today must equal the published row.
    equal: BTreeSet<&'a str>,
}

impl<'a> Matching<'a> {
    pub fn new(table: &'a PublishedTable, found: &'a FigureView<'a>) -> Self {
        let varied: BTreeSet<&str> = table.varied().map(|column| column.name.as_str()).collect();
        let mut matching = Self { table, found, equal: varied.clone(), varied };
        if matching.is_of_clients() && matching.pairs().is_empty() {
            // The best published rows are at different points.
            matching.equal.clear();
        }
        matching
    }

    fn is_of_clients(&self) -> bool {
        matches!(self.table.rows, Rows::Clients(_))
    }

    /// Whether clients are compared where both have rows at the same point.
    pub fn is_at_same_points(&self) -> bool {
        self.is_of_clients() && !self.equal.is_empty()
    }

    /// The published rows that are compared: all, or of clients those at points that both have, or each one's best.
    fn rows(&self) -> Vec<Pair<'a>> {
        let figures = figures(self.table);
        let best = self.is_of_clients() && self.equal.is_empty();
        let mut rows: Vec<Pair<'a>> = Vec::new();
        for (row, (system, variant, point)) in self.table.rows.keys().into_iter().enumerate() {
            let pair = Pair { row, system, variant, point, then: figures[row], now: None };
            match rows.iter_mut().find(|known| best && known.system == system) {
                Some(known) if known.then < pair.then => *known = pair,
                Some(_) => {}
                None => rows.push(pair),
            }
        }
        rows
    }

    /// Each published row that is compared with the corresponding row of today.
    pub fn pairs(&self) -> Vec<Pair<'a>> {
        let mut rows = self.rows();
        let works: BTreeSet<Point> = rows.iter().map(|row| self.work(row)).collect();
        for work in works {
            let group = rows.iter().filter(|row| self.work(row) == work);
            let group: Vec<(Pair<'a>, Candidates<'a>)> =
                group.map(|row| (*row, self.candidates(row))).collect();
            let Some(point) = self.common_point(&group) else { continue };
            for (row, candidates) in group {
                let now = candidates.get(&point).and_then(|here| self.most_alike(&row, here));
                rows.iter_mut().filter(|known| known.row == row.row).for_each(|known| known.now = now);
            }
        }
        if self.is_at_same_points() {
            let mut both: BTreeMap<Point, usize> = BTreeMap::new();
            for row in rows.iter().filter(|row| row.both().is_some()) {
                *both.entry(self.work(row)).or_default() += 1;
            }
            rows.retain(|row| both.get(&self.work(row)).is_some_and(|clients| *clients > 1));
        }
        rows
    }

    /// What rows must share to be compared: uploads of one size are compared with each other, clients at one point, and all
    /// rows of other tables.
    pub fn work(&self, row: &Pair) -> Point {
        let shared = |knob: &str| match self.table.rows {
            Rows::Upload(_) => knob == "size",
            Rows::Clients(_) => self.equal.contains(knob),
            Rows::Frames(_) | Rows::Requests(_) => false,
        };
        let shared = row.point.iter().filter(|(knob, _)| shared(knob));
        shared.map(|(knob, value)| (knob.clone(), value.clone())).collect()
    }

    /// The row of today at a published row's point, whether or not it may be compared.
    pub fn ran(&self, row: &Pair<'a>) -> Option<&'a Estimate> {
        self.most_alike(row, &self.at_equal_knobs(row, |e| e.trials > 0))
    }

    /// Today's rows at a published row's values of the knobs that must be equal, all of one system: the nearest of which there
    /// are such rows at any point.
    fn at_equal_knobs(&self, row: &Pair, may: impl Fn(&Estimate) -> bool) -> Vec<&'a Estimate> {
        let all: Vec<&'a Estimate> = self.found.estimates.iter().filter(|e| may(e)).collect();
        let near = all.iter().filter_map(|e| Some((stands_for(self.table, row.system, row.variant, e)?, e)));
        let name = near.min_by_key(|(distance, _)| *distance).map(|(_, e)| &e.scenario.system);
        let equal = |e: &&Estimate| {
            let mut knobs = row.point.iter().filter(|(knob, _)| self.equal.contains(knob.as_str()));
            knobs.all(|(knob, then)| self.today(e, knob) == Some(then))
        };
        all.iter().copied().filter(|e| Some(&e.scenario.system) == name).filter(equal).collect()
    }

    /// Today's rows that may stand for a published one.
    fn candidates(&self, row: &Pair) -> Candidates<'a> {
        let mut candidates = Candidates::new();
        for estimate in self.at_equal_knobs(row, |e| may_stand(self.table, e)) {
            let mut point = projection(estimate.scenario.workload(), &estimate.scenario.point);
            point.retain(|knob, _| !self.equal.contains(knob.as_str()));
            candidates.entry(point).or_default().push(estimate);
        }
        candidates
    }

    /// The value of a knob in a scenario: the one that was set, or else the default of the workload or of the system.
    pub fn today<'e>(&'e self, estimate: &'e Estimate, knob: &str) -> Option<&'e Value> {
        let scenario = &estimate.scenario;
        let of_work = || scenario.workload().knob(knob).map(|k| &k.default);
        let own = || self.found.defaults.get(&scenario.system).and_then(|defaults| defaults.get(knob));
        scenario.point.get(knob).or_else(of_work).or_else(own)
    }

    /// The values of a published row that today's row need not have.
    fn free(&self, row: &Pair<'a>) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let own = row.point.iter().filter(move |(knob, _)| !self.equal.contains(knob.as_str()));
        let table: &'a PublishedTable = self.table;
        own.chain(&table.fixed)
    }

    /// The point of the workload at which rows are compared: the one at which most published rows with a figure have a
    /// row of today; of these the one with the most of the values that were the same in all of the document's rows; of
    /// these the nearest to the published rows' numbers (least squares of doublings).
    fn common_point(&self, rows: &[(Pair<'a>, Candidates<'a>)]) -> Option<Point> {
        let points: BTreeSet<&Point> = rows.iter().flat_map(|(_, candidates)| candidates.keys()).collect();
        let fit = |point: &Point| {
            let here = rows.iter().filter(|(row, of)| row.then.is_some() && of.contains_key(point));
            let knobs = here.clone().flat_map(|(row, _)| self.free(row));
            let both = knobs.filter_map(|(knob, then)| Some((knob, then, point.get(knob)?)));
            let (mut alike, mut away) = (0, 0.0);
            for (knob, then, today) in both {
                alike += usize::from(then == today && !self.varied.contains(knob.as_str()));
                away += doublings(then, today).powi(2);
            }
            (here.count(), alike, away)
        };
        let fits = points.into_iter().map(|point| (fit(point), point));
        let best = fits.max_by(|(a, _), (b, _)| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)));
        best.map(|(_, point)| point.clone())
    }

    /// Of rows at one point, the one whose own knobs are most like the document's. The first in the plan of equals.
    fn most_alike(&self, row: &Pair<'a>, here: &[&'a Estimate]) -> Option<&'a Estimate> {
        let alike =
            |e: &Estimate| self.free(row).filter(|(knob, then)| self.today(e, knob) == Some(*then)).count();
        here.iter().copied().rev().max_by_key(|e| alike(e))
    }

    /// The knobs of the compared pairs that have other values today than in the document.
    pub fn otherwise(&self, pairs: &[Pair<'a>]) -> Vec<Difference> {
        let mut otherwise: BTreeMap<&str, (&Value, BTreeSet<&Value>)> = BTreeMap::new();
        for (pair, now) in pairs.iter().filter_map(|pair| Some((pair, pair.both().and(pair.now)?))) {
            for (knob, then) in self.free(pair).filter(|(knob, _)| !self.varied.contains(knob.as_str())) {
                if let Some(today) = self.today(now, knob).filter(|today| *today != then) {
                    otherwise.entry(knob).or_insert((then, BTreeSet::new())).1.insert(today);
                }
            }
        }
        let difference = |(knob, (then, today)): (&str, (&Value, BTreeSet<&Value>))| Difference::Knob {
            knob: knob.to_owned(),
            then: then.clone(),
            today: today.into_iter().cloned().collect(),
        };
        otherwise.into_iter().map(difference).collect()
    }

    /// Today's point of an order, as far as the document's rows differ in it.
    pub fn order_at(&self, pairs: &[Pair<'a>]) -> Point {
        let Some(now) = pairs.iter().find_map(|pair| pair.both().and(pair.now)) else { return Point::new() };
        let varied = self.varied.difference(&self.equal);
        varied.filter_map(|knob| Some(((*knob).to_owned(), self.today(now, knob)?.clone()))).collect()
    }
}

/// How many times a number must be doubled or halved to become the other. Words are not near or far.
fn doublings(then: &Value, today: &Value) -> f64 {
    match (then, today) {
        // Zero is a value of some knobs.
        (Value::Integer(then), Value::Integer(today)) => {
            ((*then as f64 + 1.0) / (*today as f64 + 1.0)).log2().abs()
        }
        _ => 0.0,
    }
}
