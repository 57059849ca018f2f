//! `narrows load --requests FILE` against a server that records what it receives.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::home::Home;
use crate::support::peer::Peer;
use crate::support::{Served, backends, load, load_json, until};

/// A folder with files.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }
}

/// A server that records each request as its first line and its body, and answers with the status that the path says.
pub fn echo() -> (Peer, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let peer = Peer::new(move |mut connection| {
        while let Some(request) = connection.request() {
            let line = request.head.lines().next().unwrap_or_default().to_owned();
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let status = line.split("status-").nth(1).map_or("200", |rest| &rest[..3]).to_owned();
            let head = line.starts_with("HEAD");
            let secret = request.header("authorization").map(|value| format!(" {value}")).unwrap_or_default();
            kept.lock()
                .unwrap()
                .push(format!("{}{secret} {body}", line.trim_end_matches(" HTTP/1.1")).trim().to_owned());
            let location = if status.starts_with('3') { "Location: /login\r\n" } else { "" };
            let body = if head { "" } else { "ok" };
            connection.send(format!("HTTP/1.1 {status} X\r\n{location}Content-Length: 2\r\n\r\n{body}"));
        }
    });
    (peer, seen)
}

fn taken(seen: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut seen.lock().unwrap())
}

fn sorted(mut requests: Vec<String>) -> Vec<String> {
    requests.sort();
    requests
}

/// The completed requests by name.
fn names(json: &Value) -> Vec<(String, u64)> {
    let list = json["requests"].as_array().expect("a list");
    list.iter()
        .map(|one| (one["name"].as_str().unwrap().to_owned(), one["completed"].as_u64().unwrap()))
        .collect()
}

#[test]
fn requests_are_sent_in_order_with_their_bodies() {
    let folder =
        Folder::new(&[("targets", "GET /a?x=1\nA: b\n\nPOST /b\n@body\n\nHEAD /c\n"), ("body", "text")]);
    for io in backends() {
        let (peer, seen) = echo();
        let words =
            [&peer.url("http"), "--requests", &folder.name("targets"), "-n", "7", "-c", "1", "--reactor", io];
        let (code, json) = load_json(&words);
        assert_eq!((code, &json["completed"]), (0, &7.into()), "{json}");
        let cycle = ["GET /a?x=1", "POST /b text", "HEAD /c"];
        assert_eq!(taken(&seen), [&cycle[..], &cycle[..], &cycle[..1]].concat(), "{io}");
        let counts =
            [("GET /a", 3), ("POST /b", 2), ("HEAD /c", 2)].map(|(name, count)| (name.to_owned(), count));
        assert_eq!(names(&json), counts, "{json}");
    }
}

#[test]
fn once_sends_each_request_once_over_all_threads_and_connections() {
    let text: String = (0..1000).map(|number| format!("GET /{number}\n")).collect();
    let folder = Folder::new(&[("targets", &text)]);
    let all = sorted((0..1000).map(|number| format!("GET /{number}")).collect());
    for io in backends() {
        for words in [
            &["-t", "3", "-c", "7"][..],
            &["-c", "2", "--pipeline", "8"],
            &["-c", "3", "--close"],
            &["--rate", "10k"],
        ] {
            let (peer, seen) = echo();
            let first = [
                &*peer.url("http"),
                "--requests",
                &folder.name("targets"),
                "--requests-order",
                "once",
                "--reactor",
                io,
            ];
            let (code, json) = load_json(&[&first[..], words].concat());
            assert_eq!((code, &json["completed"]), (0, &1000.into()), "{json}");
            assert_eq!(sorted(taken(&seen)), all, "{io} {words:?}");
            let counts = names(&json);
            assert_eq!((counts.len(), counts.iter().map(|(_, count)| count).sum::<u64>()), (100, 1000));
        }
    }
}

#[test]
fn pipelined_heads_and_bodies_are_told_apart() {
    let folder = Folder::new(&[("targets", "HEAD /a\nGET /b\nHEAD /{{counter}}\nGET /{{uuid}}\n")]);
    for io in backends() {
        let (peer, _) = echo();
        let words = [
            &*peer.url("http"),
            "--requests",
            &folder.name("targets"),
            "-n",
            "400",
            "-c",
            "2",
            "--pipeline",
            "5",
            "--reactor",
            io,
        ];
        let (code, json) = load_json(&words);
        assert_eq!(
            (code, &json["completed"], &json["errors"]),
            (0, &400.into(), &serde_json::json!({})),
            "{json}"
        );
    }
}

#[test]
fn weights_make_requests_random() {
    let text = "{\"path\":\"/a\",\"weight\":9,\"name\":\"often\"}\n{\"path\":\"/b\",\"name\":\"rare\"}\n";
    let folder = Folder::new(&[("requests", text)]);
    let (peer, seen) = echo();
    let words = [&*peer.url("http"), "--requests", &folder.name("requests"), "-n", "1000", "--seed", "7"];
    let (_, json) = load_json(&words);
    let counts = names(&json);
    assert_eq!((&*counts[0].0, &*counts[1].0), ("often", "rare"));
    assert!((850..950).contains(&counts[0].1) && counts[0].1 + counts[1].1 == 1000, "{counts:?}");
    let first = sorted(taken(&seen));
    load_json(&words);
    assert_eq!(sorted(taken(&seen)), first, "a seed replays");
}

#[test]
fn placeholders_are_filled_in_for_each_request() {
    let text = "{\"url\":\"http://x/u/{{id}}?n={{counter}}\",\"body\":\"<{{name}}>{{{{x}}\"}\n";
    let folder = Folder::new(&[("requests", text), ("data", "id,name\n1,Ann\n22,Bob Ray\n")]);
    let (peer, seen) = echo();
    let (requests, data) = (folder.name("requests"), folder.name("data"));
    let words =
        [&*peer.url("http"), "--requests", &requests, "--rebase", "--data", &data, "-n", "3", "-c", "1"];
    let (code, json) = load_json(&words);
    assert_eq!((code, names(&json)), (0, vec![("POST /u/{{id}}".to_owned(), 3)]), "{json}");
    let expected = ["POST /u/1?n=1 <Ann>{{x}}", "POST /u/22?n=2 <Bob Ray>{{x}}", "POST /u/1?n=3 <Ann>{{x}}"];
    assert_eq!(taken(&seen), expected);
}

#[test]
fn failures_are_counted_under_the_name_of_their_request() {
    let text = "GET /fine\nGET /status-302\nGET /status-404\nGET /status-404\n";
    let folder = Folder::new(&[("targets", text)]);
    let (peer, _) = echo();
    let words =
        [&*peer.url("http"), "--requests", &folder.name("targets"), "-n", "40", "-c", "2", "--pipeline", "3"];
    let (_, json) = load_json(&words);
    assert_eq!((&json["completed"], &json["errors"]["status"]), (&10.into(), &30.into()), "{json}");
    let errors: Vec<_> =
        json["requests"].as_array().unwrap().iter().map(|one| one["errors"]["status"].as_u64()).collect();
    assert_eq!(errors, [Some(20), None, Some(10)], "{json}");
    let text = load(&words).stdout;
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(line("GET /status-404").ends_with("20 status"), "{text}");
}

#[test]
fn each_request_has_its_own_checks_besides_those_of_all() {
    let text = "{\"path\":\"/a\"}\n{\"path\":\"/b\",\"expect\":[\"body=ok\",\"length>5\"]}\n\
                {\"path\":\"/status-404\",\"expect\":\"status=404\"}\n";
    let folder = Folder::new(&[("requests", text)]);
    let (peer, _) = echo();
    let words = [&*peer.url("http"), "--requests", &folder.name("requests"), "-n", "30", "--pipeline", "2"];
    let (_, json) = load_json(&[&words[..], &["--expect", "length=2"]].concat());
    assert_eq!((&json["completed"], &json["errors"]["length"]), (&20.into(), &10.into()), "{json}");
    let first = json["first_errors"]["length"].as_str().unwrap_or_default();
    assert!(first.contains("length>5"), "{json}");
}

#[test]
fn a_redirect_is_no_answer_and_says_where_it_leads() {
    let folder = Folder::new(&[("targets", "GET /status-302\n")]);
    let (peer, _) = echo();
    let (_, json) = load_json(&[&peer.url("http"), "--requests", &folder.name("targets"), "-n", "2"]);
    let first = json["first_errors"]["status"].as_str().unwrap_or_default();
    assert!(first.starts_with("status 302 to \"/login\""), "{json}");
    let (code, json) = load_json(&[&(peer.url("http") + "/status-302"), "-n", "2", "--expect-status", "302"]);
    assert_eq!((code, &json["completed"]), (0, &2.into()));
}

const HAR: &str = r#"{"log":{"entries":[
 {"request":{"method":"GET","url":"https://shop.example/a","headers":[{"name":"Host","value":"shop.example"},{"name":":path","value":"/a"}]}},
 {"request":{"method":"POST","url":"https://shop.example/b","headers":[{"name":"Content-Length","value":"99"}],"postData":{"text":"x=1"}}},
 {"request":{"method":"GET","url":"https://fonts.example/c","headers":[]}}]}}"#;

#[test]
fn a_browsers_recording_is_sent_to_the_target() {
    let folder = Folder::new(&[("page.har", HAR)]);
    let (peer, seen) = echo();
    let words =
        [&*peer.url("http"), "--requests", &folder.name("page.har"), "--requests-order", "once", "-c", "1"];
    let ended = load(&words).code(0).says(&["left out 1 request to hosts other than the first one's"]);
    assert!(ended.stdout.contains("2 verified"), "{ended:?}");
    assert_eq!(taken(&seen), ["GET /a", "POST /b x=1"]);
}

#[test]
fn a_log_is_replayed_at_its_times() {
    let line = |second: u32, request: &str, status: u16| {
        format!(
            "::1 - - [01/Jan/2026:00:00:{second:02} +0000] \"{request} HTTP/1.1\" {status} 2 \"-\" \"-\"\n"
        )
    };
    let log = [
        line(1, "GET /1", 200),
        line(0, "GET /0", 200),
        line(4, "GET /4/status-404", 404),
        line(3, "POST /left-out", 200),
        line(3, "GET /3", 200),
        "broken\n".to_owned(),
    ];
    let folder = Folder::new(&[("access.log", &log.concat())]);
    let ways = backends().into_iter().flat_map(|io| [(io, ["1", "1"]), (io, ["2", "4"])]);
    for (io, [threads, connections]) in ways {
        let (peer, seen) = echo();
        let log = folder.name("access.log");
        let words = ["--requests", &*log, "--speed", "10", "-t", threads, "-c", connections, "--reactor", io];
        let ended = load(&[&[&*peer.url("http")], &words[..], &["--json"]].concat()).code(0);
        let json = ended.json();
        assert_eq!(
            (&json["completed"], &json["arrivals"], &json["dropped"]),
            (&4.into(), &4.into(), &0.into()),
            "{json}"
        );
        assert!(json["elapsed_s"].as_f64().unwrap() >= 0.5, "five seconds at ten times the speed: {json}");
        let mut taken = taken(&seen);
        if connections != "1" {
            // On a busy machine a thread may be so late that a request of another one overtakes its own.
            taken.sort();
        }
        assert_eq!(taken, ["GET /0", "GET /1", "GET /3", "GET /4/status-404"], "{io}");
        ended.says(&[
            "left out 1 request, because a log does not have bodies",
            "left out 1 line without a request",
            "access.log:6:1",
        ]);
    }
    let (peer, seen) = echo();
    let words = [&*peer.url("http"), "--requests", &folder.name("access.log"), "--speed", "1", "-d", "1s"];
    load_json(&words);
    assert_eq!(taken(&seen), ["GET /0"], "-d ends it earlier");
}

#[test]
fn secrets_are_sent_and_replace_those_of_the_file() {
    let folder = Folder::new(&[("targets", "GET /a\nauthorization: old\n"), ("token", "t0\nmore\n")]);
    let (peer, seen) = echo();
    let url = peer.url("http");
    load_json(&[&url, "-n", "1", "--auth", "me:pass:word"]);
    let token = format!("@{}", folder.name("token"));
    load_json(&[&url, "-n", "1", "--auth-bearer", &token, "--requests", &folder.name("targets")]);
    load_json(&[&url, "-n", "1", "--requests", &folder.name("targets")]);
    assert_eq!(taken(&seen), ["GET / Basic bWU6cGFzczp3b3Jk", "GET /a Bearer t0", "GET /a old"]);
    load(&[&url, "--auth", "me"]).code(2).says(&["USER:PASSWORD"]);
}

#[test]
fn requests_from_a_file_go_through_tls() {
    let folder = Folder::new(&[("targets", "GET /\nGET /?{{uuid}}\n")]);
    let server = Served::start(&["--tls"]);
    let words = [&*server.http, "--insecure", "--requests", &folder.name("targets"), "-n", "100", "-c", "2"];
    let (code, json) = load_json(&words);
    assert_eq!((code, &json["completed"]), (0, &100.into()), "{json}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let folder = Folder::new(&[
        ("other", "GET /\n\nGET http://elsewhere/a\n"),
        ("unknown", "GET /{{id}}\n"),
        ("header", "GET /\nA: {{v}}\n"),
        ("evil", "{\"v\":\"a\\nb\"}\n"),
        ("empty", ""),
        ("columns", "id\n"),
        ("space", "{\"path\":\"/a b\"}\n"),
        ("check", "{\"path\":\"/\",\"expect\":\"nonsense\"}\n"),
        ("fine", "GET /\n"),
    ]);
    let name = |file: &str| folder.name(file);
    let (peer, seen) = echo();
    let url = peer.url("http");
    let table: [(&[&str], &[&str]); 13] = [
        (&["--requests", &name("other")], &["other:3:5:", "--rebase"]),
        (&["--requests", &name("unknown")], &["unknown:1:6:", "unknown placeholder"]),
        (&["--requests", &name("unknown"), "--data", &name("columns")], &["columns: it has no row"]),
        (&["--requests", &name("header"), "--data", &name("evil")], &["evil:1:1:", "control character"]),
        (&["--requests", &name("empty")], &["empty: it has no request"]),
        (&["--requests", &name("space")], &["space:1:1:", "percent-encoded"]),
        (&["--requests", &name("check")], &["check:1:1:", "nonsense"]),
        (&["--requests", &name("fine"), "--speed", "2"], &["has no times"]),
        (&["--requests", &name("fine"), "--requests-format", "har"], &["fine:1:1:"]),
        (&["--requests", &name("fine"), "-X", "GET"], &["cannot be used with"]),
        (
            &["--requests", &name("fine"), "--requests-order", "once", "-n", "1"],
            &["leave -d, -n, --warmup and"],
        ),
        (&["--data", &name("fine")], &["--requests"]),
        (&["--seed", "2"], &["nothing else is random"]),
    ];
    for (words, said) in table {
        load(&[&[&*url][..], words].concat()).code(2).says(said);
    }
    load(&[&(url.clone() + "/x"), "--requests", &name("fine")]).code(2).says(&["has the paths"]);
    load(&["frames://127.0.0.1:1", "--requests", &name("fine")]).code(2).says(&["not with frames"]);
    load(&[&url, "--requests", &name("nowhere")]).code(1).says(&["cannot read", "nowhere"]);
    assert_eq!(taken(&seen), [""; 0], "nothing was sent");
}

#[test]
fn a_pipe_that_stays_silent_ends_with_an_interruption_and_one_that_speaks_is_read() {
    let home = Home::new();
    let pipe = home.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let server = Served::start(&[]);
    home.write("vegeta", &format!("POST {}/upload\n@pipe\n", server.http));
    for words in [
        &["--requests", "pipe"][..],
        &["--data", "pipe", "--requests", "vegeta"],
        &["--body", "@pipe"],
        &["--requests", "vegeta"],
    ] {
        let mut load = home.spawn(&[&["load", &server.http, "-n", "1"], words].concat());
        let opened = until(|| {
            let files = std::fs::read_dir(format!("/proc/{}/fd", load.pid())).into_iter().flatten().flatten();
            let mut files = files.filter_map(|file| std::fs::read_link(file.path()).ok());
            files.any(|file| file == pipe)
        });
        assert!(opened && load.running(), "{words:?}");
        load.signal(libc::SIGINT);
        load.end().code(130).says(&["interrupted"]);
    }
    let url = format!("{}/echo", server.http);
    let load = home.spawn(&["load", &url, "-n", "1", "--body", "@pipe", "--expect", "body=hello"]);
    std::fs::write(&pipe, "hello").expect("it is read");
    load.end().code(0);
    // A log may go to a pipe, too. One that nobody reads ends with an interruption.
    let mut load = home.spawn(&["load", &server.http, "-n", "1", "--hlog", "pipe"]);
    assert!(until(|| load.heeds(libc::SIGINT)) && load.running());
    load.signal(libc::SIGINT);
    load.end().code(130).says(&["cannot write pipe", "interrupted"]);
    let load = home.spawn(&["load", &server.http, "-n", "1", "--hlog", "pipe"]);
    let log = std::fs::read_to_string(&pipe).expect("it is written");
    load.end().code(0);
    assert!(log.starts_with('#') && log.lines().count() > 2, "{log}");
    // A device that never ends does not fill the memory.
    home.run(["load", &url, "-n", "1", "--body", "@/dev/zero"]).says(&[
        "--body: cannot read /dev/zero: it is longer than 256 MiB, which is the limit: name a shorter one",
    ]);
}
