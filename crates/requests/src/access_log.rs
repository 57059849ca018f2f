//! Access logs in nginx's combined form: `ADDRESS - USER [TIME] "METHOD PATH PROTOCOL" STATUS …`.

use crate::lines::{Lines, as_text};
use crate::vegeta::default_name;
use crate::{Error, InLine, Reading, Request, Text};

pub(crate) fn read(lines: &mut Lines<'_>, reading: &mut Reading<'_, '_>) -> Result<(), Error> {
    loop {
        let number = lines.coming();
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) => return Err(reading.options.error(number, error)),
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match as_text(line).and_then(parse) {
            Ok(Some(request)) => reading.give(Request { line: number, ..request })?,
            Ok(None) => reading.found.bodiless = reading.found.bodiless.saturating_add(1),
            Err(error) => {
                reading.found.unreadable = reading.found.unreadable.saturating_add(1);
                reading.found.first_unreadable.get_or_insert_with(|| reading.options.error(number, error));
            }
        }
    }
}

/// The request of a line; `None` if it had a body, which the log does not have.
fn parse(line: &str) -> Result<Option<Request>, InLine> {
    // The column at which a rest of the line begins.
    let column = |rest: &str| line.len().saturating_sub(rest.len()).saturating_add(1);
    let expected = |at: usize, what: &str| {
        (at, format!("{what} is missing, as in `127.0.0.1 - - [{TIME}] \"GET / HTTP/1.1\" 200 2`"))
    };
    let (before, rest) = line.split_once('[').ok_or_else(|| expected(1, "[TIME]"))?;
    let open = before.len().saturating_add(1);
    let (clock, request) =
        rest.split_once("] \"").ok_or_else(|| expected(open, "the request after [TIME]"))?;
    let at = time(clock).ok_or_else(|| (column(rest), format!("not a time such as {TIME}")))?;
    let start = column(request);
    let (request, rest) =
        request.split_once('"').ok_or_else(|| expected(start, "the quote after the request"))?;
    let mut words = request.split(' ');
    let (Some(method), Some(path), Some(protocol), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err((start, "not a request such as `GET / HTTP/1.1`".to_owned()));
    };
    let method_is_right = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !method_is_right || method == "CONNECT" || !path.starts_with('/') || !protocol.starts_with("HTTP/") {
        return Err((start, "not a request such as `GET / HTTP/1.1`".to_owned()));
    }
    let status = rest.split_whitespace().next().and_then(|status| status.parse().ok());
    let status: u16 = status.ok_or_else(|| expected(column(rest), "the status"))?;
    if matches!(method, "POST" | "PUT" | "PATCH") {
        return Ok(None);
    }
    let path = as_asked(path);
    Ok(Some(Request {
        name: default_name(method, &path),
        method: method.to_owned(),
        path: Text::literal(path),
        headers: Vec::new(),
        body: None,
        weight: 1.0,
        expect: expected_status(status).into_iter().collect(),
        at: Some(at),
        line: 0,
    }))
}

const TIME: &str = "22/Nov/2026:13:55:36 +0100";

/// What the status of an answer must be. What was redirected or not found will be so again. Whether an answer was cut short,
/// unchanged or a failure of that moment depends on more than the log has.
fn expected_status(status: u16) -> Option<String> {
    match status {
        304 | 400 | 408 | 412 | 416 | 429 | 499 => None,
        300..=498 => Some(format!("status={status}")),
        _ => None,
    }
}

/// The path as it was asked for. nginx writes `"`, `\` and what is not printable ASCII as `\xNN`.
fn as_asked(path: &str) -> String {
    let mut asked = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, escape)) = rest.split_once("\\x") {
        let Some((digits, behind)) = escape.split_at_checked(2) else { break };
        if u8::from_str_radix(digits, 16).is_err() {
            break;
        }
        asked.push_str(before);
        asked.push('%');
        asked.push_str(digits);
        rest = behind;
    }
    asked.push_str(rest);
    asked
}

/// The seconds since 1970 of a time such as `22/Nov/2026:13:55:36 +0100`.
#[expect(clippy::arithmetic_side_effects, reason = "a year has four digits, and every other number has two")]
fn time(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (clock, zone) = text.split_once(' ')?;
    let mut parts = clock.split(['/', ':']);
    let day: i64 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year: i64 = parts.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut number = |most: i64| parts.next()?.parse().ok().filter(|number| (0..=most).contains(number));
    let (hour, minute, second) = (number(23)?, number(59)?, number(60)?);
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let offset: i64 = digits
        .parse()
        .ok()
        .filter(|_| digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    let offset = sign * (offset / 100 * 3600 + offset % 100 * 60);
    // Days since 1970 in the Gregorian calendar, counted in years that begin in March.
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5 + day - 719_469;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_those_of_the_calendar() {
        let table = [
            ("01/Jan/1970:00:00:00 +0000", Some(0)),
            ("29/Feb/2024:23:59:59 +0000", Some(1_709_251_199)),
            ("01/Mar/2000:00:00:00 +0000", Some(951_868_800)),
            ("22/Nov/2026:13:55:36 +0100", Some(1_795_352_136)),
            ("22/Nov/2026:13:55:36 -0530", Some(1_795_375_536)),
            ("22/Now/2026:13:55:36 +0100", None),
            ("22/Nov/2026:24:55:36 +0100", None),
            ("22/Nov/2026:13:55:36 0100", None),
            ("22/Nov/2026:13:55 +0100", None),
            ("é", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(time(text), expected, "{text}");
        }
    }
}
