//! A trial in which Narrows drives a server: both sides in turn.

use std::sync::{Mutex, PoisonError};

use load::Moment;
use systems::machine;
use systems::process::Running;

use crate::observation::{Counted, Measurement};
use crate::plan::is_counted;
use crate::session::driver::{Driver, Orders};
use crate::session::place::Place;
use crate::session::stopped::Stopped;
use crate::session::window::Window;

/// Starts the server, checks that it does the work, drives it for the trial's time, counts if it is one for that, and stops it.
pub(super) fn measure(place: &Place<'_>, port: u16) -> Result<Measurement, Stopped> {
    let (driver, orders) = (place.driver(), place.orders(port));
    let running = place.start()?;
    check_equal_work(place, &driver, &orders, &running)?;
    // Told on the generator's thread, at the very ends of the window.
    let window = Mutex::new(Window::new(running.sampler()));
    let watch = |moment: Moment<'_>| {
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        match moment {
            Moment::Opened => window.mark(),
            Moment::Closed => window.read(),
            Moment::Passed { .. } => {}
        }
    };
    let mut measured = driver.drive(&orders, &watch)?;
    running.check_alive()?;
    measured.counted = is_counted(place.trial).then(|| count(&driver, &orders, &running)).flatten();
    let theirs = place.manifest.attached().map(|_| machine::cores_of(running.pid()));
    running.stop();
    place.record(&window.into_inner().unwrap_or_else(PoisonError::into_inner).seen(), &mut measured);
    if let Some(cores) = theirs {
        measured.system.cores = cores; // its user's choice
    }
    Ok(measured)
}

/// What the kernel does for the server in a short drive outside of the window, because counting costs time.
fn count(driver: &Driver<'_>, orders: &Orders, running: &Running) -> Option<Counted> {
    let calls = running.calls();
    // What goes wrong here, an interruption too, costs these counts, not the trial, which is measured.
    let tally = driver.again(orders).ok()?;
    let found = calls.finish();
    let any = found.system_calls.or(found.reads).or(found.instructions).is_some();
    (any && tally.successes > 0).then_some(Counted {
        operations: tally.units,
        bytes: tally.bytes_sent,
        system_calls: found.system_calls,
        reads: found.reads,
        instructions: found.instructions,
    })
}

/// A few exchanges of the trial's kind, small, before anything is timed: a server that answers something else is not
/// compared with one that does the work. One whose manifest declares a fault is driven all the same: its row shows its errors,
/// and ranks nothing.
fn check_equal_work(
    place: &Place<'_>,
    driver: &Driver<'_>,
    orders: &Orders,
    running: &Running,
) -> Result<(), Stopped> {
    let fault = place.manifest.answer.as_ref().and_then(|answer| answer.fault.as_ref());
    let wrong = driver.equal_work(orders, 100_003)?;
    running.check_alive()?;
    match wrong {
        Some(wrong) if fault.is_none() => {
            let workload = orders.work.workload();
            let reason = format!("it does not do the work of `{workload}`: {wrong}; see docs/contracts.md");
            Err(Stopped::failed("equal_work", reason).with_output(running.tail()))
        }
        _ => Ok(()),
    }
}
