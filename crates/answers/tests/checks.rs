//! How checks are read, and which answers they accept.

use answers::{Answer, Check, Head};
use proptest::prelude::*;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Empty:\r\n\r\n";
const BODY: &str = r#"{"items":[{"id":7,"tags":["x","y"]},{"id":12345678901234567890}],"user":{"name":"Ada \u00e9","length":3},
"ok":true,"none":null,"rate":0.25,"a.b":{"c d":1},"twice":1,"twice":2,"empty":[],"neg":-4,"big":1e3}"#;

/// None if the check holds, or what it found.
fn seen(check: &str, body: &[u8]) -> Option<String> {
    let check = Check::parse(check).unwrap_or_else(|error| panic!("{check}: {error}"));
    let answer = Answer { head: Head::http1(200, HEAD), body, length: body.len() as u64 };
    check.holds(&answer).err().map(|found| found.to_string())
}

#[test]
fn checks_that_hold() {
    for check in [
        "body~=\"items\"",
        "body~=(?i)ADA",
        "body!~=error",
        "json.items.length>0",
        "json.items.length=2",
        "json.items[0].id=7",
        "json.items[0].id>=7",
        "json.items[0].tags[1]=\"y\"",
        "json.items[0].tags.length<=2",
        // Whole numbers are exact where a double is not.
        "json.items[1].id=12345678901234567890",
        "json.items[1].id!=12345678901234567891",
        "json.user.name=\"Ada é\"",
        "json.user.name.length=5",
        "json.user.name~=^Ada",
        "json.user.name!~=^Bob",
        // A member of this name is not the number of members.
        "json.user.length=3",
        "json.ok=true",
        "json.ok != false",
        "json.none=null",
        "json.none exists",
        "json.empty exists",
        "json.empty.length=0",
        "json.user exists ",
        "json exists",
        "json.rate = 0.25",
        "json.rate<1",
        "json.big=1000",
        "json.neg<-3",
        "json[\"a.b\"][\"c d\"]=1",
        "json.twice=2",
        // Another type is another value.
        "json.ok!=1",
        "json.ok!=\"true\"",
        "header:content-type=application/json",
        "header:Content-Type~=json$",
        "header:Set-Cookie=b=2",
        "header:x-empty",
        "header:X-Empty=",
        "length>100",
        "length<=1000",
        "length!=5",
        "status=204",
    ] {
        assert_eq!(seen(check, BODY.as_bytes()), None, "{check}");
    }
    assert_eq!(seen("body=ok", b"ok"), None);
    assert_eq!(seen("body=", b""), None);
    assert_eq!(seen("length=2", b"ok"), None);
    assert_eq!(seen("body~=(?-u)\\xff", b"a\xffb"), None);
    assert_eq!(seen("sha256=2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df", b"ok"), None);
    assert_eq!(seen("json.length=3", b"[1,2,3]"), None);
    assert_eq!(seen("json[1]=2", b"[1,2,3]"), None);
    assert_eq!(seen("json=\"x\"", b" \"x\"\n"), None);
}

#[test]
fn checks_that_do_not_hold_say_what_is_there() {
    for (check, says) in [
        ("json.items.length>2", "it is 2"),
        ("json.items[2].id=1", "it is missing"),
        ("json.items.name exists", "it is missing"),
        ("json.items[0].id=8", "it is 7"),
        ("json.user.name=\"x\"", "it is \"Ada \\xc3\\xa9\""),
        ("json.user>3", "it is an object"),
        ("json.items=\"x\"", "it is an array"),
        ("json.ok=false", "it is true"),
        ("json.none!=null", "it is null"),
        ("json.rate>0.25", "it is 0.25"),
        ("json.ok~=t", "it is true"),
        ("json.missing!=1", "it is missing"),
        ("header:content-type=text/html", "it is \"application/json\""),
        ("header:Set-Cookie~=^c", "it is \"a=1\""),
        ("header:Content", "it is missing"),
        (
            "body=ok",
            "the body begins \"{\\\"items\\\":[{\\\"id\\\":7,\\\"tags\\\":[\\\"x\\\",\\\"y\\\"]},{\\\"id…\"",
        ),
        ("body!~=Ada.", "the body has \"Ada \""),
    ] {
        assert_eq!(seen(check, BODY.as_bytes()).as_deref(), Some(says), "{check}");
    }
    for (check, body, says) in [
        ("length>1000", "ok", "it is 2"),
        ("body~=x", "", "the body is empty"),
        ("json.a=1", "", "the body is empty"),
        ("json.a=1", "<html>", "the body is not JSON (line 1, column 1)"),
        ("json.a=1", "{\"a\":1}\n x", "the body is not JSON (line 2, column 2)"),
        ("json.a=1", "{\"a\":1", "the body is not JSON (line 1, column 6)"),
    ] {
        assert_eq!(seen(check, body.as_bytes()).as_deref(), Some(says), "{check}");
    }
    let zeros = "0".repeat(64);
    let says = seen(&format!("sha256={zeros}"), b"ok").expect("another digest");
    assert!(says.starts_with("it is 2689367b"), "{says}");
}

#[test]
fn broken_checks_say_where_and_what_would_be_right() {
    for (check, at, why) in [
        ("", 1, "a check begins with"),
        ("jason.a=1", 1, "a check begins with"),
        ("body", 5, "`=`, `~=` or `!~=`"),
        ("body~=a(b", 8, "no regular expression: unclosed group"),
        ("json.", 6, "a name is expected"),
        ("json..a=1", 6, "a name is expected"),
        ("json.a[x]=1", 8, "a number from 0 or a name in quotes"),
        ("json.a[-1]=1", 8, "a number from 0"),
        ("json.a[1=1", 8, "a number from 0"),
        ("json.a", 7, "or `exists` is expected"),
        ("json.a exist", 8, "or `exists` is expected"),
        ("json.a=", 8, "a value is expected"),
        ("json.name=x", 11, "a text in double quotes"),
        ("json.a=[1]", 8, "a value is expected"),
        ("json.é==1", 8, "a value is expected"),
        ("json.a>\"x\"", 8, "compare numbers"),
        ("json.a~=[", 9, "no regular expression"),
        ("header:", 8, "the name of a header"),
        ("header:a b=1", 9, "the name of a header"),
        ("header:a!=1", 9, "`=` or `~=`"),
        ("header:a~1", 9, "`=` or `~=`"),
        ("length", 7, "one of `=`"),
        ("length=1k", 8, "a number of bytes"),
        ("length=-1", 8, "a number of bytes"),
        ("sha256=ab", 8, "64 hexadecimal digits"),
        ("status>200", 7, "`=` is expected"),
        ("status=100", 8, "from 200 to 599"),
        ("status=6xx", 8, "from 200 to 599"),
    ] {
        let error = Check::parse(check).expect_err(check);
        assert!(error.at == at && error.why.contains(why), "{check}: {error}");
    }
    let digits = "g".repeat(64);
    assert_eq!(Check::parse(&format!("sha256={digits}")).expect_err("no digits").at, 8);
}

#[test]
fn a_check_is_saved_as_its_text() {
    let check = Check::parse("json.a = 1").expect("a check");
    let json = serde_json::to_string(&check).expect("it can be written");
    assert_eq!(json, "\"json.a = 1\"");
    assert_eq!(serde_json::from_str::<Check>(&json).expect("it can be read"), check);
    assert!(serde_json::from_str::<Check>("\"json.a\"").is_err());
}

/// A document that is as deep as it is long, and one whose tree would be many times as large as its text.
#[test]
fn no_document_is_too_deep_or_too_wide() {
    let deep = "[".repeat(1 << 20);
    let path = format!("json{}exists", "[0]".repeat(500).as_str().to_owned() + " ");
    assert!(seen(&path, deep.as_bytes()).expect("no JSON").contains("not JSON"));
    let wide = format!("[{}]", "[],".repeat(1 << 20).trim_end_matches(','));
    assert_eq!(seen(&format!("json.length={}", 1 << 20), wide.as_bytes()), None);
}

proptest! {
    /// No text and no body makes a check panic, and the position of a fault is within the text.
    #[test]
    fn any_text_is_a_check_or_an_error(
        start in prop::sample::select(vec!["", "json", "json.", "header:", "body", "length", "sha256=", "status="]),
        text in "[a-c.\\[\\]\"=!<>~ 0-9xé-]{0,12}",
        body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let whole = format!("{start}{text}");
        match Check::parse(&whole) {
            Ok(check) => {
                let answer = Answer { head: Head::http1(200, HEAD), body: &body, length: body.len() as u64 };
                let _ = check.holds(&answer).map_err(|found| found.to_string());
                prop_assert_eq!(check.to_string(), whole);
            }
            Err(error) => prop_assert!(error.at >= 1 && error.at <= whole.chars().count() + 1, "{}", error),
        }
    }

    /// A value is found wherever it is, and what the tree of the document says about it is what the check says.
    #[test]
    fn the_tree_of_a_document_agrees(items in prop::collection::vec(-1000i64..1000, 0..10), at in 0usize..12) {
        let body = serde_json::json!({"a": {"other": [[1]], "items": items}}).to_string();
        let there = items.get(at);
        prop_assert_eq!(seen(&format!("json.a.items[{at}] exists"), body.as_bytes()).is_none(), there.is_some());
        if let Some(item) = there {
            prop_assert_eq!(seen(&format!("json.a.items[{at}]={item}"), body.as_bytes()), None);
            let says = seen(&format!("json.a.items[{at}]>{item}"), body.as_bytes());
            prop_assert_eq!(says, Some(format!("it is {item}")));
        }
        prop_assert_eq!(seen(&format!("json.a.items.length={}", items.len()), body.as_bytes()), None);
    }
}
