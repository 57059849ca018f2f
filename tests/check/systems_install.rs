//! `narrows systems --install`: what is missing, in a line a system; what Debian brings of it is installed, by an apt-get and a
//! sudo of the test's own.

use std::os::unix::fs::PermissionsExt;

use crate::support::home::Home;
use crate::support::{Ended, run, squeezed};

/// Two systems that need a package each, and one that needs what no package brings. A need is met once its program is there.
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
    // What the script would do to the machine itself.
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

/// An apt-get that writes down what it was asked for, and then does this.
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

/// Makes the programs that packages bring; `echo` prints what their probes ask for.
const BRINGS: &str = "for p in $*; do case $p in frob|knob) printf '#!/bin/sh\\necho 7\\n' > bin/$p; /bin/chmod 755 bin/$p;; esac; done";

#[test]
fn what_debian_brings_is_installed_with_sudo() {
    let home = home();
    tool(&home, "id", "echo 1000");
    tool(&home, "sudo", "while [ \"$1\" = -n ]; do shift; done; echo sudo >> $0.used; exec \"$@\"");
    apt(&home, BRINGS);
    let ended = install(&home, &[]).code(0);
    let said = ["frobs frob 7", "knobs knob 7", "you have to bring", "handmade craft 7", "is here now"];
    assert_prints(&ended.stdout, &said);
    assert!(
        asked(&home).contains("install --no-install-recommends frob knob libfrob-dev"),
        "{}",
        asked(&home)
    );
    assert!(home.path("bin/sudo.used").exists());
    // Then there is nothing left to do, and the need is judged as `narrows systems` judges it.
    let before = asked(&home);
    assert_prints(
        &install(&home, &[]).code(0).stdout,
        &["Nothing that Debian brings is missing", "handmade"],
    );
    assert_eq!(asked(&home), before);
}

#[test]
fn only_what_the_named_systems_need_is_installed() {
    let home = home();
    tool(&home, "id", "echo 0");
    apt(&home, BRINGS);
    let ended = install(&home, &["knobs"]).code(0);
    assert!(!ended.stdout.contains("frobs") && !ended.stdout.contains("handmade"), "{ended:#?}");
    assert!(asked(&home).contains("recommends knob\n") && !asked(&home).contains("frob"), "{}", asked(&home));
    install(&home, &["knob"]).code(1).says(&["no system is called `knob`", "did you mean `knobs`"]);
}

#[test]
fn without_root_and_sudo_the_command_is_named() {
    let home = home();
    tool(&home, "id", "echo 1000");
    tool(&home, "sudo", "exit 1");
    apt(&home, BRINGS);
    let ended = install(&home, &[]).code(1);
    assert_prints(&ended.stdout, &["apt-get install --no-install-recommends frob knob libfrob-dev"]);
    assert_eq!(asked(&home), "");
}

#[test]
fn what_cannot_be_installed_is_named_and_the_rest_is() {
    let home = home();
    tool(&home, "id", "echo 0");
    apt(&home, &format!("case \"$*\" in *knob*) exit 100;; esac\n{BRINGS}"));
    let ended = install(&home, &[]).code(1);
    assert_prints(&ended.stdout, &["apt-get could not install: knob"]);
    assert!(home.path("bin/frob").exists(), "frob is installed by itself");
}

#[test]
fn a_package_that_does_not_bring_what_is_needed_is_not_taken_for_it() {
    let home = home();
    tool(&home, "id", "echo 0");
    // The program is there, ends well, and prints nothing, as a pipeline does whose first part fails.
    apt(&home, "printf '#!/bin/sh\\ntrue\\n' > bin/knob; /bin/chmod 755 bin/knob");
    let ended = install(&home, &["knobs"]).code(1);
    assert_eq!(ended.stdout.matches("knob 7").count(), 2, "before and after: {ended:#?}");
}
