//! How many runs a simulation makes, and how its shares are judged: all runs by the limits that the tests name, or a sample of
//! them by wider ones, because few runs show a share less exactly.

/// Whether `NARROWS_SAMPLE` asks for a sample.
pub(super) fn is_sample() -> bool {
    std::env::var_os("NARROWS_SAMPLE").is_some_and(|value| !value.is_empty())
}

/// How many of the runs are made. A sample has the first fifth of their seeds, so it is always the same.
pub(super) fn runs(whole: u64) -> u64 {
    if is_sample() { whole / 5 } else { whole }
}

/// Adds one run to a share or a mean of the runs that are made.
pub(super) fn add(whole: u64, to: &mut f64, of_run: impl Into<f64>) {
    *to += of_run.into() * (1.0 / runs(whole) as f64);
}

/// The share of these for which it is so.
pub(super) fn share<T>(of: impl IntoIterator<Item = T>, is: impl FnMut(T) -> bool) -> f64 {
    let all: Vec<bool> = of.into_iter().map(is).collect();
    all.iter().filter(|is| **is).count() as f64 / all.len() as f64
}

/// How rarely chance alone breaks one limit of a sample. There are fewer than 300 limits, so even if each true share is at its
/// limit, chance breaks any of them in less than one sample of a thousand.
const BY_CHANCE: f64 = 1e-3 / 300.0;

/// Whether a share is at most the limit. In a sample, whether chance could make it so large if the limit is the true share.
pub(super) fn at_most(share: f64, limit: f64, whole: u64) -> bool {
    if !is_sample() {
        return share <= limit;
    }
    let runs = runs(whole) as f64;
    // The binomial distribution, one count after the other. The normal one is too narrow for rare events.
    let (mut exactly, mut fewer) = ((1.0 - limit).powf(runs), 0.0);
    for count in (0..(share * runs).round() as u64).map(|count| count as f64) {
        fewer += exactly;
        exactly *= (runs - count) / (count + 1.0) * limit / (1.0 - limit);
    }
    1.0 - fewer >= BY_CHANCE
}

/// Whether a share is at least the limit; in a sample, like [`at_most`].
pub(super) fn at_least(share: f64, limit: f64, whole: u64) -> bool {
    if is_sample() { at_most(1.0 - share, 1.0 - limit, whole) } else { share >= limit }
}
