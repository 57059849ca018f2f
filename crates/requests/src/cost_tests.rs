//! What files of requests and of data cost: twice as many bytes take about twice as long.

use std::io::BufReader;

use cost::is_near_linear;

use super::*;

/// Asserts the cost of reading the text that is made for a size, with these columns.
fn is_read(size: usize, made: impl Fn(usize) -> (String, Vec<String>)) {
    is_near_linear(size, |size| {
        let (text, columns) = made(size);
        move || {
            let origin = Origin::new("http", "h", 80);
            let options =
                Options { file: "f", format: None, origin: &origin, rebase: true, columns: &columns };
            let (mut bytes, mut sum) = (BufReader::new(text.as_bytes()), 0);
            let mut body = |_: &str| Ok(b"{{uuid}}".repeat(10));
            let read = read(&mut bytes, &options, &mut body, &mut |request| {
                sum += request.path.literal.len();
                Ok(())
            });
            assert!(read.expect("requests").requests > 0 && sum > 0);
        }
    });
}

#[test]
fn requests_of_each_format() {
    let log = |at: usize| {
        format!("1.1.1.1 - - [01/Jan/2026:00:00:00 +0000] \"GET /{at} HTTP/1.1\" 200 1 \"-\" \"a\"\n")
    };
    let har = |count: usize| {
        let one = r#"{"request":{"method":"GET","url":"http://h/","headers":[{"name":"a","value":"b"}]}}"#;
        format!(r#"{{"log":{{"entries":[{}]}}}}"#, vec![one; count].join(","))
    };
    let formats: [&dyn Fn(usize) -> String; 6] = [
        &|count| (0..count).map(|at| format!("GET http://h/{at}\nA: {at}\n@body\n\n")).collect(),
        &|count| (0..count).map(|at| format!("{{\"path\":\"/{at}\",\"expect\":\"status=200\"}}\n")).collect(),
        &|count| {
            r#"{"method":"GET","url":"http://h/","header":{"A":["b"]}}X"#.repeat(count).replace('X', "\n")
        },
        &|count| (0..count).map(log).collect(),
        &har,
        // Lines that say nothing stand before the first one.
        &|count| "# nothing\n\n".repeat(count) + "GET http://h/\n",
    ];
    for format in formats {
        is_read(200, |count| (format(count), Vec::new()));
    }
}

#[test]
fn a_long_request() {
    let headers = |count: usize| (0..count).map(|at| format!("x-{at}: {at}\n")).collect::<String>();
    is_read(500, |count| (format!("GET http://h/\n{}", headers(count)), Vec::new()));
    let members =
        |count: usize| (0..count).map(|at| format!("\"x-{at}\":[\"{at}\",\"b\"],")).collect::<String>();
    is_read(500, |count| {
        (format!("{{\"path\":\"/\",\"headers\":{{{}\"a\":\"b\"}}}}", members(count)), Vec::new())
    });
    let marks = |count: usize| "{{counter}}{{{{{".repeat(count);
    is_read(500, |count| (format!("{{\"path\":\"/\",\"body\":\"{}\"}}", marks(count)), Vec::new()));
}

#[test]
fn placeholders_of_many_columns() {
    is_read(500, |count| {
        let columns: Vec<String> = (0..count).map(|at| format!("column-{at}")).collect();
        let uses: String = columns.iter().map(|column| format!("{{{{{column}}}}}")).collect();
        (format!("{{\"path\":\"/{uses}\"}}"), columns)
    });
}

#[test]
fn data_of_both_formats() {
    let row = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
    let object = |count: usize| {
        let members: Vec<String> = (0..count).map(|at| format!("\"c{at}\":{at}")).collect();
        format!("{{{}}}\n", members.join(","))
    };
    let quoted = |length: usize| format!("a\n\"{}\"\n", "x\"\"\n".repeat(length));
    let data: [&dyn Fn(usize) -> String; 5] = [
        &|count| "a,b\n".to_owned() + &"1,\"2\"\n".repeat(count),
        &|count| format!("{}\n{}\n", row(count), row(count)),
        &quoted,
        &|count| "{\"a\":1,\"b\":2}\n".repeat(count),
        &object,
    ];
    for made in data {
        is_near_linear(500, |count| {
            let text = made(count);
            move || {
                let rows = read_data(&mut BufReader::new(text.as_bytes()), "f").expect("data");
                assert!((0..rows.columns.len()).all(|column| rows.find(column, |_| true).is_none()));
            }
        });
    }
}
