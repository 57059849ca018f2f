//! Systems under test: manifests and knobs; build, start, ready, stop; resource sampling.
//!
//! Knows processes, files and `/proc`; knows nothing of workloads' traffic, statistics or reports.

pub mod input;
pub mod knob;
pub mod workload;

pub use input::{InputError, Source};
pub use knob::{Knob, Point, Value};
pub use workload::{Role, Workload};
