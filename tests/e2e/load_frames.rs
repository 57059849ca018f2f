//! `narrows load frames://…`: streams that end with the receiver's count.

use std::sync::{Arc, Mutex};

use crate::support;
use crate::support::peer::{Connection, Peer};
use crate::support::{Served, backends, load, load_json};

/// The frames and bytes of each stream.
type Streams = Arc<Mutex<Vec<(u64, u64)>>>;

/// An honest receiver that records the counts of each stream.
fn receiver() -> (Peer, Streams) {
    let streams = Streams::default();
    let kept = Arc::clone(&streams);
    let peer = Peer::new(move |mut connection| {
        let (frames, bytes) = connection.frames();
        kept.lock().unwrap().push((frames, bytes));
        connection.count(frames, bytes);
    });
    (peer, streams)
}

#[test]
fn exactly_n_frames_of_the_size_arrive() {
    for (number, size) in [(1, 0), (1000, 0), (1000, 1), (7, 1456), (7, 1457), (3, 300_000)] {
        for io in backends() {
            let (peer, streams) = receiver();
            let (n, s) = (number.to_string(), size.to_string());
            let words = ["-n", &n, "-c", "1", "--frame-size", &s, "--reactor", io];
            let ended = load(&[&[&*peer.url("frames")], &words[..]].concat()).code(0);
            assert_eq!(*streams.lock().unwrap(), [(number, number * size)], "{io}");
            assert!(ended.stdout.contains(&format!(" {number} verified;")), "{ended:#?}");
        }
    }
}

#[test]
fn a_number_of_frames_is_exact_over_several_connections() {
    for (number, connections) in [(9, 3), (10, 3), (5, 10)] {
        let (peer, streams) = receiver();
        let (n, c) = (number.to_string(), connections.to_string());
        load(&[&peer.url("frames"), "-n", &n, "-c", &c]).code(0);
        let frames: u64 = streams.lock().unwrap().iter().map(|(frames, _)| frames).sum();
        assert_eq!(frames, number, "-n {n} -c {c}");
    }
}

#[test]
fn json_has_the_number_of_frames() {
    let server = Served::start(&[]);
    let (code, json) = load_json(&[&server.frames, "-n", "1000", "-c", "2"]);
    // Any field may have the number, because attempts and `completed` count streams.
    let counted = json.as_object().unwrap().values().any(|value| *value == 1000);
    assert!(code == 0 && counted, "{json}");
}

#[test]
fn the_reference_receives_what_was_sent_over_either_interface() {
    for io in backends() {
        let server = Served::start(&["--reactor", io]);
        for size in ["0", "1", "1456", "1457", "1M"] {
            let words = ["-n", "20", "-c", "4", "--frame-size", size, "--reactor", io];
            let (code, json) = load_json(&[&[&*server.frames], &words[..]].concat());
            assert_eq!((code, &json["errors"]), (0, &serde_json::json!({})), "{size} over {io}: {json}");
        }
        let (code, json) = load_json(&[&server.frames, "-d", "200ms", "-c", "2", "--reactor", io]);
        assert_eq!((code, &json["errors"]), (0, &serde_json::json!({})), "{io}: {json}");
    }
}

/// Sends one stream of three frames to a receiver that treats it in this way. It must fail in this class.
fn assert_class(class: &str, words: &[&str], treat: impl Fn(Connection) + Send + Sync + Copy + 'static) {
    for io in backends() {
        let peer = Peer::new(treat);
        let url = peer.url("frames");
        let (code, json) = load_json(&[&[&*url, "-n", "3", "-c", "1", "--reactor", io], words].concat());
        assert_eq!(json["errors"], serde_json::json!({class: 1}), "{io}: {json}");
        assert_eq!((code, &json["completed"]), (1, &0.into()), "{io}: {json}");
    }
}

#[test]
fn a_wrong_number_of_frames_is_a_length_error() {
    assert_class("length", &[], |mut connection| {
        let (frames, bytes) = connection.frames();
        connection.count(frames + 1, bytes);
    });
}

#[test]
fn a_wrong_number_of_bytes_is_a_length_error() {
    assert_class("length", &[], |mut connection| {
        let (frames, bytes) = connection.frames();
        connection.count(frames, bytes - 1);
    });
}

#[test]
fn a_receiver_that_closes_without_its_count_closed_early() {
    assert_class("closed_early", &[], |mut connection| {
        connection.frames();
    });
}

#[test]
fn a_receiver_that_never_counts_is_a_timeout() {
    assert_class("request_timeout", &["--timeout", "200ms"], |mut connection| {
        connection.frames();
        support::until(|| connection.abandoned());
    });
}

#[test]
fn an_answer_that_is_not_a_count_is_a_protocol_error() {
    assert_class("protocol", &[], |mut connection| {
        connection.frames();
        connection.send([0, 0, 0, 2, 1, 1]);
    });
}

#[test]
fn a_stray_byte_after_the_count_is_a_protocol_error() {
    assert_class("protocol", &[], |mut connection| {
        let (frames, bytes) = connection.frames();
        connection.send([support::peer::count(frames, bytes), b"!".to_vec()].concat());
    });
}
