//! The request that is made before the others, and the values that its answer has for them.

use std::sync::Arc;
use std::time::Duration;

use load::Values;
use systems::contact::Access;

use crate::ask::{Ask, First};
use crate::observation::Stage;
use crate::session::driver::{Orders, listed};
use crate::session::look::{Answer, answer_to, head};
use crate::session::place::Place;
use crate::session::trial_error::TrialError;

/// Makes the first request to a server, and takes the values from its answer.
///
/// # Errors
/// There is no answer, its status is neither 2xx nor 3xx, or it lacks a value.
pub fn values(
    access: &Access,
    host: &str,
    first: &First,
    patience: Duration,
    over: &dyn Fn() -> bool,
) -> Result<Values, String> {
    let First { method, path, headers, body, .. } = first;
    let named = |why: String| format!("the first request, {method} {path}: {why}");
    let ask = Ask {
        method: method.clone(),
        headers: headers.clone(),
        body: body.clone(),
        ..Ask::get(path.as_str())
    };
    let begin = head(host, &ask).map_err(named)?;
    let answer = answer_to(access, &ask, &begin, patience, over).map_err(named)?;
    if !(200..400).contains(&answer.status) {
        return Err(named(format!("it answers {}", seen_as(&answer))));
    }
    taken(first, &answer).map_err(named)
}

fn taken(first: &First, answer: &Answer) -> Result<Values, String> {
    let checked = answers::Answer { head: answer.head(), body: &answer.body, length: answer.length };
    let mut values = Values::default();
    for capture in &first.capture {
        let value = capture.take(&checked).map_err(|found| {
            format!("--capture {} finds no value: {found}; it answers {}", capture.text(), seen_as(answer))
        })?;
        values.named.push((capture.name().to_owned(), value));
    }
    if first.cookies {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs =
            answers::cookies(answer.head()).map(|(name, value)| format!("{}={}", text(name), text(value)));
        let pairs: Vec<String> = pairs.filter(|pair| !pair.contains(char::is_control)).collect();
        if pairs.is_empty() {
            return Err(format!("--cookies: it sets none; it answers {}", seen_as(answer)));
        }
        values.cookie = Some(pairs.join("; "));
    }
    Ok(values)
}

/// An answer in a few words.
fn seen_as(answer: &Answer) -> String {
    let shown = answer.body.get(..200).unwrap_or(&answer.body);
    let more = if answer.length as usize > shown.len() { "…" } else { "" };
    format!("{} with {} bytes, \"{}{more}\"", answer.status, answer.length, shown.escape_ascii())
}

/// The orders with the values of the first request, if there is one. It is made here, once for the server that has started.
///
/// # Errors
/// See [`values`].
pub(super) fn begun(place: &Place<'_>, orders: Orders) -> Result<Orders, TrialError> {
    let Some(first) = &orders.ask.first else { return Ok(orders) };
    let patience = Duration::from_secs_f64(orders.timing.timeout_s);
    let host = orders.access.host();
    let values = values(&orders.access, &host, first, patience, &|| place.cancelled());
    if place.cancelled() {
        return Err(TrialError::Interrupted);
    }
    let values = values.map_err(|why| TrialError::failed(Stage::EqualWork, why))?;
    let script = listed(&orders)?.map(|script| Arc::new(script.filled(&values.named)));
    Ok(Orders { ask: orders.ask.filled(&values), script, ..orders })
}
