//! Where systems and experiments come from: with the program, from a project's folder, from the user's.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{self, Ended, NARROWS, has, run};
use serde_json::Value;

/// A folder outside the checkout, with the program in it and nothing else.
struct Elsewhere(tempfile::TempDir);

impl Elsewhere {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::copy(NARROWS, folder.path().join("narrows")).expect("a copy of the program");
        fs::create_dir(folder.path().join("work")).expect("a folder");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs the program in the folder `work`, with a cache and data folder of its own.
    fn run(&self, words: &[&str]) -> Ended {
        let mut command = Command::new(self.path().join("narrows"));
        support::plain(&mut command);
        command.args(words).current_dir(self.path().join("work"));
        command
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("XDG_DATA_HOME", self.path().join("data"));
        run(&mut command)
    }

    /// The names of the listed systems, and where they come from.
    fn systems(&self, words: &[&str]) -> Vec<(String, String)> {
        let json = self.run(&[&["systems", "--json"], words].concat()).code(0).json();
        let text = |system: &Value, field: &str| system[field].as_str().expect("a text").to_owned();
        let listed = json.as_array().expect("systems").iter();
        listed.map(|system| (text(system, "name"), text(system, "from"))).collect()
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_program_alone_has_its_systems_and_experiments() {
    let elsewhere = Elsewhere::new();
    let systems = elsewhere.systems(&[]);
    assert!(systems.len() > 30 && systems.iter().all(|(_, from)| from == "built in"), "{systems:?}");
    assert!(fs::read_dir(elsewhere.path().join("cache/narrows")).expect("the cache").count() == 1);
    if !has("node") {
        return;
    }
    let words = ["run", "connections", "--systems", "node", "--rounds", "1", "--set", "connections=2"];
    elsewhere.run(&words).code(0);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_projects_own_systems_stand_before_those_of_the_program() {
    let elsewhere = Elsewhere::new();
    elsewhere.run(&["init"]).code(0);
    elsewhere.run(&["init"]).code(1).says(&["narrows exists already"]);
    let own = |name: &str, from: &str| (name.to_owned(), from.to_owned());
    let expected =
        [own("app", "the project"), own("reference", "built in"), own("reference-client", "built in")];
    assert_eq!(elsewhere.systems(&[]), expected);
    let said = elsewhere.run(&["systems"]).code(0).stdout;
    assert!(said.contains(" · the project\n"), "{said}");
    assert!(said.contains("more come from other folders: `narrows systems --all` lists them"), "{said}");
    let all = elsewhere.systems(&["--all"]);
    assert!(all.contains(&own("app", "the project")) && all.contains(&own("nginx", "built in")), "{all:?}");
    let users = elsewhere.path().join("data/narrows/systems/mine");
    fs::create_dir_all(&users).expect("a folder");
    let manifest = fs::read_to_string(elsewhere.path().join("work/narrows/systems/app/system.toml"));
    fs::write(users.join("system.toml"), manifest.expect("the example").replace("\"app\"", "\"mine\""))
        .expect("a manifest");
    assert!(elsewhere.systems(&["--all"]).contains(&own("mine", "the user")));
    if has("python3") {
        elsewhere.run(&["run", "--rounds", "3"]).code(0);
        elsewhere.run(&["systems", "--check", "app"]).code(0);
    }
}
