//! The script of the GitHub Action (`packaging/action.sh`), as its step runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::home::Home;
use crate::support::{Ended, NARROWS, checkout, plain, run};

/// Runs the script in the home with the `narrows` of a folder and these variables.
fn action(home: &Home, narrows: &Path, variables: &[(&str, &str)]) -> Ended {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(checkout().join("packaging/action.sh"));
    plain(&mut command);
    command
        .current_dir(home.path(""))
        .env("PATH", format!("{}:{path}", narrows.display()))
        .env("RUNNER_TEMP", home.path(""))
        .env("GITHUB_STEP_SUMMARY", home.path("summary"))
        .env("GITHUB_OUTPUT", home.path("output"))
        .env_remove("PULL_REQUEST_BASE")
        .env_remove("PULL_REQUEST_HEAD")
        .envs(variables.iter().copied());
    run(&mut command)
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn two_commands_are_compared_and_a_condition_fails_the_job() {
    let home = Home::new();
    let narrows = Path::new(NARROWS).parent().expect("its folder");
    let server = format!("{NARROWS} serve -p {{port}}");
    let commands = format!("{server}\n\n{server} --threads 1\n");
    let short = "--names 'the base',other --rounds 3 -d 200ms --warmup 50ms --seed 1";
    let with = |condition: &str| {
        let given = [("INPUT_COMMAND", &*commands), ("INPUT_ARGS", short), ("INPUT_FAIL_IF", condition)];
        action(&home, narrows, &given)
    };
    // No server is a thousand times as fast as itself, and each is more than a thousandth as fast.
    let passed = with("rate>1000").code(0);
    assert!(passed.stdout.contains("::notice title=fail-if%3A rate>1000%3A other::"), "{passed:#?}");
    assert!(!passed.stdout.contains("::error"), "{passed:#?}");
    let summary = fs::read_to_string(home.path("summary")).expect("a summary");
    assert!(summary.contains("| the-base |") && summary.contains("| --- |"), "{summary}");
    let output = fs::read_to_string(home.path("output")).expect("the outputs");
    let store = output.trim().strip_prefix("store=").expect("a store");
    home.run(["report", "last", "--store", store]).code(0);

    let failed = with("rate>0.001").code(3);
    assert!(failed.stdout.contains("::error title=fail-if%3A rate>0.001%3A other::"), "{failed:#?}");
    failed.says(&["failed: other"]);
    assert!(fs::read_to_string(home.path("summary")).expect("a summary").len() > summary.len());
}

/// A stand-in for `narrows`, which writes down its arguments.
#[test]
fn a_pull_request_is_compared_with_where_it_left_its_base() {
    let home = Home::new();
    home.write("bin/narrows", "#!/bin/sh\nprintf '%s\\n' \"$@\" > arguments\n");
    let program = home.path("bin/narrows");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    let git = |words: &str| {
        let mut command = Command::new("git");
        plain(&mut command);
        command.current_dir(home.path("")).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        run(command.args(words.split(' '))).code(0).stdout.trim().to_owned()
    };
    git("init -q -b main");
    git("commit -q --allow-empty -m left");
    let left = git("rev-parse HEAD");
    git("checkout -q -b branch");
    git("commit -q --allow-empty -m head");
    let head = git("rev-parse HEAD");
    git("checkout -q main");
    git("commit -q --allow-empty -m later");
    let later = git("rev-parse HEAD");

    let given = [
        ("INPUT_COMMAND", "./server $(touch run) --port {port}"),
        ("INPUT_BUILD", "make `touch run`"),
        ("INPUT_FIGURE", "rate,cpu"),
        ("INPUT_FAIL_IF", "rate<0.9"),
        ("INPUT_ARGS", "--path '/a b' \"$(touch run)\" ; touch run"),
    ];
    let pull_request = [("PULL_REQUEST_BASE", &*later), ("PULL_REQUEST_HEAD", &*head)];
    action(&home, &home.path("bin"), &[&given[..], &pull_request].concat()).code(0);
    let arguments = fs::read_to_string(home.path("arguments")).expect("its arguments");
    let (store, rest): (Vec<&str>, Vec<&str>) =
        arguments.lines().partition(|line| line.ends_with("/narrows.db"));
    assert_eq!(store.len(), 1, "{arguments}");
    let commits = format!("{left}..{head}");
    let expected = [
        &[
            "try",
            "--git",
            &commits,
            "--build",
            "make `touch run`",
            "--figure",
            "rate,cpu",
            "--fail-if",
            "rate<0.9",
        ],
        &["--path", "/a b", "$(touch run)", ";", "touch", "run", "--store", "--quiet", "--format"][..],
        &["github", "--", "./server $(touch run) --port {port}"],
    ];
    assert_eq!(rest, expected.concat());
    assert!(!home.path("run").exists(), "an input was run as shell");

    // A base that is given is taken as it is.
    let named = [("INPUT_COMMAND", "./server"), ("INPUT_BASE", "main"), ("INPUT_HEAD", "branch")];
    action(&home, &home.path("bin"), &named).code(0);
    let arguments = fs::read_to_string(home.path("arguments")).expect("its arguments");
    assert!(arguments.contains(&format!("--git\n{later}..{head}\n")), "{arguments}");

    let missing = [("INPUT_COMMAND", "./server"), ("INPUT_BASE", "--help")];
    action(&home, &home.path("bin"), &missing).code(2).says(&["there is no commit --help", "fetch-depth: 0"]);
    action(&home, &home.path("bin"), &[("INPUT_COMMAND", " \n")]).code(2).says(&["command is empty"]);
    let quote = [("INPUT_COMMAND", "./server"), ("INPUT_ARGS", "--path '/a")];
    action(&home, &home.path("bin"), &quote).code(2).says(&["a quote without its end"]);
}
