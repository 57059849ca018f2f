//! Numbers as people read them: three digits and a unit.

use lab::experiment::grid::show_size;
use lab::findings::Unit;

/// Ends of intervals beyond this say nothing but "unknown".
const MOST_TIMES: f64 = 9999.0;

/// A number in its unit: `1.24 s`, `883 MB/s`, `26.8M/s`, `12.3 us`, `41 %`, `38 MB`, `64K`.
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
        Unit::Share => share(value),
        Unit::Milliseconds => seconds(value / 1e3),
        Unit::Microseconds => seconds(value / 1e6),
        Unit::SecondsPerByte => seconds(value * 1e6),
        Unit::SecondsPerOperation => seconds(value),
    }
}

/// Memory repeats to a few percent at best: two digits.
fn bytes(value: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
    let (factor, name) = units.into_iter().find(|unit| value >= unit.0 * 0.9995).unwrap_or((1.0, "B"));
    match value / factor {
        v if v < 9.95 && factor > 1.0 => format!("{v:.1} {name}"),
        v => format!("{v:.0} {name}"),
    }
}

fn seconds(value: f64) -> String {
    scaled(value, &[(1.0, " s"), (1e-3, " ms"), (1e-6, " us"), (1e-9, " ns")])
}

/// In the largest unit of which there is at least one, after rounding: never `1000 us`.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units[units.len() - 1];
    let fits = |unit: &&(f64, &str)| value.abs() >= unit.0 * 0.999_5;
    let (factor, name) = units.iter().find(fits).copied().unwrap_or(last);
    format!("{}{name}", digits(value / factor))
}

/// Three significant digits for what is at least 1; two decimals below.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn share(value: f64) -> String {
    let percent = value * 100.0;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        p if p < 0.01 => "<0.01 %".to_owned(),
        p if p < 0.995 => format!("{percent:.2} %"),
        p if p < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
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
}
