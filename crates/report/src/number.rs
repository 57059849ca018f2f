//! Formats numbers for people. Only this module knows units, numbers of digits and how intervals are written.

use lab::experiment::grid::show_size;
use lab::findings::{Ratio, Unit};

/// Ends of intervals beyond this are shown as unknown.
const MOST_TIMES: f64 = 9999.0;

/// Formats a number in its unit: `1.24 s`, `883 MB/s`, `26.8M/s`, `12.3 us`, `41 %`, `38 MB`, `64K`.
pub fn show(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count => digits(value),
        Unit::Times if value > MOST_TIMES => format!(">{MOST_TIMES:.0}x"),
        Unit::Times => format!("{}x", digits(value)),
        Unit::AsPrinted => value.to_string(),
        Unit::Size => show_size(value as i64),
        Unit::Bytes => bytes(value),
        Unit::BytesPerSecond => {
            scaled(value, &[(1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1.0, " B/s")])
        }
        Unit::PerSecond => scaled(value, &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]),
        Unit::Share => percent(value),
        Unit::Milliseconds => seconds(value / 1e3),
        Unit::Microseconds => seconds(value / 1e6),
        Unit::SecondsPerByte => seconds(value * 1e6),
        Unit::SecondsPerOperation => seconds(value),
    }
}

/// A round number without the zeros that [`show`] adds to keep three digits: `20 ms`.
pub fn short(value: f64, unit: Unit) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let shown = show(value, unit);
    let end = shown.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(shown.len());
    let (number, unit) = shown.split_at(end);
    if !number.contains('.') {
        return shown;
    }
    format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// A time in seconds: `1.24 s`, `607 us`.
pub fn seconds(value: f64) -> String {
    scaled(value, &[(1.0, " s"), (1e-3, " ms"), (1e-6, " us"), (1e-9, " ns")])
}

/// A change of a time in seconds, with its sign: `+12.3 us`, `-607 ns`. What would be `0.00 ns` is `0 ns`.
pub fn signed_seconds(value: f64) -> String {
    let shown = if value.abs() < 0.005e-9 { 0.0 } else { value };
    if shown > 0.0 { format!("+{}", seconds(shown)) } else { seconds(shown) }
}

/// A time in microseconds, as [`seconds`] shows it.
pub fn micros(value: f64) -> String {
    seconds(value / 1e6)
}

/// A time in milliseconds, as [`seconds`] shows it.
pub fn millis(value: f64) -> String {
    seconds(value / 1e3)
}

/// A rate per second: `42.8k/s`.
pub fn per_second(value: f64) -> String {
    show(value, Unit::PerSecond)
}

/// Bytes per second: `883 MB/s`.
pub fn bytes_per_second(value: f64) -> String {
    show(value, Unit::BytesPerSecond)
}

/// A measured share: `41 %`, `9.6 %`, `<0.01 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        p if p < 0.01 => "<0.01 %".to_owned(),
        p if p < 0.995 => format!("{percent:.2} %"),
        p if p < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A configured share, without needless digits: `5 %`, `2.5 %`.
pub fn chosen_percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from((percent - percent.round()).abs() > 1e-9);
    format!("{percent:.digits$} %")
}

/// A plain number with one decimal: `1.1`.
pub fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// A rate that can be typed again, with all digits: `12345/s`. Below ten it has decimals.
pub fn exact_rate(per_s: f64) -> String {
    if per_s < 10.0 { format!("{per_s:.2}/s") } else { format!("{per_s:.0}/s") }
}

/// A ratio that is compared with a bound: `0.934x`.
pub fn exact_times(ratio: f64) -> String {
    format!("{ratio:.3}x")
}

/// A ratio without an interval: `1.28x`.
pub fn times(ratio: f64) -> String {
    // `0.00x` would say that it is infinitely slower.
    if ratio > 0.0 && ratio < 0.005 { "<0.01x".to_owned() } else { format!("{ratio:.2}x") }
}

/// A ratio in as many digits as [`interval`] shows: `1.28x`, `6.9x`, `120x`.
pub fn factor(ratio: f64) -> String {
    format!("{ratio:.0$}x", decimals(ratio))
}

/// A range of ratios: `6.9x to 9.0x`; where both ends look the same, one of them.
pub fn factors(low: f64, high: f64) -> String {
    let (low, high) = (factor(low), factor(high));
    if low == high { low } else { format!("{low} to {high}") }
}

fn decimals(ratio: f64) -> usize {
    match ratio {
        r if r < 1.995 => 2,
        r if r < 99.5 => 1,
        _ => 0,
    }
}

/// A ratio with its interval: `6.9x [6.5, 7.2]`.
pub fn interval(ratio: Ratio) -> String {
    let digits = decimals(ratio.estimate);
    let Ratio { estimate, low, high } = ratio;
    format!("{estimate:.digits$}x [{}, {}]", end(low, digits), end(high, digits))
}

/// A ratio near 1 with its interval, always in hundredths: `0.95x [0.71, 1.28]`.
pub fn interval_in_hundredths(ratio: Ratio) -> String {
    format!("{} [{}, {}]", times(ratio.estimate), end(ratio.low, 2), end(ratio.high, 2))
}

/// A ratio with its interval, in the digits that a bound may have: `0.962x [0.941, 0.983]`.
pub fn interval_in_thousandths(ratio: Ratio) -> String {
    format!("{} [{}, {}]", exact_times(ratio.estimate), end(ratio.low, 3), end(ratio.high, 3))
}

/// A rough ratio with its interval: `1.3x [1.1, 1.5]`.
pub fn interval_in_tenths(ratio: Ratio) -> String {
    format!("{:.1}x [{}, {}]", ratio.estimate, end(ratio.low, 1), end(ratio.high, 1))
}

/// An end of an interval: `>9999` if it is beyond [`MOST_TIMES`].
fn end(times: f64, digits: usize) -> String {
    if times > MOST_TIMES { format!(">{MOST_TIMES:.0}") } else { format!("{times:.digits$}") }
}

/// A count in a sentence, with three significant digits and separated thousands.
pub fn count(count: f64) -> String {
    if count < 99.5 {
        return match count {
            0.0 => "0".to_owned(),
            c if c < 0.0995 => format!("{c:.3}"),
            c if c < 9.95 => format!("{c:.1}"),
            c => format!("{c:.0}"),
        };
    }
    let scale = 10_f64.powf(count.log10().floor() - 2.0);
    let digits = format!("{:.0}", (count / scale).round() * scale);
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A number of things: `1 trial`, `3 trials`.
pub fn several(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A number of bytes, with two digits, because memory varies by a few percent at best.
pub fn bytes(value: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
    let (factor, name) = units.into_iter().find(|unit| value >= unit.0 * 0.9995).unwrap_or((1.0, "B"));
    match value / factor {
        v if v < 9.95 && factor > 1.0 => format!("{v:.1} {name}"),
        v => format!("{v:.0} {name}"),
    }
}

/// Formats a value in the largest unit of which there is at least one after rounding: never `1000 us`.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units[units.len() - 1];
    let fits = |unit: &&(f64, &str)| value.abs() >= unit.0 * 0.999_5;
    let (factor, name) = units.iter().find(fits).copied().unwrap_or(last);
    format!("{}{name}", digits(value / factor))
}

/// Three significant digits, or two decimals for values below 1.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        for (value, unit, shown) in [
            (1240.0, Unit::Milliseconds, "1.24 s"),
            (12.345, Unit::Microseconds, "12.3 us"),
            (999.96, Unit::Microseconds, "1.00 ms"),
            (0.25, Unit::Microseconds, "250 ns"),
            (0.0, Unit::Milliseconds, "0 ns"),
            (883e6, Unit::BytesPerSecond, "883 MB/s"),
            (26.84e6, Unit::PerSecond, "26.8M/s"),
            (42_806.55, Unit::PerSecond, "42.8k/s"),
            (0.5, Unit::PerSecond, "0.50/s"),
            (6.91, Unit::Times, "6.91x"),
            (0.174, Unit::Times, "0.17x"),
            (1e300, Unit::Times, ">9999x"),
            (0.41, Unit::Share, "41 %"),
            (0.0963, Unit::Share, "9.6 %"),
            (0.000_01, Unit::Share, "<0.01 %"),
            (0.0, Unit::Share, "0 %"),
            (38e6, Unit::Bytes, "38 MB"),
            (6.34e6, Unit::Bytes, "6.3 MB"),
            (999.9e3, Unit::Bytes, "1.0 MB"),
            (12.0, Unit::Bytes, "12 B"),
            (8e7, Unit::Size, "80000000"),
            (65536.0, Unit::Size, "64K"),
            (1460.0, Unit::Size, "1460"),
            (16384.0, Unit::Count, "16384"),
            (3.2e-9, Unit::SecondsPerByte, "3.20 ms"),
            (850e-9, Unit::SecondsPerOperation, "850 ns"),
        ] {
            assert_eq!(show(value, unit), shown);
        }
    }

    #[test]
    fn changes_of_times_have_signs() {
        let shown = [12.3e-6, -607e-9, 0.0, -1e-13, 6e-12].map(signed_seconds);
        assert_eq!(shown, ["+12.3 us", "-607 ns", "0 ns", "0 ns", "+0.01 ns"]);
    }

    #[test]
    fn ratios_are_shown_with_their_intervals() {
        let ratio = |estimate, low, high| Ratio { estimate, low, high };
        assert_eq!(interval(ratio(6.91, 6.5, 7.249)), "6.9x [6.5, 7.2]");
        assert_eq!(interval(ratio(1.5, 1.104, 2.0)), "1.50x [1.10, 2.00]");
        assert_eq!(interval(ratio(120.0, 3.0, 1e9)), "120x [3, >9999]");
        assert_eq!([factors(0.73, 2.33), factors(6.86, 6.91)], ["0.73x to 2.3x", "6.9x"]);
        assert_eq!([0.0, 0.004, 0.006, 1.0].map(times), ["0.00x", "<0.01x", "0.01x", "1.00x"]);
        assert_eq!(interval_in_hundredths(ratio(2.5, 0.7, 12.0)), "2.50x [0.70, 12.00]");
        assert_eq!(interval_in_tenths(ratio(1.27, 1.02, 1.58)), "1.3x [1.0, 1.6]");
        let shorter = [(20_000.0, Unit::Microseconds), (1.25e6, Unit::Microseconds), (1e8, Unit::Bytes)];
        assert_eq!(shorter.map(|(value, unit)| short(value, unit)), ["20 ms", "1.25 s", "100 MB"]);
    }

    #[test]
    fn counts_in_sentences_have_separated_thousands() {
        for (value, shown) in [
            (0.0, "0"),
            (0.0123, "0.012"),
            (1.12, "1.1"),
            (8.17, "8.2"),
            (98.9, "99"),
            (717.4, "717"),
            (1435.2, "1,440"),
            (247_285.0, "247,000"),
            (1e9 / 1460.0, "685,000"),
        ] {
            assert_eq!(count(value), shown);
        }
    }

    #[test]
    fn configured_shares_and_exact_rates_keep_their_digits() {
        assert_eq!([0.05, 0.025, 1.0].map(chosen_percent), ["5 %", "2.5 %", "100 %"]);
        assert_eq!([12_345.4, 0.5].map(exact_rate), ["12345/s", "0.50/s"]);
    }
}
