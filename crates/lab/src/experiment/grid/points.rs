//! The points of the blocks of a grid: the products of their values, as far as a plan may have so large ones.

use systems::{Point, Value};

use crate::plan::{MOST_BYTES, entry_bytes};

/// The points of a block, knob by knob.
pub(super) struct Points {
    all: Vec<Point>,
    /// How many the block asks for. They are more than all if this machine does not allow some of its values.
    asked: usize,
    /// The memory that these would take.
    bytes: usize,
}

impl Points {
    /// The point that says nothing yet.
    pub(super) fn new() -> Self {
        Self { all: vec![Point::new()], asked: 1, bytes: 0 }
    }

    /// Asks for these values of one more knob. The points before take `spent` bytes.
    ///
    /// # Errors
    /// What would be too much.
    pub(super) fn ask(&mut self, spent: usize, knob: &str, values: &[Value]) -> Result<(), String> {
        let entries: usize = values.iter().map(|value| entry_bytes(knob, value)).sum();
        let of_entries = self.asked.saturating_mul(entries);
        self.bytes = self.bytes.saturating_mul(values.len()).saturating_add(of_entries);
        self.asked = self.asked.saturating_mul(values.len());
        if self.bytes.saturating_add(spent) > MOST_BYTES {
            return Err(format!("the scenarios take more than {} MiB, the most of a grid", MOST_BYTES >> 20));
        }
        Ok(())
    }

    /// Each with each of these values.
    pub(super) fn multiply(&mut self, knob: &str, values: &[Value]) {
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

    /// All of them. Adds the bytes that they take to `spent`.
    pub(super) fn spend(self, spent: &mut usize) -> Vec<Point> {
        *spent = spent.saturating_add(self.bytes);
        self.all
    }
}
