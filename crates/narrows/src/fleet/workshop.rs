//! Commits that are built on another machine: what is said to its agent, and who says it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use machines::{Machine, Remote};
use revisions::{Clone, Revision, Trouble};
use serde::{Deserialize, Serialize};
use systems::Limit;
use systems::parcel::{Parcel, Parts};

use crate::common;
use crate::fleet::{self, AgentReply, Order};

/// How often a wait looks whether the user interrupted.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the machine may take to build a commit, and to do any other step: files may come through a slow pipe.
const BUILDING: Duration = Duration::from_secs(12 * 3600);
const PLAIN: Duration = Duration::from_secs(600);
/// How long the machine may take to end a build after Ctrl-C.
const FAREWELL: Duration = Duration::from_secs(10);
/// The most left-out files that a message names.
const NAMED: usize = 3;

/// What the agent of a machine is asked to do with the files of a commit.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Keep a place for this build of the files that this hash stands for. The next steps are about this place.
    Place { id: String, build: u32 },
    /// Take some of its files.
    Take(Box<Parcel>),
    /// Build it. All of its files have come.
    Build(Recipe),
}

/// How a commit is built.
#[derive(Serialize, Deserialize)]
pub struct Recipe {
    /// The commit, as the user called it.
    pub name: String,
    /// The folder in which its commands run, relative to its work tree.
    pub prefix: PathBuf,
    /// The command of `--build`.
    pub command: Option<String>,
    /// The program that is compared, relative to the folder.
    pub program: Option<PathBuf>,
}

/// What the agent says of a step.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To [`Step::Place`]: its files are missing.
    Lacks,
    /// To [`Step::Place`]: its files came before. To [`Step::Take`]: they are taken.
    Has,
    /// To [`Step::Build`].
    Built(Built),
    /// To [`Step::Build`]: it failed, for this reason.
    Fails(String),
    /// To [`Step::Build`]: the build was interrupted.
    Interrupted,
}

/// A commit that is built.
#[derive(Debug, PartialEq, Eq, std::clone::Clone, Serialize, Deserialize)]
pub struct Built {
    /// The folder in which its command runs, on the machine that built it.
    pub folder: PathBuf,
    /// Its program. `None` if the command names none of its own.
    pub program: Option<Program>,
}

/// What is known of the program of a commit.
#[derive(Debug, PartialEq, Eq, std::clone::Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    Missing,
    /// An interpreter runs it and reads other files, too, so two equal scripts may behave differently.
    Script,
    /// It was compiled. The SHA-256 of its bytes.
    Compiled(String),
}

impl Built {
    /// Looks at the program of a commit in a folder of this machine.
    pub fn look(folder: PathBuf, program: Option<&Path>) -> Self {
        let program = program.map(|program| match fs::read(folder.join(program)) {
            Ok(bytes) if bytes.starts_with(b"\x7fELF") => Program::Compiled(systems::parcel::sha256(&bytes)),
            _ if folder.join(program).exists() => Program::Script,
            _ => Program::Missing,
        });
        Self { folder, program }
    }

    /// Whether this is certainly the same program.
    pub fn is_same(&self, other: &Self) -> bool {
        let compiled = matches!(self.program, Some(Program::Compiled(_)));
        self.folder == other.folder || compiled && self.program == other.program
    }
}

/// The machine on which commits are built. As long as this value lives, no other run builds in their folders.
pub struct Workshop {
    remote: Remote,
    cancel: Arc<AtomicBool>,
}

impl Workshop {
    /// Reaches the machine.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn reach(machine: &Machine, files: Limit, cancel: &Arc<AtomicBool>) -> anyhow::Result<Self> {
        let mut reached = fleet::reach(std::slice::from_ref(machine), files, cancel)?;
        let remote = reached.pop().ok_or_else(|| anyhow!("machine {machine}: it was not reached"))?;
        Ok(Self { remote, cancel: Arc::clone(cancel) })
    }

    /// Builds a commit there. Its files are sent unless the machine has them.
    ///
    /// # Errors
    /// The machine is gone, the files cannot be sent, the build fails, or the user interrupts.
    pub fn build(
        &mut self,
        clone: &Clone,
        revision: &Revision,
        build: u32,
        recipe: Recipe,
    ) -> anyhow::Result<Built> {
        let files = clone.files()?;
        if files.is_empty() {
            return Err(Trouble::Wrong(format!("{} has no files", revision.name)).into());
        }
        // A submodule may have been fetched since the commit was sent.
        let id = systems::parcel::sha256(format!("{}\0{}", revision.commit, files.join("\0")).as_bytes());
        if let Stage::Lacks = self.does(Step::Place { id, build })? {
            self.send(clone, &revision.name, &files)?;
        }
        match self.does(Step::Build(recipe))? {
            Stage::Built(built) => Ok(built),
            Stage::Fails(why) => Err(Trouble::Wrong(self.remote.error(why).to_string()).into()),
            Stage::Interrupted => Err(Trouble::Interrupted.into()),
            Stage::Lacks | Stage::Has => Err(fleet::unasked(&self.remote).into()),
        }
    }

    fn send(&mut self, clone: &Clone, name: &str, files: &[String]) -> anyhow::Result<()> {
        let mut parts = Parts::of(&clone.top, files);
        for part in &mut parts {
            let part =
                part.map_err(|why| anyhow!("{name} cannot be sent to {}: {why}", self.remote.machine()))?;
            self.does(Step::Take(Box::new(part)))?;
        }
        if !parts.left_out.is_empty() {
            let first = parts.left_out.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let number = parts.left_out.len();
            let more = if number > NAMED { ", …" } else { "" };
            common::say(format_args!(
                "{name}: links that may lead out of the repository are not sent ({number}: {first}{more})"
            ));
        }
        Ok(())
    }

    /// Lets the machine do a step.
    fn does(&mut self, step: Step) -> anyhow::Result<Stage> {
        let builds = matches!(step, Step::Build(_));
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Trouble::Interrupted.into());
        }
        fleet::order(&mut self.remote, &Order::Workshop(Box::new(step)))?;
        let mut patience = Patience { builds, began: Instant::now(), asked: None };
        loop {
            let next = patience.at(Instant::now(), self.cancel.load(Ordering::Relaxed));
            match next {
                Next::Wait | Next::TooLong(_) => {}
                Next::Stop => fleet::order(&mut self.remote, &Order::Stop)?,
                Next::GiveUp => return Err(Trouble::Interrupted.into()),
            }
            match fleet::answer(&mut self.remote, GLANCE)? {
                Some(AgentReply::Workshop(stage)) => return Ok(*stage),
                Some(_) => return Err(fleet::unasked(&self.remote).into()),
                None => {}
            }
            if let Next::TooLong(why) = next {
                return Err(self.remote.error(why).into());
            }
        }
    }
}

/// How long a step of the machine is waited for. Pure.
struct Patience {
    /// Whether the step is a build, which ends when it is asked to.
    builds: bool,
    began: Instant,
    /// When it was asked to.
    asked: Option<Instant>,
}

/// What a wait for a step does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Wait,
    /// Asks the machine to end the step.
    Stop,
    /// Waits no longer, because the user interrupted.
    GiveUp,
    /// Waits no longer, for this reason.
    TooLong(String),
}

impl Patience {
    /// What to do at the time `now`. `cancelled` is set if the user has interrupted.
    fn at(&mut self, now: Instant, cancelled: bool) -> Next {
        let longest = if self.builds { BUILDING } else { PLAIN };
        match self.asked {
            Some(asked) if now >= asked + FAREWELL => Next::GiveUp,
            Some(_) => Next::Wait,
            // The agent removes files that have come when its pipe closes.
            None if cancelled && !self.builds => Next::GiveUp,
            None if cancelled => {
                self.asked = Some(now);
                Next::Stop
            }
            None if now < self.began + longest => Next::Wait,
            None => Next::TooLong(format!("it did not end a step of a build within {} s", longest.as_secs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: Duration = Duration::from_millis(1);

    fn patience(builds: bool) -> (Patience, Instant) {
        let began = Instant::now();
        (Patience { builds, began, asked: None }, began)
    }

    #[test]
    fn a_step_is_waited_for_up_to_its_limit_which_the_error_names() {
        for (builds, longest, named) in [(true, BUILDING, "within 43200 s"), (false, PLAIN, "within 600 s")] {
            let (mut patience, began) = patience(builds);
            assert_eq!(patience.at(began, false), Next::Wait);
            assert_eq!(patience.at(began + longest - LITTLE, false), Next::Wait);
            let Next::TooLong(why) = patience.at(began + longest, false) else { panic!("it goes on") };
            assert!(why.ends_with(named), "{why}");
        }
    }

    #[test]
    fn an_interrupted_build_is_asked_once_to_end_and_has_a_while() {
        let (mut patience, began) = patience(true);
        assert_eq!(patience.at(began, true), Next::Stop);
        assert_eq!(patience.at(began + FAREWELL - LITTLE, true), Next::Wait);
        assert_eq!(patience.at(began + FAREWELL, true), Next::GiveUp);
        // Nor does it wait for long if it was asked just before its limit.
        let (mut patience, began) = self::patience(true);
        assert_eq!(patience.at(began + BUILDING - LITTLE, true), Next::Stop);
        assert_eq!(patience.at(began + BUILDING, true), Next::Wait);
        assert_eq!(patience.at(began + BUILDING + FAREWELL, true), Next::GiveUp);
    }

    #[test]
    fn another_step_that_is_interrupted_is_given_up_at_once() {
        let (mut patience, began) = patience(false);
        assert_eq!(patience.at(began, true), Next::GiveUp);
    }
}
