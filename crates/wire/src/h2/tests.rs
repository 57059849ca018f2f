//! The examples of RFC 7541, appendix C, and what the parts promise.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

type Fields = Vec<(String, String)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Broken> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
    Ok(fields)
}

fn fields(list: &[(&str, &str)]) -> Fields {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn integers_of_the_appendix_are_read_and_written() {
    for (bits, value, hex) in [(5, 10, "0a"), (5, 1337, "1f9a0a"), (7, 42, "2a")] {
        let mut out = Vec::new();
        integer::put_integer(&mut out, bits, 0, value);
        assert_eq!(out, bytes(hex));
        let mut rest = out.as_slice();
        assert_eq!(integer::take_integer(&mut rest, bits), Ok(value));
        assert!(rest.is_empty());
    }
    for wrong in ["1f", "1fff", "1fffffffffffffff7f", "1f8080808080808001"] {
        assert!(integer::take_integer(&mut bytes(wrong).as_slice(), 5).is_err(), "{wrong}");
    }
}

/// Appendix C.3 and C.4: three requests on one connection, without and with Huffman's code.
#[test]
fn requests_of_the_appendix_are_decoded() {
    let common = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    let second: Vec<_> = common.iter().copied().chain([("cache-control", "no-cache")]).collect();
    let plain = [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ];
    let coded = [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        for (block, wanted) in blocks.iter().zip([&common[..], &second, &third]) {
            assert_eq!(decode(&mut decoder, &bytes(block)), Ok(fields(wanted)));
        }
        assert_eq!(decoder.size(), 164);
    }
}

/// Appendix C.6: answers whose entries push each other out of a table of 256 bytes.
#[test]
fn entries_leave_a_small_table() {
    let mut decoder = Decoder::default();
    let blocks = [
        "3fe101 488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad1718\
         63c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd\
         5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];
    let got = blocks.map(|block| decode(&mut decoder, &bytes(block)).expect("a block"));
    let location = ("location", "https://www.example.com");
    let common = [("cache-control", "private"), ("date", "Mon, 21 Oct 2013 20:13:21 GMT"), location];
    assert_eq!(got[0], fields(&[&[(":status", "302")], &common[..]].concat()));
    assert_eq!(got[1], fields(&[&[(":status", "307")], &common[..]].concat()));
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let last = [
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        location,
        ("content-encoding", "gzip"),
        ("set-cookie", cookie),
    ];
    assert_eq!((&got[2], decoder.size()), (&fields(&last), 215));
}

#[test]
fn wrong_blocks_break_the_connection() {
    let table = [
        ("80", "index 0"),
        ("be", "an index that is in no table"),
        ("8820", "a table's size within a block"),
        ("3fe21f", "a table of more than 4096"),
        ("4001", "a string that is cut"),
        ("0081ff00", "padding of 8 ones"),
        ("00811000", "padding that is not ones"),
        ("0084ffffffff00", "the end's code"),
        ("7fffffffffffff7f", "an integer too large"),
        ("40", "no name"),
    ];
    for (hex, why) in table {
        let error = Decoder::default().decode(&bytes(hex), |_, _| {}).expect_err(why);
        assert_eq!(error.code, Code::COMPRESSION_ERROR, "{why}");
    }
}

#[test]
fn a_list_that_is_much_longer_than_its_block_is_cut() {
    let mut decoder = Decoder::default();
    let mut block = Vec::new();
    let value = "x".repeat(3000);
    Templates::new([(b"a".as_slice(), value.as_bytes())].into_iter()).first.clone_into(&mut block);
    block.extend([0xbe; 1000]);
    let mut bytes = 0;
    let facts = decoder.decode(&block, |_, value| bytes += value.len()).expect("a block");
    assert!(facts.too_long && bytes < BLOCK, "{bytes}");
}

#[test]
fn templates_mean_the_same_and_repeat_in_few_bytes() {
    let list = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "127.0.0.1:8080"),
        ("user-agent", "narrows"),
        ("authorization", "secret"),
        ("cookie", "a=b"),
    ];
    let pairs = list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let mut templates = Templates::new(pairs.clone());
    templates.put_changing(b"x-request-id", b"00042");
    assert!(templates.repeat.starts_with(&bytes("828684bfbe")), "{:x?}", templates.repeat);
    assert!(templates.repeat.ends_with(b"\x0500042"));
    let mut wanted = fields(&list);
    wanted.push(("x-request-id".to_owned(), "00042".to_owned()));
    let mut decoder = Decoder::default();
    for block in [&templates.plain, &templates.first, &templates.repeat, &templates.plain, &templates.repeat]
    {
        assert_eq!(decode(&mut decoder, block).as_ref(), Ok(&wanted));
    }
    // More than the table holds is not inserted.
    let long = "v".repeat(2000);
    let many = ["a", "b", "c", "d"].map(|name| (name.as_bytes(), long.as_bytes()));
    let templates = Templates::new(many.into_iter());
    let mut decoder = Decoder::default();
    for block in [&templates.first, &templates.repeat, &templates.repeat] {
        assert_eq!(decode(&mut decoder, block).expect("a block").len(), 4);
    }
}

/// nginx and HAProxy insert fields in every answer and use none. A peer that reads them all the same finds what would be there.
#[test]
fn what_a_remembered_block_inserts_is_there_when_somebody_reads_it() {
    let block =
        |value: &str| Templates::new([(&b":status"[..], &b"200"[..]), (b"x", value.as_bytes())].into_iter());
    let mut heads = ResponseHeads::watching("");
    let mut reference = Decoder::default();
    let one = block("1").first;
    for _ in 0..1000 {
        assert_eq!(heads.response(&one).map(|head| head.map(|head| head.status)), Ok(Ok(200)));
        reference.decode(&one, |_, _| {}).expect("a block");
    }
    assert_eq!(heads.table_size(), 34, "nobody has read any");
    // The oldest that the table holds, and one that it does not.
    let most = 61 + 4096 / 34;
    for (index, there) in [(62, true), (most, true), (most + 1, false)] {
        let mut read = vec![0x88];
        integer::put_integer(&mut read, 7, 0x80, index);
        assert_eq!(heads.response(&read).is_ok(), there, "{index}");
        assert_eq!(reference.decode(&read, |_, _| {}).is_ok(), there, "{index}");
    }
}

#[test]
fn a_remembered_block_that_reads_is_decoded_again_when_the_table_has_changed() {
    let mut heads = ResponseHeads::watching("");
    let value = |head: Result<Result<Response<'_>, Malformed>, Broken>| {
        String::from_utf8_lossy(head.expect("a block").expect("a head").text).into_owned()
    };
    let insert = |value: &str| [b"\x88\x40\x01x\x01".as_slice(), value.as_bytes()].concat();
    assert_eq!(value(heads.response(&insert("1"))), "HTTP/2 200\r\nx: 1\r\n\r\n");
    for _ in 0..3 {
        assert_eq!(value(heads.response(&[0x88, 0xbe])), "HTTP/2 200\r\nx: 1\r\n\r\n");
    }
    assert_eq!(value(heads.response(&insert("2"))), "HTTP/2 200\r\nx: 2\r\n\r\n");
    assert_eq!(value(heads.response(&[0x88, 0xbe])), "HTTP/2 200\r\nx: 2\r\n\r\n");
}

#[test]
fn heads_of_responses_are_checked() {
    let literal = |list: &[(&str, &str)]| {
        let mut block = Vec::new();
        list.iter().for_each(|(name, value)| put_field(&mut block, name.as_bytes(), value.as_bytes()));
        block
    };
    let read = |list: &[(&str, &str)]| {
        let mut heads = ResponseHeads::watching("x-request-id");
        let head = heads.response(&literal(list)).expect("no broken block");
        head.map(|head| (head.status, head.length, head.watched.map(<[u8]>::to_vec)))
    };
    let ok = (":status", "200");
    assert_eq!(
        read(&[ok, ("content-length", "2"), ("x-request-id", "7")]),
        Ok((200, Some(2), Some(b"7".to_vec())))
    );
    assert_eq!(read(&[(":status", "103"), ("link", "a")]), Ok((103, None, None)));
    let wrong: &[&[(&str, &str)]] = &[
        &[],
        &[("a", "b")],
        &[("a", "b"), ok],
        &[ok, ok],
        &[ok, (":path", "/")],
        &[(":status", "99")],
        &[(":status", "2000")],
        &[(":status", "2x0")],
        &[ok, ("Upper", "a")],
        &[ok, ("", "a")],
        &[ok, ("a b", "a")],
        &[ok, ("a", "b\r\nc: d")],
        &[ok, ("a", " b")],
        &[ok, ("a", "b\0")],
        &[ok, ("connection", "close")],
        &[ok, ("transfer-encoding", "chunked")],
        &[ok, ("te", "gzip")],
        &[ok, ("content-length", "x")],
        &[ok, ("content-length", "1"), ("content-length", "2")],
    ];
    for list in wrong {
        assert!(read(list).is_err(), "{list:?}");
    }
    let mut heads = ResponseHeads::watching("");
    assert_eq!(heads.trailers(&literal(&[("grpc-status", "0")])), Ok(Ok(())));
    assert!(heads.trailers(&literal(&[ok])).expect("a block").is_err());
}

#[test]
fn heads_of_requests_are_checked() {
    let read = |list: &[(&str, &str)]| {
        let mut block = Vec::new();
        list.iter().for_each(|(name, value)| put_field(&mut block, name.as_bytes(), value.as_bytes()));
        let mut heads = RequestHeads::watching("x-request-id");
        let head = heads.request(&block).expect("no broken block");
        head.map(|head| (head.method.to_vec(), head.path.to_vec(), head.length))
    };
    let (method, scheme, path) = ((":method", "GET"), (":scheme", "http"), (":path", "/a"));
    assert_eq!(
        read(&[method, scheme, path, ("te", "trailers")]),
        Ok((b"GET".to_vec(), b"/a".to_vec(), None))
    );
    let wrong: &[&[(&str, &str)]] = &[
        &[method, scheme],
        &[method, path],
        &[scheme, path],
        &[method, scheme, (":path", "")],
        &[method, method, scheme, path],
        &[method, scheme, path, path],
        &[method, scheme, path, (":status", "200")],
        &[method, scheme, path, (":unknown", "200")],
        &[method, scheme, ("a", "b"), path],
        &[method, scheme, path, ("connection", "x")],
        &[method, scheme, path, ("te", "trailers, deflate")],
        &[method, scheme, path, ("X", "a")],
    ];
    for list in wrong {
        assert!(read(list).is_err(), "{list:?}");
    }
}

/// All events of these bytes, cut into pieces of this length, as text. Pieces of DATA are put together.
fn events(input: &[u8], piece: usize) -> (Vec<String>, Option<Broken>) {
    let (mut reader, mut all) = (Reader::default(), Vec::new());
    let mut data: Option<(u32, Vec<u8>, u32)> = None;
    for mut part in input.chunks(piece) {
        loop {
            let step = match reader.push(part) {
                Ok(step) => step,
                Err(broken) => return (all, Some(broken)),
            };
            part = &part[step.consumed..];
            match step.event {
                Event::NeedMore => break,
                Event::Data { stream, data: bytes, counted, end_stream } => {
                    let (of, whole, count) = data.get_or_insert((stream, Vec::new(), 0));
                    assert_eq!(*of, stream);
                    whole.extend_from_slice(bytes);
                    *count += counted;
                    if end_stream {
                        all.push(format!("{:?}", data.take()));
                    }
                }
                other => all.push(format!("{other:?}")),
            }
        }
    }
    (all, None)
}

#[test]
fn frames_are_the_same_however_they_are_cut() {
    let mut input = Vec::new();
    put_settings(&mut input, &Settings { table: Some(0), window: Some(1 << 20), ..Settings::default() });
    put_settings_ack(&mut input);
    put_ping(&mut input, *b"12345678", false);
    put_headers(&mut input, 1, b"block", false);
    put_headers(&mut input, 3, &[7; 40_000], true);
    put_frame_head(&mut input, 5, Kind::Data, Flags::NONE, 1);
    input.extend_from_slice(b"hello");
    // Padded: the length of the padding, two bytes, three of padding.
    put_frame_head(&mut input, 6, Kind::Data, Flags(Flags::PADDED.0 | Flags::END_STREAM.0), 1);
    input.extend_from_slice(b"\x03ab\0\0\0");
    // Padded HEADERS with priority, an unknown frame, and PRIORITY.
    put_frame_head(
        &mut input,
        10,
        Kind::Headers,
        Flags(Flags::PADDED.0 | Flags::PRIORITY.0 | Flags::END_HEADERS.0),
        5,
    );
    input.extend_from_slice(b"\x02\0\0\0\x03\x10xy\0\0");
    input.extend_from_slice(b"\0\0\x03\x63\0\0\0\0\x09abc");
    input.extend_from_slice(b"\0\0\x05\x02\0\0\0\0\x07\0\0\0\x01\x10");
    put_go_away(&mut input, 7, Code::NO_ERROR, "bye");
    put_window_update(&mut input, 0, 10);
    put_reset(&mut input, 5, Code::CANCEL);
    let whole = events(&input, usize::MAX);
    assert_eq!((whole.0.len(), whole.1), (11, None), "{:#?}", whole.0);
    assert!(whole.0[5].contains("hello") || whole.0[5].contains("[104, 101"), "{}", whole.0[5]);
    assert!(whole.0[5].ends_with("11))"), "both frames count, with their padding: {}", whole.0[5]);
    for piece in [1, 2, 3, 8, 9, 10, 100, 16_384] {
        assert_eq!(events(&input, piece), whole, "{piece}");
    }
}

#[test]
fn frames_that_break_the_connection() {
    let head = |length: usize, kind: u8, flags: u8, stream: u32| {
        let mut out = Vec::new();
        put_frame_head(&mut out, length, Kind::Data, Flags(flags), stream);
        out[3] = kind;
        out.resize(HEAD + length.min(20_000), 0);
        out
    };
    let table = [
        (head(16_385, 0, 0, 1), Code::FRAME_SIZE_ERROR),
        (head(16_385, 99, 0, 1), Code::FRAME_SIZE_ERROR),
        (head(1, 0, 0, 0), Code::PROTOCOL_ERROR),
        (head(1, 0, 8, 1), Code(u32::MAX)),
        (head(0, 0, 8, 1), Code::FRAME_SIZE_ERROR),
        (head(1, 1, 4, 0), Code::PROTOCOL_ERROR),
        (head(4, 1, 36, 1), Code::FRAME_SIZE_ERROR),
        (head(4, 3, 0, 0), Code::PROTOCOL_ERROR),
        (head(3, 3, 0, 1), Code::FRAME_SIZE_ERROR),
        (head(5, 4, 0, 0), Code::FRAME_SIZE_ERROR),
        (head(6, 4, 1, 0), Code::FRAME_SIZE_ERROR),
        (head(6, 4, 0, 1), Code::PROTOCOL_ERROR),
        (head(4, 5, 4, 1), Code::PROTOCOL_ERROR),
        (head(7, 6, 0, 0), Code::FRAME_SIZE_ERROR),
        (head(8, 6, 0, 1), Code::PROTOCOL_ERROR),
        (head(7, 7, 0, 0), Code::FRAME_SIZE_ERROR),
        (head(8, 7, 0, 1), Code::PROTOCOL_ERROR),
        (head(4, 8, 0, 0), Code::PROTOCOL_ERROR),
        (head(3, 8, 0, 0), Code::FRAME_SIZE_ERROR),
        (head(4, 9, 4, 1), Code::PROTOCOL_ERROR),
        ([head(4, 1, 0, 1), head(4, 9, 4, 3)].concat(), Code::PROTOCOL_ERROR),
        ([head(4, 1, 0, 1), head(8, 6, 0, 0)].concat(), Code::PROTOCOL_ERROR),
        ([head(4, 1, 0, 1), head(0, 9, 0, 1).repeat(9)].concat(), Code::ENHANCE_YOUR_CALM),
        ([head(16_000, 1, 0, 1), head(16_000, 9, 0, 1).repeat(5)].concat(), Code::ENHANCE_YOUR_CALM),
    ];
    for (bytes, code) in table {
        for piece in [1, 7, usize::MAX] {
            let broken = events(&bytes, piece).1.map_or(Code(u32::MAX), |broken| broken.code);
            assert_eq!(broken, code, "{:x?}", &bytes[..bytes.len().min(12)]);
        }
    }
    // Padding that is longer than the payload.
    let mut padded = head(2, 0, 8, 1);
    padded[HEAD] = 2;
    assert_eq!(events(&padded, usize::MAX).1.map(|broken| broken.code), Some(Code::PROTOCOL_ERROR));
    // What spoils one stream only.
    for bytes in [head(4, 8, 0, 1), head(4, 2, 0, 1)] {
        let (found, broken) = events(&bytes, 1);
        assert!(broken.is_none() && found[0].starts_with("Spoiled { stream: 1"), "{found:?}");
    }
}

#[test]
fn settings_that_must_not_be() {
    let read = |id: u8, value: u32| Settings::read(&[&[0, id][..], &value.to_be_bytes()].concat());
    for (id, value, code) in [(2, 2, 1), (4, 1 << 31, 3), (5, 16_383, 1), (5, 1 << 24, 1)] {
        assert_eq!(read(id, value).map_err(|broken| broken.code), Err(Code(code)), "{id} {value}");
    }
    assert_eq!(read(99, 1), Ok(Settings::default()));
}

#[test]
fn windows_open_and_close() {
    let mut send = SendWindow::new(WINDOW);
    assert_eq!(send.allows(100_000), 65_535);
    send.take(65_000);
    send.change(-1000).expect("a setting may make it negative");
    assert_eq!(send.allows(1), 0);
    send.change(466).expect("an update");
    assert_eq!(send.allows(10), 1);
    assert_eq!(
        send.change(i64::from(LARGEST_WINDOW)).map_err(|broken| broken.code),
        Err(Code::FLOW_CONTROL_ERROR)
    );
    let mut receive = ReceiveWindow::new(100);
    receive.receive(49).expect("room");
    assert_eq!(receive.due(), None);
    receive.receive(1).expect("room");
    assert_eq!((receive.due(), receive.due()), (Some(50), None));
    assert!(receive.receive(101).is_err());
}

#[test]
fn a_request_of_http1_has_its_fields_in_http2() {
    let request =
        b"POST /a?b HTTP/1.1\r\nHost: h:1\r\nContent-Length: 2\r\nX-A:  b: c \r\nConnection: close\r\n\
        TE: gzip\r\nte: trailers\r\n\r\nok";
    let mut list = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let head = request_of_http1(request, b"https", |name, value| list.push((text(name), text(value))));
    assert_eq!(&request[head..], b"ok");
    let wanted = [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", "/a?b"),
        (":authority", "h:1"),
        ("content-length", "2"),
        ("x-a", "b: c"),
        ("te", "trailers"),
    ];
    assert_eq!(list, fields(&wanted));
}

#[test]
fn a_whole_message_is_taken_in_one_step_and_nothing_else_is() {
    let frame = |kind, flags, stream, payload: &[u8]| {
        let mut out = Vec::new();
        put_frame_head(&mut out, payload.len(), kind, flags, stream);
        out.extend_from_slice(payload);
        out
    };
    let head = frame(Kind::Headers, Flags::END_HEADERS, 5, &[0x88]);
    let body = frame(Kind::Data, Flags::END_STREAM, 5, b"ok");
    let whole = [head.as_slice(), &body, b"rest"].concat();
    let reader = Reader::default();
    let consumed = whole.len() - 4;
    let message = Message { stream: 5, block: &[0x88], body: b"ok", consumed };
    assert_eq!(reader.message(&whole), Some(message));
    // Frame by frame it is the same.
    let mut slow = Reader::default();
    let step = slow.push(&whole).expect("a head");
    assert_eq!(step.event, Event::Headers { stream: 5, block: &[0x88], end_stream: false });
    let at = step.consumed;
    let step = slow.push(&whole[at..]).expect("a body");
    assert_eq!(step.event, Event::Data { stream: 5, data: b"ok", counted: 2, end_stream: true });
    assert_eq!(at + step.consumed, consumed);

    assert!((0..consumed).all(|cut| reader.message(&whole[..cut]).is_none()), "a part is no message");
    let others = [
        [frame(Kind::Headers, Flags(0x24), 5, &[0x88]), body.clone()],
        [frame(Kind::Headers, Flags::NONE, 5, &[0x88]), body.clone()],
        [
            frame(Kind::Headers, Flags::END_HEADERS, 0, &[0x88]),
            frame(Kind::Data, Flags::END_STREAM, 0, b"ok"),
        ],
        [head.clone(), frame(Kind::Data, Flags(9), 5, b"\0ok")],
        [head.clone(), frame(Kind::Data, Flags::NONE, 5, b"ok")],
        [head.clone(), frame(Kind::Data, Flags::END_STREAM, 7, b"ok")],
        [head.clone(), frame(Kind::Data, Flags::END_STREAM, 5, &[0; FRAME + 1])],
        [head.clone(), frame(Kind::Headers, Flags(5), 5, &[0x88])],
    ];
    assert!(others.iter().all(|frames| reader.message(&frames.concat()).is_none()));
    let mut amid = Reader::default();
    amid.push(&body[..5]).expect("a part of a head");
    assert_eq!(amid.message(&whole), None);
}

#[test]
fn a_head_that_comes_again_is_known_without_being_read() {
    let mut heads = ResponseHeads::watching("");
    let mut block = Vec::new();
    put_status(&mut block, 200);
    // A literal that is inserted: nginx and HAProxy write such.
    block.extend_from_slice(&[0x40, 1, b'a', 1, b'b']);
    assert!(!heads.again(&block), "nothing has come");
    heads.response(&block).expect("a block").expect("a head");
    assert!(heads.again(&block) && !heads.again(&block[..1]));
    assert_eq!(heads.last(), (200, None));
    let size = heads.table_size();
    heads.repeat();
    assert_eq!(heads.table_size(), size, "what repeats insert waits");
    // Whoever reads the table finds both.
    let field = heads.response(&[0x88, 0xbf]).expect("a block").expect("a head");
    assert_eq!(field.text, b"HTTP/2 200\r\na: b\r\n\r\n");
    assert_eq!(heads.table_size(), 2 * size);
    heads.response(&[0x80 | 8, 0x88]).expect("a block").expect_err("two statuses");
    assert!(!heads.again(&[0x80 | 8, 0x88]), "a wrong head is read again");
}
