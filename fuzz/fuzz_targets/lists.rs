//! Any bytes are data and requests that can be prepared, or an error with a place in the file. The first byte says how the
//! rest is read: data, a line with `=` alone, and the requests, whose placeholders may name columns of the data.
#![no_main]

use std::io::{self, BufReader};

use libfuzzer_sys::fuzz_target;
use load::target::{Expect, Http};
use load::{List, ListBuilder, Order};
use requests::{Error, Format, Options, Origin, Request, Rows, Slot, Text, read, read_data};

const FORMATS: [Option<Format>; 6] = [
    None,
    Some(Format::Vegeta),
    Some(Format::Json),
    Some(Format::VegetaJson),
    Some(Format::Har),
    Some(Format::Log),
];
const BETWEEN: &[u8] = b"\n=\n";
/// So small that lines are read in several pieces.
const BUFFER: usize = 7;

fuzz_target!(|input: &[u8]| {
    let Some((how, text)) = input.split_first() else { return };
    let how = usize::from(*how);
    let (data, text) = match text.windows(BETWEEN.len()).position(|bytes| bytes == BETWEEN) {
        Some(end) => (&text[..end], &text[end + BETWEEN.len()..]),
        None => (&[][..], text),
    };
    let rows = rows(data);
    let columns = rows.columns.clone();
    let origin = Origin::new("http", "127.0.0.1", 80);
    let options = Options {
        file: "f",
        format: FORMATS[how % FORMATS.len()],
        origin: &origin,
        rebase: how / FORMATS.len() % 2 == 1,
        columns: &columns,
    };
    let mut body = |name: &str| match name {
        "x" => Ok(text.to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let mut builder = ListBuilder::new(&Http::get("127.0.0.1", "/"), rows);
    let mut taken = 0;
    let mut take = |request: Request| {
        taken += 1;
        check(&request, columns.len());
        builder.push(request, |_| Ok(Expect::default()))
    };
    match read(&mut BufReader::with_capacity(BUFFER, text), &options, &mut body, &mut take) {
        Ok(found) => {
            assert_eq!((found.requests, found.requests > 0), (taken, true));
            let _ = builder.record(1.5, 1);
            let Ok(list) = builder.finish(Order::InOrder, 1) else { return };
            assert_eq!(list.len() as u64, taken);
            assert!((1..=List::MOST_NAMES).contains(&list.names().len()));
        }
        Err(error) => check_error(&error, text),
    }
});

/// The data, or no data if they are wrong.
fn rows(data: &[u8]) -> Rows {
    match read_data(&mut BufReader::with_capacity(BUFFER, data), "d") {
        Ok(rows) => {
            let values =
                (0..rows.len()).flat_map(|row| (0..rows.columns.len()).map(move |column| (row, column)));
            values.for_each(|(row, column)| _ = rows.value(row, column));
            rows
        }
        Err(error) => {
            check_error(&error, data);
            Rows::default()
        }
    }
}

fn check_error(error: &Error, text: &[u8]) {
    let lines = text.split(|byte| *byte == b'\n').count() as u64;
    assert!(error.line <= lines && error.column >= 1 && !error.why.is_empty(), "{error:?}");
}

/// Checks what those who take a request rely on.
fn check(request: &Request, columns: usize) {
    assert!(request.weight > 0.0 && request.weight.is_finite());
    assert!(request.path.literal.starts_with(b"/"));
    let texts = request.headers.iter().map(|(_, value)| value).chain([&request.path]).chain(&request.body);
    for Text { literal, parts } in texts {
        assert!(parts.is_sorted_by_key(|part| part.at));
        for part in parts {
            assert!(part.at <= literal.len());
            match part.slot {
                Slot::Column(column) => assert!(column < columns),
                Slot::Random(from, to) => assert!(from <= to),
                Slot::Uuid | Slot::Counter => {}
            }
        }
    }
}
