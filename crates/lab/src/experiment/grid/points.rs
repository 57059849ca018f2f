//! The points of the blocks of a grid: the products of their values, as far as a plan may have so many and so large ones.

use systems::{Point, Value};

use crate::plan::{MOST_BYTES, MOST_SCENARIOS, entry_bytes};

/// How many points the blocks of all systems have, and how much memory they take. A point counts each time that a block has it,
/// because each time takes its time.
#[derive(Default)]
pub(super) struct Spent {
    points: usize,
    bytes: usize,
}

/// The points of a block, knob by knob.
pub(super) struct Points {
    all: Vec<Point>,
    /// The memory of all.
    bytes: usize,
}

impl Points {
    /// The point that says nothing yet.
    pub(super) fn new() -> Self {
        Self { all: vec![Point::new()], bytes: 0 }
    }

    /// Whether they may have so many values of one more knob.
    ///
    /// # Errors
    /// What would be too much.
    pub(super) fn check(&self, spent: &Spent, knob: &str, values: &[Value]) -> Result<(), String> {
        let (points, bytes) = self.with(knob, values);
        if points.saturating_add(spent.points) > MOST_SCENARIOS {
            return Err(format!("there are more than {MOST_SCENARIOS} scenarios, the most of a grid"));
        }
        if bytes.saturating_add(spent.bytes) > MOST_BYTES {
            return Err(format!("the scenarios take more than {} MiB, the most of a grid", MOST_BYTES >> 20));
        }
        Ok(())
    }

    /// How many they would be, and how much memory they would take.
    fn with(&self, knob: &str, values: &[Value]) -> (usize, usize) {
        let entries: usize = values.iter().map(|value| entry_bytes(knob, value)).sum();
        let of_all = self.bytes.saturating_mul(values.len());
        (
            self.all.len().saturating_mul(values.len()),
            of_all.saturating_add(self.all.len().saturating_mul(entries)),
        )
    }

    /// Each with each of these values.
    pub(super) fn multiply(&mut self, knob: &str, values: &[Value]) {
        (_, self.bytes) = self.with(knob, values);
        if let [value] = values {
            // Most knobs have one value, and then no point is copied.
            self.all.iter_mut().for_each(|point| _ = point.insert(knob.to_owned(), value.clone()));
            return;
        }
        let with = |point: &Point, value: &Value| {
            let mut point = point.clone();
            point.insert(knob.to_owned(), value.clone());
            point
        };
        self.all =
            self.all.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect();
    }

    /// All of them. From now on they count.
    pub(super) fn spend(self, spent: &mut Spent) -> Vec<Point> {
        spent.points = spent.points.saturating_add(self.all.len());
        spent.bytes = spent.bytes.saturating_add(self.bytes);
        self.all
    }
}
