//! The first look of `narrows try`: a point that fails costs its own trials only, and a stream that does not end is no answer.

use lab::observation::Outcome;

use crate::support::home::Home;
use crate::support::{has, squeezed};

/// Two short rounds.
const SHORT: [&str; 8] = ["--rounds", "2", "-d", "200ms", "--warmup", "0s", "--seed", "1"];

/// A server that has no room with this value, as a heap or a pool that is too small.
const ROOM: &str = "\
import http.server, sys
if sys.argv[1] == '32':
    sys.exit('FATAL ERROR: no room')
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[2])), Handler).serve_forever()
";

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_value_with_which_the_command_fails_does_not_end_the_run() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("room.py", ROOM);
    let tried = |values: &str| {
        let words = ["try", "python3 room.py {m} {port}", "-k", values];
        home.run(words.into_iter().chain(SHORT))
    };
    // The base, or another point.
    for values in ["m=32,64,256", "m=256,32"] {
        let ended = tried(values).code(0);
        let ended = ended.says(&["room.py m=32 fails, and the run goes on", "FATAL ERROR: no room"]);
        let said = "m=32 fails in every trial";
        let stdout = squeezed(&ended.stdout);
        assert!(stdout.contains(said), "{ended:#?}");
        assert!(stdout.contains("it said: FATAL ERROR: no room"), "{ended:#?}");
        let seen = home.observations();
        let measured = seen.iter().filter(|seen| matches!(seen.outcome, Outcome::Measured(_))).count();
        assert!(measured > 0 && measured < seen.len(), "{ended:#?}");
    }
    // Nothing is left to measure.
    tried("m=32").code(1).says(&["room.py", "the end of its output:\nFATAL ERROR: no room"]);
    let other = "python3 room.py 256 {port}";
    let words = ["try", other, "python3 room.py 32 {port}"];
    home.run(words.into_iter().chain(SHORT)).code(1).says(&["FATAL ERROR: no room"]);
}

#[test]
fn a_stream_of_events_is_told_from_a_slow_answer() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    let body = [
        "        self.send_response(200)",
        "        self.send_header('Content-Type', 'text/event-stream; charset=utf-8')",
        "        self.end_headers()",
        "        while True:",
        "            self.wfile.write(b'data: tick\\n\\n')",
        "            time.sleep(0.05)",
        "",
    ];
    let body = body.join("\n");
    let start = ROOM.find("        self.send_response").expect("the handler");
    let end = ROOM.find("    def log_message").expect("the handler");
    let script = [&ROOM[..start], &body, &ROOM[end..]].concat().replace("import ", "import time, ");
    home.write("events.py", &script);
    let ended =
        home.run(["try", "python3 events.py 1 {port}", "--timeout", "1s"].into_iter().chain(SHORT)).code(1);
    let ended =
        ended.says(&["a stream that does not end", "200 with Content-Type: text/event-stream", "--path"]);
    assert!(!ended.stderr.contains("it printed nothing"), "{ended:#?}");
}
