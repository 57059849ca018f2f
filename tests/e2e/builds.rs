//! The user's environment and tools as inputs of builds: each change leads to one new build, and the run reports its
//! version.

use std::fs;
use std::process::Command;

use crate::support::{self, home::Home};

/// A build whose version shows its inputs.
const MANIFEST: &str = r#"
[[needs]]
name = "the tool"
probe = ["cat", "../../tool"]
get = "make it"
[build]
command = ["sh", "build.sh", "{out}"]
inputs = ["{$NARROWS_TEST_LIBS}", "$NARROWS_TEST_FLAVOUR"]
version = ["cat", "{out}/VERSION"]
"#;

const BUILD: &str = r#"set -eu
echo x >> ../../count
tool=$(cat ../../tool)
[ "$tool" != broken ] || { echo 'the tool is broken'; exit 1; }
library=$(cat "${NARROWS_TEST_LIBS:-own}/version")
checkout=$(cat _checkouts/mint/lib/version)
echo "library $library, mint $checkout, flavour ${NARROWS_TEST_FLAVOUR-none}, tool $tool" > "$1/VERSION"
"#;

struct Bench {
    home: Home,
    environment: Vec<(&'static str, String)>,
}

impl Bench {
    fn narrows(&self, words: &[&str]) -> Command {
        let mut command = self.home.narrows(words);
        for name in ["NARROWS_TEST_LIBS", "NARROWS_TEST_FLAVOUR"] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn count(&self) -> usize {
        fs::read_to_string(self.home.path("count")).map_or(0, |text| text.lines().count())
    }

    /// Runs twice. Only the first run builds, and both report this version.
    fn builds_once(&self, version: &str) {
        let before = self.count();
        for _ in 0..2 {
            support::run(&mut self.narrows(&["run", "e", "--rounds", "1"])).code(0);
            assert_eq!(self.home.measured("twin")[0].system.version, version);
            assert_eq!(self.count(), before + 1, "{version}");
        }
        self.home.assert_nothing_left();
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_build_depends_on_the_environment_and_the_tools() {
    let home = Home::new();
    let files = ["systems/twin/own/version", "systems/twin/_checkouts/mint/lib/version", "libs/version"];
    files.iter().for_each(|file| home.write(file, "1"));
    home.server("twin", r#"["{narrows}", "serve", "--any", "{port}"]"#, MANIFEST);
    home.write("systems/twin/build.sh", BUILD);
    home.write("tool", "1");
    home.experiment("requests", "[\"twin\"]", 1, "[[grid]]\nconnections = 2\n");
    let mut bench = Bench { home, environment: Vec::new() };
    bench.builds_once("library 1, mint 1, flavour none, tool 1");

    bench.environment.push(("NARROWS_TEST_FLAVOUR", String::new()));
    bench.builds_once("library 1, mint 1, flavour , tool 1");
    bench.environment[0].1 = "sweet".to_owned();
    bench.builds_once("library 1, mint 1, flavour sweet, tool 1");

    bench.environment.push(("NARROWS_TEST_LIBS", bench.home.path("libs").display().to_string()));
    bench.builds_once("library 1, mint 1, flavour sweet, tool 1");
    bench.home.write("libs/version", "2");
    bench.builds_once("library 2, mint 1, flavour sweet, tool 1");

    bench.home.write("systems/twin/_checkouts/mint/lib/version", "2");
    bench.builds_once("library 2, mint 2, flavour sweet, tool 1");

    bench.home.write("tool", "2");
    bench.builds_once("library 2, mint 2, flavour sweet, tool 2");
    let before = bench.count();
    support::run(&mut bench.narrows(&["systems", "--check", "twin"])).code(0);
    assert_eq!(bench.count(), before, "a check must not build again");

    // A failure is listed as long as the inputs are the same.
    let listed = |bench: &Bench| {
        let all = support::run(&mut bench.narrows(&["systems", "--json"])).code(0).json();
        let twin = all.as_array().into_iter().flatten().find(|system| system["name"] == "twin");
        twin.expect("the system")["missing"].clone()
    };
    bench.home.write("tool", "broken");
    support::run(&mut bench.narrows(&["run", "e", "--rounds", "1"])).code(1);
    assert_eq!(listed(&bench)[0]["detail"], "the tool is broken");
    bench.home.write("tool", "3");
    assert_eq!(listed(&bench), serde_json::json!([]));
    bench.home.assert_nothing_left();
}
