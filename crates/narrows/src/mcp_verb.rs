//! `narrows mcp`: the verbs as tools of the Model Context Protocol (<https://modelcontextprotocol.io>), JSON-RPC 2.0 over standard input
//! and output, one message a line.
//!
//! Each call runs this program as its user would, so a tool answers what its verb prints, and a call that is given up ends as after
//! Ctrl-C. Each call has a thread. This module knows the command line alone, and nothing of what is measured.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use systems::machine;

use crate::common::End;

/// The versions of the protocol that differ in nothing that is said here, the newest last.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The longest message, in bytes.
const LONGEST: u64 = 16 << 20;

/// The time between two notes that a call goes on.
const TURN: Duration = Duration::from_secs(5);

/// How long a program that was asked to end may take. A server under test has a grace of its own in it.
const PATIENCE: Duration = Duration::from_secs(60);

const INSTRUCTIONS: &str = "Narrows measures which server, build or setting is faster, by how much, and how sure that is. Compare \
    within one call of `try`, and never figures of two calls. `undecided` and `inconclusive` do not mean `no difference`: give a longer \
    --budget. Give --ledger FILE when you try many candidates against one base, or one of them wins by chance. Ask `help` for the \
    options of a verb.";

/// `narrows mcp`
#[derive(clap::Args)]
pub struct Args {}

/// A verb as a tool.
struct Tool {
    name: &'static str,
    about: &'static str,
    /// The first one is what the verb is about, and must be there.
    takes: &'static [Argument],
    /// Whether it measures. Two measurements at a time would disturb each other.
    measures: bool,
}

/// An argument of a tool: a text, or a list of texts.
struct Argument {
    name: &'static str,
    list: bool,
    about: &'static str,
}

const fn text(name: &'static str, about: &'static str) -> Argument {
    Argument { name, list: false, about }
}

const fn list(name: &'static str, about: &'static str) -> Argument {
    Argument { name, list: true, about }
}

const FOLDER: Argument =
    text("folder", "The folder in which the commands start. By default that of this server.");

static TOOLS: [Tool; 5] = [
    Tool {
        name: "help",
        about: "Explain a verb and its options.",
        takes: &[text("verb", "`try`, `tune`, `load`, `report`, or another verb.")],
        measures: false,
    },
    Tool {
        name: "load",
        about: "Drive a server that runs already, and answer with rates and latencies in JSON.",
        takes: &[
            text("url", "The URL of a server of yours."),
            list(
                "options",
                "Options of `narrows load`, each word an element, such as [\"--rate\", \"2000\", \"-c\", \"50\", \"--duration\", \"10s\"].",
            ),
        ],
        measures: true,
    },
    Tool {
        name: "report",
        about: "Print a saved run again: its answer, its tables, or all of it as JSON.",
        takes: &[
            text("run", "The number of the run, or `last`."),
            list(
                "options",
                "Options of `narrows report`, each word an element, such as [\"--details\"] or [\"--format\", \"json\"].",
            ),
        ],
        measures: false,
    },
    Tool {
        name: "try",
        about: "Compare commands, builds, commits or settings of servers in shuffled rounds. Two commands answer with a verdict: \
                accept, reject or inconclusive, how many times better the second is, the 95 % interval, and what moved. Others answer \
                with what is printed. By default it takes one to four minutes.",
        takes: &[
            list(
                "commands",
                "The commands that start the servers, each with {port} where its port belongs, or URLs of servers that run. The \
                 first is the base. One is enough with --git or --knob among the options.",
            ),
            list(
                "options",
                "Options of `narrows try`, each word an element, such as [\"--budget\", \"60s\", \"-c\", \"100\", \"--path\", \"/users\"].",
            ),
            FOLDER,
        ],
        measures: true,
    },
    Tool {
        name: "tune",
        about: "Search for the best setting of the knobs of a server's command, and prove it.",
        takes: &[
            text(
                "command",
                "The command that starts the server, with {port}, and with {name} where the value of the knob `name` belongs.",
            ),
            list(
                "options",
                "Options of `narrows tune`, each word an element, such as [\"--knob\", \"workers=1..16\", \"--budget\", \"5m\"].",
            ),
            FOLDER,
        ],
        measures: true,
    },
];

impl Tool {
    /// How `tools/list` describes it.
    fn described(&self) -> Value {
        let schema = |argument: &Argument| match argument {
            Argument { list: false, about, .. } => json!({ "type": "string", "description": about }),
            Argument { about, .. } => {
                json!({ "type": "array", "items": { "type": "string" }, "description": about })
            }
        };
        let properties: Map<String, Value> =
            self.takes.iter().map(|argument| (argument.name.to_owned(), schema(argument))).collect();
        let input = json!({ "type": "object", "properties": properties, "required": [self.takes[0].name],
            "additionalProperties": false });
        let mut described = json!({ "name": self.name, "description": self.about, "inputSchema": input });
        if self.name == "try" {
            described["outputSchema"] = verdict_or_text();
        }
        if self.name == "help" {
            described["annotations"] = json!({ "readOnlyHint": true });
        }
        described
    }

    /// The texts of each argument. The error says what is wrong with the arguments.
    fn read(&self, arguments: &Value) -> Result<BTreeMap<&'static str, Vec<String>>, String> {
        let mut read = BTreeMap::new();
        for (name, value) in arguments.as_object().into_iter().flatten() {
            let Some(argument) = self.takes.iter().find(|argument| argument.name == name) else {
                let known: Vec<&str> = self.takes.iter().map(|argument| argument.name).collect();
                return Err(format!("unknown field `{name}`: `{}` has {}", self.name, known.join(", ")));
            };
            let texts = match value {
                Value::String(text) if !argument.list => Some(vec![text.clone()]),
                Value::Array(words) if argument.list => {
                    words.iter().map(|word| word.as_str().map(str::to_owned)).collect()
                }
                _ => None,
            };
            let kind = if argument.list { "a list of texts" } else { "a text" };
            read.insert(argument.name, texts.ok_or_else(|| format!("the field `{name}` must be {kind}"))?);
        }
        match self.takes[0].name {
            name if read.contains_key(name) => Ok(read),
            name => Err(format!("the field `{name}` is missing")),
        }
    }
}

/// What is written to the client, and the calls that go on.
#[derive(Default)]
struct Server {
    writing: Mutex<()>,
    /// Held while something is measured.
    measuring: Mutex<()>,
    /// Tells a call that it is given up, by the id of its request as JSON.
    calls: Mutex<BTreeMap<String, Sender<Event>>>,
}

/// What a call waits for.
enum Event {
    Ended(io::Result<Output>),
    GivenUp,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Writes a message. A client that does not read any more has also closed its end of standard input, or soon will.
    fn say(&self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let _one = locked(&self.writing);
        let mut output = io::stdout().lock();
        let _ = writeln!(output, "{message}").and_then(|()| output.flush());
    }

    fn refuse(&self, id: &Value, code: i32, why: &str) {
        self.say(json!({ "id": id, "error": { "code": code, "message": why } }));
    }

    /// Answers a line, or begins what it asks for.
    fn hear<'s>(&'s self, line: &[u8], scope: &'s thread::Scope<'s, '_>) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return self.refuse(&Value::Null, -32700, "a line must be a message in JSON");
        };
        let (id, params) = (message["id"].clone(), message["params"].clone());
        let method = match (message["method"].as_str(), &id) {
            (Some(method), Value::Null | Value::String(_) | Value::Number(_)) => method,
            // The answer to a question, of which none was asked.
            (None, _) if message.get("result").or_else(|| message.get("error")).is_some() => return,
            _ => {
                return self.refuse(
                    &Value::Null,
                    -32600,
                    "a request must have a method, and an id that is a text or a number",
                );
            }
        };
        if id.is_null() {
            if method == "notifications/cancelled"
                && let Some(call) = locked(&self.calls).get(&params["requestId"].to_string())
            {
                let _ = call.send(Event::GivenUp);
            }
            return;
        }
        match method {
            "initialize" => {
                let asked = params["protocolVersion"].as_str();
                let known = VERSIONS.into_iter().find(|version| asked == Some(version));
                let version = known.unwrap_or(VERSIONS[VERSIONS.len() - 1]);
                let about = json!({ "name": "narrows", "version": env!("CARGO_PKG_VERSION") });
                self.say(
                    json!({ "id": id, "result": { "protocolVersion": version, "capabilities": { "tools": {} },
                    "serverInfo": about, "instructions": INSTRUCTIONS } }),
                );
            }
            "ping" => self.say(json!({ "id": id, "result": {} })),
            "tools/list" => {
                let tools: Vec<Value> = TOOLS.iter().map(Tool::described).collect();
                self.say(json!({ "id": id, "result": { "tools": tools } }));
            }
            "tools/call" => match TOOLS.iter().find(|tool| params["name"] == tool.name) {
                Some(tool) => {
                    let (sender, events) = channel();
                    locked(&self.calls).insert(id.to_string(), sender.clone());
                    scope.spawn(move || {
                        let result = self.call(tool, &params, sender, &events);
                        locked(&self.calls).remove(&id.to_string());
                        // The protocol wants no answer to a call that was given up.
                        if let Some(result) = result {
                            self.say(json!({ "id": id, "result": result }));
                        }
                    });
                }
                None => self.refuse(&id, -32602, &format!("there is no tool {}", params["name"])),
            },
            _ => self.refuse(&id, -32601, &format!("there is no method `{method}`")),
        }
    }

    /// What a tool answers. None if the call was given up.
    fn call(
        &self,
        tool: &Tool,
        params: &Value,
        sender: Sender<Event>,
        events: &Receiver<Event>,
    ) -> Option<Value> {
        let mut arguments = match tool.read(&params["arguments"]) {
            Ok(arguments) => arguments,
            Err(why) => return Some(failure(&why)),
        };
        let mut take = |name| arguments.remove(name).unwrap_or_default();
        let (options, folder, rest) = (take("options"), take("folder"), take(tool.takes[0].name));
        let verdict = tool.name == "try" && is_pair(&rest, &options);
        let words: Vec<String> = match tool.name {
            "help" => vec![rest.concat(), "--help".to_owned()],
            verb => {
                let how: &[&str] = match verb {
                    "load" => &["--json"],
                    _ if verdict => &["--format", "verdict"],
                    _ => &[],
                };
                let first = [&[verb], how].concat().into_iter().map(str::to_owned);
                first.chain(options).chain(["--".to_owned()]).chain(rest).collect()
            }
        };
        let token = &params["_meta"]["progressToken"];
        let began = Instant::now();
        let mut said = began;
        let mut tell = || {
            // Many clients give up what stays silent.
            if !token.is_null() && said.elapsed() >= TURN {
                said = Instant::now();
                let progress = json!({ "progressToken": token, "progress": began.elapsed().as_secs() });
                self.say(json!({ "method": "notifications/progress", "params": progress }));
            }
        };
        let _alone = if tool.measures { Some(self.turn(events, &mut tell)?) } else { None };
        let output = match ran(words, folder.first(), sender, events, tell)? {
            Ok(output) => output,
            Err(why) => return Some(failure(&why)),
        };
        let mut result = answer(&output);
        if tool.name == "try" && result["isError"] == false {
            let printed = String::from_utf8_lossy(&output.stdout);
            let found: Option<Value> = serde_json::from_str(&printed).ok().filter(|_| verdict);
            let found = found.filter(|object| object.get("verdict").is_some());
            result["structuredContent"] = found.unwrap_or_else(|| json!({ "printed": printed }));
        }
        Some(result)
    }

    /// Waits until nothing else is measured. None if the call was given up.
    fn turn(&self, events: &Receiver<Event>, tell: &mut impl FnMut()) -> Option<MutexGuard<'_, ()>> {
        loop {
            match self.measuring.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) => tell(),
            }
            if !matches!(events.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout)) {
                return None;
            }
        }
    }
}

/// Whether these are two arms, about which a verdict can be given, and no other format is asked for.
fn is_pair(commands: &[String], options: &[String]) -> bool {
    const OTHERS: [&str; 7] = ["-k", "--knob", "-L", "--parameter-list", "--git", "--format", "--dry-run"];
    let other = |word: &String| OTHERS.iter().any(|option| word.starts_with(option));
    commands.len() == 2 && !options.iter().any(other)
}

/// Runs this program with these words to its end, or says why it cannot be started. When the call is given up, the program is asked to
/// end as Ctrl-C asks it: it keeps what was measured, and nothing of what it started is left. If this process is killed, the kernel
/// kills it, and its keeper ends the rest.
fn ran(
    words: Vec<String>,
    folder: Option<&String>,
    sender: Sender<Event>,
    events: &Receiver<Event>,
    mut tell: impl FnMut(),
) -> Option<Result<Output, String>> {
    // The program's file may have been replaced by a newer one since it was started.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("narrows").args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    machine::tie_to_us(&mut command);
    folder.map(|folder| command.current_dir(folder));
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let place = folder.map_or_else(String::new, |folder| format!(" in the folder {folder}"));
            return Some(Err(format!("cannot start narrows{place}: {error}")));
        }
    };
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let end = |signal| number.map(|number| kill_process(number, signal));
    thread::spawn(move || sender.send(Event::Ended(child.wait_with_output())));
    let mut given_up: Option<Instant> = None;
    loop {
        match events.recv_timeout(Duration::from_millis(500)) {
            Ok(Event::Ended(_)) if given_up.is_some() => return None,
            Ok(Event::Ended(output)) => return Some(output.map_err(|error| error.to_string())),
            Ok(Event::GivenUp) if given_up.is_none() => {
                given_up = Some(Instant::now());
                end(Signal::TERM);
            }
            _ => tell(),
        }
        if given_up.is_some_and(|since| since.elapsed() > PATIENCE) {
            end(Signal::KILL);
        }
    }
}

/// What a verb printed, what it said on standard error, and its exit code unless that is 0. The codes 3 and 4 are answers to a
/// condition, and no errors.
fn answer(output: &Output) -> Value {
    let code = output.status.code();
    let ending = match code {
        Some(0) => String::new(),
        Some(code) => format!("exit code {code}"),
        None => format!("it was ended: {}", output.status),
    };
    let texts =
        [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr), ending.into()];
    let texts = texts.iter().filter(|text| !text.trim().is_empty());
    let content: Vec<Value> = texts.map(|text| json!({ "type": "text", "text": text })).collect();
    json!({ "content": content, "isError": !matches!(code, Some(0 | 3 | 4)) })
}

fn failure(why: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": why }], "isError": true })
}

/// The schema of what `try` answers: a verdict, or what is printed in its place.
fn verdict_or_text() -> Value {
    let mut schema = report::verdict_schema();
    let about = "What is printed in the place of a verdict: there are not two arms, or another --format is asked for.";
    schema["properties"]["printed"] = json!({ "type": "string", "description": about });
    schema["required"] = json!([]);
    schema
}

/// Serves until standard input ends, and until all that the calls have started has ended.
pub fn run(_: &Args) -> End {
    let server = Server::default();
    thread::scope(|scope| {
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        while input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? > 0 {
            if !line.trim_ascii().is_empty() {
                server.hear(&line, scope);
            }
            line.clear();
        }
        locked(&server.calls).values().for_each(|call| drop(call.send(Event::GivenUp)));
        Ok(ExitCode::SUCCESS)
    })
}
