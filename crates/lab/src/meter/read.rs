//! Reads the figures of a meter out of its output: those of the reader that is built in for it, and those of `--read`.

use answers::{Answer, Capture, Head};

use super::{Meter, Reader};

/// What a meter's output says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Requests or transactions per second that did not fail.
    pub per_s: f64,
    /// How many requests did not fail. None if it does not say.
    pub requests: Option<u64>,
    /// How many failed.
    pub failed: u64,
    /// What it says of those that failed. Empty if none did.
    pub failures: String,
    /// The median of its latencies, microseconds. None if it does not say.
    pub p50_us: Option<f64>,
    /// The 99th percentile, likewise.
    pub p99_us: Option<f64>,
}

/// More requests than this are not those of one program.
const MOST: f64 = (1_u64 << 53) as f64;
/// The sizes of units of time in microseconds, by their names.
const UNITS: [(&str, f64); 8] =
    [("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("μs", 1.0), ("ms", 1e3), ("sec", 1e6), ("s", 1e6), ("m", 60e6)];

/// Where a figure is: `FIGURE=json.a.b`, as in `--capture`, or `FIGURE=/REGEX/`, whose first group it is. The figure is `rate`,
/// `requests`, `failed`, `p50` or `p99`; a time may end in its unit, as `p99_ms` does.
///
/// # Errors
/// What is wrong with it.
pub fn place(text: &str) -> Result<Capture, String> {
    const EXAMPLES: &str = "write rate=json.a.b, p99_ms=json.p99 or 'rate=/([0-9.]+) req/'";
    let (name, place) = text.split_once('=').ok_or_else(|| EXAMPLES.to_owned())?;
    let times = ["p50", "p99"].into_iter().any(|time| of_time(name, time).is_some());
    if !times && !["rate", "requests", "failed"].contains(&name) {
        return Err(format!(
            "`{name}` is none of rate, requests, failed, p50 and p99, of which p50_ms and p99_us have a unit"
        ));
    }
    let pattern = place.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let text = match pattern {
        Some(pattern) => format!("{name}=body~={pattern}"),
        None if place.starts_with("json") || place.starts_with("body~=") => text.to_owned(),
        None => return Err(EXAMPLES.to_owned()),
    };
    Capture::parse(&text).map_err(|error| error.to_string())
}

/// The unit, in microseconds, of a figure of this name if it is the time `time`; with None if its name has no unit.
pub(super) fn of_time(name: &str, time: &str) -> Option<Option<f64>> {
    match name.strip_prefix(time)? {
        "" => Some(None),
        rest => unit(rest.strip_prefix('_')?).map(Some),
    }
}

fn unit(name: &str) -> Option<f64> {
    UNITS.into_iter().find(|(known, _)| *known == name).map(|(_, size)| size)
}

/// A time with its unit, in microseconds: `43.98ms`.
pub(super) fn time(text: &str) -> Option<f64> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_alphabetic())?;
    let (number, name) = text.split_at_checked(at)?;
    Some(self::number(number)? * unit(name.trim())?)
}

/// A number that can be a count, a rate or a time.
pub(super) fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().replace(',', "").parse().ok()?;
    (0.0..=MOST).contains(&number).then_some(number)
}

impl Meter {
    /// Reads its standard output.
    ///
    /// # Errors
    /// It has no rate, or a figure is no number.
    pub fn read(&self, output: &str) -> Result<Found, String> {
        let built_in = self.reader().map(|reader| reader.read(output, self.tokens()));
        let rated = self.reads.iter().any(|read| read.name() == "rate");
        let mut found = match built_in {
            Some(Some(found)) => found,
            Some(None) if !rated => {
                return Err(format!("its output is not as that of {} is: it has no rate", self.name));
            }
            _ => Found::default(),
        };
        for read in &self.reads {
            let value = value(read, output).map_err(|why| format!("--read {}: {why}", read.text()))?;
            let number =
                || number(&value).ok_or_else(|| format!("--read {}: {value:?} is no number", read.text()));
            match read.name() {
                "rate" => found.per_s = number()?,
                "requests" => found.requests = Some(number()?.round() as u64),
                "failed" => {
                    found.failed = number()?.round() as u64;
                    found.failures = read.text().to_string();
                }
                name => {
                    let p50 = of_time(name, "p50");
                    let unit = p50.or_else(|| of_time(name, "p99")).flatten();
                    let micros = match unit {
                        Some(unit) => number()? * unit,
                        None => time(&value).ok_or_else(|| {
                            format!(
                                "--read {}: {value:?} has no unit: write {name}_ms={value:?} or another",
                                read.text()
                            )
                        })?,
                    };
                    *(if p50.is_some() { &mut found.p50_us } else { &mut found.p99_us }) = Some(micros);
                }
            }
        }
        if found.per_s <= 0.0 {
            return Err(self.nothing(&found));
        }
        let has = |p: &&u32| if **p == 50 { found.p50_us.is_some() } else { found.p99_us.is_some() };
        match self.percentiles.iter().find(|p| !has(p)) {
            Some(p) => Err(format!("its output has no p{p}{}", self.reader().map_or("", Reader::remedy))),
            None => Ok(found),
        }
    }

    fn nothing(&self, found: &Found) -> String {
        match found.failed {
            0 => "its rate is 0: it made no request".to_owned(),
            failed => format!("none of its requests succeeded, and {failed} failed: {}", found.failures),
        }
    }
}

/// The text of a figure. A program may print lines before its JSON.
fn value(read: &Capture, output: &str) -> Result<String, String> {
    const STARTS: usize = 100;
    let take = |body: &str| {
        let answer = Answer { head: Head::http1(200, b""), body: body.as_bytes(), length: body.len() as u64 };
        read.take(&answer).map_err(|found| found.to_string())
    };
    let whole = take(output);
    let starts = output.match_indices(['{', '[']).map(|(at, _)| at);
    let at_line = |at: &usize| output.get(..*at).is_some_and(|before| before.ends_with('\n'));
    let parts = starts.filter(at_line).take(STARTS).filter_map(|at| output.get(at..));
    whole.or_else(|why| parts.map(take).find_map(Result::ok).ok_or(why))
}
