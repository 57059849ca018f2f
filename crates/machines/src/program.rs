//! This program, and how a machine gets it: through the pipe, into a folder that is named after its content.
//!
//! A shell at the other end says in a line whether it has the program. If not, it reads the program from its standard input. Then it
//! becomes `narrows agent`, and frames follow. The caller sends nothing more before the shell is ready, so what reads the program
//! there cannot take bytes of a frame.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::link::{GREETING, Lost};

/// What the shell says if it needs the program.
const SEND: &str = "narrows: send";
/// What the shell says before it becomes the agent.
const HERE: &str = "narrows: here";
/// The longest line of a shell that is waited for, in bytes.
const LONGEST_LINE: usize = 120;
/// How many bytes are written at a time.
const PIECE: usize = 64 << 10;
/// How often a wait looks whether the user interrupted.
const GLANCE: Duration = Duration::from_millis(20);

/// The folder in the cache of narrows with whatever was sent to a machine.
pub const CACHE: &str = "agents";
/// The same in words of a shell.
const FOLDER: &str = r#""${XDG_CACHE_HOME:-$HOME/.cache}/narrows/agents""#;

/// What a shell does at the other end. It has no `'`, no `\` and no `!`, so that in single quotes every login shell takes it as it
/// is. Words in capitals that are no variables are filled in.
const SCRIPT: &str = r#"
    c=FOLDER/HASH; p="$c/narrows"; u=$(uname -sm); m=$(umask); t=;
    if [ "$u" = "SYSTEM" ]; then
        [ -x "$p" ] || {
            umask 077;
            mkdir -p "$c" && t=$(mktemp "$c/XXXXXX") && echo "SAY_SEND" && head -c SIZE >"$t" &&
                [ "$(wc -c <"$t")" -eq SIZE ] && chmod 700 "$t" && mv "$t" "$p";
        } || {
            [ -z "$t" ] || rm -f "$t";
            echo "narrows could not be stored in $c: make room there, or let XDG_CACHE_HOME name another folder there" >&2;
            exit 1;
        };
    else
        p=narrows;
        command -v narrows >/dev/null || {
            echo "this narrows is for SYSTEM, and the machine is $u: install narrows VERSION there" >&2;
            exit 1;
        };
    fi;
    umask "$m";
    "$p" --version >/dev/null || {
        echo "$p does not run there: use the static binary of narrows here, or exec: and a narrows that was built there" >&2;
        exit 1;
    };
    echo "SAY_HERE";
    exec "$p" agent"#;

/// This program as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    bytes: Vec<u8>,
    hash: String,
}

impl Program {
    /// Reads it. It is the file that runs, also if there is another one at its path by now.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn own() -> std::io::Result<Self> {
        std::fs::read("/proc/self/exe").map(Self::of)
    }

    fn of(bytes: Vec<u8>) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let hash = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes, hash }
    }

    /// What a shell does at the other end, in one line.
    pub(crate) fn script(&self) -> String {
        let values = [
            ("FOLDER", FOLDER),
            ("HASH", &self.hash),
            ("SIZE", &self.bytes.len().to_string()),
            ("SYSTEM", &format!("Linux {}", std::env::consts::ARCH)),
            ("VERSION", env!("CARGO_PKG_VERSION")),
            ("SAY_SEND", SEND),
            ("SAY_HERE", HERE),
        ];
        let lines: Vec<&str> = SCRIPT.lines().map(str::trim).collect();
        values.iter().fold(lines.join(" "), |script, (name, value)| script.replace(name, value))
    }

    /// The command line that removes from a machine what was sent to it, and the packages of releases that were fetched there.
    pub(crate) fn cleaning() -> String {
        format!("rm -rf {FOLDER} {}", FOLDER.replace(CACHE, systems::debian::CACHE))
    }
}

/// The talk with a shell at the other end, which a thread leads. The thread has the pipe, and ends with the command at the latest.
pub(crate) struct HandOver<T> {
    ended: Receiver<Result<T, Lost>>,
    /// Bytes of the program that were written.
    sent: Arc<AtomicUsize>,
}

impl<T: Send + 'static> HandOver<T> {
    /// Begins it. The shell gets the program if it asks. Without a program there is no shell, and nothing to talk about. `then` gets
    /// the pipe at once afterwards, because the agent does not wait for other machines.
    pub(crate) fn begin<I: Write + Send + 'static, O: Read + Send + 'static>(
        program: Option<&Arc<Program>>,
        mut input: I,
        mut output: O,
        then: impl FnOnce(I, O) -> Result<T, Lost> + Send + 'static,
    ) -> Self {
        let (sender, ended) = sync_channel(1);
        let sent = Arc::new(AtomicUsize::new(0));
        let (program, progress) = (program.cloned(), Arc::clone(&sent));
        let talk = move || {
            let talked = match program {
                Some(program) => converse(&program, &mut input, &mut output, &progress),
                None => Ok(()),
            };
            let _ = sender.send(talked.and_then(|()| then(input, output)));
        };
        // Without the thread its channel is closed, which is noticed.
        let _ = thread::Builder::new().name("hand-over".to_owned()).spawn(talk);
        Self { ended, sent }
    }

    /// Waits until the shell is about to become the agent. Returns what was made of the pipe.
    pub(crate) fn finish(self, cancel: &AtomicBool) -> Result<T, Lost> {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            match self.ended.recv_timeout(GLANCE) {
                Ok(ended) => return ended,
                Err(RecvTimeoutError::Disconnected) => return Err(Lost::Closed),
                Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::Relaxed) => {
                    return Err(Lost::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A long program takes its time, but some of its bytes move.
            let sent = self.sent.load(Ordering::Relaxed);
            if sent != seen {
                (seen, since) = (sent, Instant::now());
            }
            if since.elapsed() >= GREETING {
                return Err(Lost::Mute);
            }
        }
    }
}

fn converse(
    program: &Program,
    input: &mut impl Write,
    output: &mut impl Read,
    sent: &AtomicUsize,
) -> Result<(), Lost> {
    let mut line = line(output)?;
    if line == SEND {
        for piece in program.bytes.chunks(PIECE) {
            // If the shell has ended, it has said why.
            input.write_all(piece).and_then(|()| input.flush()).map_err(|_| Lost::Closed)?;
            sent.fetch_add(piece.len(), Ordering::Relaxed);
        }
        line = self::line(output)?;
    }
    if line == HERE {
        return Ok(());
    }
    Err(Lost::Broken(format!("what came is not from `narrows agent`: {line:?}")))
}

/// Reads a line, and not a byte more, because frames follow. Its end is left out.
fn line(output: &mut impl Read) -> Result<String, Lost> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LONGEST_LINE {
        match output.read(&mut byte) {
            Ok(0) if line.is_empty() => return Err(Lost::Closed),
            Ok(0) => break,
            Ok(_) if byte == [b'\n'] => break,
            Ok(_) => line.push(byte[0]),
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Lost::Closed),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

    use super::*;

    /// A program of this content, and the shell that waits for it, whose cache is this folder.
    fn shell(content: &str, cache: &Path) -> (Arc<Program>, Child) {
        let program = Arc::new(Program::of(content.as_bytes().to_vec()));
        let mut command = Command::new("sh");
        command.args(["-c", &program.script()]).env("XDG_CACHE_HOME", cache);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("a shell");
        (program, child)
    }

    fn begin<I, O>(program: &Arc<Program>, input: I, output: O) -> HandOver<(I, O)>
    where
        I: Write + Send + 'static,
        O: Read + Send + 'static,
    {
        HandOver::begin(Some(program), input, output, |input, output| Ok((input, output)))
    }

    fn hand_over(program: &Arc<Program>, child: &mut Child) -> Result<(ChildStdin, ChildStdout), Lost> {
        let (input, output) = (child.stdin.take(), child.stdout.take());
        begin(program, input.expect("its input"), output.expect("its output")).finish(&AtomicBool::new(false))
    }

    fn stored(cache: &Path) -> Vec<String> {
        let folder = cache.join("narrows/agents");
        let programs = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = programs.flat_map(|program| std::fs::read_dir(program.path()).into_iter().flatten());
        files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect()
    }

    const ECHO: &str = "#!/bin/sh\n[ $1 = --version ] || cat\n";

    #[test]
    fn the_program_is_sent_once_and_what_follows_reaches_it_whole() {
        let cache = tempfile::tempdir().expect("a folder");
        for again in [false, true] {
            let (program, mut child) = shell(ECHO, cache.path());
            let (mut input, mut output) = hand_over(&program, &mut child).expect("it is handed over");
            input.write_all(b"\0\0\0\x05hello").expect("it is written");
            drop(input);
            let mut got = Vec::new();
            output.read_to_end(&mut got).expect("it is read");
            assert_eq!(got, b"\0\0\0\x05hello", "again: {again}");
            assert!(child.wait().expect("it ends").success());
            assert_eq!(stored(cache.path()), ["narrows"]);
        }
        let path = cache.path().join("narrows/agents").join(&Program::of(ECHO.into()).hash).join("narrows");
        let mode = std::fs::metadata(path).expect("the program").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let release = cache.path().join("narrows/debian/bullseye-0");
        std::fs::create_dir_all(&release).expect("a folder");
        let clean = Command::new("sh")
            .args(["-c", &Program::cleaning()])
            .env("XDG_CACHE_HOME", cache.path())
            .status();
        assert!(clean.expect("it runs").success() && stored(cache.path()).is_empty() && !release.exists());
    }

    #[test]
    fn a_program_that_is_cut_short_is_not_kept() {
        let cache = tempfile::tempdir().expect("a folder");
        let (_, mut child) = shell(ECHO, cache.path());
        let mut input = child.stdin.take().expect("its input");
        input.write_all(&ECHO.as_bytes()[..9]).expect("it is written");
        drop(input);
        let ended = child.wait_with_output().expect("it ends");
        assert!(!ended.status.success() && stored(cache.path()).is_empty(), "{ended:?}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains("make room there"), "{ended:?}");
    }

    #[test]
    fn what_cannot_be_stored_or_run_is_said() {
        let cache = tempfile::tempdir().expect("a folder");
        let (program, mut child) = shell("#!/bin/sh\nexit 3\n", cache.path());
        assert_eq!(hand_over(&program, &mut child).err(), Some(Lost::Closed));
        let said = String::from_utf8_lossy(&child.wait_with_output().expect("it ends").stderr).into_owned();
        assert!(said.contains("static binary"), "{said}");
        let (program, mut child) = shell(ECHO, Path::new("/dev/null"));
        assert_eq!(hand_over(&program, &mut child).err(), Some(Lost::Closed));
        let said = String::from_utf8_lossy(&child.wait_with_output().expect("it ends").stderr).into_owned();
        assert!(said.contains("could not be stored in /dev/null/narrows/agents/"), "{said}");
    }

    #[test]
    fn other_words_are_shown_and_a_wait_is_interrupted() {
        let program = Arc::new(Program::of(Vec::new()));
        let noise = std::io::Cursor::new(b"Welcome!\nmore".to_vec());
        let lost = begin(&program, std::io::sink(), noise).finish(&AtomicBool::new(false)).err();
        assert!(lost.is_some_and(|lost| lost.to_string().contains("Welcome!")));
        let (near, _far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let lost = begin(&program, std::io::sink(), near).finish(&AtomicBool::new(true)).err();
        assert_eq!(lost, Some(Lost::Interrupted));
    }

    #[test]
    fn a_line_of_a_shell_is_read_up_to_its_limit() {
        let read = |length: usize| {
            let mut said = std::io::Cursor::new([&b"x".repeat(length)[..], b"\nframe"].concat());
            (line(&mut said).map(|line| line.len()), said.position() as usize)
        };
        assert_eq!(
            read(LONGEST_LINE - 1),
            (Ok(LONGEST_LINE - 1), LONGEST_LINE),
            "its end was read, and nothing more"
        );
        assert_eq!(read(LONGEST_LINE), (Ok(LONGEST_LINE), LONGEST_LINE));
        assert_eq!(read(LONGEST_LINE + 1), (Ok(LONGEST_LINE), LONGEST_LINE), "what is longer is cut");
        // A line without an end is no shell of ours, and is shown as far as it was read.
        let program = Program::of(Vec::new());
        let told = converse(&program, &mut std::io::sink(), &mut std::io::repeat(b'y'), &AtomicUsize::new(0));
        assert!(matches!(told, Err(Lost::Broken(why)) if why.matches('y').count() >= LONGEST_LINE));
    }

    #[test]
    fn the_script_survives_single_quotes_in_any_shell() {
        let script = Program::of(Vec::new()).script();
        assert!(!script.contains(['\'', '\\', '!', '\n']), "{script}");
        assert!(
            ["FOLDER", "HASH ", "SIZE", "SYSTEM", "VERSION", "SAY"].iter().all(|name| !script.contains(name)),
            "{script}"
        );
    }
}
