//! `narrows mcp`: a client of the Model Context Protocol, which writes lines of JSON-RPC and reads the answers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::schema::{assert_keeps, committed};
use crate::support::{NARROWS, PATIENCE, run, until};

/// A client, and the server that it has started.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    /// What the server wrote, line by line.
    messages: Receiver<Value>,
    asked: u64,
}

impl Client {
    /// Has not said anything yet.
    fn silent(home: &Home) -> Self {
        let mut command = home.narrows(["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("its standard output")).lines();
        let (sender, messages) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap_or(Value::String(line)));
            }
        });
        Self { child, input, messages, asked: 0 }
    }

    /// Has begun as the protocol demands.
    fn start(home: &Home) -> Self {
        let mut client = Self::silent(home);
        let about = json!({ "name": "test", "version": "1" });
        let version = "2025-06-18";
        let begun = client.ask(
            "initialize",
            &json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": about }),
        );
        assert_eq!(begun["result"]["serverInfo"]["name"], "narrows", "{begun}");
        assert!(begun["result"]["capabilities"]["tools"].is_object(), "{begun}");
        client.tell("notifications/initialized", &json!({}));
        client
    }

    fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open standard input");
        writeln!(input, "{line}").expect("it reads");
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Asks without waiting for the answer. Returns the number of the question.
    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("an answer");
            assert_eq!(message["jsonrpc"], "2.0", "standard output has only messages: {message}");
            if message["id"] == id {
                return message;
            }
        }
    }

    /// What a tool answers.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"].is_object(), "{tool} {arguments}: {answer}");
        answer["result"].clone()
    }

    /// Begins a `try` of an hour, and waits until its first server was started.
    fn measure(&mut self, home: &Home) -> u64 {
        let up = home.path("up");
        home.write("start.sh", "touch up\nexec \"$1\" serve -p \"$2\"\n");
        let start = format!("sh start.sh {NARROWS} {{port}}");
        let arguments = json!({ "commands": [&start, &start], "options": ["--names", "a,b", "-d", "1h"] });
        let id = self.begin("tools/call", &json!({ "name": "try", "arguments": arguments }));
        assert!(until(|| up.exists()), "no server was started");
        fs::remove_file(up).expect("it");
        id
    }

    /// Closes standard input, and waits for the end of the server. Returns its exit code.
    fn leave(&mut self) -> Option<i32> {
        drop(self.input.take());
        let mut status = None;
        until(|| {
            status = self.child.try_wait().expect("its state");
            status.is_some()
        });
        status.expect("it ends").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The texts of an answer, one below the other.
fn text(answer: &Value) -> String {
    let texts = answer["content"].as_array().expect("content").iter();
    texts.map(|part| part["text"].as_str().expect("a text")).collect::<Vec<_>>().join("\n")
}

#[test]
fn tools_are_listed_and_what_cannot_be_understood_ends_nothing() {
    let home = Home::new();
    let mut client = Client::start(&home);
    let listed = client.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["help", "load", "report", "try", "tune"]);
    for tool in tools {
        assert!(tool["description"].is_string() && tool["inputSchema"]["type"] == "object", "{tool}");
    }
    let unknown = client.ask("tools/call", &json!({ "name": "nosuch", "arguments": {} }));
    assert!(unknown["error"]["message"].is_string(), "{unknown}");
    for line in
        ["{\"jsonrpc\":", "no JSON", "[]", "5", "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":5}", "\0\u{1b}"]
    {
        client.line(line);
    }
    client.line(&"[".repeat(1_000_000));
    let helped = client.call("help", &json!({ "verb": "load" }));
    assert_eq!(text(&helped), run(&mut home.narrows(["load", "--help"])).code(0).stdout);
    for (tool, arguments, said) in [
        ("try", json!({ "commands": [], "option": [] }), "unknown field `option`"),
        ("try", json!({ "commands": ["a {port}", "b"], "options": ["--rounds", "no"] }), "--rounds"),
        ("report", json!({ "run": "last" }), "there is no store"),
        ("help", json!({ "verb": "nosuch" }), "unrecognized subcommand"),
        ("load", json!({ "url": "ftp://x" }), "ftp://x"),
    ] {
        let refused = client.call(tool, &arguments);
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(text(&refused).contains(said), "{said:?} is not in {refused}");
    }
    assert_eq!(client.leave(), Some(0));
    assert_eq!(Client::silent(&home).leave(), Some(0));
    home.assert_nothing_left();
}

#[test]
fn a_try_of_two_commands_answers_with_a_verdict_and_others_with_what_is_printed() {
    let home = Home::new();
    let mut client = Client::start(&home);
    let listed = client.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|tool| tool["name"] == "try").expect("try");
    let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("a JSON Schema");
    home.write("work/start.sh", "exec \"$1\" serve -p \"$2\"\n");
    let start = format!("sh start.sh {NARROWS} {{port}}");
    let short = ["--rounds", "3", "-d", "300ms", "--warmup", "50ms", "-c", "2", "--names", "old,new"];
    let found =
        client.call("try", &json!({ "commands": [start, start], "options": short, "folder": "work" }));
    let verdict = &found["structuredContent"];
    assert_keeps(&committed("verdict.schema.json"), verdict);
    assert_keeps(&schema, verdict);
    assert_eq!((&found["isError"], &verdict["candidate"]["name"]), (&json!(false), &json!("new")));
    let printed: Value =
        serde_json::from_str(found["content"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(&printed, verdict);

    let knob = ["--knob", "w=1,2", "--dry-run"];
    let points = client.call("try", &json!({ "commands": ["./server {port} {w}"], "options": knob }));
    assert_keeps(&schema, &points["structuredContent"]);
    let printed = points["structuredContent"]["printed"].as_str().expect("a text");
    assert!(printed.contains("./server") && text(&points) == printed, "{points}");

    let report = client.call("report", &json!({ "run": "last", "options": ["--format", "verdict"] }));
    let again: Value = serde_json::from_str(&text(&report)).expect("JSON");
    assert_eq!(&again, verdict);
    assert_eq!(client.leave(), Some(0));
    home.assert_nothing_left();
}

#[test]
fn a_call_that_is_cancelled_ends_its_run_and_so_does_a_client_that_goes() {
    let home = Home::new();
    let mut client = Client::start(&home);
    let measured = client.measure(&home);
    client.tell("notifications/cancelled", &json!({ "requestId": measured }));
    // It waits for the end of the other.
    let next = client.call("try", &json!({ "commands": ["./server {port}"], "options": ["--dry-run"] }));
    assert!(text(&next).contains("./server"), "{next}");

    client.measure(&home);
    // It is still waiting when the client goes, and never begins.
    let waiting = json!({ "commands": ["touch began {port}", "b"] });
    client.begin("tools/call", &json!({ "name": "try", "arguments": waiting }));
    assert_eq!(client.leave(), Some(0));
    home.assert_nothing_left();
    assert!(!home.path("began").exists());

    let mut killed = Client::start(&home);
    killed.measure(&home);
    drop(killed);
    home.assert_nothing_left();
}
