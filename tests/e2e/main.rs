//! Tests of the program with servers, clients and systems, in one binary: it is linked once, and its tests run in
//! parallel. Tests that need the machine for themselves are in `tests/serial`, those that need no server in
//! `tests/check`.

#![allow(unsafe_code, reason = "signals, limits and sockets as a hostile peer uses them")]

#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod action;
mod addresses;
mod allotments;
mod beam;
mod builds;
mod checks;
mod clients;
mod commits;
mod crashes;
mod daemons;
mod debian;
mod doctor;
mod drivers;
mod faults;
mod functions;
mod harm;
mod homes;
mod http2_peers;
mod killed;
mod load_errors;
mod load_frames;
mod load_http;
mod load_http2;
mod load_openssl;
mod load_requests;
mod load_tls;
mod machines;
mod machines_run;
mod max_rate;
mod mcp;
mod peers;
mod power;
mod preloaded;
mod priority;
mod reach;
mod reasons;
mod report_html;
mod run_attached;
mod run_failures;
mod run_input;
mod run_store;
mod run_streams;
mod run_systems;
mod run_tls;
mod run_variants;
mod slow_servers;
mod streams;
mod systems_check;
mod systems_http2;
mod systems_tls;
mod terminal;
mod tls_attacks;
mod traces;
mod tries;
mod tries_http2;
mod tries_requests;
mod tries_tls;
