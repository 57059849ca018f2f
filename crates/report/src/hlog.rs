//! Latencies as a standard HdrHistogram log (version 1.3), which other tools can read and merge.

use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

/// The latencies of one interval.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The name of the series. Blanks and commas become underscores, as the format requires.
    pub tag: String,
    /// Its beginning, in seconds since the Unix epoch.
    pub began_unix_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// The latencies, in nanoseconds.
    pub histogram: Histogram<u64>,
}

/// Writes the log. Its maxima are in milliseconds, as is usual.
pub fn hlog(intervals: &[Interval]) -> String {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or_default();
    let start = intervals.first().map_or(0.0, |interval| interval.began_unix_s);
    let log = IntervalLogWriterBuilder::new()
        .add_comment(concat!("narrows ", env!("CARGO_PKG_VERSION"), ", values in nanoseconds"))
        .with_start_time(UNIX_EPOCH + seconds(start))
        .with_base_time(UNIX_EPOCH)
        .with_max_value_divisor(1_000_000.0)
        .begin_log_with(&mut bytes, &mut serializer);
    if let Ok(mut log) = log {
        for interval in intervals {
            let tag: String =
                interval.tag.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect();
            // Writing to memory cannot fail, and the serializer supports these histograms.
            let _ = log.write_histogram(
                &interval.histogram,
                seconds(interval.began_unix_s),
                seconds(interval.length_s),
                Tag::new(&tag),
            );
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine};
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    #[test]
    fn another_library_can_read_the_log() {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        (1..=1000_u64).for_each(|micros| histogram.record(micros * 1000).unwrap());
        let interval = |tag: &str| Interval {
            tag: tag.to_owned(),
            began_unix_s: 1_700_000_000.25,
            length_s: 1.5,
            histogram: histogram.clone(),
        };
        let text = hlog(&[interval("cowboy2 buffer=64K, kept"), interval("reference")]);
        let entries: Vec<_> = IntervalLogIterator::new(text.as_bytes())
            .filter_map(|entry| match entry.expect("a line of the format") {
                LogEntry::Interval(line) => Some(line),
                _ => None,
            })
            .collect();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].tag().map(|tag| tag.as_str()), Some("cowboy2_buffer=64K__kept"));
        assert_eq!(entries[0].duration(), Duration::from_millis(1500));
        let bytes = BASE64_STANDARD.decode(entries[0].encoded_histogram()).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!((read.len(), read.value_at_percentile(50.0)), (1000, histogram.value_at_percentile(50.0)));
    }
}
