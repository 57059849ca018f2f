//! The noise of shared machines, for simulations: heavy tails, single slow trials, drift, and correlation between
//! neighbouring trials. It is seeded, so that a simulation can be repeated.

use serde::{Deserialize, Serialize};

use crate::SplitMix64;

/// The noise in the logarithms of simulated times. By default there is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Noise {
    /// The scale of each trial's disturbance: 0.02 is about 2 %.
    pub spread: f64,
    /// Degrees of freedom of the disturbances' Student t distribution. 3 gives heavy tails; 30 or more means normal.
    pub tails: u32,
    /// The share of trials that something else slows down ...
    pub slow_share: f64,
    /// ... and by how much at most: 0.5 is 50 %.
    pub slow_by: f64,
    /// How far the whole machine drifts up and down: 0.2 is 20 %.
    pub drift: f64,
    /// The period of the drift, in trials.
    pub drift_trials: f64,
    /// The correlation of a trial's disturbance with the previous trial's, 0..1.
    pub correlation: f64,
}

impl Default for Noise {
    fn default() -> Self {
        Self::NONE
    }
}

impl Noise {
    /// No noise. With a `spread` it is normal.
    pub const NONE: Self = Self {
        spread: 0.0,
        tails: 30,
        slow_share: 0.0,
        slow_by: 0.0,
        drift: 0.0,
        drift_trials: 100.0,
        correlation: 0.0,
    };

    /// The noise under which the guarantees of Narrows are tested: tails of Student's t with 3 degrees of freedom, one trial
    /// in twenty up to 50 % slower, a drift of 20 % up and down within 100 trials (some two minutes), and half of each
    /// disturbance left over in the next trial.
    pub const SHARED_MACHINE: Self = Self {
        spread: 0.015,
        tails: 3,
        slow_share: 0.05,
        slow_by: 0.5,
        drift: 0.2,
        drift_trials: 100.0,
        correlation: 0.5,
    };
}

/// The noise of successive trials.
#[derive(Debug, Clone)]
pub struct Disturbances {
    noise: Noise,
    rng: SplitMix64,
    last: f64,
    trials: u64,
    phase: f64,
}

impl Disturbances {
    /// Starts the sequence of a seed.
    pub fn new(noise: Noise, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let phase = rng.unit();
        let last = disturbance(&noise, &mut rng);
        Self { noise, rng, last, trials: 0, phase }
    }

    /// By how much noise increases the logarithm of the next trial's time.
    pub fn next_log(&mut self) -> f64 {
        let Noise { slow_share, slow_by, drift, drift_trials, correlation, .. } = self.noise;
        // Keep a share of the last disturbance, and add enough of a new one to keep the variance constant.
        let fresh = disturbance(&self.noise, &mut self.rng);
        self.last = correlation * self.last + (1.0 - correlation * correlation).max(0.0).sqrt() * fresh;
        let (draw, size) = (self.rng.unit(), self.rng.unit());
        let slow = if draw < slow_share { (size * slow_by).ln_1p() } else { 0.0 };
        let turn = self.phase + self.trials as f64 / drift_trials.max(1.0);
        self.trials += 1;
        let swing = f64::midpoint(1.0, -(turn * std::f64::consts::TAU).cos());
        self.last + slow + drift.ln_1p() * swing
    }
}

fn disturbance(noise: &Noise, rng: &mut SplitMix64) -> f64 {
    noise.spread * if noise.tails >= 30 { rng.normal() } else { rng.student(noise.tails) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(noise: Noise) -> Vec<f64> {
        let mut disturbances = Disturbances::new(noise, 7);
        (0..40_000).map(|_| disturbances.next_log()).collect()
    }

    fn mean(x: &[f64]) -> f64 {
        x.iter().sum::<f64>() / x.len() as f64
    }

    fn correlation(x: &[f64]) -> f64 {
        let m = mean(x);
        let products: Vec<f64> = x.windows(2).map(|w| (w[0] - m) * (w[1] - m)).collect();
        mean(&products) / mean(&x.iter().map(|v| (v - m).powi(2)).collect::<Vec<_>>())
    }

    #[test]
    fn each_part_has_its_stated_effect() {
        assert!(many(Noise::default()).iter().all(|x| *x == 0.0));
        let normal = many(Noise { spread: 0.1, ..Noise::default() });
        assert!(mean(&normal).abs() < 0.003 && correlation(&normal).abs() < 0.03);
        let within = normal.iter().filter(|x| x.abs() < 0.1).count() as f64 / 40_000.0;
        assert!((within - 0.683).abs() < 0.01, "{within}");
        let heavy = many(Noise { spread: 0.1, tails: 3, ..Noise::default() });
        let beyond = |x: &[f64]| x.iter().filter(|x| x.abs() > 0.5).count();
        assert!(beyond(&normal) < 5 && beyond(&heavy) > 200, "{} {}", beyond(&normal), beyond(&heavy));
        let correlated = many(Noise { spread: 0.1, correlation: 0.5, ..Noise::default() });
        assert!((correlation(&correlated) - 0.5).abs() < 0.03, "{}", correlation(&correlated));
        let slow = many(Noise { slow_share: 0.1, slow_by: 1.0, ..Noise::default() });
        let share = slow.iter().filter(|x| **x > 0.0).count() as f64 / 40_000.0;
        assert!((share - 0.1).abs() < 0.01 && slow.iter().all(|x| (0.0..=2_f64.ln()).contains(x)));
        let drift = many(Noise { drift: 0.2, ..Noise::default() });
        let ends = drift.iter().fold((1.0_f64, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
        assert!(ends.0 < 0.001 && (ends.1 - 1.2_f64.ln()).abs() < 0.001, "{ends:?}");
    }
}
