//! `narrows mcp`: the verbs as tools of the Model Context Protocol (<https://modelcontextprotocol.io>), over standard input and output.
//!
//! Each call runs this program as its user would, so a tool answers what its verb prints, and a call that is given up ends as after
//! Ctrl-C. Each has a thread of its own. This module knows the command line alone, and nothing of what is measured.

#![allow(clippy::indexing_slicing, reason = "an object of JSON gives null for a field that it lacks")]

mod tools;

use std::io::{self, BufRead, Read};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use systems::machine;

use crate::common::{End, print};

/// The versions of the protocol that begin with `initialize`, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "Narrows measures which server, build or setting is faster, by how much, and how sure that is. Compare within one \
    call of `try`, and never figures of two calls. `undecided` and `inconclusive` do not mean `no difference`: give a longer --budget. \
    Give --ledger FILE when you try many candidates against one base, or one of them wins by chance. Ask `help` for the options of a verb.";

/// The longest line that is read, bytes.
const LONGEST: u64 = 16 << 20;

/// The time between two notes that a call goes on.
const TURN: Duration = Duration::from_secs(5);

/// How long a program that was asked to end may take. A server under test has a grace of its own in it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Held while something is measured: two measurements at a time would disturb each other.
static MEASURING: Mutex<()> = Mutex::new(());

/// `narrows mcp`
#[derive(clap::Args)]
pub struct Args {}

/// What the thread of a call waits for: what its program has printed to standard output and standard error, or that it is given up.
type Event = Option<[String; 2]>;

/// A call of a tool, until its program has ended.
struct Call {
    id: Value,
    /// None once it is given up.
    events: Option<Sender<Event>>,
    /// Ends the notes that it goes on.
    notes: Sender<()>,
    thread: JoinHandle<()>,
}

/// Serves until standard input ends, and until all that the calls have started has ended.
pub fn run(_: &Args) -> End {
    let (mut from, mut calls) = (io::stdin().lock(), Vec::<Call>::new());
    while let Ok(Some(line)) = line(&mut from) {
        calls.retain(|call| !call.thread.is_finished());
        hear(&line, &mut calls).unwrap_or_else(|refused| say(&refused));
    }
    calls.iter_mut().for_each(Call::give_up);
    calls.into_iter().for_each(|call| call.thread.join().unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

/// Takes in a message. The error is the answer to one that is refused.
fn hear(line: &[u8], calls: &mut Vec<Call>) -> Result<(), Value> {
    let (id, method, params) = read(line)?;
    let Some(id) = id else {
        if method == "notifications/cancelled" {
            calls.iter_mut().filter(|call| call.id == params["requestId"]).for_each(Call::give_up);
        }
        return Ok(());
    };
    match &*method {
        "initialize" => say(&result(&id, &initialize(&params))),
        "ping" => say(&result(&id, &json!({}))),
        "tools/list" => say(&result(&id, &json!({ "tools": tools::list() }))),
        "tools/call" => calls.push(Call::begin(id, &params)?),
        _ => return Err(refusal(&id, -32601, &format!("there is no method {method}"))),
    }
    Ok(())
}

impl Call {
    fn begin(id: Value, params: &Value) -> Result<Self, Value> {
        let tool = params["name"].as_str().unwrap_or_default().to_owned();
        if !tools::list().iter().any(|known| known["name"] == tool) {
            return Err(refusal(&id, -32602, &format!("there is no tool `{tool}`: tools/list names all")));
        }
        let command = tools::command(&tool, params.get("arguments").unwrap_or(&json!({})))
            .map_err(|why| result(&id, &tools::failed(&why)))?;
        let ((events, heard), (notes, over)) = (channel(), channel());
        let token = params["_meta"].get("progressToken").cloned();
        let (asked, printed, told) = (id.clone(), events.clone(), notes.clone());
        let thread = thread::spawn(move || {
            let notes = token.map(|token| thread::spawn(move || tell(&token, &over)));
            let answer = serve(&tool, command, printed, &heard);
            // None comes after the answer.
            let _ = told.send(());
            let _ = notes.map(JoinHandle::join);
            answer.iter().for_each(|answer| say(&result(&asked, answer)));
        });
        Ok(Self { id, events: Some(events), notes, thread })
    }

    fn give_up(&mut self) {
        let _ = self.notes.send(());
        let _ = self.events.take().map(|events| events.send(None));
    }
}

/// Says every few seconds that a call goes on, until it is over: many clients give up what stays silent.
fn tell(token: &Value, over: &Receiver<()>) {
    let began = Instant::now();
    while over.recv_timeout(TURN) == Err(RecvTimeoutError::Timeout) {
        let params = json!({ "progressToken": token, "progress": began.elapsed().as_secs() });
        say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
    }
}

/// Runs the program of a call to its end, and returns the answer. If the call is given up, there is none: the program is asked to end
/// as Ctrl-C asks it, so it keeps what was measured, and nothing of what it started is left. If this process is killed, the kernel
/// kills it, and its keeper ends the rest.
fn serve(tool: &str, mut command: Command, events: Sender<Event>, heard: &Receiver<Event>) -> Option<Value> {
    let _alone = ["load", "try", "tune"].contains(&tool).then(|| MEASURING.lock());
    // It was given up while it waited.
    if heard.try_recv().is_ok() {
        return None;
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    machine::tie_to_us(&mut command);
    let mut program = match command.spawn() {
        Ok(program) => program,
        Err(error) => {
            let place = command.get_current_dir().unwrap_or(".".as_ref()).display();
            return Some(tools::failed(&format!("cannot start narrows in the folder {place}: {error}")));
        }
    };
    let (out, err) = (program.stdout.take(), program.stderr.take());
    thread::spawn(move || {
        let err = thread::spawn(move || all(err));
        events.send(Some([all(out), err.join().unwrap_or_default()]))
    });
    let printed = heard.recv().ok().flatten();
    if printed.is_none() {
        let _ = kill_process(Pid::from_child(&program), Signal::TERM);
        if heard.recv_timeout(PATIENCE).is_err() {
            let _ = program.kill();
        }
    }
    let status = program.wait().ok()?;
    Some(tools::answer(tool, status, printed?))
}

/// What comes through a pipe until its end.
fn all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The next line. None at the end. One that is too long is cut, and so is no JSON.
fn line(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = from.take(LONGEST).read_until(b'\n', &mut line)?;
    if read as u64 == LONGEST && !line.ends_with(b"\n") {
        from.skip_until(b'\n')?;
    }
    Ok((read > 0).then_some(line))
}

/// Reads a message: its id, which a notification does not have, its method and its parameters. The error is the answer.
fn read(line: &[u8]) -> Result<(Option<Value>, String, Value), Value> {
    let message: Value = serde_json::from_slice(line).map_err(|error| {
        refusal(&Value::Null, -32700, &format!("a line is not JSON of at most {LONGEST} bytes: {error}"))
    })?;
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let is_clear = message["jsonrpc"] == "2.0" && id.as_ref() == message.get("id");
    match message["method"].as_str() {
        Some(method) if is_clear => Ok((id, method.to_owned(), message["params"].clone())),
        _ => Err(refusal(&json!(id), -32600, "this is no request of JSON-RPC 2.0")),
    }
}

/// An error with a code of JSON-RPC.
fn refusal(id: &Value, code: i32, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } })
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Writes a message. If that fails, the client has gone, and standard input ends.
fn say(message: &Value) {
    let _ = print(format!("{message}\n"));
}

fn initialize(params: &Value) -> Value {
    let version = VERSIONS.into_iter().find(|known| params["protocolVersion"] == *known);
    json!({
        "protocolVersion": version.unwrap_or(VERSIONS[0]),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "narrows", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_a_notification_or_refused() {
        let endless = [b"[".repeat(LONGEST as usize), b"]\n".to_vec()].concat();
        // The id, and the code of what is refused.
        let cases: [(&[u8], Value, Option<i32>); 10] = [
            (br#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, json!(1), None),
            (br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{}}"#, json!("a"), None),
            (br#"{"jsonrpc":"2.0","method":"m"}"#, Value::Null, None),
            (br#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, Value::Null, Some(-32600)),
            (br#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1), Some(-32600)),
            (br#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, json!(1), Some(-32600)),
            (b"[]", Value::Null, Some(-32600)),
            (b"{\"jsonrpc\":", Value::Null, Some(-32700)),
            (b"\xff", Value::Null, Some(-32700)),
            (&endless, Value::Null, Some(-32700)),
        ];
        for (mut text, id, code) in cases {
            let first = line(&mut text).unwrap().unwrap();
            let found = match read(&first) {
                Ok((id, ..)) => (json!(id), Value::Null),
                Err(refused) => (refused["id"].clone(), refused["error"]["code"].clone()),
            };
            assert_eq!(found, (id, json!(code)), "{}", first[..first.len().min(80)].escape_ascii());
            assert!(line(&mut text).unwrap().is_none(), "the rest of a long line is left out");
        }
    }
}
