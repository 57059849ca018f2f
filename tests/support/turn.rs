//! Limits how many tests load the machine at the same time, so that they do not stall each other.

use std::sync::{Condvar, Mutex, PoisonError};

/// How many run at once. Tests often wait for something, so two cores have room for three.
const HEAVY: usize = 3;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The turn of a test with foreign systems or a browser. A test may take only one: two tests that each hold one and
/// wait for another would deadlock.
pub struct Turn(());

impl Turn {
    /// Waits for a turn.
    pub fn take() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut usize| *taken >= HEAVY;
        let mut taken = FREED.wait_while(taken, full).unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}
