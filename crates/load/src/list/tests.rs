//! What requests of a list look like when they are sent.

use std::io::BufReader;

use requests::{Options, Origin, Request, read, read_data};

use super::builder::ListBuilder;
use super::*;
use crate::target::Http;

fn rows(text: &str) -> Rows {
    if text.is_empty() {
        Rows::default()
    } else {
        read_data(&mut BufReader::new(text.as_bytes()), "d").expect(text)
    }
}

fn parsed(text: &str, rows: &Rows) -> Vec<Request> {
    let mut found = Vec::new();
    let origin = Origin::new("http", "h", 80);
    let options = Options { file: "f", format: None, origin: &origin, rebase: true, columns: &rows.columns };
    read(&mut BufReader::new(text.as_bytes()), &options, &mut |_| Ok(Vec::new()), &mut |request| {
        found.push(request);
        Ok(())
    })
    .expect(text);
    found
}

fn build(text: &str, data: &str) -> Result<List, String> {
    let rows = rows(data);
    let requests = parsed(text, &rows);
    let base = Http { headers: vec![("X-All".to_owned(), "1".to_owned())], ..Http::get("h", "/") };
    let mut builder = ListBuilder::new(&base, rows);
    for request in requests {
        builder
            .push(request, |_| Ok(Expect { status: answers::Statuses::exactly(404), ..Expect::default() }))?;
    }
    builder.finish(Order::InOrder, 1).map_err(|error| error.to_string())
}

/// The requests as they are sent, without the header that names us.
fn sent(list: &List) -> Vec<String> {
    let mut filler = Filler::new(SplitMix64::new(1), 0, 1);
    let mut one = |number: usize| {
        let mut bytes = Vec::new();
        list.append(number, &mut filler, &mut bytes);
        let text = String::from_utf8(bytes).expect("text");
        text.replace(concat!("User-Agent: narrows/", env!("CARGO_PKG_VERSION"), "\r\n"), "")
    };
    (0..list.len()).map(&mut one).collect()
}

#[test]
fn requests_are_complete_messages() {
    let text = r#"{"path":"/a","headers":{"x-all":"mine","B":"2"}}
{"path":"/b","body":"ok"}
{"method":"HEAD","path":"/c","expect":"status=404"}"#;
    let list = build(text, "").expect("a list");
    assert_eq!(
        sent(&list),
        [
            "GET /a HTTP/1.1\r\nHost: h\r\nB: 2\r\nX-All: 1\r\n\r\n",
            "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nX-All: 1\r\n\r\nok",
            "HEAD /c HTTP/1.1\r\nHost: h\r\nX-All: 1\r\n\r\n",
        ]
    );
    assert!(!list.entry(0).head && list.entry(2).head);
    assert_eq!((list.expected(0), list.expected(2)), (None, Some(0)));
    assert!(list.entry(0).is_ready() && list.longest().is_some());
}

#[test]
fn placeholders_are_filled_in_and_lengths_agree() {
    let text =
        r#"{"path":"/{{id}}/x?n={{counter}}","headers":{"A":"<{{name}}>"},"body":"{{{name}}|{{id}}}"}"#;
    let text = [text, text, text].join("\n");
    let list = build(&text, "id,name\n7,Ann\n123456789,\n").expect("a list");
    let message = |id: &str, number: u32, name: &str| {
        let body = format!("{{{name}|{id}}}");
        let length = body.len();
        format!(
            "POST /{id}/x?n={number} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\nA: <{name}>\r\nX-All: 1\r\n\r\n{body}"
        )
    };
    assert_eq!(sent(&list), [message("7", 1, "Ann"), message("123456789", 2, ""), message("7", 3, "Ann")]);
    assert_eq!(list.longest(), None);
}

#[test]
fn random_values_are_what_they_are_said_to_be() {
    let list = build(&"GET /{{random 3..5}}/{{uuid}}\n".repeat(200), "").expect("a list");
    let sent = sent(&list);
    let mut numbers = std::collections::BTreeSet::new();
    let mut ids = std::collections::BTreeSet::new();
    for request in &sent {
        let mut parts = request.split(['/', ' ']);
        numbers.insert(parts.nth(2).expect("a number"));
        let id = parts.next().expect("an id");
        assert_eq!((id.len(), &id[14..15]), (36, "4"), "{id}");
        assert!("89ab".contains(&id[19..20]) && id.matches('-').count() == 4, "{id}");
        ids.insert(id);
    }
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), ["3", "4", "5"]);
    assert_eq!(ids.len(), 200);
}

#[test]
fn data_cannot_split_a_request() {
    let evil = "{\"v\":\"a b\\r\\nX: 1\\u0000é%\"}";
    let list = build("GET /{{v}}\n", evil).expect("a list");
    assert_eq!(sent(&list), ["GET /a%20b%0D%0AX:%201%00%C3%A9% HTTP/1.1\r\nHost: h\r\nX-All: 1\r\n\r\n"]);
    let list = build("{\"path\":\"/\",\"body\":\"{{v}}\"}\n", evil).expect("a list");
    assert!(
        sent(&list)[0].ends_with("Content-Length: 13\r\nX-All: 1\r\n\r\na b\r\nX: 1\0é%"),
        "{:?}",
        sent(&list)
    );
    let error = build("GET /\nA: {{v}}\n", &format!("{{\"v\":\"fine\"}}\n{evil}")).expect_err("refused");
    assert_eq!(error, "d:2:1: the value of \"v\" has a control character, and a header cannot carry it");
}

#[test]
fn requests_that_cannot_be_sent_are_refused() {
    for (text, expected) in [
        ("{\"path\":\"/a b\"}", "the path \"/a b\" is empty, or contains spaces"),
        ("{\"path\":\"/\\r\\n\"}", "the path"),
        ("{\"path\":\"/\",\"headers\":{\"A\\r\\nB\":\"1\"}}", "the header name"),
        (
            "{\"path\":\"/\",\"headers\":{\"A\":\"1\\r\\nB: 2\"}}",
            "the value of header \"A\" contains control",
        ),
        ("{\"path\":\"/\",\"headers\":{\"A\":\"\\u0000\"}}", "the value of header \"A\" contains control"),
        ("{\"path\":\"/\",\"method\":\"A B\"}", "the method"),
        (
            "{\"path\":\"/\",\"headers\":{\"Content-Length\":\"9\"}}",
            "the header \"Content-Length\" does not agree",
        ),
        (
            "{\"path\":\"/\",\"headers\":{\"Transfer-Encoding\":\"chunked\"}}",
            "the header \"Transfer-Encoding\" does not",
        ),
        (
            "{\"path\":\"/\",\"headers\":{\"content-length\":\"4\"},\"body\":\"{{uuid}}\"}",
            "the length of the body changes",
        ),
    ] {
        let error = build(text, "").expect_err(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn rare_names_are_joined_and_frequent_ones_come_first() {
    let mut text: String = (0..150).map(|number| format!("GET /{number}\n")).collect();
    text.push_str(&"GET /often?x\nGET /often?y\n".repeat(3));
    let list = build(&text, "").expect("a list");
    assert_eq!(list.names().len(), List::MOST_NAMES);
    assert_eq!((&*list.names()[0], &*list.names()[1]), ("GET /often", "GET /0"));
    assert_eq!(list.names().last().map(String::as_str), Some("other"));
    assert_eq!(
        (list.entry(150).name(), list.entry(0).name(), list.entry(149).name()),
        (0, 1, List::MOST_NAMES - 1)
    );
}

#[test]
fn random_requests_have_their_weights() {
    let shares = |text: &str| {
        let list = build(text, "").expect("a list");
        let mut random = SplitMix64::new(1);
        let mut counts = vec![0; list.len()];
        (0..10_000).for_each(|_| counts[list.at_random(&mut random)] += 1);
        counts
    };
    let weighted = shares("{\"path\":\"/a\"}\n{\"path\":\"/b\",\"weight\":8}\n{\"path\":\"/c\"}\n");
    assert!(
        weighted[1] > 7700 && weighted[1] < 8300 && weighted[0] > 800 && weighted[2] > 800,
        "{weighted:?}"
    );
    let equal = shares("GET /a\nGET /b\nGET /c\nGET /d\n");
    assert!(equal.iter().all(|count| (2300..2700).contains(count)), "{equal:?}");
}

#[test]
fn recorded_times_are_spread_within_their_seconds_and_sorted() {
    let line = |second: u32, path: &str| {
        format!("a - - [22/Nov/2026:13:55:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 2\n")
    };
    let text: String = [line(12, "/c"), line(10, "/a"), line(10, "/b"), line(13, "/d")].concat();
    let mut builder = ListBuilder::new(&Http::get("h", "/"), Rows::default());
    for request in parsed(&text, &Rows::default()) {
        builder.push(request, |_| Ok(Expect::default())).expect("a request");
    }
    let (recording, length) = builder.record(2.0, 7).expect("times");
    assert_eq!((length.as_millis(), recording.speed()), (2000, 2.0));
    let due: Vec<u128> = (0..4).map(|number| recording.when(number).expect("due").as_millis()).collect();
    assert!(due.is_sorted() && due[1] < 500 && (1000..1500).contains(&due[2]) && due[3] >= 1500, "{due:?}");
    assert_eq!(recording.when(4), None);
    let list = builder.finish(Order::Recorded, 7).expect("a list");
    let sent = sent(&list);
    assert!(sent[2].starts_with("GET /c ") && sent[3].starts_with("GET /d "), "{sent:?}");
}

#[test]
fn a_time_that_is_years_from_the_others_is_refused() {
    let line = |year: u32| format!("a - - [22/Nov/{year}:13:55:10 +0000] \"GET / HTTP/1.1\" 200 2\n");
    let push = |years: [u32; 2]| {
        let mut builder = ListBuilder::new(&Http::get("h", "/"), Rows::default());
        let mut requests = parsed(&years.map(line).concat(), &Rows::default()).into_iter();
        requests.try_for_each(|request| builder.push(request, |_| Ok(Expect::default())))?;
        Ok::<_, String>(builder.record(1.0, 7).expect("times").1.as_secs() / (365 * 24 * 3600))
    };
    assert_eq!(push([2026, 2125]), Ok(99));
    for years in [[1970, 9999], [9999, 1970], [2026, 2127]] {
        assert!(push(years).expect_err("refused").contains("more than 100 years"), "{years:?}");
    }
}

#[test]
fn too_much_is_refused_with_the_limit() {
    let mut builder = ListBuilder::new(&Http::get("h", "/"), Rows::default());
    let large = Request {
        name: "n".to_owned(),
        method: "POST".to_owned(),
        path: requests::Text::literal("/"),
        headers: Vec::new(),
        body: Some(requests::Text::literal(vec![b'x'; 60 << 20])),
        weight: 1.0,
        expect: Vec::new(),
        at: None,
        line: 1,
    };
    let pushed = (0..5).try_for_each(|_| builder.push(large.clone(), |_| Ok(Expect::default())));
    assert!(pushed.expect_err("too much").contains("more than 256 MiB of requests"));
}

#[test]
fn lists_take_as_long_as_they_are() {
    let with_columns = |count: usize| {
        let columns: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
        let headers: String = columns.iter().map(|name| format!("\"{name}\":\"{{{{{name}}}}}\",")).collect();
        let row = vec!["1"; count].join(",");
        let all = format!("{{\"path\":\"/a\",\"headers\":{{{headers}\"z\":\"1\"}}}}\n");
        (all + &"{\"path\":\"/b\"}\n".repeat(count), format!("{}\n{row}\n", columns.join(",")))
    };
    let plain = |count: usize| {
        let one =
            |at: usize| format!("{{\"path\":\"/{at}\",\"weight\":{},\"expect\":\"status={at}\"}}\n", at + 1);
        ((0..count).map(one).collect(), String::new())
    };
    let long = |length: usize| {
        (format!("{{\"path\":\"/\",\"body\":\"{}\"}}", "{{counter}}".repeat(length)), String::new())
    };
    let made: [&dyn Fn(usize) -> (String, String); 3] = [&with_columns, &plain, &long];
    for made in made {
        cost::is_near_linear(200, |count| {
            let (text, data) = made(count);
            move || assert!(!build(&text, &data).expect("a list").is_empty())
        });
    }
}
