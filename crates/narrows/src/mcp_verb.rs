//! `narrows mcp`: the verbs as tools of the Model Context Protocol (<https://modelcontextprotocol.io>), over standard input and output.
//!
//! Each call runs this program as its user would, so a tool answers what its verb prints, and a call that is given up ends as after
//! Ctrl-C. This module knows the command line alone, and nothing of what is measured.

use std::io;
use std::pin::{Pin, pin};
use std::process::{ExitCode, Output, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServiceExt, tool, tool_handler, tool_router};
use rustix::process::{Pid, Signal, kill_process};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use systems::machine;
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::process::Command;
use tokio::sync::{Mutex, watch};

use crate::common::End;

/// The time between two notes that a call goes on.
const TURN: Duration = Duration::from_secs(5);

/// How long a program that was asked to end may take. A server under test has a grace of its own in it.
const PATIENCE: Duration = Duration::from_secs(60);

/// `narrows mcp`
#[derive(clap::Args)]
pub struct Args {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Try {
    /// The commands that start the servers, each with {port} where its port belongs, or URLs of servers that run. The first is the
    /// base. One is enough with --git or --knob among the options.
    commands: Vec<String>,
    /// Options of `narrows try`, each word an element, such as ["--budget", "60s", "-c", "100", "--path", "/users"].
    #[serde(default)]
    options: Vec<String>,
    /// The folder in which the commands start. By default that of this server.
    folder: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tune {
    /// The command that starts the server, with {port}, and with {name} where the value of the knob `name` belongs.
    command: String,
    /// Options of `narrows tune`, each word an element, such as ["--knob", "workers=1..16", "--budget", "5m"].
    #[serde(default)]
    options: Vec<String>,
    /// The folder in which the command starts. By default that of this server.
    folder: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Load {
    /// The URL of a server of yours.
    url: String,
    /// Options of `narrows load`, each word an element, such as ["--rate", "2000", "-c", "50", "--duration", "10s"].
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Report {
    /// The number of the run, or `last`.
    run: String,
    /// Options of `narrows report`, each word an element, such as ["--details"] or ["--format", "json"].
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Help {
    /// `try`, `tune`, `load`, `report`, or another verb.
    verb: String,
}

/// The tools.
struct Tools {
    /// Held while something is measured: two measurements at a time would disturb each other.
    measuring: Mutex<()>,
    /// Whether the client has gone.
    over: watch::Receiver<bool>,
}

type Call = RequestContext<RoleServer>;
type Answer = Result<CallToolResult, ErrorData>;
/// What a verb printed, and how it ended.
type Ran = Result<Output, ErrorData>;

#[tool_router]
impl Tools {
    #[tool(
        name = "try",
        description = "Compare commands, builds, commits or settings of servers in shuffled rounds. Two commands answer with a \
                       verdict: accept, reject or inconclusive, how many times better the second is, the 95 % interval, and what \
                       moved. Others answer with what is printed. By default it takes one to four minutes.",
        output_schema = verdict_or_text()
    )]
    async fn compare(&self, Parameters(asked): Parameters<Try>, call: Call) -> Answer {
        let verdict = if asked.is_pair() { &["--format", "verdict"][..] } else { &[] };
        let words = words(&[&["try"], verdict].concat(), asked.options, asked.commands);
        let output = self.measured(words, asked.folder, &call).await?;
        let mut answer = answer(&output);
        if answer.is_error != Some(true) {
            let printed = String::from_utf8_lossy(&output.stdout);
            let verdict: Option<Value> = serde_json::from_str(&printed).ok();
            let verdict = verdict.filter(|object| object.get("verdict").is_some());
            answer.structured_content = Some(verdict.unwrap_or_else(|| json!({ "printed": printed })));
        }
        Ok(answer)
    }

    #[tool(description = "Search for the best setting of the knobs of a server's command, and prove it.")]
    async fn tune(&self, Parameters(asked): Parameters<Tune>, call: Call) -> Answer {
        let words = words(&["tune"], asked.options, vec![asked.command]);
        Ok(answer(&self.measured(words, asked.folder, &call).await?))
    }

    #[tool(description = "Drive a server that runs already, and answer with rates and latencies in JSON.")]
    async fn load(&self, Parameters(asked): Parameters<Load>, call: Call) -> Answer {
        let words = words(&["load", "--json"], asked.options, vec![asked.url]);
        Ok(answer(&self.measured(words, None, &call).await?))
    }

    #[tool(description = "Print a saved run again: its answer, its tables, or all of it as JSON.")]
    async fn report(&self, Parameters(asked): Parameters<Report>, call: Call) -> Answer {
        Ok(answer(&ran(words(&["report"], asked.options, vec![asked.run]), None, call.ct.cancelled()).await?))
    }

    #[tool(description = "Explain a verb and its options.", annotations(read_only_hint = true))]
    async fn help(&self, Parameters(asked): Parameters<Help>, call: Call) -> Answer {
        Ok(answer(&ran(vec![asked.verb, "--help".to_owned()], None, call.ct.cancelled()).await?))
    }
}

#[tool_handler(
    name = "narrows",
    instructions = "Narrows measures which server, build or setting is faster, by how much, and how sure that is. Compare within one \
                    call of `try`, and never figures of two calls. `undecided` and `inconclusive` do not mean `no difference`: give a \
                    longer --budget. Give --ledger FILE when you try many candidates against one base, or one of them wins by chance. \
                    Ask `help` for the options of a verb."
)]
impl rmcp::ServerHandler for Tools {}

impl Tools {
    /// What a measurement printed. It waits until no other runs, and ends when it is cancelled or the client goes.
    async fn measured(&self, words: Vec<String>, folder: Option<String>, call: &Call) -> Ran {
        let mut over = self.over.clone();
        let mut gone = pin!(async {
            tokio::select! { () = call.ct.cancelled() => {}, _ = over.wait_for(|over| *over) => {} }
        });
        let output = async {
            let _alone = tokio::select! {
                biased;
                () = &mut gone => return Err(given_up()),
                alone = self.measuring.lock() => alone,
            };
            ran(words, folder, gone).await
        };
        tokio::select! { output = output => output, never = tell(call) => never }
    }
}

impl Try {
    /// Whether these are two arms, about which a verdict can be given, and no other format is asked for.
    fn is_pair(&self) -> bool {
        const OTHERS: [&str; 7] =
            ["-k", "--knob", "-L", "--parameter-list", "--git", "--format", "--dry-run"];
        let other = |word: &String| OTHERS.iter().any(|option| word.starts_with(option));
        self.commands.len() == 2 && !self.options.iter().any(other)
    }
}

/// A verb with its options, and what follows them.
fn words(verb: &[&str], options: Vec<String>, rest: Vec<String>) -> Vec<String> {
    let verb = verb.iter().map(|word| (*word).to_owned());
    verb.chain(options).chain(["--".to_owned()]).chain(rest).collect()
}

/// Says every few seconds that a call goes on, if its client asked for that: many give up what stays silent. It never returns.
async fn tell<T>(call: &Call) -> T {
    let Some(token) = call.meta.get_progress_token() else { return std::future::pending().await };
    let began = Instant::now();
    loop {
        tokio::time::sleep(TURN).await;
        let so_far = ProgressNotificationParam::new(token.clone(), began.elapsed().as_secs_f64().floor());
        let _ = call.peer.notify_progress(so_far).await;
    }
}

fn given_up() -> ErrorData {
    ErrorData::internal_error("the call was cancelled, and nothing of it runs any more", None)
}

/// Runs this program with these words to its end. When `gone` comes first, the program is asked to end as Ctrl-C asks it: it keeps what
/// was measured, and nothing of what it started is left. If this process is killed, the kernel kills it, and its keeper ends the rest.
async fn ran(words: Vec<String>, folder: Option<String>, gone: impl Future<Output = ()>) -> Ran {
    // The program's file may have been replaced by a newer one since it was started.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("narrows").args(words).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    machine::tie_to_us(command.as_std_mut());
    if let Some(folder) = &folder {
        command.current_dir(folder);
    }
    let child = command.spawn().map_err(|error| {
        let place = folder.map_or_else(String::new, |folder| format!(" in the folder {folder}"));
        ErrorData::invalid_params(format!("cannot start narrows{place}: {error}"), None)
    })?;
    let number = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut ended = pin!(child.wait_with_output());
    tokio::select! {
        output = &mut ended => output.map_err(|error| ErrorData::internal_error(error.to_string(), None)),
        () = gone => {
            let _ = number.map(|number| kill_process(number, Signal::TERM));
            // Dropping it kills what has not ended by then.
            let _ = tokio::time::timeout(PATIENCE, ended).await;
            Err(given_up())
        }
    }
}

/// What a verb printed, what it said on standard error, and its exit code unless that is 0. The codes 3 and 4 are answers to a
/// condition, and no errors.
fn answer(output: &Output) -> CallToolResult {
    let code = output.status.code();
    let ending = match code {
        Some(0) => String::new(),
        Some(code) => format!("exit code {code}"),
        None => format!("it was ended: {}", output.status),
    };
    let texts =
        [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr), ending.into()];
    let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
    let content = texts.map(|text| ContentBlock::text(text.into_owned())).collect();
    match code {
        Some(0 | 3 | 4) => CallToolResult::success(content),
        _ => CallToolResult::error(content),
    }
}

/// The schema of what `try` answers: a verdict, or what is printed in its place.
fn verdict_or_text() -> Arc<JsonObject> {
    let Value::Object(mut schema) = report::verdict_schema() else { return Arc::default() };
    schema.remove("required");
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        let about = "What is printed in the place of a verdict: there are not two arms, or another --format is asked for.";
        fields.insert("printed".to_owned(), json!({ "type": "string", "description": about }));
    }
    Arc::new(schema)
}

/// Standard input, which says when it has ended.
struct Input(Stdin, Arc<watch::Sender<bool>>);

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, task: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self(input, over) = self.get_mut();
        let before = to.filled().len();
        let read = Pin::new(input).poll_read(task, to);
        if read.is_ready() && to.filled().len() == before {
            over.send_replace(true);
        }
        read
    }
}

/// Serves until standard input ends, and until all that the calls have started has ended.
pub fn run(_: &Args) -> End {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let end = runtime.block_on(async {
        let (over, heard) = watch::channel(false);
        let over = Arc::new(over);
        let tools = Tools { measuring: Mutex::default(), over: heard };
        match tools.serve((Input(tokio::io::stdin(), Arc::clone(&over)), tokio::io::stdout())).await {
            Ok(service) => service.waiting().await.map(|_| ())?,
            // The client went before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => {}
            Err(error) => return Err(error).context("the client does not begin as the protocol demands"),
        }
        // Every call holds the tools until what it runs has ended.
        over.closed().await;
        Ok(ExitCode::SUCCESS)
    });
    // A thread of the runtime may still wait for standard input.
    runtime.shutdown_background();
    end
}
