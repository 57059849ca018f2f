//! The workshop of an agent: commits whose files were sent here are built.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use revisions::{Sent, Trouble};
use systems::homes;

use crate::fleet::workshop::{Built, Recipe, Stage, Step};

/// The places of commits. They are kept from other processes until the agent ends.
#[derive(Default)]
pub struct Workshop {
    places: Vec<Arc<Mutex<Sent>>>,
}

/// A step that takes its time.
pub struct Build {
    place: Arc<Mutex<Sent>>,
    recipe: Recipe,
}

/// What becomes of a step.
pub enum Begun {
    Ended(Stage),
    Goes(Build),
}

impl Workshop {
    /// Does a step, or begins it.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn step(&mut self, step: Step) -> Result<Begun, String> {
        match step {
            Step::Place { id, build } => {
                let cache =
                    homes::cache().ok_or("its user has no home folder, so no commit can be kept there")?;
                let clones = cache.join(machines::CACHE).join("revisions");
                // This process may hold the same place already.
                self.places.retain(|place| !locked(place).is_of(&id, build));
                let place = Sent::place(&clones, &id, build).map_err(|why| why.to_string())?;
                let stage = if place.is_there() { Stage::Has } else { Stage::Lacks };
                self.places.push(Arc::new(Mutex::new(place)));
                Ok(Begun::Ended(stage))
            }
            Step::Take(part) => {
                locked(self.last()?).take(&part).map_err(|why| why.to_string())?;
                Ok(Begun::Ended(Stage::Has))
            }
            Step::Build(recipe) => Ok(Begun::Goes(Build { place: Arc::clone(self.last()?), recipe })),
        }
    }

    fn last(&self) -> Result<&Arc<Mutex<Sent>>, String> {
        self.places.last().ok_or_else(|| "there is no place for a commit".to_owned())
    }
}

impl Build {
    /// Builds.
    pub fn run(self, cancel: &AtomicBool) -> Stage {
        let Recipe { name, prefix, command, program } = self.recipe;
        match locked(&self.place).build((&name, &prefix), command.as_deref(), cancel) {
            Ok(folder) => Stage::Built(Built::look(folder, program.as_deref())),
            Err(Trouble::Interrupted) => Stage::Interrupted,
            Err(why) => Stage::Fails(why.to_string()),
        }
    }
}

fn locked(place: &Mutex<Sent>) -> std::sync::MutexGuard<'_, Sent> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
