//! `narrows systems`: lists what runs here with its versions, and what is missing with the way to get it.

use std::process::ExitCode;

use serde::Serialize;
use systems::build;
use systems::probe::{self, Availability, Context};
use systems::{Catalog, Home, Manifest, Origin, is_reference};

use crate::common::{self, End};

/// One system of the list.
#[derive(Serialize)]
struct Listed {
    name: String,
    role: String,
    workloads: Vec<String>,
    language: String,
    about: String,
    /// Which kind of home it comes from.
    from: String,
    /// Its folder.
    folder: String,
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

/// The systems of the strongest home that has any, and Narrows' own endpoints; or all.
pub fn chosen(catalog: &Catalog, all: bool) -> Vec<&Manifest> {
    let own = |manifest: &&Manifest| is_reference(&manifest.name);
    let of =
        |home: &Home| catalog.manifests().any(|manifest| !own(&manifest) && manifest.home() == home.path);
    let strongest = catalog.homes().iter().find(|home| of(home));
    let takes = |manifest: &&Manifest| {
        all || own(manifest) || strongest.is_some_and(|home| manifest.home() == home.path)
    };
    catalog.manifests().filter(takes).collect()
}

/// Lists these systems and the broken ones, as text or as JSON.
pub fn list(chosen: &[&Manifest], catalog: &Catalog, context: Context<'_>, json: bool) -> End {
    let from = |manifest: &Manifest| origin(catalog.homes(), manifest);
    let mut all: Vec<Listed> =
        chosen.iter().map(|manifest| listed(manifest, context, from(manifest))).collect();
    all.extend(catalog.broken().map(|(name, error)| Listed::broken(name, error.one_line())));
    if json {
        common::print(format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    } else {
        common::print_lines(text(&all))?;
        let left = catalog.manifests().count() - chosen.len();
        if left > 0 {
            common::print_lines(format!(
                "{left} more come from other folders: `narrows systems --all` lists them\n"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a system comes from.
fn origin(homes: &[Home], manifest: &Manifest) -> Origin {
    let home = homes.iter().find(|home| home.path == manifest.home());
    // Narrows' own endpoints need no home.
    home.filter(|_| manifest.home() != manifest.dir).map_or(Origin::BuiltIn, |home| home.origin)
}

fn listed(manifest: &Manifest, context: Context<'_>, origin: Origin) -> Listed {
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
        from: origin.to_string(),
        folder: manifest.dir.display().to_string(),
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
            from: String::new(),
            folder: String::new(),
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
        let facts = [system.workloads.join(", "), probe::in_words(&system.versions), system.from.clone()];
        let facts: Vec<&str> = facts.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
        text.push_str(&format!(
            "{:<20} {:<7} {state:<10} {}\n{:20} {}\n",
            system.name,
            system.role,
            facts.join(" · "),
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
