//! The figures of the requests of a file, by their names.

use std::collections::BTreeMap;
use std::fmt::Write;

use load::target::{Http, Target, Traffic};
use load::{Named, Tally};
use report::number;
use serde::Serialize;

use super::summary::{micros, shown_percentile};

/// The most names that the text shows.
const SHOWN: usize = 10;
/// The longest name that the text shows, in characters.
const LONGEST: usize = 40;

/// The figures of the requests with one name.
#[derive(Serialize)]
pub struct ByName {
    name: String,
    completed: u64,
    throughput_per_s: f64,
    /// Response times in microseconds. Null if there are too few answers.
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    errors: BTreeMap<String, u64>,
}

/// The figures by name, the most frequent first. Empty without a file of requests.
pub fn json(target: &Target, tally: &Tally) -> Vec<ByName> {
    let figures = |(name, named): (&str, &Named)| ByName {
        name: name.to_owned(),
        completed: named.successes,
        throughput_per_s: rate(named, tally),
        p50_us: named.response.percentile(50.0).map(micros),
        p99_us: named.response.percentile(99.0).map(micros),
        errors: named.errors(),
    };
    sorted(target, tally).into_iter().map(figures).collect()
}

/// The figures by name, as a table. The rarest are joined if there are many.
pub fn text(out: &mut String, target: &Target, tally: &Tally) {
    let names = sorted(target, tally);
    if names.is_empty() {
        return;
    }
    let shown = if names.len() > SHOWN { SHOWN - 1 } else { names.len() };
    let (names, others) = names.split_at(shown);
    let mut rows: Vec<(String, Named)> =
        names.iter().map(|(name, named)| (short(name), (*named).clone())).collect();
    if !others.is_empty() {
        let mut rest = Named::default();
        others.iter().for_each(|(_, named)| rest.merge(named));
        rows.push((format!("{} other names", others.len()), rest));
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let _ = writeln!(
        out,
        "  {:width$}  {:>9} {:>11} {:>9} {:>9}  errors",
        "request", "verified", "rate", "p50", "p99"
    );
    for (name, named) in rows {
        let percentile = |p| named.response.percentile(p).map_or("-".to_owned(), shown_percentile);
        let errors: Vec<String> =
            named.errors().iter().map(|(class, count)| format!("{count} {class}")).collect();
        let line = format!(
            "  {name:width$}  {:>9} {:>11} {:>9} {:>9}  {}",
            named.successes,
            number::per_second(rate(&named, tally)),
            percentile(50.0),
            percentile(99.0),
            errors.join(", ")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// The names with their counts, the most frequent first.
fn sorted<'t>(target: &'t Target, tally: &'t Tally) -> Vec<(&'t str, &'t Named)> {
    let Traffic::Http(Http { list: Some(list), .. }) = &target.traffic else { return Vec::new() };
    let mut names: Vec<_> = list.names().iter().map(String::as_str).zip(&tally.by_name).collect();
    names.sort_by_key(|(_, named)| std::cmp::Reverse(named.successes + named.errors.iter().sum::<u64>()));
    names
}

fn rate(named: &Named, tally: &Tally) -> f64 {
    named.successes as f64 / tally.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// A name without control characters, cut in its middle if it is long.
fn short(name: &str) -> String {
    let printable: Vec<char> = printable::printable(name).chars().collect();
    if printable.len() <= LONGEST {
        return printable.into_iter().collect();
    }
    let half = LONGEST / 2;
    let (start, end) = (printable.iter().take(half), printable.iter().skip(printable.len() - half + 1));
    start.chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_are_short_and_printable() {
        assert_eq!(short("GET /a"), "GET /a");
        assert_eq!(short("GET /\u{1b}[31m"), "GET / [31m");
        let long = short(&format!("GET /{}/end", "x".repeat(100)));
        assert_eq!(long.chars().count(), 40);
        assert!(long.starts_with("GET /xxx") && long.contains('…') && long.ends_with("/end"), "{long}");
    }
}
