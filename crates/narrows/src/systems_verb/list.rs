//! `narrows systems`: lists what runs here with its versions, and what is missing with the way to get it.

use std::process::ExitCode;

use serde::Serialize;
use systems::build;
use systems::probe::{self, Availability, Context};
use systems::{Catalog, Manifest};

use crate::common::{self, End};

/// One system of the list.
#[derive(Serialize)]
struct Listed {
    name: String,
    role: String,
    workloads: Vec<String>,
    language: String,
    about: String,
    available: bool,
    /// The names and versions of what it needs.
    versions: Vec<(String, String)>,
    missing: Vec<Missing>,
    knobs: Vec<Knob>,
    /// Why its manifest cannot be read. The other fields are then empty.
    broken: Option<String>,
}

#[derive(Serialize)]
struct Missing {
    name: String,
    get: String,
    detail: String,
}

#[derive(Serialize)]
struct Knob {
    name: String,
    default: String,
    allowed: String,
    about: String,
}

/// Lists every system, as text or as JSON.
pub fn list(catalog: &Catalog, context: Context<'_>, json: bool) -> End {
    let mut all: Vec<Listed> = catalog.manifests().map(|manifest| listed(manifest, context)).collect();
    all.extend(catalog.broken().map(|(name, error)| Listed::broken(name, error.one_line())));
    if json {
        common::print(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    } else {
        common::print(&text(&all))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(manifest: &Manifest, context: Context<'_>) -> Listed {
    let (versions, missing) = match probe::availability(manifest, context) {
        Availability::Ready { versions } => {
            let missing = Vec::from_iter(unbuilt(manifest, context, &versions));
            (versions, missing)
        }
        Availability::Missing { what } => (
            Vec::new(),
            what.into_iter()
                .map(|need| Missing { name: need.name, get: need.get, detail: need.detail })
                .collect(),
        ),
    };
    let knobs = manifest.knobs.iter().map(|(name, knob)| Knob {
        name: name.clone(),
        default: knob.show(&knob.default),
        allowed: knob.allowed(),
        about: knob.about.clone(),
    });
    Listed {
        name: manifest.name.clone(),
        role: manifest.role.to_string(),
        workloads: manifest.workloads.iter().map(ToString::to_string).collect(),
        language: manifest.language.clone(),
        about: manifest.about.clone(),
        available: missing.is_empty(),
        versions,
        missing,
        knobs: knobs.collect(),
        broken: None,
    }
}

/// The failure of the system's last build, for example because a registry is unreachable.
fn unbuilt(manifest: &Manifest, context: Context<'_>, versions: &[(String, String)]) -> Option<Missing> {
    let detail = build::last_failure(manifest, context, &probe::in_words(versions))?;
    let get = manifest.build.as_ref().and_then(|build| build.get.clone());
    Some(Missing {
        name: "a build that succeeds".to_owned(),
        get: get.unwrap_or_else(|| format!("narrows systems --check {} tries again", manifest.name)),
        detail,
    })
}

impl Listed {
    fn broken(name: &str, error: String) -> Self {
        Self {
            name: name.to_owned(),
            role: String::new(),
            workloads: Vec::new(),
            language: String::new(),
            about: String::new(),
            available: false,
            versions: Vec::new(),
            missing: Vec::new(),
            knobs: Vec::new(),
            broken: Some(error),
        }
    }
}

fn text(listed: &[Listed]) -> String {
    let mut text = String::new();
    for system in listed {
        if let Some(error) = &system.broken {
            text.push_str(&format!("{:<20} broken manifest: {error}\n\n", system.name));
            continue;
        }
        let state = if system.available { "runs here" } else { "missing" };
        text.push_str(&format!(
            "{:<20} {:<7} {:<10} {} · {}\n{:20} {}\n",
            system.name,
            system.role,
            state,
            system.workloads.join(", "),
            probe::in_words(&system.versions),
            "",
            system.about
        ));
        for need in &system.missing {
            text.push_str(&format!("{:20} needs {} ({}): {}\n", "", need.name, need.detail, need.get));
        }
        // A variant has the knobs of the plain system above it.
        let variant = system.name.contains('@');
        for knob in system.knobs.iter().filter(|_| !variant) {
            text.push_str(&format!(
                "{:20} --set {}={}  {} ({})\n",
                "", knob.name, knob.default, knob.about, knob.allowed
            ));
        }
        text.push('\n');
    }
    text
}
