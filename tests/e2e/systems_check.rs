//! `narrows systems --check` for systems that keep the contract, and for systems that each break it in one way.

use crate::support::home::Home;
use crate::support::{checkout, has, squeezed};
use serde_json::Value;

/// Checks a system. Returns the exit code and the checks.
fn check(home: &Home, system: &str) -> (i32, Vec<Value>) {
    let ended = home.run(["systems", "--check", system, "--json"]);
    let code = ended.status.code().expect("an exit code");
    let mut json = ended.json();
    assert_eq!(json[0]["system"], system, "{json}");
    assert_eq!(json[0]["kept"], code == 0, "{json}");
    let Value::Array(checks) = json[0]["checks"].take() else { panic!("{json}") };
    (code, checks)
}

/// Asserts that exactly these promises are broken, each with this text in what was seen and with a remedy.
fn assert_breaks(home: &Home, system: &str, expected: &[(&str, &str)]) {
    let (code, checks) = check(home, system);
    let broken: Vec<&Value> = checks.iter().filter(|check| check["verdict"] == "broken").collect();
    assert_eq!(code, 1, "{checks:#?}");
    let names: Vec<&str> = broken.iter().filter_map(|check| check["name"].as_str()).collect();
    assert_eq!(names, expected.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{checks:#?}");
    for (check, (_, seen)) in broken.iter().zip(expected) {
        assert!(check["seen"].as_str().is_some_and(|text| text.contains(seen)), "{check:#?}");
        assert!(check["remedy"].as_str().is_some_and(|text| !text.is_empty()), "{check:#?}");
    }
}

/// The code block of docs/systems.md that begins with this text.
fn documented(begin: &str) -> String {
    let text = std::fs::read_to_string(checkout().join("docs/systems.md")).expect("the page");
    let blocks =
        text.split("```").skip(1).step_by(2).filter_map(|block| Some(block.split_once('\n')?.1.to_owned()));
    let mut found = blocks.filter(|block| block.starts_with(begin));
    found.next().unwrap_or_else(|| panic!("no block begins with {begin:?}"))
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_complete_system_in_the_documents_keeps_the_contract() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("systems/hello/server.py", &documented("\"\"\"A server for requests with the threads"));
    home.write("systems/hello/system.toml", &documented("name = \"hello\""));
    let (code, checks) = check(&home, "hello");
    assert_eq!(code, 0, "{checks:#?}");
}

/// It makes the whole stream before it sends it.
const HOLDING: &str = r#"
import http.server, sys, time
from urllib.parse import parse_qs, urlsplit

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        count, data = int(url.path.removeprefix("/events/")), "x" * int(query["size"])
        time.sleep(int(query["gap"].removesuffix("ms")) * (count - 1) / 1000)
        body = "".join(f"id: {id}\ndata: {data}\n\n" for id in range(1, count + 1)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"#;

#[test]
fn a_server_that_holds_events_back_breaks_one_promise() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("systems/holding/server.py", HOLDING);
    home.server_of("holding", r#"["streams"]"#, r#"["python3", "server.py", "{address}", "{port}"]"#, "");
    assert_breaks(&home, "holding", &[("streams: sends events when they are due", "in 1 read")]);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_references_keep_the_contract() {
    let home = Home::new();
    for (system, least) in [("reference", 20), ("reference-client", 12)] {
        let (code, checks) = check(&home, system);
        assert_eq!(code, 0, "{checks:#?}");
        assert!(checks.len() > least && checks.iter().all(|c| c["verdict"] == "kept"), "{checks:#?}");
    }
    let ended = home.run(["systems", "--check", "reference,reference-client"]).code(0);
    assert!(ended.stdout.contains("reference-client keeps docs/contracts.md"), "{ended:#?}");
}

#[test]
fn a_missing_or_unknown_system_is_not_checked() {
    let home = Home::new();
    home.server(
        "lost",
        r#"["x", "{port}"]"#,
        "[[needs]]\nname = \"X\"\nprobe = [\"no-such-x\"]\nget = \"make x\"\n",
    );
    assert_breaks(&home, "lost", &[("needs X", "`no-such-x` is not installed")]);
    home.run(["systems", "--check", "refrence"]).code(1).says(&["did you mean `reference`?"]);
}

#[test]
fn a_system_that_is_not_ready_or_does_not_build_fails_the_check() {
    let home = Home::new();
    home.shell_server("late", "echo 'still loading'; exec sleep 3600", "[ready]\ntimeout_s = 1");
    assert_breaks(&home, "late", &[("requests: is ready in time", "not ready in time")]);
    home.server(
        "unbuilt",
        r#"["x", "{port}"]"#,
        "[build]\ncommand = [\"sh\", \"-c\", \"echo no compiler; exit 3\"]\n",
    );
    assert_breaks(&home, "unbuilt", &[("builds", "it said: no compiler")]);
}

#[test]
fn a_system_that_leaves_a_child_or_ignores_sigterm_fails_the_check() {
    let home = Home::new();
    home.shell_server(
        "parent",
        "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &\nexec \"$narrows\" serve --any \"$port\"",
        "",
    );
    assert_breaks(&home, "parent", &[("requests: stops clean", "behind, which did not end at SIGTERM")]);
    let stubborn = "trap '' TERM; \"$narrows\" serve --any \"$port\" & while true; do sleep 1; done";
    home.shell_server("stubborn", stubborn, "[stop]\ngrace_ms = 300");
    assert_breaks(&home, "stubborn", &[("requests: stops clean", "did not end within 300 ms of SIGTERM")]);
    home.shell_server("hurried", stubborn, "[stop]\ngrace_ms = 0");
    home.run(["systems", "--check", "hurried"]).code(0);
}

/// A Node.js server that keeps the contract, except for what `answer` (a function of a request's head and body)
/// changes.
const SERVER: &str = r#"
const net = require('net');
globalThis.held = Buffer.alloc((Number(process.argv[3]) || 0) << 20, 1);
net.createServer(socket => {
  let all = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('data', data => {
    all = Buffer.concat([all, data]);
    for (;;) {
      const end = all.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = all.subarray(0, end).toString();
      const length = Number((/content-length: (\d+)/i.exec(head) || [0, 0])[1]);
      if (/expect: 100/i.test(head) && all.length === end + 4) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      if (all.length < end + 4 + length) return;
      all = all.subarray(end + 4 + length);
      const body = head.startsWith('POST') ? COUNT : 'ok';
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}TAIL`);
      if (/connection: close/i.test(head)) CLOSE;
    }
  });
}).listen(port, '127.0.0.1');
"#;

fn node_server(home: &Home, name: &str, [count, tail, close]: [&str; 3]) {
    let script = SERVER.replace("COUNT", count).replace("TAIL", tail).replace("CLOSE", close);
    home.node_server(name, &script, "[stop]\ngrace_ms = 5000\n");
    let manifest =
        std::fs::read_to_string(home.path(&format!("systems/{name}/system.toml"))).expect("a manifest");
    let both = manifest.replace("[\"requests\"]", "[\"upload\", \"requests\"]");
    home.write(&format!("systems/{name}/system.toml"), &both);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn servers_that_miscount_or_do_not_close_fail_the_check() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    node_server(&home, "honest", ["String(length)", "", "socket.end()"]);
    let (code, checks) = check(&home, "honest");
    assert_eq!(code, 0, "{checks:#?}");

    node_server(&home, "miscounts", ["String(length + 1)", "", "socket.end()"]);
    let wrong = "0 bytes: wrong_content";
    let uploads = [
        ("upload: counts uploads on one connection", wrong),
        ("upload: counts uploads on new connections", wrong),
        ("upload: answers Expect: 100-continue", "0 bytes: the body is \"1\" instead of \"0\""),
    ];
    assert_breaks(&home, "miscounts", &uploads);

    node_server(&home, "open", ["String(length)", "", "{}"]);
    let still = "the connection is still open";
    assert_breaks(&home, "open", &[("upload: closes as told", still), ("requests: closes as told", still)]);
}

/// A server that reads the body without asking for it looks slow to a client that waits for `100 Continue`.
#[test]
fn a_server_that_never_sends_100_continue_fails_the_check_and_has_no_figure() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    node_server(&home, "silent", ["String(length)", "", "socket.end()"]);
    let script = home.path("systems/silent/server.js");
    let honest = std::fs::read_to_string(&script).expect("a server");
    let silent: Vec<&str> = honest.lines().filter(|line| !line.contains("100 Continue")).collect();
    assert_eq!(silent.len(), honest.lines().count() - 1);
    home.write("systems/silent/server.js", &silent.join("\n"));
    let seen = "1 bytes: no 100 Continue: nothing within 5000 ms; it waited for the body";
    assert_breaks(&home, "silent", &[("upload: answers Expect: 100-continue", seen)]);

    home.experiment("upload", "[\"silent\"]", 1, "[[grid]]\nsize = \"1K\"\nexpect = [false, true]\n");
    home.run(["run", "e", "--rounds", "1"]).code(0);
    let ended = home.run(["report", "last"]).code(0);
    let said = squeezed(&ended.stdout);
    assert!(said.contains("got no 100 Continue within 1 s in 1 of 3 scenarios"), "{ended:#?}");
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let found = &report["experiments"][0]["figures"][0];
    let estimates = found["estimates"].as_array().expect("estimates").iter();
    let silent = estimates.filter(|e| e["scenario"]["system"] == "silent");
    let seen: Vec<_> =
        silent.map(|e| (e["scenario"]["point"]["expect"] == true, e["figure"].is_null())).collect();
    assert_eq!(seen, [(false, false), (true, true)], "{found:#}");
    assert_eq!(found["without_figure"][0]["system"], "silent", "{found:#}");
}

#[test]
fn a_server_that_sends_one_byte_too_many_fails_the_check() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let script = SERVER.replace("COUNT", "''").replace("TAIL", "\\0").replace("CLOSE", "socket.end()");
    home.node_server("stray", &script, "");
    let (code, checks) = check(&home, "stray");
    assert_eq!(code, 1);
    let closes = checks.iter().find(|check| check["name"] == "requests: closes as told").expect("that check");
    assert_eq!(closes["verdict"], "broken", "{checks:#?}");
    assert!(closes["seen"].as_str().expect("text").contains(r#""\x00""#), "{closes}");
    // If the manifest declares the fault, it is expected.
    let fault = "[answer]\nfault = \"a zero byte\"\nabout = \"a zero byte follows\"\n";
    home.node_server("stray", &script, fault);
    let (code, checks) = check(&home, "stray");
    assert_eq!(code, 0, "{checks:#?}");
    // An honest server must not declare a fault.
    home.server("modest", r#"["{narrows}", "serve", "--any", "{port}"]"#, fault);
    assert_breaks(&home, "modest", &[("requests: has the fault that it declares", "its answers were right")]);
}

#[test]
fn knobs_with_an_effect_and_knobs_that_break_the_system() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let script = SERVER.replace("COUNT", "''").replace("TAIL", "").replace("CLOSE", "socket.end()");
    let script =
        format!("if (process.argv[4] === 'b') {{ console.error('no b here'); process.exit(1); }}\n{script}");
    let knobs = "[knobs.held]\ntype = \"integer\"\ndefault = 0\nvalues = [0, 200]\nabout = \"megabytes\"\n\
                 [knobs.word]\ntype = \"choice\"\ndefault = \"a\"\nvalues = [\"a\", \"b\", \"c\"]\nabout = \"a word\"\n\
                 effect = \"none\"\n";
    home.node_server("knobs", &script, knobs);
    let path = "systems/knobs/system.toml";
    let manifest = std::fs::read_to_string(home.path(path)).expect("a manifest");
    home.write(path, &manifest.replace("\"{port}\"]", "\"{port}\", \"{held}\", \"{word}\"]"));
    let (code, checks) = check(&home, "knobs");
    assert_eq!(code, 1, "{checks:#?}");
    let named = |name: &str| checks.iter().find(|check| check["name"] == name).expect(name);
    let held = named("knob held");
    assert!(held["verdict"] == "kept" && held["seen"].as_str().expect("text").contains("memory x"), "{held}");
    let word = named("knob word");
    assert!(
        word["verdict"] == "broken" && word["seen"].as_str().expect("text").contains("no b here"),
        "{word}"
    );
}

/// A client driver with one connection per request. `RIGHT` says which answers it counts as successes.
const CLIENT: &str = r#"
const http = require('http'), lines = require('readline').createInterface({ input: process.stdin });
const say = o => process.stdout.write(JSON.stringify(o) + '\n'), us = () => Number(process.hrtime.bigint() / 1000n);
let orders, id = 0;
const agents = [], window = { a: 0, s: 0, e: {}, l: {} }, total = { attempts: 0, successes: 0, errors: {} };
function once(agent) {
  return new Promise(done => {
    const mine = String(IDS), begin = us();
    let over = false;
    const end = c => { if (!over) { over = true; clearTimeout(timer); done([c, begin, us()]); } };
    const request = http.get(orders.url, { agent, headers: { 'x-request-id': mine } }, answer => {
      let body = '';
      answer.on('data', data => body += data);
      answer.on('end', () => end(RIGHT));
      answer.on('error', () => end('reset'));
    });
    const timer = setTimeout(() => { end('request_timeout'); request.destroy(); }, orders.timeout_ms);
    request.on('error', () => end('reset'));
  });
}
async function caller(n, from, to) {
  while (us() < to) {
    const [c, begin, end] = await once(agents[n % agents.length]);
    total.attempts++;
    if (c) total.errors[c] = (total.errors[c] || 0) + 1; else total.successes++;
    if (end < from || end > to) { if (end > to && begin < to) window.a++, window.open = (window.open || 0) + 1; continue; }
    window.a++;
    if (c) { window.e[c] = (window.e[c] || 0) + 1; continue; }
    window.s++;
    const v = end - begin, s = Math.max(0, Math.floor(Math.log2(Math.max(v, 1))) - 9), b = v < 1024 ? v : (v >> s) << s;
    window.l[b] = (window.l[b] || 0) + 1;
  }
}
lines.on('line', async line => {
  const said = JSON.parse(line);
  if (said.url) {
    orders = said;
    for (let i = 0; i < said.pools; i++) agents.push(new http.Agent({ keepAlive: true, maxSockets: said.pool_size }));
    return say({ event: 'ready' });
  }
  const from = us() + orders.warmup_ms * 1000, to = from + orders.duration_ms * 1000, all = [];
  for (let i = 0; i < orders.concurrency; i++) all.push(caller(i, from, to));
  await Promise.all(all);
  say({ event: 'done', elapsed_us: to - from, attempts: window.a, successes: window.s, errors: window.e, in_flight: window.open || 0,
        latency_us: Object.entries(window.l).map(([v, n]) => [Number(v), n]), total });
  process.exit(EXIT);
});
"#;

const RIGHT: &str = "answer.statusCode !== 200 ? 'status' : body.length !== 2 ? 'length' : body !== 'ok' ? 'wrong_content' \
                     : answer.headers['x-request-id'] !== mine ? 'wrong_id' : null";

fn node_client(home: &Home, name: &str, [ids, right, exit]: [&str; 3]) {
    let script = CLIENT.replace("IDS", ids).replace("RIGHT", right).replace("EXIT", exit);
    let manifest = format!(
        "name = \"{name}\"\nrole = \"client\"\nworkloads = [\"clients\"]\nlanguage = \"JavaScript\"\nabout = \"of a test\"\n\
         [start]\ncommand = [\"node\", \"client.js\"]\n"
    );
    home.write(&format!("systems/{name}/system.toml"), &manifest);
    home.write(&format!("systems/{name}/client.js"), &script);
}

#[test]
fn clients_that_accept_wrong_answers_fail_the_check() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    node_client(&home, "honest", ["++id", RIGHT, "0"]);
    let (code, checks) = check(&home, "honest");
    assert_eq!(code, 0, "{checks:#?}");

    node_client(&home, "credulous", ["++id", &RIGHT.replace("'wrong_id'", "null"), "0"]);
    let expected = [
        ("clients: takes only right answers", " successes, "),
        ("clients: calls the answer to another request wrong_id", "0 errors"),
    ];
    assert_breaks(&home, "credulous", &expected);

    node_client(&home, "repeats", ["7", RIGHT, "1"]);
    let expected = [
        ("clients: ends clean", "exited with code 1"),
        ("clients: gives each request an id of its own", "had the id of another request"),
    ];
    assert_breaks(&home, "repeats", &expected);
}

#[test]
fn a_client_whose_account_contradicts_itself_fails_the_check() {
    let home = Home::new();
    let manifest = "name = \"boasts\"\nrole = \"client\"\nworkloads = [\"clients\"]\nlanguage = \"sh\"\nabout = \"of a test\"\n\
                    [start]\ncommand = [\"sh\", \"-c\", \"\"\"exec \"$0\" client | sed -u 's/\"successes\":/&1/'\"\"\", \"{narrows}\"]\n";
    home.write("systems/boasts/system.toml", manifest);
    let (code, checks) = check(&home, "boasts");
    assert_eq!(code, 1, "{checks:#?}");
    let account =
        checks.iter().find(|check| check["name"] == "clients: its account adds up").expect("that check");
    assert!(account["seen"].as_str().expect("text").contains("attempts"), "{account}");
}
