//! Whether the values of a tally agree with each other. What another machine says of its drive is checked as strictly as what a
//! client driver says of its own (docs/contracts.md, "A client driver").

use crate::tally::Tally;
use crate::times::Times;

impl Tally {
    /// Whether one drive can have counted all of this, in an open loop or in a closed one.
    ///
    /// # Errors
    /// The name of a value that contradicts others.
    pub(crate) fn agrees(&self, open: bool) -> Result<(), &'static str> {
        let failures = sum(self.errors.iter());
        let ended = failures.saturating_add(self.successes);
        let total = &self.total;
        let of_class = |(class, count): (&crate::ErrorClass, &u64)| {
            *count > 0 && total.errors.get(class).is_none_or(|all| all < count)
        };
        let by_class = crate::ErrorClass::ALL.iter().zip(&self.errors);
        let unseen =
            |class: &crate::ErrorClass| !by_class.clone().any(|(of, count)| of == class && *count > 0);
        // More of it than of a drive that has no window.
        let idle = self.elapsed.is_zero();
        let moved = self.attempts > 0 || self.bytes_sent > 0 || self.bytes_received > 0;
        let rules = [
            ("elapsed", !(idle && moved)),
            ("attempts", self.attempts == ended.saturating_add(self.in_flight)),
            ("first_errors", !self.first_errors.keys().any(unseen)),
            ("ordinals", sum(self.ordinals.values()) <= failures),
            ("tenths", sum(self.tenths.iter()) <= self.successes),
            ("total", total.successes >= self.successes && !by_class.clone().any(of_class)),
            ("total", total.attempts >= sum(total.errors.values()).saturating_add(total.successes)),
            ("decoded", self.decoded.compressed <= self.decoded.answers),
            ("decoded", self.decoded.answers <= total.successes),
        ];
        rules
            .into_iter()
            .chain(self.times_agree(open))
            .find(|(_, fits)| !fits)
            .map_or(Ok(()), |(name, _)| Err(name))
    }

    /// Whether there are as many times as what was timed. In a closed loop there is one for each success. In an open loop there is
    /// one for each arrival that was due in the window, whenever it ended.
    fn times_agree(&self, open: bool) -> impl Iterator<Item = (&'static str, bool)> {
        let answered = |times: &Times| times.answered().len();
        let arrivals = self.attempts.saturating_add(self.dropped);
        let counts = |times: &Times| {
            let right = answered(times);
            let fits = if open { right <= self.total.successes } else { right == self.successes };
            fits && times.len() <= if open { arrivals } else { right }
        };
        let begun = |times: &Option<Times>| times.as_ref().is_none_or(|times| times.len() <= arrivals);
        let within =
            |times: &Option<Times>| times.as_ref().is_none_or(|times| counts_at_most(times, &self.service));
        let opened = self.handshakes.times.as_ref().map_or(0, Times::len);
        let rules = [
            ("service", counts(&self.service)),
            ("response", counts(&self.response) && answered(&self.response) == answered(&self.service)),
            // Streams that fail or are cut have them too.
            ("first_byte", begun(&self.first_byte)),
            ("first_event", begun(&self.first_event)),
            ("longest_gap", begun(&self.longest_gap)),
            ("pool_wait", within(&self.pool_wait)),
            ("behind", if open { self.behind.len() <= arrivals } else { self.behind.is_empty() }),
            ("late", self.late <= answered(&self.behind)),
            ("dropped", open || self.dropped == 0),
            ("handshakes", self.handshakes.all() == opened && self.handshakes.offered <= opened),
        ];
        rules.into_iter()
    }
}

/// Whether there are at most as many times as answers.
fn counts_at_most(times: &Times, answers: &Times) -> bool {
    times.len() <= answers.answered().len()
}

fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::{ErrorClass, Totals};

    /// What a drive counts: three attempts, of which one failed.
    fn honest() -> Tally {
        let mut tally = Tally {
            attempts: 4,
            successes: 2,
            in_flight: 1,
            elapsed: Duration::from_secs(1),
            total: Totals {
                connections: 1,
                attempts: 9,
                successes: 7,
                errors: BTreeMap::from([(ErrorClass::Status, 1)]),
            },
            ..Tally::default()
        };
        tally.errors[ErrorClass::Status as usize] = 1;
        tally.ordinals.insert(3, 1);
        tally.tenths = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        for _ in 0..2 {
            tally.answered(1_000, 2_000);
        }
        tally
    }

    #[test]
    fn what_a_drive_cannot_have_counted_is_named() {
        type Spoil = fn(&mut Tally);
        let table: &[(&str, Spoil)] = &[
            ("elapsed", |t| t.elapsed = Duration::ZERO),
            ("attempts", |t| t.attempts = 3),
            ("attempts", |t| t.successes = 93_810),
            ("attempts", |t| t.in_flight = u64::MAX),
            ("ordinals", |t| _ = t.ordinals.insert(4, 1)),
            ("tenths", |t| t.tenths[9] = 1),
            ("total", |t| t.total.successes = 1),
            ("total", |t| t.total.attempts = 7),
            ("total", |t| t.total.errors.clear()),
            ("service", |t| t.service.record(5)),
            ("response", |t| t.response = Times::default()),
            ("first_byte", |t| (0..5).for_each(|_| t.first_byte.get_or_insert_default().record(1))),
            ("first_event", |t| (0..5).for_each(|_| t.first_event.get_or_insert_default().record(1))),
            ("longest_gap", |t| (0..5).for_each(|_| t.longest_gap.get_or_insert_default().record(1))),
            ("behind", |t| t.behind.record(1)),
            ("late", |t| t.late = 1),
            ("dropped", |t| t.dropped = 1),
            ("handshakes", |t| t.handshakes.kinds[0] = 1),
            ("decoded", |t| t.decoded.compressed = 1),
        ];
        assert_eq!(honest().agrees(false), Ok(()));
        let mut streams = honest();
        (0..4).for_each(|_| streams.first_byte.get_or_insert_default().record(1));
        assert_eq!(streams.agrees(false), Ok(()), "one failed, and one was cut");
        assert_eq!(Tally::default().agrees(false), Ok(()));
        assert_eq!(Tally::default().agrees(true), Ok(()));
        for (name, spoil) in table {
            let mut spoilt = honest();
            spoil(&mut spoilt);
            assert_eq!(spoilt.agrees(false), Err(*name));
        }
    }

    #[test]
    fn an_open_loop_has_a_time_for_each_arrival_at_most() {
        let mut open = honest();
        open.service.record(7);
        open.response.record(7);
        open.unanswered(9, 9);
        open.unsent(9);
        assert_eq!(open.agrees(true), Ok(()), "one was answered after the window");
        open.unanswered(9, 9);
        open.unanswered(9, 9);
        assert_eq!(open.agrees(true), Err("service"));
    }
}
