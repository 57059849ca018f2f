//! `narrows systems --install` prints what each system lacks and installs what Debian provides of it. The tests replace
//! apt-get and sudo.

use std::os::unix::fs::PermissionsExt;

use crate::support::home::Home;
use crate::support::{Ended, run, squeezed};

/// Two systems that need a package each, and one that needs what no package provides. A need is met once its program
/// exists.
fn home() -> Home {
    let home = Home::new();
    let need = |program: &str, packages: &str| {
        format!(
            "[[needs]]\nname = \"{program} 7\"\nprobe = [\"{program}\"]\nversion = '(\\d)'\nget = \"get {program}\"\npackages = [{packages}]"
        )
    };
    home.server("frobs", r#"["true", "{port}"]"#, &need("frob", "\"libfrob-dev\", \"frob\""));
    home.server("knobs", r#"["true", "{port}"]"#, &need("knob", "\"knob\""));
    home.server("handmade", r#"["true", "{port}"]"#, &need("craft", ""));
    std::fs::create_dir(home.path("bin")).expect("a folder for programs");
    // Replace the programs with which the script would change the machine.
    for program in ["tee", "chmod", "rm"] {
        tool(&home, program, "cat > /dev/null");
    }
    home
}

fn tool(home: &Home, name: &str, script: &str) {
    let path = home.path("bin").join(name);
    home.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// An apt-get that records its arguments and then runs this script.
fn apt(home: &Home, then: &str) {
    let here = home.path("");
    tool(home, "apt-get", &format!("cd {}; echo \"$@\" >> asked\n{then}", here.display()));
}

fn install(home: &Home, names: &[&str]) -> Ended {
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = home.narrows([&["systems", "--install"], names].concat());
    run(command.env("PATH", path))
}

fn asked(home: &Home) -> String {
    std::fs::read_to_string(home.path("asked")).unwrap_or_default()
}

fn assert_prints(text: &str, words: &[&str]) {
    let text = squeezed(text);
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in: {text}"));
}

/// Makes the programs that the packages provide. Each prints the version that its probe expects.
const BRINGS: &str = "for p in $*; do case $p in frob|knob) printf '#!/bin/sh\\necho 7\\n' > bin/$p; /bin/chmod 755 bin/$p;; esac; done";

#[test]
fn debian_packages_are_installed_with_sudo() {
    let home = home();
    tool(&home, "id", "echo 1000");
    tool(&home, "sudo", "while [ \"$1\" = -n ]; do shift; done; echo sudo >> $0.used; exec \"$@\"");
    apt(&home, BRINGS);
    let ended = install(&home, &[]).code(0);
    let said =
        ["frobs frob 7", "knobs knob 7", "you have to install", "handmade craft 7", "is installed now"];
    assert_prints(&ended.stdout, &said);
    assert!(
        asked(&home).contains("install --no-install-recommends frob knob libfrob-dev"),
        "{}",
        asked(&home)
    );
    assert!(home.path("bin/sudo.used").exists());
    // A second run has nothing to do.
    let before = asked(&home);
    assert_prints(
        &install(&home, &[]).code(0).stdout,
        &["Nothing that Debian provides is missing", "handmade"],
    );
    assert_eq!(asked(&home), before);
}

#[test]
fn only_the_needs_of_the_named_systems_are_installed() {
    let home = home();
    tool(&home, "id", "echo 0");
    apt(&home, BRINGS);
    let ended = install(&home, &["knobs"]).code(0);
    assert!(!ended.stdout.contains("frobs") && !ended.stdout.contains("handmade"), "{ended:#?}");
    assert!(asked(&home).contains("recommends knob\n") && !asked(&home).contains("frob"), "{}", asked(&home));
    install(&home, &["knob"]).code(1).says(&["no system is called `knob`", "did you mean `knobs`"]);
}

#[test]
fn without_root_and_sudo_the_command_is_printed() {
    let home = home();
    tool(&home, "id", "echo 1000");
    tool(&home, "sudo", "exit 1");
    apt(&home, BRINGS);
    let ended = install(&home, &[]).code(1);
    assert_prints(&ended.stdout, &["apt-get install --no-install-recommends frob knob libfrob-dev"]);
    assert_eq!(asked(&home), "");
}

#[test]
fn needs_that_cannot_be_installed_are_named_and_the_others_are_installed() {
    let home = home();
    tool(&home, "id", "echo 0");
    apt(&home, &format!("case \"$*\" in *knob*) exit 100;; esac\n{BRINGS}"));
    let ended = install(&home, &[]).code(1);
    assert_prints(&ended.stdout, &["apt-get could not install: knob"]);
    assert!(home.path("bin/frob").exists(), "frob is installed on its own");
}

#[test]
fn a_package_that_does_not_meet_the_need_is_reported() {
    let home = home();
    tool(&home, "id", "echo 0");
    // The program exists, exits with 0 and prints nothing, like a pipeline whose first part fails.
    apt(&home, "printf '#!/bin/sh\\ntrue\\n' > bin/knob; /bin/chmod 755 bin/knob");
    let ended = install(&home, &["knobs"]).code(1);
    assert_eq!(ended.stdout.matches("knob 7").count(), 2, "before and after: {ended:#?}");
}
