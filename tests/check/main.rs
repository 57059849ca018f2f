//! Tests of the program's output, without servers, foreign systems or a clock. `make check` and `make test` run them.

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod debian;
mod deterministic;
mod documents;
mod formats;
mod history;
mod plans;
mod published;
mod questions;
mod quotes;
mod report_hlog;
mod snapshots;
mod systems_install;
mod tune;
