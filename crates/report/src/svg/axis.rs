//! Axes: the positions of values, and the values that are labelled.

use lab::findings::Unit;

use super::canvas::width_of;
use crate::number::{short, show};

/// An axis is logarithmic if the ratio of the largest to the smallest value is at least this.
const WIDE: f64 = 20.0;

/// A logarithmic axis over a smaller ratio has labels in equal steps if it would have fewer than three others.
const NARROW: f64 = 5.0;

/// How values are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Equal steps have equal lengths. It begins at zero, so that lengths can be compared.
    Linear,
    /// Equal ratios have equal lengths. All values must be positive.
    Log,
}

impl Scale {
    /// Logarithmic if the values are positive and span more than a linear axis can show.
    pub(crate) fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (low, high) = bounds(values);
        if low > 0.0 && high / low >= WIDE { Self::Log } else { Self::Linear }
    }
}

/// The values that are labelled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ticks {
    /// Round values.
    Round,
    /// These values, except where labels would overlap.
    At(Vec<(f64, String)>),
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// The quantity, with its unit if the ticks do not show it.
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
    pub(crate) ticks: Ticks,
}

impl Axis {
    /// Formats a value, as its tick if it has one.
    pub(crate) fn word(&self, value: f64) -> String {
        let named = match &self.ticks {
            Ticks::At(ticks) => ticks.iter().find(|(at, _)| *at == value),
            Ticks::Round => None,
        };
        named.map_or_else(|| show(value, self.unit), |(_, word)| word.clone())
    }

    /// The axis over these values.
    pub(super) fn range(&self, values: impl Iterator<Item = f64> + Clone) -> Range {
        let (mut low, mut high) = bounds(values);
        match self.scale {
            Scale::Linear if matches!(self.ticks, Ticks::Round) => {
                (low, high) = (low.min(0.0), high.max(0.0));
                let step = step(high - low);
                (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
            }
            Scale::Linear => {}
            Scale::Log if low > 0.0 => {
                // Leave a margin, so that no mark touches the frame.
                let air = ((high.ln() - low.ln()) * 0.04).max(0.02).exp();
                (low, high) = ((low / air).max(f64::MIN_POSITIVE), (high * air).min(f64::MAX));
            }
            Scale::Log => (low, high) = (1.0, 10.0),
        }
        if high <= low {
            (low, high) =
                if self.scale == Scale::Log { (low / 2.0, low * 2.0) } else { (low - 1.0, low + 1.0) };
        }
        Range { low, high, scale: self.scale }
    }

    /// The labelled values inside a range, ascending.
    pub(super) fn ticks(&self, range: &Range, about: usize) -> Vec<(f64, String)> {
        match (&self.ticks, self.scale) {
            (Ticks::At(ticks), _) => ticks.clone(),
            (Ticks::Round, Scale::Linear) => {
                let mut step = step(range.high - range.low);
                while (range.high - range.low) / step > about.max(1) as f64 + 0.5 && step.is_finite() {
                    step *= 2.0;
                }
                let count = ((range.high - range.low) / step + 1e-9).floor().min(100.0) as usize;
                let values = (0..=count).map(|i| range.low + step * i as f64);
                values.map(|v| (v, short(v, self.unit))).collect()
            }
            (Ticks::Round, Scale::Log) => {
                log_ticks(range, about).into_iter().map(|v| (v, short(v, self.unit))).collect()
            }
        }
    }
}

/// The part of an axis that is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
    scale: Scale,
}

impl Range {
    /// The position of a value, 0..=1. Values outside the range are at an end.
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => {
                let low = self.low.ln();
                (value.max(f64::MIN_POSITIVE).ln() - low) / (self.high.ln() - low)
            }
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// A range between two positions on the canvas.
pub(super) struct Span {
    pub(super) range: Range,
    /// The position of its low end.
    pub(super) from: f64,
    /// The position of its high end.
    pub(super) to: f64,
}

impl Span {
    /// The position of a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        self.from + self.range.share(value) * (self.to - self.from)
    }
}

/// Leaves out labels that would overlap with the next. The last is kept.
pub(super) fn apart(ticks: Vec<(f64, String)>, at: impl Fn(f64) -> f64) -> Vec<(f64, String)> {
    let room = |a: &(f64, String), b: &(f64, String)| {
        (at(b.0) - at(a.0)).abs() >= (width_of(&a.1) + width_of(&b.1)) / 2.0 + 6.0
    };
    let mut kept: Vec<(f64, String)> = Vec::new();
    let last = ticks.last().cloned();
    for tick in ticks {
        let clear = kept.last().is_none_or(|known| room(known, &tick));
        let before_last = last.as_ref().is_none_or(|last| last.0 == tick.0 || room(&tick, last));
        if clear && before_last {
            kept.push(tick);
        }
    }
    kept
}

/// The smallest and the largest of the finite values, or (0, 1) if there are none.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low.is_finite() { (low, high) } else { (0.0, 1.0) }
}

/// A step of 1, 2 or 5 times a power of ten, about a fifth of the span.
fn step(span: f64) -> f64 {
    if !span.is_finite() || span <= 0.0 {
        return 1.0;
    }
    let rough = span / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    match rough / power {
        r if r <= 1.0 => power,
        r if r <= 2.0 => power * 2.0,
        r if r <= 5.0 => power * 5.0,
        _ => power * 10.0,
    }
}

/// Powers of ten. If there are few, 2 and 5 times them as well; if there are many, every second or third.
fn log_ticks(range: &Range, about: usize) -> Vec<f64> {
    let power = |v: f64| (v.log10().floor() as i32).clamp(f64::MIN_10_EXP, f64::MAX_10_EXP);
    let (first, last) = (power(range.low), power(range.high));
    let inside = |v: &f64| *v >= range.low * 0.999 && *v <= range.high * 1.001;
    let decades = |factors: &[f64], every: usize| -> Vec<f64> {
        let powers = (first..=last).step_by(every.max(1));
        let each = powers.flat_map(|p| factors.iter().map(move |f| f * 10f64.powi(p)));
        each.filter(inside).collect()
    };
    let plain = decades(&[1.0], 1);
    match plain.len() {
        n if n > about => decades(&[1.0], n.div_ceil(about)),
        n if n >= 3 => plain,
        _ => {
            let some = decades(&[1.0, 2.0, 5.0], 1);
            let enough = some.len() >= 3 || (some.len() == 2 && range.high / range.low >= NARROW);
            if enough { some } else { steps(range, about) }
        }
    }
}

/// Round values in equal steps, for a range that is too narrow for parts of powers of ten.
fn steps(range: &Range, about: usize) -> Vec<f64> {
    let mut step = step(range.high - range.low);
    while (range.high - range.low) / step > about.max(1) as f64 && step.is_finite() {
        // The next larger round step.
        step = self::step(step * 5.05);
    }
    let (first, last) = ((range.low / step).ceil(), (range.high / step).floor());
    let count = (last - first).clamp(0.0, 100.0) as usize + 1;
    let values: Vec<f64> = (0..count).map(|at| (first + at as f64) * step).collect();
    if values.len() >= 2 { values } else { vec![range.low, range.high] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, unit: Unit) -> Axis {
        Axis { label: String::new(), unit, scale, ticks: Ticks::Round }
    }

    fn labels(scale: Scale, unit: Unit, values: &[f64]) -> Vec<String> {
        let axis = axis(scale, unit);
        let range = axis.range(values.iter().copied());
        axis.ticks(&range, 6).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_axes_begin_at_zero_and_end_on_a_round_number() {
        let shown = labels(Scale::Linear, Unit::Milliseconds, &[3.2, 9.4]);
        assert_eq!(shown, ["0", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms"]);
    }

    #[test]
    fn logarithmic_axes_have_decades_or_parts_of_them() {
        assert_eq!(labels(Scale::Log, Unit::Count, &[1.0, 1e4]), ["1", "10", "100", "1000", "10000"]);
        assert_eq!(labels(Scale::Log, Unit::Count, &[15.0, 90.0]), ["20", "50"]);
        assert!(labels(Scale::Log, Unit::PerSecond, &[1.0, 1e12]).len() <= 7);
        assert_eq!(labels(Scale::Log, Unit::Times, &[0.67, 2.0]), ["1x", "1.5x", "2x"]);
        let (narrow, few) = (axis(Scale::Log, Unit::Times), 2);
        let range = narrow.range([0.98, 1.7].into_iter());
        assert_eq!(
            narrow.ticks(&range, few).into_iter().map(|(_, word)| word).collect::<Vec<_>>(),
            ["1x", "1.5x"]
        );
        assert_eq!(labels(Scale::Log, Unit::Times, &[0.97, 1.31]), ["1x", "1.1x", "1.2x", "1.3x"]);
    }

    #[test]
    fn an_axis_over_a_large_ratio_is_logarithmic() {
        assert_eq!(Scale::of([1460.0, 524_288.0].into_iter()), Scale::Log);
        assert_eq!(Scale::of([1.0, 4.0].into_iter()), Scale::Linear);
        assert_eq!(Scale::of([0.0, 1e6].into_iter()), Scale::Linear);
    }

    #[test]
    fn an_axis_without_values_or_with_equal_values_is_valid() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [&[][..], &[0.0], &[5.0, 5.0], &[f64::NAN], &[-3.0, -1.0], &[1e-300, 1e300]] {
                let axis = axis(scale, Unit::Count);
                let range = axis.range(values.iter().copied());
                assert!(range.low < range.high, "{scale:?} {values:?} {range:?}");
                assert!(values.iter().all(|v| (0.0..=1.0).contains(&range.share(*v))));
                assert!(axis.ticks(&range, 6).len() < 400);
            }
        }
    }

    #[test]
    fn labels_do_not_overlap() {
        let ticks: Vec<(f64, String)> = (0..100).map(|i| (f64::from(i), format!("label {i}"))).collect();
        let kept = apart(ticks, |v| v * 3.0);
        assert_eq!(kept.last().unwrap().0, 99.0);
        assert!(kept.len() > 3 && kept.windows(2).all(|w| (w[1].0 - w[0].0) * 3.0 > width_of(&w[0].1)));
    }
}
