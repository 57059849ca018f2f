//! What bounds the counts of exchanges, arrivals, bytes and connections, and what the generator itself used.

use std::collections::BTreeMap;
use std::time::Duration;

use reactor::Backend;

use super::*;
use crate::fault::{ErrorClass, Example};
use crate::pacer::Stop;
use crate::rows::BUSIEST;
use crate::tally::{Handshakes, Multiplexed, Named, Totals};

pub(crate) fn attempts(value: &u64, scope: &Scope<'_>) -> Fit {
    let Tally { successes, in_flight, .. } = scope.tally;
    let all = scope.failures.saturating_add(*successes).saturating_add(*in_flight);
    exactly(*value, all, "the sum of `successes`, `errors` and `in_flight`")?;
    at_most(*value, scope.exchanges(), "the length of the drive")
}

pub(crate) fn successes(value: &u64, scope: &Scope<'_>) -> Fit {
    at_most(*value, scope.tally.attempts, "`attempts`")
}

pub(crate) fn errors(value: &[u64; ErrorClass::COUNT], scope: &Scope<'_>) -> Fit {
    at_most(sum(value), scope.tally.attempts, "`attempts`")
}

pub(crate) fn first_errors(value: &BTreeMap<ErrorClass, Example>, scope: &Scope<'_>) -> Fit {
    for (class, count) in ErrorClass::ALL.iter().zip(&scope.tally.errors) {
        present(value.contains_key(class), *count > 0, "`errors`")
            .map_err(|why| format!("{}: {why}", class.name()))?;
    }
    let latest = value.values().map(|example| example.into_window).max().unwrap_or_default();
    no_longer(latest, scope.lasted, "the length of the drive")
}

pub(crate) fn ordinals(value: &BTreeMap<u64, u64>, scope: &Scope<'_>) -> Fit {
    at_most(sum(value.values()), scope.failures, "`errors`")?;
    let kept = (Tally::ORDINALS as u64).saturating_mul(scope.threads);
    part("a number", at_most(value.len() as u64, kept, "the threads of the job"))?;
    let ends = value.keys().next().zip(value.keys().next_back());
    ends.map_or(Ok(()), |(first, last)| {
        at_least(*first, 1, "the first exchange of a connection")?;
        at_most(*last, scope.exchanges(), "the length of the drive")
    })
}

pub(crate) fn in_flight(value: &u64, scope: &Scope<'_>) -> Fit {
    // In an open loop those are among them that began after the window.
    let waited = if scope.open { scope.tally.backlog } else { 0 };
    at_most(*value, scope.places.saturating_add(waited), "the connections of the job")
}

pub(crate) fn arrivals(value: &u64, scope: &Scope<'_>) -> Fit {
    if !scope.open {
        return exactly(*value, 0, "the closed loop of the job");
    }
    // Each has a time or an age.
    at_most(*value, scope.tally.response.len(), "the times of `response`")?;
    let (length, elapsed) = (scope.job.stop, scope.tally.elapsed);
    match length {
        Stop::Count(count) if scope.whole && scope.http().is_some() => {
            return exactly(*value, count, "the requests of the job");
        }
        Stop::Count(count) if scope.http().is_some() => at_most(*value, count, "the requests of the job")?,
        Stop::Count(_) | Stop::After(_) => {}
    }
    let time = if let Stop::After(length) = length { elapsed.min(length) } else { elapsed };
    let Some((least, most)) = scope.due(time) else { return Ok(()) };
    at_most(*value, most as u64, "the schedule of the job")?;
    if scope.whole { at_least(*value, least as u64, "the schedule of the job") } else { Ok(()) }
}

pub(crate) fn late(value: &u64, scope: &Scope<'_>) -> Fit {
    // The limit is within a bucket of the histogram, so a few may be on either side.
    let (limit, behind) = (Tally::LATE.as_nanos() as u64, scope.tally.behind.answered());
    let above = |nanos: u64| behind.count_between(nanos, u64::MAX);
    at_most(*value, above(limit - limit / 500), "the times of `behind`")?;
    at_least(*value, above(limit + limit / 500), "the times of `behind`")
}

pub(crate) fn dropped(value: &u64, scope: &Scope<'_>) -> Fit {
    exactly(*value, scope.tally.behind.ages(), "the ages of `behind`")
}

pub(crate) fn backlog(value: &u64, scope: &Scope<'_>) -> Fit {
    if !scope.open {
        return exactly(*value, 0, "the closed loop of the job");
    }
    // Those of the warm-up may still wait.
    let due = scope.due(scope.lasted).map_or(scope.exchanges(), |(_, most)| most as u64);
    at_most(*value, due, "the schedule of the job")
}

pub(crate) fn no_continue(value: &u64, scope: &Scope<'_>) -> Fit {
    let awaits = scope.http().is_some_and(|http| http.expect_continue);
    let each = scope.tally.elapsed.as_secs().saturating_add(2);
    let most = if awaits { scope.places.saturating_mul(each) } else { 0 };
    at_most(*value, most, "the length of the window: each body waits for a second")
}

pub(crate) fn elapsed(value: &Duration, scope: &Scope<'_>) -> Fit {
    let Tally { attempts, successes, bytes_sent, bytes_received, .. } = scope.tally;
    // A drive may be ended when its window has just opened. Then it has only begun something.
    let begun = scope.whole && (*attempts > 0 || *bytes_sent > 0);
    if value.is_zero() && (begun || *successes > 0 || *bytes_received > 0) {
        return refuse("0 s", "`attempts` and the bytes", "longer");
    }
    no_longer(*value, scope.lasted, "the length of the drive")
}

pub(crate) fn sent(value: &u64, scope: &Scope<'_>) -> Fit {
    at_most(*value, scope.possible(BYTES_PER_S), "the length of the drive")?;
    let (body, _) = bodies(scope);
    // `units` bounds those of frames, of which a connection may send none.
    let each = if scope.http().is_some() { body.saturating_add(LEAST) } else { 0 };
    let whole = scope.tally.successes.saturating_sub(scope.edge());
    at_least(*value, whole.saturating_mul(each), "`successes` and the requests of the job")
}

pub(crate) fn received(value: &u64, scope: &Scope<'_>) -> Fit {
    at_most(*value, scope.possible(BYTES_PER_S), "the length of the drive")?;
    let (_, body) = bodies(scope);
    let each = body.saturating_add(LEAST);
    let whole = scope.tally.successes.saturating_sub(scope.edge());
    at_least(*value, whole.saturating_mul(each), "`successes` and the answers that the job demands")
}

pub(crate) fn failing(value: &Duration, scope: &Scope<'_>) -> Fit {
    let most = scope.lasted.as_secs_f64() * scope.failures as f64;
    let most = Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX);
    no_longer(*value, most, "`errors` and the length of the drive")
}

pub(crate) fn handshakes(value: &Handshakes, scope: &Scope<'_>) -> Fit {
    let Handshakes { kinds, offered, times } = value;
    let (all, none) = (sum(kinds), Times::default());
    let times = times.as_ref().unwrap_or(&none);
    let secured = scope.http().is_some_and(|http| http.tls.is_some());
    let most = if secured { scope.tally.total.connections } else { 0 };
    part("a number", at_most(all, most, "the connections of `total`, if they speak TLS"))?;
    part("a number", exactly(all, times.len(), "their times"))?;
    part("offered", at_most(*offered, all, "the number of handshakes"))?;
    answered(times, all, "the number of handshakes", scope)
}

pub(crate) fn multiplexed(value: &Option<Multiplexed>, scope: &Scope<'_>) -> Fit {
    let http2 = scope.http().is_some_and(|http| http.http2);
    let Some(Multiplexed { asked, reached, allowed, renewed, cancelled }) = value else {
        return present(false, http2 && scope.tally.successes > 0, "HTTP/2 and `successes`");
    };
    present(true, http2, "the protocol of the job")?;
    part("asked", exactly(*asked, scope.job.pipeline as u64, "the job"))?;
    part("reached", at_most(*reached, *asked, "what was asked for"))?;
    let fewer = allowed.map(|allowed| at_most(allowed, asked.saturating_sub(1), "what was asked for"));
    part("allowed", fewer.unwrap_or(Ok(())))?;
    part("allowed", at_least(allowed.unwrap_or(1), 1, "what is open"))?;
    part("renewed", at_most(*renewed, scope.tally.total.connections, "the connections of `total`"))?;
    let overdue = scope.tally.errors.get(ErrorClass::RequestTimeout as usize).copied().unwrap_or(0);
    part("cancelled", at_most(*cancelled, overdue, "the timeouts of `errors`"))
}

/// The time that all threads can spend in the drive. A thread may wait for a core just before it reads how long it waited, so the
/// window is no bound.
pub(crate) fn at_work(value: &Duration, scope: &Scope<'_>) -> Fit {
    let threads = u32::try_from(scope.threads).unwrap_or(u32::MAX);
    no_longer(
        *value,
        scope.lasted.saturating_mul(threads),
        "the length of the drive and the threads of the job",
    )
}

pub(crate) fn pause(value: &Duration, scope: &Scope<'_>) -> Fit {
    no_longer(*value, roomy(scope.tally.elapsed), "`elapsed`")
}

pub(crate) fn busiest(value: &f64, scope: &Scope<'_>) -> Fit {
    let (elapsed, cpu) = (scope.tally.elapsed.as_secs_f64(), scope.tally.cpu.as_secs_f64());
    // A thread of a drive that was ended as its window opened has CPU time, but no share.
    if elapsed <= 0.0 || !scope.whole {
        return Ok(());
    }
    // The busiest thread is no less busy than the mean. Threads may end early, and are busier then.
    let least = (cpu / (elapsed * scope.threads as f64)).min(BUSIEST) * 0.99;
    if *value < least {
        return refuse(value, "`cpu`", format!("at least {least:.3}"));
    }
    let most = 1.1 + 0.1 / elapsed;
    if matches!(scope.job.stop, Stop::After(_)) && *value > most {
        return refuse(value, "`elapsed`", format!("at most {most:.3}"));
    }
    Ok(())
}

pub(crate) fn backend(value: &str, scope: &Scope<'_>) -> Fit {
    let wanted = match scope.job.backend {
        Backend::Auto => return Ok(()),
        Backend::Uring => "io_uring",
        Backend::Epoll => "epoll",
    };
    if value == wanted { Ok(()) } else { refuse(format!("{value:?}"), "the job", wanted) }
}

/// They do not travel.
pub(crate) fn by_name(value: &[Named], _scope: &Scope<'_>) -> Fit {
    part("a number of names", at_most(value.len() as u64, 0, "what can be sent"))
}

pub(crate) fn total(value: &Totals, scope: &Scope<'_>) -> Fit {
    let Totals { connections, attempts, successes, errors } = value;
    let ended = sum(errors.values()).saturating_add(*successes);
    part("attempts", at_least(*attempts, ended, "the successes and errors of `total`"))?;
    let open = ended.saturating_add(scope.places);
    part("attempts", at_most(*attempts, open, "the successes and errors of `total`"))?;
    part("attempts", at_least(*attempts, scope.tally.attempts, "`attempts`"))?;
    part("attempts", at_most(*attempts, scope.exchanges(), "the length of the drive"))?;
    part("successes", at_least(*successes, scope.tally.successes, "`successes`"))?;
    for (class, count) in ErrorClass::ALL.iter().zip(&scope.tally.errors) {
        let all = errors.get(class).copied().unwrap_or(0);
        part("errors", at_least(all, *count, "`errors`"))?;
    }
    // Some protocols use a connection for each exchange. All others need one for the first.
    let once = scope.http().is_none_or(|http| !http.keep_alive && !http.http2);
    let least = if once { *successes } else { (*successes).min(1) };
    part("connections", at_least(*connections, least, "the successes of `total`"))?;
    let made = scope.possible(CONNECTIONS_PER_S).saturating_add(scope.job.connections as u64);
    part("connections", at_most(*connections, made, "the length of the drive"))
}
