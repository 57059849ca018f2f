//! The readers of the programs whose output is known. Each takes what the program prints by itself, with its usual options.

use super::read::{Found, number, time};

/// A program whose output is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// h2load of nghttp2.
    H2load,
    /// wrk. It has percentiles with `--latency`.
    Wrk,
    /// memtier_benchmark of Redis.
    Memtier,
    /// pgbench of PostgreSQL.
    Pgbench,
    /// redis-benchmark of Redis: as text, with `--csv` or with `-q`.
    RedisBenchmark,
}

/// How many requests redis-benchmark makes if it is not told.
const REDIS_REQUESTS: f64 = 100_000.0;

impl Reader {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::H2load, Self::Wrk, Self::Memtier, Self::Pgbench, Self::RedisBenchmark];

    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::H2load => "h2load",
            Self::Wrk => "wrk",
            Self::Memtier => "memtier_benchmark",
            Self::Pgbench => "pgbench",
            Self::RedisBenchmark => "redis-benchmark",
        }
    }

    /// The reader of a program, by its path.
    pub fn of(program: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reader| super::base_name(program) == reader.name())
    }

    /// Whether its program prints percentiles.
    pub fn has_percentiles(self) -> bool {
        !matches!(self, Self::H2load | Self::Pgbench)
    }

    /// What makes its program print percentiles, if it has not.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Wrk => ": give it --latency",
            Self::RedisBenchmark => ": it has both with --csv and one test, such as -t get",
            _ => "",
        }
    }

    /// Reads an output. `words` are those of the command. None if there is no rate in it.
    pub(super) fn read<'a>(self, output: &str, words: impl Iterator<Item = &'a str>) -> Option<Found> {
        match self {
            Self::H2load => h2load(output),
            Self::Wrk => wrk(output),
            Self::Memtier => memtier(output),
            Self::Pgbench => pgbench(output),
            Self::RedisBenchmark => redis_benchmark(output, words),
        }
    }
}

/// What follows `begin` in the first line that has it.
fn after<'a>(output: &'a str, begin: &str) -> Option<&'a str> {
    output.lines().find_map(|line| Some(line.split_once(begin)?.1.trim()))
}

/// The number in front of a word: of `3 failed` in `2 done, 3 failed`.
fn before(line: &str, word: &str) -> Option<f64> {
    line.split(',').find_map(|part| number(part.trim().strip_suffix(word)?))
}

/// The share of requests that did not fail, by which a rate of all of them is less.
fn part(right: f64, all: f64) -> f64 {
    if all > 0.0 { right / all } else { 0.0 }
}

fn h2load(output: &str) -> Option<Found> {
    let finished = after(output, "finished in ")?;
    let per_s = before(finished, " req/s")?;
    let counts = after(output, "requests: ")?;
    let [done, right, failed] = [" done", " succeeded", " failed"].map(|word| before(counts, word));
    let (right, failed) = (right?, failed?);
    Some(Found {
        per_s: per_s * part(right, done?),
        requests: Some(right as u64),
        failed: failed as u64,
        failures: if failed > 0.0 { counts.to_owned() } else { String::new() },
        ..Found::default()
    })
}

fn wrk(output: &str) -> Option<Found> {
    let per_s = number(after(output, "Requests/sec:")?)?;
    let all = output.lines().find_map(|line| number(line.split_once(" requests in ")?.0))?;
    let refused = after(output, "Non-2xx or 3xx responses:").and_then(number).unwrap_or(0.0);
    let broken = after(output, "Socket errors:");
    // `connect 0, read 0, write 0, timeout 0`
    let counts =
        broken.iter().flat_map(|line| line.split(',')).filter_map(|part| part.trim().split_once(' '));
    let errors: f64 = counts.filter_map(|(_, count)| number(count)).sum();
    let right = (all - refused).max(0.0);
    let said = [(refused, "responses that are not 2xx or 3xx"), (errors, "errors of sockets")];
    let failures = said.into_iter().filter(|(count, _)| *count > 0.0);
    let percentile = |line: &str| output.lines().find_map(|each| time(each.trim().strip_prefix(line)?));
    Some(Found {
        per_s: per_s * part(right, all),
        requests: Some(right as u64),
        failed: (refused + errors) as u64,
        failures: failures.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", "),
        p50_us: percentile("50%"),
        p99_us: percentile("99%"),
    })
}

/// The row `Totals` of its table, whose columns are apart by two spaces or more. Times are in milliseconds.
fn memtier(output: &str) -> Option<Found> {
    let columns = output.lines().rev().find(|line| line.starts_with("Type") && line.contains("Ops/sec"))?;
    let columns = columns.split("  ").map(str::trim).filter(|column| !column.is_empty());
    let totals = output.lines().rev().find(|line| line.starts_with("Totals"))?;
    let row: Vec<(&str, &str)> = columns.zip(totals.split_whitespace()).collect();
    let of = |column: &str| row.iter().find(|(name, _)| *name == column).and_then(|(_, value)| number(value));
    let micros = |column: &str| of(column).map(|millis| millis * 1e3);
    Some(Found {
        per_s: of("Ops/sec")?,
        p50_us: micros("p50 Latency"),
        p99_us: micros("p99 Latency"),
        ..Found::default()
    })
}

fn pgbench(output: &str) -> Option<Found> {
    let tps = |line: &str| number(line.strip_prefix("tps = ")?.split_once(" (")?.0);
    // Versions before 14 print two, and the second is without the time to connect.
    let per_s = output.lines().rev().find_map(tps)?;
    let count = |begin| after(output, begin).and_then(|rest| number(rest.split(['/', ' ']).next()?));
    let failed = count("number of failed transactions:").unwrap_or(0.0) as u64;
    Some(Found {
        per_s,
        requests: count("number of transactions actually processed:").map(|count| count as u64),
        failed,
        failures: if failed > 0 { "failed transactions".to_owned() } else { String::new() },
        ..Found::default()
    })
}

/// A test of redis-benchmark: how many requests, their rate, and two percentiles in milliseconds.
struct Test {
    requests: f64,
    per_s: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// Several tests are one after the other, and only their rate can be made one.
fn redis_benchmark<'a>(output: &str, mut words: impl Iterator<Item = &'a str>) -> Option<Found> {
    let each = words.find(|word| *word == "-n").and_then(|_| number(words.next()?)).unwrap_or(REDIS_REQUESTS);
    let mut tests: Vec<Test> = output.lines().filter_map(|line| test_of_csv(line, each)).collect();
    if tests.is_empty() {
        tests = tests_of_text(output);
    }
    if tests.is_empty() {
        // Progress is printed in the same line.
        tests = output.split(['\n', '\r']).filter_map(|line| quiet_test(line, each)).collect();
    }
    let requests: f64 = tests.iter().map(|test| test.requests).sum();
    let seconds: f64 = tests.iter().map(|test| test.requests / test.per_s).sum();
    let alone = |of: fn(&Test) -> Option<f64>| match tests.as_slice() {
        [test] => of(test).map(|millis| millis * 1e3),
        _ => None,
    };
    (seconds > 0.0 && seconds.is_finite()).then(|| Found {
        per_s: requests / seconds,
        requests: Some(requests as u64),
        p50_us: alone(|test| test.p50_ms),
        p99_us: alone(|test| test.p99_ms),
        ..Found::default()
    })
}

/// `"GET","42918.46","0.810","0.088","0.719","1.591","3.295","8.983"`: rate, mean, minimum, p50, p95, p99, maximum.
fn test_of_csv(line: &str, requests: f64) -> Option<Test> {
    let line = line.trim().strip_prefix('"')?.strip_suffix('"')?;
    let cells: Vec<Option<f64>> = line.split("\",\"").map(number).collect();
    let at = |index: usize| cells.get(index).copied().flatten();
    // The name of a test may have commas, but the figures are at the end. Versions before 6.2 print the rate alone.
    let first = cells.len().checked_sub(7).filter(|first| *first > 0);
    match first {
        Some(first) => {
            Some(Test { requests, per_s: at(first)?, p50_ms: at(first + 3), p99_ms: at(first + 5) })
        }
        None => Some(Test { requests, per_s: at(cells.len().checked_sub(1)?)?, p50_ms: None, p99_ms: None }),
    }
}

/// `  throughput summary: 42016.80 requests per second`, and the percentiles in the third line after it.
fn tests_of_text(output: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    let (mut requests, mut lines) = (0.0, output.lines());
    while let Some(line) = lines.next() {
        if let Some((count, _)) = line.split_once(" requests completed in ") {
            requests = number(count).unwrap_or(0.0);
        }
        let rate = line
            .split_once("throughput summary:")
            .and_then(|(_, rest)| number(rest.trim().split(' ').next()?));
        let Some(per_s) = rate else { continue };
        let times: Vec<Option<f64>> = match lines.nth(2) {
            Some(line) => line.split_whitespace().map(number).collect(),
            None => Vec::new(),
        };
        let at = |index: usize| times.get(index).copied().flatten();
        tests.push(Test { requests, per_s, p50_ms: at(2), p99_ms: at(4) });
    }
    tests
}

/// `GET: 49140.05 requests per second, p50=0.719 msec`
fn quiet_test(line: &str, requests: f64) -> Option<Test> {
    let (begin, rest) = line.split_once(" requests per second")?;
    let per_s = number(begin.rsplit(' ').next()?)?;
    let p50_ms = rest.split_once("p50=").and_then(|(_, rest)| number(rest.split(' ').next()?));
    Some(Test { requests, per_s, p50_ms, p99_ms: None })
}

#[cfg(test)]
mod tests;
