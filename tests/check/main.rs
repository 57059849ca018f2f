//! Tests of the program's output, without servers, foreign systems or a clock. `make check` and `make test` run them.

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod debian;
mod deterministic;
mod documents;
mod duets;
mod formats;
mod harm;
mod history;
mod ledgers;
mod load_refused;
mod plans;
mod published;
mod questions;
mod quotes;
mod report_hlog;
mod report_json;
mod run_input;
mod run_store;
mod snapshots;
mod systems_install;
mod tries;
mod tries_refused;
mod tune;
