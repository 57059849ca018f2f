//! How a machine is named, and the command that gives the pipe to it. Pure, except for the path of this program.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::program::Program;
use crate::slurm::{Node, Request};

/// A machine: a command that gives a pipe to `narrows agent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machine {
    /// This machine: the agent is a child of this process.
    Local,
    /// Through the user's own OpenSSH.
    Ssh {
        /// The user; `None` leaves it to the configuration of ssh.
        user: Option<String>,
        /// The name or the address, as ssh knows it.
        host: String,
        /// The port; `None` leaves it to the configuration of ssh.
        port: Option<u16>,
    },
    /// Through any command, whose words these are.
    Exec(Vec<String>),
    /// A node that Slurm is asked for.
    Slurm(Node),
}

/// What is wrong with the name of a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("machine {text:?}: {why}")]
pub struct AddressError {
    text: String,
    why: String,
}

/// How the names of machines begin.
const BEGINNINGS: [&str; 4] = ["ssh://", "exec:", "slurm:", "local"];
const EXPECTED: &str = "write ssh://[user@]host[:port], exec:COMMAND, slurm:N or local";

/// Parses machines that are separated by commas. A comma separates only where the name of another machine follows, because
/// commands may contain commas. `slurm:N` is N machines.
///
/// # Errors
/// The first name that is wrong.
pub fn parse_list(text: &str) -> Result<Vec<Machine>, AddressError> {
    let mut names: Vec<String> = Vec::new();
    for part in text.split(',') {
        match names.last_mut() {
            Some(last) if !begins(part.trim_start()) => {
                last.push(',');
                last.push_str(part);
            }
            _ => names.push(part.to_owned()),
        }
    }
    let parsed: Vec<Machine> = names.iter().map(|name| name.trim().parse()).collect::<Result<_, _>>()?;
    Ok(parsed.into_iter().flat_map(Machine::each).collect())
}

/// Whether a text begins as the name of a machine does.
fn begins(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Writes machines as [`parse_list`] reads them, one name for each of its results.
pub fn names(machines: &[Machine]) -> Vec<String> {
    let mut named: Vec<Machine> = Vec::new();
    let mut previous = None;
    for machine in machines {
        match (named.last_mut(), machine) {
            // A further node of the same request.
            (Some(Machine::Slurm(all)), Machine::Slurm(node))
                if all.request.options == node.request.options && previous < Some(node.index) =>
            {
                all.request.nodes = all.request.nodes.saturating_add(1);
            }
            (_, Machine::Slurm(node)) => {
                let request = Request { nodes: 1, ..node.request.clone() };
                named.push(Machine::Slurm(Node { request, index: 0, granted: None }));
            }
            (_, other) => named.push(other.clone()),
        }
        previous = match machine {
            Machine::Slurm(node) => Some(node.index),
            _ => None,
        };
    }
    named.iter().map(ToString::to_string).collect()
}

impl std::str::FromStr for Machine {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parsed = if text == "local" {
            Ok(Self::Local)
        } else if let Some(command) = text.strip_prefix("exec:") {
            exec(command)
        } else if let Some(destination) = text.strip_prefix("ssh://") {
            ssh(destination)
        } else if let Some(request) = text.strip_prefix("slurm:") {
            slurm(request)
        } else {
            Err(EXPECTED.to_owned())
        };
        parsed.map_err(|why| AddressError { text: text.to_owned(), why })
    }
}

fn exec(command: &str) -> Result<Machine, String> {
    let words = shlex::split(command).ok_or("a quote in the command is not closed")?;
    if words.first().is_none_or(String::is_empty) {
        return Err("the command is missing, such as `exec:ip netns exec h1 narrows agent`".to_owned());
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("a command cannot contain a zero byte".to_owned());
    }
    Ok(Machine::Exec(words))
}

fn slurm(request: &str) -> Result<Machine, String> {
    let mut words = shlex::split(request).ok_or("a quote in the options is not closed")?.into_iter();
    let nodes = words.next().and_then(|number| number.parse().ok()).filter(|nodes| *nodes > 0);
    let nodes = nodes.ok_or(
        "a number of nodes from 1 to 65535 must follow, and options of salloc may: slurm:4 -p short",
    )?;
    let options: Vec<String> = words.collect();
    if let Some(word) = options.first().filter(|word| !word.starts_with('-')) {
        return Err(format!("{word:?} is no option of salloc, which begins with a hyphen"));
    }
    Ok(Machine::Slurm(Node { request: Request { nodes, options }, index: 0, granted: None }))
}

fn ssh(destination: &str) -> Result<Machine, String> {
    let (user, place) = match destination.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, destination),
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let number = port.parse().ok().filter(|port| *port > 0);
            (host, Some(number.ok_or("the port must be a number from 1 to 65535")?))
        }
        _ => (place, None),
    };
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let host = inner.unwrap_or(host);
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if host.contains(':') && inner.is_none() {
        return Err("an address of IPv6 is written in brackets: ssh://[fd00::1]".to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:%".contains(c);
    // What begins with a hyphen would be an option of ssh.
    if host.starts_with('-') || !host.chars().all(plain) {
        return Err("the host must be a name or an address, as in ~/.ssh/config; a path or a command cannot follow it. For \
                    other options use exec:ssh …"
            .to_owned());
    }
    if let Some(user) = user
        && (user.is_empty() || user.starts_with('-') || !user.chars().all(|c| plain(c) && c != ':'))
    {
        return Err("the user must be a name, without a password: ssh asks its own configuration".to_owned());
    }
    Ok(Machine::Ssh { user: user.map(str::to_owned), host: host.to_owned(), port })
}

impl Machine {
    /// The machines of one name.
    fn each(self) -> Vec<Self> {
        match self {
            Self::Slurm(node) => {
                let nodes = 0..node.request.nodes;
                nodes.map(|index| Self::Slurm(Node { index, ..node.clone() })).collect()
            }
            one => vec![one],
        }
    }

    /// Whether a shell at its other end gets this program through the pipe. Elsewhere the agent is there.
    pub(crate) fn gets_program(&self) -> bool {
        matches!(self, Self::Ssh { .. } | Self::Slurm(_))
    }

    /// The command that gives the pipe to an agent. `own` is the path of this program.
    pub(crate) fn command(&self, own: &Path, program: Option<&Program>) -> Command {
        match self {
            Self::Local => {
                let mut command = Command::new(own);
                command.arg("agent");
                command
            }
            Self::Exec(words) => {
                let mut command = Command::new(words.first().map_or("", String::as_str));
                command.args(words.iter().skip(1));
                command
            }
            Self::Ssh { .. } | Self::Slurm(_) => {
                self.shell(&program.map(Program::script).unwrap_or_default())
            }
        }
    }

    /// The command that runs a script there, in a POSIX shell whatever the user's own shell is. The script has no `'`.
    pub(crate) fn shell(&self, script: &str) -> Command {
        match self {
            Self::Ssh { user, host, port } => {
                let mut command = Command::new("ssh");
                // No terminal, and no question for a password that nobody would see.
                command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
                if let Some(port) = port {
                    command.args(["-p", &port.to_string()]);
                }
                if let Some(user) = user {
                    command.args(["-l", user]);
                }
                command.args(["--", host, &format!("exec sh -c '{script}'")]);
                command
            }
            Self::Slurm(Node { granted: Some(granted), .. }) => granted.command(script),
            Self::Slurm(_) | Self::Local | Self::Exec(_) => {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                command
            }
        }
    }
}

/// The words as a shell reads them. Behind a comma, what looks like the name of a machine begins with a quote, so that
/// [`parse_list`] does not take it for one.
fn joined(words: &[String]) -> String {
    let quoted = |part: &str| shlex::try_quote(part).map_or_else(|_| part.to_owned(), Cow::into_owned);
    let behind_comma = |part: &str| {
        let quoted = quoted(part);
        if begins(&quoted) { format!("''{quoted}") } else { quoted }
    };
    let word = |word: &String| match word.split_once(',') {
        Some((first, rest)) => {
            let first = if first.is_empty() { String::new() } else { quoted(first) };
            rest.split(',').fold(first, |word, part| word + "," + &behind_comma(part))
        }
        None => quoted(word),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Exec(words) => write!(f, "exec:{}", joined(words)),
            Self::Ssh { user, host, port } => {
                f.write_str("ssh://")?;
                if let Some(user) = user {
                    write!(f, "{user}@")?;
                }
                if host.contains(':') {
                    write!(f, "[{host}]")?
                } else {
                    f.write_str(host)?
                }
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Self::Slurm(Node { request, granted, .. }) => {
                write!(f, "slurm:{}", request.nodes)?;
                if !request.options.is_empty() {
                    write!(f, " {}", joined(&request.options))?;
                }
                granted.as_ref().map_or(Ok(()), |granted| write!(f, " (node {})", granted.node))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slurm::Granted;

    fn words(machine: &Machine) -> Vec<String> {
        let mut command = machine.command(Path::new("/bin/own"), None);
        if machine.gets_program() {
            command = machine.shell("script");
        }
        let arguments = command.get_args();
        std::iter::once(command.get_program())
            .chain(arguments)
            .map(|w| w.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn machines_are_printed_as_they_were_written_and_give_a_command() {
        let ssh = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];
        let table: [(&str, &[&str]); 6] = [
            ("local", &["/bin/own", "agent"]),
            (
                "exec:kubectl exec -i gen-0 -- narrows agent",
                &["kubectl", "exec", "-i", "gen-0", "--", "narrows", "agent"],
            ),
            ("exec:sh -c 'narrows agent'", &["sh", "-c", "narrows agent"]),
            ("ssh://gen1", &[&ssh[..], &["--", "gen1", "exec sh -c 'script'"]].concat()),
            (
                "ssh://me@10.0.0.1:2222",
                &[&ssh[..], &["-p", "2222", "-l", "me", "--", "10.0.0.1", "exec sh -c 'script'"]].concat(),
            ),
            (
                "ssh://[fd00::1]:22",
                &[&ssh[..], &["-p", "22", "--", "fd00::1", "exec sh -c 'script'"]].concat(),
            ),
        ];
        for (text, command) in table {
            let machine: Machine = text.parse().expect(text);
            assert_eq!(
                (machine.to_string().as_str(), words(&machine)),
                (text, command.iter().map(|w| (*w).to_owned()).collect())
            );
        }
    }

    #[test]
    fn a_node_that_slurm_gave_is_named_and_reached_by_srun() {
        let machines = parse_list("slurm:2 -p short").expect("machines");
        let Some(Machine::Slurm(node)) = machines.into_iter().nth(1) else { panic!("a node") };
        assert_eq!(node.index, 1);
        let granted = Granted { job: "17".to_owned(), node: "gen3".to_owned() };
        let machine = Machine::Slurm(Node { granted: Some(granted), ..node });
        assert_eq!(machine.to_string(), "slurm:2 -p short (node gen3)");
        let words = words(&machine).join(" ");
        assert_eq!(words, "srun --jobid 17 -w gen3 -N1 -n1 --overlap --cpu-bind=none sh -c script");
    }

    #[test]
    fn broken_names_say_what_is_wrong() {
        for (text, why) in [
            ("", "write ssh://"),
            ("gen1", "write ssh://"),
            ("local,gen1", "write ssh://"),
            ("exec:", "command is missing"),
            ("exec:''", "command is missing"),
            ("exec:sh -c 'x", "not closed"),
            ("ssh://", "host is missing"),
            ("ssh://a:0", "1 to 65535"),
            ("ssh://a:b", "1 to 65535"),
            ("ssh://-oProxyCommand=x", "must be a name"),
            ("ssh://a/path", "must be a name"),
            ("ssh://a b", "must be a name"),
            ("ssh://fd00::1", "in brackets"),
            ("ssh://-l@a", "user must be a name"),
            ("ssh://u:p@a", "without a password"),
            ("ssh://@a", "user must be a name"),
            ("slurm:", "a number of nodes"),
            ("slurm:0", "a number of nodes"),
            ("slurm:70000", "a number of nodes"),
            ("slurm:2 'x", "not closed"),
            ("slurm:2 short", "no option of salloc"),
        ] {
            let error = parse_list(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn machines_that_are_left_are_written_as_they_are_read() {
        for (text, without, names) in [
            ("local,ssh://a,local", 1, &["local", "local"][..]),
            ("slurm:3 -p short,ssh://a", 1, &["slurm:2 -p short", "ssh://a"]),
            ("slurm:2,slurm:2", 0, &["slurm:1", "slurm:2"]),
            ("slurm:1", 0, &[]),
        ] {
            let mut machines = parse_list(text).expect(text);
            machines.remove(without);
            assert_eq!(super::names(&machines), names, "{text}");
            let again = parse_list(&names.join(","));
            assert_eq!(again.map_or(0, |again| again.len()), machines.len(), "{text}");
        }
    }

    #[test]
    fn commas_separate_machines_but_not_the_words_of_a_command() {
        let shown = |text: &str| -> Vec<String> {
            parse_list(text).expect(text).iter().map(ToString::to_string).collect()
        };
        assert_eq!(shown("local,ssh://a, ssh://b:1"), ["local", "ssh://a", "ssh://b:1"]);
        assert_eq!(shown("exec:a -o b,c agent,local"), ["exec:a -o b,c agent", "local"]);
        assert_eq!(shown("slurm:2 -w a,b,slurm:1"), ["slurm:2 -w a,b", "slurm:2 -w a,b", "slurm:1"]);
        assert_eq!(shown("exec:x a,\"local\""), ["exec:x a,''local"]);
    }

    proptest! {
        #[test]
        fn any_words_are_read_as_they_were_written(
            commands in prop::collection::vec(prop::collection::vec("(local|exec:|[, '\"\\\\\n$a])*", 1..4), 1..4),
        ) {
            let machines: Vec<Machine> = commands.into_iter().filter(|words| !words[0].is_empty()).map(Machine::Exec).collect();
            prop_assume!(!machines.is_empty());
            let text = names(&machines).join(",");
            prop_assert_eq!(parse_list(&text), Ok(machines), "{}", text);
        }
    }

    #[test]
    fn long_lists_take_as_long_as_they_are() {
        let lists: [&dyn Fn(usize) -> String; 4] = [
            &|count| ["local"].repeat(count).join(","),
            &|count| format!("exec:a {}", ",b".repeat(count)),
            &|count| format!("exec:a {}", "' ,'\"local\" ".repeat(count)),
            &|count| ["slurm:9 -p x"].repeat(count).join(","),
        ];
        for list in lists {
            cost::is_near_linear(300, |count| {
                let text = list(count);
                move || {
                    let machines = parse_list(&text).expect("machines");
                    assert!(!names(&machines).is_empty());
                }
            });
        }
    }
}
