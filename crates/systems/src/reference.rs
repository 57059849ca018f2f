//! Narrows' own endpoints as systems: the ceiling of the machine, beside every system.

use std::path::Path;

use crate::manifest::Draft;
use crate::workload::{Role, Workload};

/// One for each side of the wire. They run in `home` and need nothing there.
pub(crate) fn drafts(home: &Path) -> [Draft; 2] {
    let draft = |role: Role, what: &str, command: &[&str]| {
        let workloads: Vec<Workload> = Workload::ALL.into_iter().filter(|w| w.role() == role).collect();
        Draft {
            name: workloads.first().map(|workload| workload.reference().to_owned()).unwrap_or_default(),
            workloads,
            language: "Rust".to_owned(),
            about: format!("Narrows' own {what}: the ceiling of this machine, in every run"),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            dir: home.to_owned(),
            home: home.to_owned(),
            ..Draft::default()
        }
    };
    [
        draft(
            Role::Server,
            "server",
            &[
                "{narrows}",
                "serve",
                "--any",
                "{port}",
                "--host={address}",
                "--tls={tls}",
                "--cert",
                "{cert}",
                "--key",
                "{key}",
                "--tickets",
            ],
        ),
        draft(Role::Client, "client with a pool", &["{narrows}", "client"]),
    ]
}
