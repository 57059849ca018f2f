//! How much memory commands take, counted before they are made. A command of 100 KB with thousands of values is hundreds of megabytes.

use std::collections::BTreeMap;

use lab::plan::{MOST_BYTES, Plan};
use systems::manifest::{Hooks, Program};
use systems::{Catalog, Draft, Point, Value, template};

use crate::common::Usage;

/// The bytes that a command takes with its variables and hooks, at any point.
#[derive(Default)]
struct Length {
    /// Without the values of knobs.
    fixed: usize,
    /// How often the value of each knob stands in it.
    knobs: BTreeMap<String, usize>,
}

impl Length {
    fn of<'a>(texts: impl Iterator<Item = &'a String>) -> Self {
        let mut length = Self::default();
        for text in texts {
            length.fixed = length.fixed.saturating_add(size_of::<String>()).saturating_add(text.len());
            for name in template::names(text).unwrap_or_default() {
                *length.knobs.entry(name).or_default() += 1;
            }
        }
        length
    }

    /// At a point, where `value` says how long the value of a knob is.
    fn with(&self, value: impl Fn(&str) -> usize) -> usize {
        let values = self.knobs.iter().map(|(name, times)| value(name).saturating_mul(*times));
        values.fold(self.fixed, usize::saturating_add)
    }
}

/// What is filled in for each point.
fn texts<'a>(
    command: &'a [String],
    variables: [&'a BTreeMap<String, String>; 2],
    hooks: &'a Hooks,
) -> impl Iterator<Item = &'a String> {
    let of_hooks = hooks.all().into_iter().filter_map(|(_, words)| words).flatten();
    command.iter().chain(variables.into_iter().flat_map(BTreeMap::values)).chain(of_hooks)
}

fn length(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        other => other.to_string().len(),
    }
}

/// The memory of the systems that a command line makes.
#[derive(Default)]
pub struct Systems {
    bytes: usize,
}

impl Systems {
    /// Adds a system that is made so many times.
    ///
    /// # Errors
    /// All take too much, or its command with the longest values does.
    pub fn add(&mut self, draft: &Draft, times: usize) -> Result<(), Usage> {
        let length = Length::of(texts(&draft.command, [&draft.env, &draft.profile_env], &draft.hooks));
        let longest = |name: &str| {
            let values = draft.knobs.get(name).into_iter().flat_map(|knob| &knob.values);
            values.map(self::length).max().unwrap_or(0)
        };
        let bytes = length.with(longest);
        if bytes > MOST_BYTES {
            return Err(too_much("a command with its longest values takes", bytes));
        }
        let values = draft.knobs.values().flat_map(|knob| &knob.values);
        let of_values = values.map(|value| size_of::<Value>().saturating_add(self::length(value)));
        let of_system = of_values.fold(length.fixed.saturating_add(draft.about.len()), usize::saturating_add);
        self.bytes = self.bytes.saturating_add(of_system.saturating_mul(times));
        match self.bytes > MOST_BYTES {
            true => Err(too_much("the commands with the values of their knobs take", self.bytes)),
            false => Ok(()),
        }
    }
}

/// Checks how much memory the commands of all points of a plan take.
///
/// # Errors
/// They take too much.
pub fn check(catalog: &Catalog, plan: &Plan) -> Result<(), Usage> {
    let scenarios = plan.experiments.iter().flat_map(|planned| &planned.scenarios);
    check_points(catalog, scenarios.map(|scenario| (&scenario.system, &scenario.point)))
}

fn check_points<'a>(
    catalog: &Catalog,
    all: impl Iterator<Item = (&'a String, &'a Point)>,
) -> Result<(), Usage> {
    let (mut lengths, mut bytes, mut points) = (BTreeMap::new(), 0_usize, 0_usize);
    for (system, point) in all {
        let length = lengths.entry(system).or_insert_with(|| of_system(catalog, system));
        bytes = bytes.saturating_add(length.with(|knob| point.get(knob).map_or(0, self::length)));
        points = points.saturating_add(1);
    }
    match bytes > MOST_BYTES {
        true => Err(too_much(&format!("the commands of all {points} points take"), bytes)),
        false => Ok(()),
    }
}

fn of_system(catalog: &Catalog, name: &str) -> Length {
    match catalog.get(name).map(|manifest| &manifest.program) {
        Ok(Program::Started(start)) => {
            Length::of(texts(&start.command, [&start.env, &start.profile_env], &start.hooks))
        }
        _ => Length::default(),
    }
}

fn too_much(what: &str, bytes: usize) -> Usage {
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    Usage(format!(
        "{what} {} MiB, and may take {}: give fewer values or shorter commands",
        mib(bytes),
        mib(MOST_BYTES)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use systems::knob::{Kind, Knob};

    /// A command of so many words, each of which is the value of a knob with so many values of this length.
    fn draft(words: usize, values: usize, length: usize) -> Draft {
        let rest = "x".repeat(length - 3);
        let values: Vec<Value> = (0..values).map(|at| Value::Text(format!("{at:03}{rest}"))).collect();
        let knob = Knob::new(Kind::Choice, values[0].clone(), values);
        Draft {
            command: vec!["{w}".to_owned(); words],
            knobs: BTreeMap::from([("w".to_owned(), knob)]),
            ..Draft::default()
        }
    }

    #[test]
    fn the_memory_of_systems_is_bounded() {
        // A word has 3 bytes beside the string that holds it, and so has its value.
        let [word, value] = [size_of::<String>() + 3, size_of::<Value>() + 3];
        let one = draft(1, 10, 3);
        let most = MOST_BYTES / (word + 10 * value);
        let mut systems = Systems::default();
        assert!(systems.add(&one, most).is_ok());
        let why = systems.add(&one, 1).expect_err("too much").0;
        assert!(
            why.contains("the commands with the values of their knobs take 257 MiB, and may take 256"),
            "{why}"
        );
        assert!(why.ends_with("give fewer values or shorter commands"), "{why}");
    }

    #[test]
    fn the_memory_of_the_longest_command_is_bounded() {
        let length = (1 << 20) - size_of::<String>() - 3;
        assert!(Systems::default().add(&draft(256, 1, length), 1).is_ok());
        let why = Systems::default().add(&draft(256, 1, length + 1), 1).expect_err("too much").0;
        assert!(why.contains("a command with its longest values takes 257 MiB, and may take 256"), "{why}");
    }

    #[test]
    fn the_memory_of_the_commands_of_all_points_is_bounded() {
        let mut catalog = Catalog::new(std::path::Path::new("/h"));
        let one = draft(1, 1, 3);
        let of_catalog = Draft {
            name: "s".to_owned(),
            workloads: vec![systems::Workload::Requests],
            language: "-".to_owned(),
            finds_port: true,
            dir: "/h".into(),
            home: "/h".into(),
            ..one
        };
        catalog.insert(systems::Manifest::new(of_catalog).expect("a manifest"));
        let points = MOST_BYTES / (1 << 20);
        let length = (1 << 20) - size_of::<String>() - 3;
        let check = |points: usize, length: usize| {
            let point = Point::from([("w".to_owned(), Value::Text("x".repeat(length)))]);
            let system = "s".to_owned();
            check_points(&catalog, std::iter::repeat_n((&system, &point), points))
        };
        assert!(check(points, length).is_ok());
        let why = check(points, length + 1).expect_err("too much").0;
        assert!(why.contains("the commands of all 256 points take 257 MiB, and may take 256"), "{why}");
        assert!(check(points + 1, length).is_err());
    }
}
