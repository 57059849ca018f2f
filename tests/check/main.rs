//! What the program prints: no server, no system of other people, no clock. `make check` runs these tests, and `make test` too.

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod published;
mod report_hlog;
mod snapshots;
mod systems_install;
