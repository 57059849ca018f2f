//! The program against servers, clients and systems, in one binary: it is compiled and linked once, and its tests run side by
//! side. What needs the machine for itself is in `tests/serial`, what needs no server in `tests/check`.

#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod beam;
mod builds;
mod clients;
mod doctor;
mod load_errors;
mod load_frames;
mod load_http;
mod max_rate;
mod report_html;
mod report_json;
mod run_attached;
mod run_failures;
mod run_input;
mod run_store;
mod run_systems;
mod run_variants;
mod systems_check;
mod terminal;
