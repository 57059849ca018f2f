//! What bounds the times: how many there are, by what was timed, and how long they are, by the length of the drive. In a closed
//! loop there is one for each success. In an open loop there is one for each arrival that was due in the window, whenever it ended.

use super::*;

fn number(times: Option<&Times>) -> u64 {
    times.map_or(0, Times::len)
}

/// The ages of exchanges and callers when the window closed.
pub(crate) fn late_ages(value: &Times, scope: &Scope<'_>) -> Fit {
    early_ages(value, scope)?;
    if scope.open || scope.finishes {
        return Ok(());
    }
    part("a number of times", at_least(value.len(), scope.tally.in_flight, "`in_flight`"))
}

/// The same when it opened.
pub(crate) fn early_ages(value: &Times, scope: &Scope<'_>) -> Fit {
    let callers = (scope.job.callers as u64).max(scope.places);
    let most = if scope.open || scope.finishes { 0 } else { callers };
    answered(value, most, "the callers of the job whose window is cut", scope)
}

/// How many exchanges can have begun their answers: those that are begun anew, twice.
fn begun_answers(scope: &Scope<'_>) -> u64 {
    scope.arrivals.saturating_add(scope.renewed().saturating_mul(scope.job.pipeline as u64))
}

/// Times of the beginnings of answers. Streams that fail or are cut have them, too.
pub(crate) fn begun(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    value.as_ref().map_or(Ok(()), |times| answered(times, begun_answers(scope), "`attempts`", scope))
}

/// In an open loop those are among them whose first event never came.
pub(crate) fn first_event(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    let Tally { longest_gap, per_token, .. } = scope.tally;
    let answers = |times: &Option<Times>| times.as_ref().map_or(0, Times::answers);
    // A stream with a gap or with tokens has had its first event. That may have come before the window.
    let least = answers(longest_gap).max(answers(per_token)).saturating_sub(scope.edge());
    part("a number of answers", at_least(answers(value), least, "`longest_gap` and `per_token`"))?;
    let Some(times) = value else { return Ok(()) };
    if !scope.open {
        return begun(value, scope);
    }
    counted(times, begun_answers(scope), "`attempts`", scope)
}

/// In an open loop there is a time from the actual send for each from the intended one.
fn like(value: &Option<Times>, from_intended: &Option<Times>, by: &str, scope: &Scope<'_>) -> Fit {
    let (mine, other) = (value.as_ref(), from_intended.as_ref().filter(|_| scope.open));
    part("a number of times", exactly(number(mine), number(other), by))?;
    let Some((mine, other)) = mine.zip(other) else { return Ok(()) };
    part("a number of answers", exactly(mine.answers(), other.answers(), by))?;
    counted(mine, other.len(), by, scope)
}

pub(crate) fn like_first_byte(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    like(value, &scope.tally.first_byte, "`first_byte` of an open loop", scope)
}

pub(crate) fn like_first_event(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    like(value, &scope.tally.first_event, "`first_event` of an open loop", scope)
}

pub(crate) fn gap(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    let Some(times) = value else { return Ok(()) };
    if scope.open {
        // Reads are counted in the window only.
        return answered(times, scope.exchanges(), "the length of the drive", scope);
    }
    answered(times, scope.tally.event_reads, "`event_reads`", scope)
}

/// How many streams ended rightly whose times count.
fn ended_streams(scope: &Scope<'_>) -> (u64, &'static str) {
    let Tally { streams, total, .. } = scope.tally;
    if scope.open { (total.successes, "the successes of `total`") } else { (*streams, "`streams`") }
}

pub(crate) fn longest_gap(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    let Some(times) = value else { return Ok(()) };
    let (most, by) = ended_streams(scope);
    part("a number of times", at_most(times.answers(), most, by))?;
    part("a number of ages", at_most(times.ages(), scope.tally.cut_streams, "`cut_streams`"))?;
    counted(times, scope.arrivals, "`attempts`", scope)
}

pub(crate) fn per_token(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    let (most, by) = ended_streams(scope);
    value.as_ref().map_or(Ok(()), |times| answered(times, most, by, scope))
}

pub(crate) fn service(value: &Times, scope: &Scope<'_>) -> Fit {
    let Tally { successes, total, .. } = scope.tally;
    if !scope.open {
        part("a number of times", exactly(value.answers(), *successes, "`successes`"))?;
        return answered(value, *successes, "`successes`", scope);
    }
    part("a number of answers", at_most(value.answers(), total.successes, "the successes of `total`"))?;
    counted(value, scope.tally.attempts, "`attempts`", scope)
}

pub(crate) fn response(value: &Times, scope: &Scope<'_>) -> Fit {
    let Tally { service, dropped, .. } = scope.tally;
    part("a number of answers", exactly(value.answers(), service.answers(), "`service`"))?;
    let all = service.len().saturating_add(*dropped);
    part("a number of times", exactly(value.len(), all, "`service` and `dropped`"))?;
    // It begins no later.
    let (mine, other) = (value.answered().max(), service.answered().max());
    part("a longest time in nanoseconds", at_least(mine, other, "`service`"))?;
    counted(value, all, "`service` and `dropped`", scope)
}

/// An open loop knows of each response how late its request was.
pub(crate) fn behind(value: &Times, scope: &Scope<'_>) -> Fit {
    let all = if scope.open { scope.tally.response.len() } else { 0 };
    part("a number of times", exactly(value.len(), all, "`response` of an open loop"))?;
    counted(value, all, "`response`", scope)
}

pub(crate) fn pool_wait(value: &Option<Times>, scope: &Scope<'_>) -> Fit {
    // A drive that did not begin has none.
    present(value.is_some(), scope.job.pool && !scope.tally.backend.is_empty(), "the job")?;
    let Some(times) = value else { return Ok(()) };
    let all = scope.tally.response.answers();
    part("a number of times", exactly(times.len(), all, "`response`"))?;
    answered(times, all, "`response`", scope)
}
