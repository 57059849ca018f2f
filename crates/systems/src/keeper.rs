//! The keeper: a small process that ends what Narrows has started, and removes what it has made, if Narrows itself is killed.
//!
//! It is this program again. It reads from a pipe what it has charge of. Only Narrows holds the other end of the pipe, so
//! the kernel closes it when Narrows ends, however it ends. The keeper has a session of its own, so Ctrl-C in the
//! terminal does not reach it. It knows processes and paths; knows nothing of systems.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::descent;
use crate::proc;
use crate::sys;
use crate::trace;
use crate::tree::Run;
use crate::wait::{self, deadline_in, poll};

/// How long the keeper tries to end processes. One that survives SIGKILL for so long hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long processes have to end by themselves when they are told to.
const GRACE: Duration = Duration::from_secs(2);
/// How long no process may be found before all have ended. One may have started another during the search.
const QUIET: Duration = Duration::from_millis(100);
/// How long Narrows waits for the end of its keeper, so that the keeper is not left to be reaped by others.
const FAREWELL: Duration = Duration::from_secs(5);
/// What Narrows says before it ends by itself.
const OVER: &[u8] = b".";

/// Something that must not outlive Narrows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Charge {
    /// A process group.
    Group(u32),
    /// A control group and the processes in it.
    Confined(PathBuf),
    /// A file or a folder.
    Path(PathBuf),
}

impl Charge {
    /// It as a message without the byte that ends it. `sign` is `+` if it begins, and `-` if it has ended.
    fn message(&self, sign: u8) -> Vec<u8> {
        let (kind, number);
        let text = match self {
            Self::Group(group) => {
                (kind, number) = (b'g', group.to_string());
                number.as_bytes()
            }
            Self::Confined(path) => {
                kind = b'c';
                path.as_os_str().as_bytes()
            }
            Self::Path(path) => {
                kind = b'p';
                path.as_os_str().as_bytes()
            }
        };
        [&[sign, kind], text].concat()
    }

    fn read(kind: u8, text: &[u8]) -> Option<Self> {
        let path = || PathBuf::from(OsStr::from_bytes(text));
        match kind {
            b'g' => {
                Some(Self::Group(std::str::from_utf8(text).ok()?.parse().ok().filter(|group| *group > 1)?))
            }
            b'c' => Some(Self::Confined(path())),
            b'p' => Some(Self::Path(path())),
            _ => None,
        }
    }
}

/// A path that is removed when this is dropped, with all that is in it. If Narrows is killed, its keeper removes it.
#[derive(Debug)]
pub struct Fleeting(Charge, PathBuf);

impl Fleeting {
    /// Takes charge of a path before something is made there.
    pub fn new(path: PathBuf) -> Self {
        // The keeper has another current folder.
        let charge = Charge::Path(std::path::absolute(&path).unwrap_or_else(|_| path.clone()));
        take(&charge);
        Self(charge, path)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.1
    }
}

impl Drop for Fleeting {
    fn drop(&mut self) {
        remove(&self.1);
        release(&self.0);
    }
}

/// Narrows' side of the pipe.
struct Keeper {
    /// The argument that makes this program a keeper; `None` where a test or another program uses this crate.
    verb: Option<&'static str>,
    child: Option<Child>,
    /// It was started once. A keeper that somebody killed is not replaced.
    begun: bool,
}

fn keeper() -> MutexGuard<'static, Keeper> {
    static KEEPER: Mutex<Keeper> = Mutex::new(Keeper { verb: None, child: None, begun: false });
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets this program have a keeper, which is started when there is something to keep. `verb` and the name of the run are
/// the arguments with which this program calls [`keep`].
pub fn appoint(verb: &'static str) {
    keeper().verb = Some(verb);
}

/// Starts the keeper unless it was started. Without one, the kernel still kills the first process of each group.
pub(crate) fn begin() {
    keeper().begin();
}

/// Tells the keeper what it has charge of from now on.
pub(crate) fn take(charge: &Charge) {
    keeper().say(&charge.message(b'+'));
}

/// Tells the keeper what has ended.
pub(crate) fn release(charge: &Charge) {
    keeper().say(&charge.message(b'-'));
}

/// Ends the keeper, at the end of the program.
pub fn dismiss() {
    let mut keeper = keeper();
    if keeper.child.is_some() {
        keeper.say(OVER);
    }
    if let Some(mut child) = keeper.child.take() {
        drop(child.stdin.take());
        wait::for_end(child.id(), deadline_in(FAREWELL));
        let _ = child.try_wait();
    }
}

impl Keeper {
    fn begin(&mut self) {
        let Some(verb) = self.verb.filter(|_| !std::mem::replace(&mut self.begun, true)) else { return };
        // The program's file may have been replaced by a newer one since it was started.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("narrows").args([verb, &Run::ours().to_string()]).current_dir("/");
        // A Narrows that started this one must not take the keeper for a stray, because it is still needed then.
        sys::limit_locks(&mut command, None);
        command.env_remove(trace::VARIABLE);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        sys::set_apart(&mut command);
        match descent::adopt(&mut command) {
            Ok(child) => self.child = Some(child),
            Err(why) => trace::say(|| format!("cannot start the keeper: {why}")),
        }
    }

    fn say(&mut self, message: &[u8]) {
        self.begin();
        let Some(pipe) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) else { return };
        if let Err(why) = pipe.write_all(&[message, &[0]].concat()) {
            trace::say(|| format!("the keeper is gone: {why}"));
            self.child = None;
        }
    }
}

/// The keeper's side: reads what it has charge of until Narrows ends, and then ends what is left of the run.
pub fn keep(run: &str, pipe: impl Read) {
    // `killall -9 narrows` must not find it.
    let _ = rustix::thread::set_name(c"keeper");
    let (charges, over) = attend(BufReader::new(pipe));
    if let Some(run) = Run::named(run).filter(|_| !over || !charges.is_empty()) {
        end(run, &charges);
    }
}

/// Reads messages until the pipe closes. Returns what is left, and whether Narrows said that it ends.
fn attend(mut pipe: impl BufRead) -> (BTreeSet<Charge>, bool) {
    let (mut charges, mut over, mut message) = (BTreeSet::new(), false, Vec::new());
    while pipe.read_until(0, &mut message).is_ok_and(|read| read > 0) {
        if message.pop() != Some(0) {
            break; // Narrows was killed in the middle of it.
        }
        match &message[..] {
            OVER => over = true,
            [sign, kind, text @ ..] => {
                if let Some(charge) = Charge::read(*kind, text) {
                    let _ = if *sign == b'+' { charges.insert(charge) } else { charges.remove(&charge) };
                }
            }
            _ => {}
        }
        message.clear();
    }
    (charges, over)
}

/// Ends all processes of a run, and then removes its files.
fn end(run: Run, charges: &BTreeSet<Charge>) {
    let left = Left { run, charges };
    // Some give something back when they are told to end, such as an allocation of machines.
    left.signal(Signal::TERM);
    poll(deadline_in(GRACE), || left.living().is_empty());
    let mut quiet = Instant::now();
    poll(deadline_in(PATIENCE), || {
        let living = left.signal(Signal::KILL);
        if !living.is_empty() {
            quiet = Instant::now();
        }
        quiet.elapsed() >= QUIET
    });
    for charge in charges {
        match charge {
            Charge::Group(_) => {}
            Charge::Path(path) => remove(path),
            Charge::Confined(folder) => {
                // The kernel may count a process for a moment after its end.
                poll(deadline_in(Duration::from_secs(1)), || {
                    fs::remove_dir(folder).is_ok() || !folder.exists()
                });
            }
        }
    }
}

/// What is left of a run.
struct Left<'a> {
    run: Run,
    charges: &'a BTreeSet<Charge>,
}

impl Left<'_> {
    /// The processes that have not ended.
    fn living(&self) -> Vec<u32> {
        let confined = self.confined();
        proc::pids().filter(|pid| self.has(*pid, &confined)).collect()
    }

    /// Those in control groups.
    fn confined(&self) -> BTreeSet<u32> {
        let folders = self.charges.iter().filter_map(|charge| match charge {
            Charge::Confined(folder) => Some(folder),
            Charge::Group(_) | Charge::Path(_) => None,
        });
        let lists = folders.map(|folder| fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default());
        lists.flat_map(|list| list.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect()
    }

    fn has(&self, pid: u32, confined: &BTreeSet<u32>) -> bool {
        let Some(stat) = proc::stat(pid).filter(proc::Stat::lives) else { return false };
        pid != std::process::id()
            && (self.charges.contains(&Charge::Group(stat.group))
                || confined.contains(&pid)
                || self.run.has(pid))
    }

    /// Sends a signal to all of them. Returns them.
    fn signal(&self, signal: Signal) -> Vec<u32> {
        let living = self.living();
        living.iter().for_each(|pid| sys::signal(*pid, signal, |pid| self.has(pid, &self.confined())));
        living
    }
}

/// Removes a file or a folder with all that is in it, if it is there.
fn remove(path: &Path) {
    let _ = match fs::symlink_metadata(path) {
        Ok(known) if known.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(why) => Err(why),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: &[Vec<u8>]) -> (BTreeSet<Charge>, bool) {
        let text: Vec<u8> = messages.iter().flat_map(|message| [&message[..], &[0]].concat()).collect();
        attend(&text[..])
    }

    #[test]
    fn what_was_taken_and_not_released_is_left() {
        let odd = Charge::Path(PathBuf::from(OsStr::from_bytes(b"/a b\n\xff")));
        let (group, confined) = (Charge::Group(4711), Charge::Confined("/c".into()));
        let taken: Vec<_> = [&odd, &group, &confined].map(|charge| charge.message(b'+')).to_vec();
        assert_eq!(said(&taken), (BTreeSet::from([odd.clone(), group.clone(), confined.clone()]), false));
        let more = [taken, vec![odd.message(b'-'), confined.message(b'-')]].concat();
        assert_eq!(said(&more), (BTreeSet::from([group.clone()]), false));
        let all = [more, vec![group.message(b'-'), OVER.to_vec()]].concat();
        assert_eq!(said(&all), (BTreeSet::new(), true));
    }

    #[test]
    fn nothing_is_done_for_messages_that_make_no_sense() {
        // A group of 0 or 1 would mean other processes to kill(2).
        for text in [&b"+g0"[..], b"+g1", b"+g-5", b"+gx", b"+x", b"+", b"", b"+g\xff"] {
            assert_eq!(said(&[text.to_vec()]), (BTreeSet::new(), false), "{text:?}");
        }
        // The pipe was cut in the middle of a message.
        assert_eq!(attend(&b"+p/a\0+p/b"[..]).0, BTreeSet::from([Charge::Path("/a".into())]));
    }

    #[test]
    fn a_path_goes_with_its_owner_whatever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [file, tree, link] = ["file", "tree", "link"].map(|name| folder.path().join(name));
        let kept = [&file, &tree, &link].map(|path| Fleeting::new(path.clone()));
        fs::write(&file, "").unwrap();
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).unwrap();
        drop(kept);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left, ["elsewhere"]);
        // What got another name stays, and so does its owner's calm.
        drop(Fleeting::new(folder.path().join("never made")));
    }
}
