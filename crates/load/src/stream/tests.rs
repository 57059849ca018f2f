use super::*;

/// What all pieces brought together, and how the stream ended.
fn read<'a>(form: Form, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u32>, Result<(), Fault>, Stream) {
    let mut stream = Stream::new(form, 1000, Arc::default());
    let mut brought = Vec::new();
    for piece in pieces {
        if let Err(fault) = stream.push(piece) {
            return (brought, Err(fault), stream);
        }
        stream.end_chunk_if(true);
        brought.push(stream.brought().pieces);
    }
    let end = stream.end();
    brought.push(stream.brought().pieces);
    (brought, end, stream)
}

fn seen(end: Result<(), Fault>) -> Option<(ErrorClass, String)> {
    end.err().map(|fault| (fault.class, fault.to_string()))
}

const CHAT: &str = r#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}

data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}

data: {"choices":[{"delta":{"content":"Hi"}}]}

data: {"choices":[],"usage":{"completion_tokens":7}}

"#;

#[test]
fn a_type_says_how_pieces_are_told_apart() {
    for (lines, form) in [
        ("Content-Type: text/event-stream\r\n", Some(Form::Events)),
        ("content-type:Text/Event-Stream; charset=utf-8\r\n", Some(Form::Events)),
        ("Content-Type: application/x-ndjson\r\n", Some(Form::Lines)),
        ("Content-Type: text/plain\r\n", None),
        ("X: text/event-stream\r\n", None),
        ("Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n", None),
        ("Content-Type: text/event-stream\r\nContent-Encoding: identity\r\n", Some(Form::Events)),
        ("", None),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        assert_eq!(Form::of(Head::http1(200, head.as_bytes())), form, "{lines}");
    }
}

#[test]
fn events_are_counted_when_they_are_whole_however_they_are_cut() {
    let text = b"data: a\n\n: comment\n\ndata: b\n\ndata: c\n\n";
    for cut in 0..text.len() {
        let (first, second) = text.split_at(cut);
        let (brought, end, stream) = read(Form::Events, [first, second]);
        assert_eq!((brought.iter().sum::<u32>(), stream.pieces), (3, 3), "{cut}");
        assert_eq!((end, &*stream.last), (Ok(()), &b"c"[..]));
    }
    let (brought, end, _) = read(Form::Events, text.chunks(1));
    assert_eq!((brought.iter().sum::<u32>(), end), (3, Ok(())));
    let (brought, _, _) =
        read(Form::Events, [&b"data: a\n\ndata: b\n\n"[..], b": still here\n\n", b"data: c\n\n"]);
    assert_eq!(brought, [2, 0, 1, 0]);
}

#[test]
fn lines_and_chunks_are_pieces_too() {
    let (brought, end, stream) = read(Form::Lines, [&b"{\"a\":1}\n{\"a\""[..], b":2}\r\n\n", b"{\"a\":3}"]);
    assert_eq!((brought, end), (vec![1, 1, 0, 1], Ok(())));
    assert_eq!(&*stream.last, b"{\"a\":3}");
    let (brought, end, _) = read(Form::Chunks, [&b"one"[..], b"two"]);
    assert_eq!((brought, end), (vec![1, 1, 0], Ok(())));
}

#[test]
fn content_reasoning_and_tokens_of_a_chat_are_found_once_each() {
    let mut stream = Stream::new(Form::Events, 1000, Arc::default());
    let mut found = Vec::new();
    for event in CHAT.split_inclusive("\n\n").chain(["data: [DONE]\n\n"]) {
        stream.push(event.as_bytes()).expect("a short event");
        let Brought { content, output, tokens, .. } = stream.brought();
        found.push((content, output, tokens));
    }
    let nothing = (false, false, None);
    let expected = [nothing, (true, false, None), (false, true, None), (false, false, Some(7)), nothing];
    assert_eq!(found, expected);
    assert_eq!(stream.end(), Ok(()));
}

#[test]
fn a_stream_that_did_not_end_as_it_must_says_why() {
    let chat_done = format!("{CHAT}data: [DONE]\n\n");
    type Wrong = Option<(ErrorClass, &'static str)>;
    let table: Vec<(Form, String, Wrong)> = vec![
        (Form::Events, chat_done.clone(), None),
        (Form::Events, format!("{CHAT}data: [DONE]"), None),
        (Form::Events, CHAT.to_owned(), Some((ErrorClass::Length, "without [DONE]"))),
        (Form::Events, format!("{chat_done}data: x\n\n"), Some((ErrorClass::Length, "after [DONE]"))),
        (Form::Events, format!("{chat_done}data: [DONE]\n\n"), Some((ErrorClass::Length, "after [DONE]"))),
        (Form::Events, format!("{chat_done}: bye\n\n"), None),
        (Form::Events, "data: a\n\ndata: b\n".to_owned(), Some((ErrorClass::Length, "middle of an event"))),
        (Form::Events, "data: a\n\ndata: b".to_owned(), Some((ErrorClass::Length, "middle of an event"))),
        (
            Form::Events,
            "data: a\n\nevent: error\ndata: no\n\ndata: b\n\n".to_owned(),
            Some((ErrorClass::WrongContent, "an event of an error: \"no\"")),
        ),
        (
            Form::Events,
            "data: {\"error\":{\"message\":\"no\"}}\n\n".to_owned(),
            Some((ErrorClass::WrongContent, "an event of an error")),
        ),
        (
            Form::Lines,
            "{\"a\":1}\n{\"error\":\"no\"}\n".to_owned(),
            Some((ErrorClass::WrongContent, "an event of an error")),
        ),
        (Form::Events, String::new(), None),
    ];
    for (form, text, wrong) in table {
        let (_, end, _) = read(form, [text.as_bytes()]);
        let got = seen(end);
        let same = match (&got, wrong) {
            (None, None) => true,
            (Some((class, said)), Some((expected, words))) => *class == expected && said.contains(words),
            _ => false,
        };
        assert!(same, "{text}: {got:?}");
    }
}

#[test]
fn what_follows_an_error_does_not_count() {
    let mut stream = Stream::new(Form::Events, 1000, Arc::default());
    stream.push(b"event: error\ndata: no\n\n").expect("a short event");
    let brought = stream.brought();
    assert!(brought.fault.is_some() && !brought.content, "{brought:?}");
}

#[test]
fn pieces_are_bounded() {
    for form in [Form::Events, Form::Lines, Form::Chunks] {
        let endless = std::iter::repeat_n(&b"0123456789"[..], 101);
        let mut stream = Stream::new(form, 1000, Arc::default());
        let end = endless.map(|piece| stream.push(piece)).find(Result::is_err);
        assert_eq!(end.and_then(seen).map(|(class, _)| class), Some(ErrorClass::Length), "{form:?}");
        assert!(stream.begun.capacity() < 4000);
    }
}

#[test]
fn checks_of_events_hold_for_each_for_the_last_and_for_their_number() {
    let text = b"id: 1\ndata: {\"a\":1}\n\nid: 2\ndata: {\"a\":2}\n\ndata: [DONE]\n\n";
    let head = Head::http1(200, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    let judge = |check: &str| {
        let checks = [Check::parse(check).expect(check)];
        judge_whole(None, head, text, &checks).map_err(|fault| fault.to_string())
    };
    for right in
        ["events=3", "events>2", "last-event=[DONE]", "last-event~=DONE", "event.json.a>0", "event~=a|DONE"]
    {
        assert_eq!(judge(right), Ok(Some(3)), "{right}");
    }
    for (wrong, why) in [
        ("events=4", "it is 3"),
        ("last-event=done", "it is \"[DONE]\""),
        ("event.json.a=1", "it is 2"),
        ("event!~=2", "it is \"{\\\"a\\\":2}\""),
        // The last event has no id.
        ("event.id counts", "it is missing"),
    ] {
        assert_eq!(judge(wrong), Err(why.to_owned()), "{wrong}");
    }
    let plain = Head::http1(200, b"HTTP/1.1 200 OK\r\n\r\n");
    assert!(
        judge_whole(None, plain, text, &[Check::of_events(3)])
            .is_err_and(|fault| fault.seen == Seen::NoStream)
    );
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n";
    let packed = Head::http1(200, head);
    for form in [None, Some(Form::Events)] {
        let judged = judge_whole(form, packed, text, &[Check::of_events(3)]);
        assert!(judged.is_err_and(|fault| fault.seen == Seen::Compressed), "{form:?}");
        assert_eq!(judge_whole(form, packed, text, &[]), Ok(None), "{form:?}");
    }
    assert_eq!(judge_whole(None, plain, text, &[]), Ok(None));
}

#[test]
fn ids_count_if_each_is_one_more() {
    for (ids, right) in
        [(&["7", "8", "9"][..], true), (&["1", "3"], false), (&["a"], false), (&["2", "1"], false)]
    {
        let text: String = ids.iter().map(|id| format!("id: {id}\ndata: x\n\n")).collect();
        let checks = [Check::parse("event.id counts").expect("a check")];
        let judged = judge_whole(Some(Form::Events), Head::default(), text.as_bytes(), &checks);
        assert_eq!(judged.is_ok(), right, "{ids:?}");
    }
}
