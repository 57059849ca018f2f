//! The tools of `narrows mcp`: how they are listed, the command that a call means, and its answer.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

use serde::Deserialize;
use serde_json::{Value, json};

/// The schema of what `try` answers about two arms.
const VERDICT: &str = include_str!("../../../../docs/schema/verdict.schema.json");

/// The arguments of each tool. [`list`] describes them.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Tool {
    Help { verb: String },
    Load { url: String, options: Option<Vec<String>> },
    Report { run: String, options: Option<Vec<String>> },
    Try { commands: Vec<String>, options: Option<Vec<String>>, folder: Option<String> },
    Tune { command: String, options: Option<Vec<String>>, folder: Option<String> },
}

/// The tools as a client sees them.
pub fn list() -> Vec<Value> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let texts = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let options = |verb: &str, example: &str| {
        texts(&format!("Options of `narrows {verb}`, each word an element, such as {example}."))
    };
    let folder = text("The folder in which commands start. By default that of this server.");
    let fields = |needed: &str, all: Value| json!({ "type": "object", "properties": all, "required": [needed], "additionalProperties": false });
    let printed =
        text("What is printed in the place of a verdict, which needs two arms and no other --format.");
    let mut verdict_or_printed: Value = serde_json::from_str(VERDICT).unwrap_or_default();
    verdict_or_printed["required"] = json!([]);
    verdict_or_printed["properties"]["printed"] = printed;
    vec![
        json!({
            "name": "help", "description": "Explain a verb and its options.", "annotations": { "readOnlyHint": true },
            "inputSchema": fields("verb", json!({ "verb": text("`try`, `tune`, `load`, `report`, or another verb.") })),
        }),
        json!({
            "name": "load",
            "description": "Drive a server that runs already, and answer with rates and latencies in JSON.",
            "inputSchema": fields("url", json!({
                "url": text("The URL of a server of yours."),
                "options": options("load", r#"["--rate", "2000", "-c", "50", "--duration", "10s"]"#),
            })),
        }),
        json!({
            "name": "report", "description": "Print a saved run again: its answer, its tables, or all of it as JSON.",
            "inputSchema": fields("run", json!({
                "run": text("The number of the run, or `last`."),
                "options": options("report", r#"["--details"] or ["--format", "json"]"#),
            })),
        }),
        json!({
            "name": "try",
            "description": "Compare commands, builds, commits or settings of servers in shuffled rounds. Two commands answer with a \
                            verdict: accept, reject or inconclusive, how many times better the second is, the 95 % interval, and \
                            what moved. Others answer with what is printed. By default it takes one to four minutes.",
            "inputSchema": fields("commands", json!({
                "commands": texts("The commands that start the servers, each with {port} where its port belongs, or URLs of servers \
                                   that run. The first is the base. One is enough with --git or --knob among the options."),
                "options": options("try", r#"["--budget", "60s", "-c", "100", "--path", "/users"]"#),
                "folder": folder,
            })),
            "outputSchema": verdict_or_printed,
        }),
        json!({
            "name": "tune", "description": "Search for the best setting of the knobs of a server's command, and prove it.",
            "inputSchema": fields("command", json!({
                "command": text("The command that starts the server, with {port}, and with {name} where the value of the knob `name` \
                                 belongs."),
                "options": options("tune", r#"["--knob", "workers=1..16", "--budget", "5m"]"#),
                "folder": folder,
            })),
        }),
    ]
}

/// The command that a call of a tool means. The error says what is wrong with the arguments.
pub fn command(tool: &str, arguments: &Value) -> Result<Command, String> {
    let tool = serde_json::from_value(json!({ tool: arguments })).map_err(|error| error.to_string())?;
    let (verb, options, rest, folder): (&[&str], _, _, _) = match tool {
        Tool::Help { verb } => (&[], Some(vec![verb, "--help".to_owned()]), Vec::new(), None),
        Tool::Load { url, options } => (&["load", "--json"], options, vec![url], None),
        Tool::Report { run, options } => (&["report"], options, vec![run], None),
        Tool::Try { commands, options, folder } if is_pair(&commands, &options) => {
            (&["try", "--format", "verdict"], options, commands, folder)
        }
        Tool::Try { commands, options, folder } => (&["try"], options, commands, folder),
        Tool::Tune { command, options, folder } => (&["tune"], options, vec![command], folder),
    };
    // The program's file may have been replaced by a newer one since it was started.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("narrows").args(verb).args(options.into_iter().flatten()).arg("--").args(rest);
    command.current_dir(folder.as_deref().unwrap_or("."));
    Ok(command)
}

/// Whether these are two arms, about which a verdict can be given, and no other format is asked for.
fn is_pair(commands: &[String], options: &Option<Vec<String>>) -> bool {
    const OTHERS: [&str; 7] = ["-k", "--knob", "-L", "--parameter-list", "--git", "--format", "--dry-run"];
    let other = |word: &String| OTHERS.iter().any(|option| word.starts_with(option));
    commands.len() == 2 && !options.iter().flatten().any(other)
}

/// What a verb printed, what it said on standard error, and its exit code unless that is 0. The codes 3 and 4 are answers to a
/// condition, and no errors.
pub fn answer(tool: &str, status: ExitStatus, [printed, said]: [String; 2]) -> Value {
    let (ending, is_error) = match status.code() {
        Some(0) => (String::new(), false),
        Some(code) => (format!("exit code {code}"), ![3, 4].contains(&code)),
        None => (format!("it was ended: {status}"), true),
    };
    let mut answer = of_texts(is_error, &[&printed, &said, &ending]);
    if tool == "try" && !is_error {
        let verdict = serde_json::from_str(&printed).ok();
        let verdict = verdict.filter(|object: &Value| object.get("verdict").is_some());
        answer["structuredContent"] = verdict.unwrap_or_else(|| json!({ "printed": printed }));
    }
    answer
}

/// The answer to a call that cannot be made. As a result, it reaches the model that chose the arguments.
pub fn failed(why: &str) -> Value {
    of_texts(true, &[why])
}

/// A result with these texts, without empty ones.
fn of_texts(is_error: bool, texts: &[&str]) -> Value {
    let texts = texts.iter().filter(|text| !text.trim().is_empty());
    let content: Vec<Value> = texts.map(|text| json!({ "type": "text", "text": text })).collect();
    json!({ "content": content, "isError": is_error })
}
