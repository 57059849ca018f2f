//! Reads files of each format, and broken ones.

use std::io::{BufReader, Read};

use super::*;

struct Read1<'a> {
    text: &'a [u8],
    format: Option<Format>,
    rebase: bool,
    columns: &'a [&'a str],
}

impl Read1<'_> {
    fn read(&self) -> Result<(Vec<Request>, Found), Error> {
        let columns: Vec<String> = self.columns.iter().map(|&name| name.to_owned()).collect();
        let origin = Origin::new("http", "127.0.0.1", 80);
        let options = Options {
            file: "f",
            format: self.format,
            origin: &origin,
            rebase: self.rebase,
            columns: &columns,
        };
        let mut body = |name: &str| match name {
            "text" => Ok(b"{{uuid}}".to_vec()),
            "bytes" => Ok(b"{{\xff".to_vec()),
            "broken" => Ok(b"1\n2 {{no}}".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let mut requests = Vec::new();
        let mut input = BufReader::new(self.text);
        let found = read(&mut input, &options, &mut body, &mut |request| {
            requests.push(request);
            Ok(())
        })?;
        Ok((requests, found))
    }
}

fn with(text: &str) -> Read1<'_> {
    Read1 { text: text.as_bytes(), format: None, rebase: false, columns: &[] }
}

fn requests(text: &str) -> Vec<Request> {
    with(text).read().unwrap_or_else(|error| panic!("{error}: {text}")).0
}

fn error(text: &str) -> String {
    with(text).read().expect_err(text).to_string()
}

/// Method, path, headers and body, with placeholders as `<>`.
fn shown(request: &Request) -> String {
    let text = |text: &Text| {
        let mut shown = String::from_utf8_lossy(&text.literal).into_owned();
        text.parts.iter().rev().for_each(|part| shown.insert_str(part.at, "<>"));
        shown
    };
    let headers: Vec<String> =
        request.headers.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    let body = request.body.as_ref().map_or("-".to_owned(), text);
    format!("{} {} [{}] {body}", request.method, text(&request.path), headers.join(" "))
}

#[test]
fn targets_as_vegeta_writes_them() {
    let text = "# first\n\nGET http://127.0.0.1:80/a?b=c#d\nAccept: x\n# within\nAccept: y\n\n\n\
                POST /b\r\n@text\r\nPUT http://127.0.0.1\n@bytes\nDELETE /c";
    let found = requests(text);
    let all: Vec<String> = found.iter().map(shown).collect();
    assert_eq!(all[..2], ["GET /a?b=c [Accept=x Accept=y] -", "POST /b [] <>"]);
    assert_eq!(found[2].body, Some(Text::literal(*b"{{\xff")), "bytes that are no text are sent as they are");
    assert_eq!(all[3], "DELETE /c [] -");
    let names: Vec<&str> = found.iter().map(|request| request.name.as_str()).collect();
    assert_eq!(names, ["GET /a", "POST /b", "PUT /", "DELETE /c"]);
    assert_eq!(found.iter().map(|request| request.line).collect::<Vec<_>>(), [3, 9, 11, 13]);
}

#[test]
fn lines_of_json_in_both_forms() {
    let text = r#"
{"path":"/a","name":"first","weight":3,"headers":{"B":"1","A":["2","3"]},"expect":"status=404"}
{"url":"http://127.0.0.1/b?{{uuid}}","body":"{\"n\":{{counter}}}","expect":["length=1","status=201"]}
{"method":"PUT","path":"/c","body_base64":"AP8="}
{"method":"PUT","path":"/d","body_file":"text"}"#;
    let found = requests(text);
    let all: Vec<String> = found.iter().map(shown).collect();
    assert_eq!(
        [&*all[0], &all[1], &all[3]],
        ["GET /a [B=1 A=2 A=3] -", "POST /b?<> [] {\"n\":<>}", "PUT /d [] <>"]
    );
    assert_eq!(found[2].body, Some(Text::literal([0, 255])));
    assert_eq!((&*found[0].name, found[0].weight, found[0].line), ("first", 3.0, 2));
    assert_eq!(found[0].expect, ["status=404"]);
    assert_eq!(found[1].expect, ["length=1", "status=201"]);
    assert_eq!(found[1].name, "POST /b");
    let text = r#"{"method":"POST","url":"http://127.0.0.1/","body":"b2s=","header":{"A":["1"]}}"#;
    let (found, how) = with(text).read().expect("vegeta's");
    assert_eq!((how.format, shown(&found[0])), (Format::VegetaJson, "POST / [A=1] ok".to_owned()));
}

const HAR: &str = r#"{"log": {"version": "1.2", "pages": [{"x": {"entries": []}}], "entries": [
  {"time": 1, "request": {"method": "GET", "url": "https://shop.example/a?b#c", "httpVersion": "h2", "headers": [
    {"name": ":authority", "value": "shop.example"}, {"name": "Host", "value": "shop.example"},
    {"name": "accept-encoding", "value": "br"}, {"name": "if-none-match", "value": "x"}, {"name": "Cookie", "value": "c=1"}]},
   "response": {"content": {"text": "{{no}}"}}},
  {"request": {"method": "POST", "url": "https://shop.example/b", "headers": [],
   "postData": {"mimeType": "application/json", "text": "{{{{"}}},
  {"request": {"method": "POST", "url": "https://shop.example/c", "headers": [],
   "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}}},
  {"request": {"method": "GET", "url": "https://elsewhere.example/d", "headers": []}},
  {"request": {"method": "GET", "url": "data:text/plain,x", "headers": []}}]}}"#;

#[test]
fn a_browsers_recording_goes_to_the_target_without_what_was_the_browsers() {
    let (found, how) = with(HAR).read().expect("a HAR file");
    let all: Vec<String> = found.iter().map(shown).collect();
    assert_eq!(all, ["GET /a?b [Cookie=c=1] -", "POST /b [] {{{{", "POST /c [] a=1&b=2"]);
    assert_eq!((how.format, how.requests, how.elsewhere), (Format::Har, 3, 2));
    let (found, how) = Read1 { rebase: true, ..with(HAR) }.read().expect("a HAR file");
    assert_eq!((found.len(), how.elsewhere), (4, 1), "elsewhere goes to the target, too");
}

#[test]
fn access_logs_give_times_and_statuses() {
    let line = |time: &str, request: &str, status: &str| {
        format!("127.0.0.1 - - [22/Nov/2026:13:55:{time} +0100] \"{request}\" {status} 2 \"-\" \"x\"\n")
    };
    let text = [
        line("36", "GET /a?b=\\x22\\xC3 HTTP/1.1", "200"),
        line("37", "POST /b HTTP/1.1", "201"),
        line("37", "HEAD /c HTTP/2.0", "404"),
        line("37", "\\x16\\x03\\x01", "400"),
        line("38", "GET /d HTTP/1.1", "304"),
        "nonsense\n".to_owned(),
    ];
    let text = text.concat();
    let (found, how) = with(&text).read().expect("a log");
    let all: Vec<String> = found.iter().map(shown).collect();
    assert_eq!(all, ["GET /a?b=%22%C3 [] -", "HEAD /c [] -", "GET /d [] -"]);
    let times: Vec<_> = found.iter().map(|request| request.at).collect();
    assert_eq!(times, [Some(1_795_352_136), Some(1_795_352_137), Some(1_795_352_138)]);
    let expected: Vec<_> = found.iter().map(|request| request.expect.join(",")).collect();
    assert_eq!(
        expected,
        ["", "status=404", ""],
        "an unchanged page is there; a missing one is missing again"
    );
    assert_eq!((how.format, how.bodiless, how.unreadable), (Format::Log, 1, 2));
    let first = how.first_unreadable.expect("an example").to_string();
    assert_eq!(first, "f:4:45: not a request such as `GET / HTTP/1.1`");
}

#[test]
fn what_is_broken_is_named_with_its_place() {
    let table = [
        ("", "f: it has no request"),
        ("# only a comment\n", "f: it has no request"),
        (
            "get /\n",
            "f: it is none of these formats: vegeta's targets, JSON lines, HAR, nginx's combined log; name it with --requests-format",
        ),
        ("GET /\n\nget /", "f:3:1: a request begins with `METHOD URL`"),
        ("GET /\nnonsense", "f:2:1: neither a header"),
        ("GET /\n@nowhere", "f:2:1: cannot read the body \"nowhere\": "),
        ("GET /\n@broken", "f:2:1: broken:2:3: unknown placeholder `{{no}}`"),
        ("GET ftp://x/", "f:1:5: \"ftp://x/\" is no URL"),
        (
            "GET http://other/",
            "f:1:5: http://other:80 is not the target, http://127.0.0.1:80; --rebase sends",
        ),
        ("GET https://127.0.0.1:80/", "f:1:5: https://127.0.0.1:80 is not the target"),
        ("GET http://127.0.0.1:http/", "f:1:5: \"http\" is no port"),
        (
            "GET /a/{{id}}",
            "f:1:8: unknown placeholder `{{id}}`; known are columns of a file that --data names, {{uuid}}, ",
        ),
        ("GET /\nA:  {{random 9..1}}", "f:2:5: `{{random 9..1}}` is not a range"),
        ("GET /\nA: {{uuid", "f:2:4: `{{` without `}}`"),
        ("{\"path\":\"/\"}\n{\"path\":", "f:2:8: EOF while parsing a value"),
        ("{\"path\":\"/\",\"pth\":1}", "f:1:17: unknown field `pth`"),
        ("{\"path\":\"a\"}", "f:1:10: the path \"a\" must begin with /"),
        ("{\"path\":\"/\",\"url\":\"http://127.0.0.1\"}", "f:1:1: a request needs either `url` or `path`"),
        ("{\"path\":\"/\",\"body\":\"\",\"body_file\":\"text\"}", "f:1:1: a request has one of"),
        ("{\"path\":\"/\",\"weight\":0}", "f:1:14: a weight is above 0"),
        ("{\"path\":\"/\",\"body_base64\":\"!\"}", "f:1:28: the body is no base64"),
        ("{\"path\":\"/\",\"body\":\"ab {{x}}\"}", "f:1:24: unknown placeholder `{{x}}`"),
        ("{\"path\":\"/\",\"headers\":[]}", "f:1:22: invalid type: sequence, expected an object of headers"),
        ("{\"log\":{\"entries\":[{\"request\":{\"method\":1}}]}}", "f:1:42: invalid type: integer"),
        ("{\"log\":{\"pages\":[]}}", "f:1:19: `entries` is missing"),
        (
            "{\"log\":{\"entries\":[{\"request\":{\"method\":\"GET\",\"url\":\"http://u@x/\"}}]}}",
            "f:1:68: entry 1: a URL names a user or a password before \"x\"",
        ),
        ("{\"log\":{\"entries\":[]}}", "f: it has no request"),
        (
            "a - - [b] \"GET / HTTP/1.1\" 200 2\n",
            "f:1:8: no line is a request; the first: not a time such as",
        ),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let error = error(text);
        if !error.starts_with(expected) {
            wrong.push(format!("{text:?}\n  {error}\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let broken = Read1 { text: b"GET /a\nA: \xff", ..with("") }.read().expect_err("no UTF-8");
    assert_eq!(broken.to_string(), "f:2:4: it is not UTF-8 from here on");
}

#[test]
fn the_caller_refuses_a_request_at_its_line() {
    let options = Options {
        file: "f",
        format: None,
        origin: &Origin::new("http", "h", 80),
        rebase: false,
        columns: &[],
    };
    let mut input = BufReader::new(&b"GET /a\n\nGET /b\n"[..]);
    let mut take = |request: Request| if request.name == "GET /b" { Err("no".to_owned()) } else { Ok(()) };
    let refused = read(&mut input, &options, &mut |_| Ok(Vec::new()), &mut take).expect_err("refused");
    assert_eq!(refused.to_string(), "f:3:1: no");
}

#[test]
fn columns_are_known_and_braces_can_be_meant() {
    let read = |text: &str| {
        let columns = ["id", "name with spaces"].map(str::to_owned);
        Text::parse(text.as_bytes(), &Columns::new(&columns))
    };
    let slots =
        |text: &str| -> Vec<Slot> { read(text).expect(text).parts.iter().map(|part| part.slot).collect() };
    assert_eq!(
        slots("{{ id }}/{{name with spaces}}{{counter}}"),
        [Slot::Column(0), Slot::Column(1), Slot::Counter]
    );
    assert_eq!(slots("{{random 0..0}}{{uuid}}"), [Slot::Random(0, 0), Slot::Uuid]);
    for (text, literal, parts) in [
        ("a{{{{b}}", "a{{b}}", 0),
        ("{{{id}}}", "{}", 1),
        ("{ {id} }", "{ {id} }", 0),
        ("{{{{{id}}", "{{{id}}", 0),
        ("{{{{{{id}}", "{{", 1),
    ] {
        let read = read(text).expect(text);
        assert_eq!(
            (String::from_utf8_lossy(&read.literal), read.parts.len()),
            (literal.into(), parts),
            "{text}"
        );
    }
}

fn data(text: &str) -> Result<Rows, String> {
    read_data(&mut BufReader::new(text.as_bytes()), "d").map_err(|error| error.to_string())
}

#[test]
fn a_quote_that_is_not_closed_is_an_error() {
    for whole in [
        "a\n\"x\"\n",
        "a\n\"x\"",
        "a\n5\" disk\n",
        "a\n\"x\"\"y\"",
        "\"a\"\r\n\"x,\ny\"\r\n",
        "a,b\n\"x\",\"\"\n",
        "a\n\"\"\"\"",
        "a\nx\"y\"z\n",
    ] {
        assert!(data(whole).is_ok(), "{whole:?}");
    }
    for (open, line) in [("a\nx\n\"y\nz\n", 3), ("a\n\"x\"\"\n", 2), ("a,b\n1,2\n3,\"4", 3), ("\"a\nb\n", 1)]
    {
        let why = data(open).expect_err(open);
        let expected = format!("d:{line}:1: a quoted value has no end: write \"\" for a quote within");
        assert!(why.starts_with(&expected), "{open:?}: {why}");
    }
    for (joined, line, ends) in [
        (
            "a,b\n1,\"x\n2,\"y\"\n3,z\n",
            2,
            "ends at a quote in line 3, and more than a comma follows it: write \"\"",
        ),
        ("a\n\"x\"y\n", 2, "d:2:1: more than a comma follows the quote that ends a value: write \"\""),
        ("a\n\"x\"y\"z\n", 2, "more than a comma"),
        ("a\n\"x\" \n", 2, "more than a comma"),
        ("a\n\"x\"\"\"y\n", 2, "more than a comma"),
        ("\"a\"b\n1\n", 1, "more than a comma"),
        ("a\n\"x\"y\n\"z\"\n", 2, "more than a comma"),
        ("a,b\n\"x\"y,\"z\n\"\n", 2, "more than a comma"),
        ("\"a\n\"b\n", 1, "in line 2"),
    ] {
        let why = data(joined).expect_err(joined);
        assert!(why.starts_with(&format!("d:{line}:1: ")) && why.contains(ends), "{joined:?}: {why}");
    }
}

#[test]
fn data_in_both_forms() {
    let rows = data("id, name\n1,\"a, \"\"b\"\"\nc\"\n2,\n").expect("CSV");
    assert_eq!((rows.columns.join("|"), rows.len()), ("id|name".to_owned(), 2));
    assert_eq!(
        (rows.value(0, 1), rows.value(1, 0), rows.value(1, 1)),
        (&b"a, \"b\"\nc"[..], &b"2"[..], &b""[..])
    );
    assert_eq!(rows.find(0, |value| value != b"2"), Some(4), "the row's line");
    let rows = data("{\"id\":1,\"ok\":true}\n\n{\"ok\":\"x\",\"id\":\"\\u00e9\"}").expect("JSON lines");
    assert_eq!(
        (rows.value(0, 0), rows.value(0, 1), rows.value(1, 0)),
        (&b"1"[..], &b"true"[..], "é".as_bytes())
    );
    for (text, expected) in [
        ("", "d: it has no row of data"),
        ("id,name\n", "d: it has no row of data"),
        ("id\n1\n1,2\n", "d:3:1: 2 values where there are 1 columns"),
        ("id,id\n1,2\n", "d:1:1: two columns are called \"id\""),
        ("id,\n1,2\n", "d:1:1: \"\" cannot be the name of a column"),
        ("{\"id\":1}\n{\"no\":1}", "d:2:1: the column \"id\" of the first row is missing"),
        ("{\"id\":1}\n{", "d:2:1: EOF while parsing an object"),
        ("\n{}\n{\"id\":1}", "d:2:1: the first row has no columns"),
    ] {
        let error = data(text).expect_err(text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

/// The same lines again and again, as many bytes as are asked for.
struct Endless {
    line: Vec<u8>,
    at: usize,
    left: u64,
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        for byte in &mut out[..most] {
            *byte = self.line[self.at];
            self.at = (self.at + 1) % self.line.len();
        }
        self.left -= most as u64;
        Ok(most)
    }
}

fn stream(line: &str, bytes: u64) -> BufReader<Endless> {
    BufReader::with_capacity(1 << 16, Endless { line: line.as_bytes().to_vec(), at: 0, left: bytes })
}

#[test]
fn a_long_file_is_read_as_a_stream_and_ends_when_the_caller_has_enough() {
    let origin = Origin::new("http", "h", 80);
    let options = Options { file: "f", format: None, origin: &origin, rebase: false, columns: &[] };
    // Under Miri each takes milliseconds.
    let (mut count, most) = (0_u64, if cfg!(miri) { 100 } else { 100_000 });
    let mut take = |_| {
        count += 1;
        if count == most { Err("enough".to_owned()) } else { Ok(()) }
    };
    let enough = read(&mut stream("GET /a\n\n", 1 << 40), &options, &mut |_| Ok(Vec::new()), &mut take);
    assert_eq!(enough.expect_err("refused").to_string(), format!("f:{}:1: enough", 2 * most - 1));
}

#[test]
fn an_endless_line_is_refused() {
    let origin = Origin::new("http", "h", 80);
    for format in [Format::Vegeta, Format::Json, Format::Log] {
        let options =
            Options { file: "f", format: Some(format), origin: &origin, rebase: false, columns: &[] };
        let endless = read(&mut stream("a", 1 << 40), &options, &mut |_| Ok(Vec::new()), &mut |_| Ok(()));
        assert_eq!(endless.expect_err("refused").to_string(), "f:1:1: the line is longer than 16 MiB");
    }
    let endless = read_data(&mut stream("{", 1 << 40), "d").expect_err("refused");
    assert_eq!(endless.to_string(), "d:1:1: the line is longer than 16 MiB");
    for (start, place) in [("a,\"", "d:1:1"), ("a\n1\n\"", "d:3:1")] {
        let mut input = BufReader::new(start.as_bytes().chain(stream("x\n", 1 << 40)));
        let endless = read_data(&mut input, "d").expect_err("refused");
        assert_eq!(endless.to_string(), format!("{place}: the row is longer than 16 MiB"));
    }
}

#[test]
fn rows_of_empty_values_and_columns_are_limited() {
    let row = ",".repeat(9_999) + "\n";
    let names: String = (0..10_000).map(|column| format!("c{column},")).collect();
    let header = names.trim_end_matches(',').to_owned() + "\n";
    let mut input = BufReader::new(header.as_bytes().chain(stream(&row, 1 << 40)));
    let error = read_data(&mut input, "d").expect_err("refused").to_string();
    assert!(error.starts_with("d:5002:1: the data is more than"), "{error}");
    let error = data(&(names + "more\n")).expect_err("refused");
    assert_eq!(error, "d:1:1: there are more than 10000 columns, which is the limit");
}

/// A stream that gives one byte at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(1);
        self.0.read(&mut out[..most])
    }
}

#[test]
fn a_format_is_recognised_however_the_file_arrives() {
    let vegetas = "{\"method\":\"GET\",\"url\":\"/\",\"header\":{}}\n";
    let log = "a - - [22/Nov/2026:13:55:36 +0100] \"GET / HTTP/1.1\" 200 2\n";
    let har = format!("{{\n\n{}", &HAR[1..]);
    let table = [
        ("# a\n\nGET /\n", Format::Vegeta),
        ("{\"path\":\"/\"}\n", Format::Json),
        (vegetas, Format::VegetaJson),
        (log, Format::Log),
        (HAR, Format::Har),
        (&har, Format::Har),
    ];
    let origin = Origin::new("http", "h", 80);
    for (text, expected) in table {
        for mark in ["", "\u{feff}"] {
            // Miri needs half a minute for each recording of a browser.
            let formats = if cfg!(miri) { vec![None] } else { vec![None, Some(expected)] };
            for format in formats {
                let options = Options { file: "f", format, origin: &origin, rebase: false, columns: &[] };
                let text = format!("{mark}{text}");
                let mut input = BufReader::new(Trickle(text.as_bytes()));
                let found = read(&mut input, &options, &mut |_| Ok(Vec::new()), &mut |_| Ok(()));
                assert_eq!(found.expect(&text).format, expected);
            }
        }
    }
    for text in ["\u{feff}\n{\"id\":1}\n", "\u{feff}id\n1\n"] {
        let rows = read_data(&mut BufReader::new(Trickle(text.as_bytes())), "d").expect(text);
        assert_eq!((rows.columns[0].as_str(), rows.value(0, 0)), ("id", &b"1"[..]), "{text:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        for format in [Format::Vegeta, Format::Json, Format::VegetaJson, Format::Har, Format::Log] {
            let _ = Read1 { text: &bytes, format: Some(format), rebase: false, columns: &["a"] }.read();
        }
        let _ = Read1 { text: &bytes, ..with("") }.read();
        let _ = read_data(&mut BufReader::new(&bytes[..]), "d");
    }

    #[test]
    fn no_text_near_the_formats_makes_it_panic(text in "([A-Z{}\\[\\]\":/@# .,\\\\xé0-9\r\n]|\\{\\{|\"path\":|GET |\\] \"){0,60}") {
        for format in [Format::Vegeta, Format::Json, Format::VegetaJson, Format::Har, Format::Log] {
            let _ = Read1 { text: text.as_bytes(), format: Some(format), rebase: true, columns: &["a"] }.read();
        }
        let _ = data(&text);
    }
}
