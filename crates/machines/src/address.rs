//! How a machine is named, and the command that gives the pipe to it. Pure, except for the path of this program.

use std::fmt;
use std::process::Command;

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
}

/// What is wrong with the name of a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("machine {text:?}: {why}")]
pub struct AddressError {
    text: String,
    why: String,
}

/// How the names of machines begin.
const BEGINNINGS: [&str; 3] = ["ssh://", "exec:", "local"];
const EXPECTED: &str = "write ssh://[user@]host[:port], exec:COMMAND or local";

/// Parses machines that are separated by commas. A comma separates only where the name of another machine follows, because
/// commands may contain commas.
///
/// # Errors
/// The first name that is wrong.
pub fn parse_list(text: &str) -> Result<Vec<Machine>, AddressError> {
    let mut names: Vec<String> = Vec::new();
    for part in text.split(',') {
        let begins = BEGINNINGS.iter().any(|beginning| part.trim_start().starts_with(beginning));
        match names.last_mut() {
            Some(last) if !begins => {
                last.push(',');
                last.push_str(part);
            }
            _ => names.push(part.to_owned()),
        }
    }
    names.iter().map(|name| name.trim().parse()).collect()
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
    /// The command that gives the pipe. `own` is the path of this program.
    pub fn command(&self, own: &std::path::Path) -> Command {
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
                command.args(["--", host, "narrows", "agent"]);
                command
            }
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Exec(words) => {
                let joined = shlex::try_join(words.iter().map(String::as_str));
                write!(f, "exec:{}", joined.unwrap_or_else(|_| words.join(" ")))
            }
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(machine: &Machine) -> Vec<String> {
        let command = machine.command(std::path::Path::new("/bin/own"));
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
            ("ssh://gen1", &[&ssh[..], &["--", "gen1", "narrows", "agent"]].concat()),
            (
                "ssh://me@10.0.0.1:2222",
                &[&ssh[..], &["-p", "2222", "-l", "me", "--", "10.0.0.1", "narrows", "agent"]].concat(),
            ),
            ("ssh://[fd00::1]:22", &[&ssh[..], &["-p", "22", "--", "fd00::1", "narrows", "agent"]].concat()),
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
        ] {
            let error = parse_list(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn commas_separate_machines_but_not_the_words_of_a_command() {
        let shown = |text: &str| -> Vec<String> {
            parse_list(text).expect(text).iter().map(ToString::to_string).collect()
        };
        assert_eq!(shown("local,ssh://a, ssh://b:1"), ["local", "ssh://a", "ssh://b:1"]);
        assert_eq!(shown("exec:a -o b,c agent,local"), ["exec:a -o 'b,c' agent", "local"]);
    }
}
