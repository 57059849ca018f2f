//! Samples where a server's CPU time goes, in a short drive after the window, because sampling costs time.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use load::Moment;
use profile::{Options, Profile, Profiler, Refused, Symbols, Waiter, Waits};
use systems::process::Running;
use systems::trace;

use crate::session::driver::{Driver, Orders};

/// What is known from trial to trial: the names of functions, and whether the kernel lets us sample.
#[derive(Debug, Default)]
pub(super) struct Profiling {
    symbols: Symbols,
    refused: bool,
}

/// Reads the names of a server's functions. Call it before the window, because that takes time of its own: 0.1 s for the kernel's list,
/// and as long again for a large program, but only for the first of its trials.
pub(super) fn prepare(profiling: &Mutex<Profiling>, running: &Running) {
    let mut known = profiling.lock().unwrap_or_else(PoisonError::into_inner);
    if known.refused {
        return;
    }
    let processes = running.members()();
    match Profiler::begin(&processes, &Options::default()) {
        Ok(_) => known.symbols.prepare(&processes),
        Err(refused) => {
            trace::say(|| format!("no profiles: {refused}"));
            // Other reasons are those of this server alone.
            known.refused |= matches!(refused, Refused::Paranoid { .. } | Refused::Seccomp);
        }
    }
}

/// What a short drive shows.
#[derive(Default)]
pub(super) struct Seen {
    pub profile: Option<Profile>,
    pub waits: Option<Waits>,
}

/// Drives the server again for a short time, and samples it meanwhile. `idles`: it waits most of the time, so where it waits is watched,
/// too, which costs it time for each switch of a thread. The trial is measured already: a failure here loses only this.
pub(super) fn profile(
    profiling: &Mutex<Profiling>,
    driver: &Driver<'_>,
    orders: &Orders,
    running: &Running,
    idles: bool,
) -> Seen {
    let mut known = profiling.lock().unwrap_or_else(PoisonError::into_inner);
    if known.refused {
        return Seen::default();
    }
    let (members, sampling) = (running.members(), Mutex::<(Option<Profiler>, Option<Waiter>)>::default());
    // Connections are made before, and so are processes that serve one connection each.
    let watch = |moment: Moment<'_>| {
        if let Moment::Opened = moment {
            let (processes, options) = (members(), Options::default());
            let waiter = idles.then(|| Waiter::begin(&processes, &options).ok()).flatten();
            *sampling.lock().unwrap_or_else(PoisonError::into_inner) =
                (Profiler::begin(&processes, &options).ok(), waiter);
        }
    };
    let driven = driver.drive_for_profile(orders, &watch);
    let (profiler, waiter) = sampling.into_inner().unwrap_or_else(PoisonError::into_inner);
    let waits = waiter.map(|waiter| waiter.finish(&mut known.symbols));
    let profile = profiler.map(|profiler| profiler.finish(&mut known.symbols));
    if !driven.is_ok_and(|worked| worked) || running.check_alive().is_err() {
        return Seen::default();
    }
    Seen { profile: profile.filter(|profile| profile.samples > 0), waits }
}

/// The files that the runtime of a system writes for profilers: the names of functions, and a dump of their code. They are removed when
/// this is dropped.
pub(super) struct Names {
    processes: Mutex<BTreeSet<u32>>,
}

impl Names {
    /// Those of the processes that a system has now.
    pub(super) fn of(running: &Running) -> Self {
        Self { processes: Mutex::new(running.members()().into_iter().collect()) }
    }

    /// Adds those of the processes that it has started since.
    pub(super) fn update(&self, running: &Running) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).extend(running.members()());
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for process in self.processes.get_mut().unwrap_or_else(PoisonError::into_inner).iter() {
            for file in [format!("/tmp/perf-{process}.map"), format!("/tmp/jit-{process}.dump")] {
                let _ = std::fs::remove_file(file); // Few processes have them.
            }
        }
    }
}
