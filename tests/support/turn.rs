//! Turns of tests that load the machine: what runs side by side must not be so much that all of it stands still.

use std::sync::{Condvar, Mutex, PoisonError};

/// So many at once: what waits for something leaves room for a third on two cores.
const HEAVY: usize = 3;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The turn of a test with other people's systems or a browser. A test takes one at most: two that each held one and waited
/// for another would wait for ever.
pub struct Turn(());

impl Turn {
    /// Waits for it.
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
