//! Systems that misbehave: their trials fail with the reason and the end of their output, other systems are measured,
//! and no process is left running.

use crate::support::home::Home;
use crate::support::{Ended, has, squeezed};
use lab::observation::{Failure, Outcome, Stage};

/// Runs `bad` and an honest server. The two trials of `bad` must fail at this stage, for this reason, with this text in
/// their output. The others must be measured, the reference once in each round.
fn assert_fails(home: &Home, stage: &str, reason: &str, output: &str) -> (Ended, Failure) {
    home.twin("good");
    home.experiment("requests", "[\"bad\", \"good\"]", 2, "[[grid]]\nconnections = 4\n");
    let run = home.run(["run", "e", "--rounds", "file"]).code(0);
    assert!(run.stdout.contains("2 trials failed."), "{run:#?}");
    let ended = home.run(["report", "last", "--details"]).code(0);
    let failed = home.failed("bad");
    for failure in &failed {
        assert_eq!(failure.stage.name(), stage, "{failure:#?}");
        assert!(failure.reason.contains(reason), "{failure:#?}");
        assert!(failure.output.contains(output), "{failure:#?}");
    }
    assert_eq!((failed.len(), home.measured("good").len(), home.measured("reference").len()), (2, 2, 2));
    // The text says so in the table and below it.
    let said = squeezed(&ended.stdout);
    assert!(said.contains("failed: bad") && said.contains(&format!("at {stage}:")), "{ended:#?}");
    assert!(output.lines().all(|line| ended.stdout.contains(&format!("    | {line}"))), "{ended:#?}");
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let failure = &report["experiments"][0]["failures"][0];
    assert_eq!((&failure["stage"], &failure["scenario"]), (&stage.into(), &"bad".into()), "{report}");
    (run, failed[0].clone())
}

#[test]
fn a_system_that_dies_at_once_fails_with_its_exit_code_and_output() {
    let home = Home::new();
    home.shell_server("bad", "echo 'to standard output'\necho 'no licence found' >&2\nexit 3", "");
    let (_, failure) = assert_fails(&home, "ready", "exited with code 3", "no licence found");
    assert!(failure.output.contains("to standard output"), "{failure:#?}");
}

#[test]
fn a_system_that_is_killed_by_a_signal_says_which() {
    let home = Home::new();
    home.shell_server("bad", "echo 'out of luck'\nkill -SEGV $$", "");
    assert_fails(&home, "ready", "killed by signal 11", "out of luck");
}

#[test]
fn a_system_that_never_listens_is_not_ready_in_time() {
    let home = Home::new();
    home.shell_server("bad", "echo 'waiting for the other node'\nexec sleep 3600", "[ready]\ntimeout_s = 1");
    assert_fails(&home, "ready", "not ready in time", "waiting for the other node");
}

#[test]
fn a_system_that_accepts_and_never_answers_is_not_ready_in_time() {
    let home = Home::new();
    // A receiver of frames takes a request for the beginning of a frame.
    let script = "exec \"$narrows\" serve --port 0 --frames \"$port\"";
    home.shell_server("bad", script, "[ready]\nhttp = \"/\"\ntimeout_s = 3");
    assert_fails(&home, "ready", "did not answer", "serving frames://");
}

#[test]
fn a_system_that_dies_while_it_is_driven_fails_with_its_output() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    // Readiness and the check of equal work make four requests. Then each of four connections makes one, even on a slow
    // machine.
    let script = "let n = 0;
        require('http').createServer((request, answer) => {
            if (++n > 5) { console.error('heap exhausted at request ' + n); process.exit(9); }
            answer.end('ok');
        }).listen(port, '127.0.0.1');";
    home.node_server("bad", script, "[ready]\nhttp = \"/\"\ntimeout_s = 120");
    assert_fails(&home, "system", "exited with code 9", "heap exhausted at request 6");
}

#[test]
fn a_system_that_answers_something_else_does_not_do_equal_work() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let script =
        "require('http').createServer((request, answer) => answer.end('no')).listen(port, '127.0.0.1');";
    home.node_server("bad", script, "[ready]\nhttp = \"/\"\ntimeout_s = 120");
    let (_, failure) = assert_fails(&home, "equal_work", "does not do the work of `requests`", "");
    assert!(failure.reason.contains("wrong_content"), "{failure:#?}");
}

#[test]
fn a_program_that_is_not_installed_fails_at_the_start_and_is_named() {
    let home = Home::new();
    home.server("bad", r#"["no-such-program", "{port}"]"#, "");
    assert_fails(&home, "start", "cannot start `no-such-program`", "");
}

#[test]
fn a_system_that_does_not_build_costs_only_its_own_trials() {
    let home = Home::new();
    let build = "[build]\ncommand = [\"sh\", \"-c\", \"echo 'server.c:7: error: no such header' >&2; exit 1\"]\nget = \"fetch it\"";
    home.server("bad", r#"["{narrows}", "serve", "--any", "{port}"]"#, build);
    let (ended, _) = assert_fails(&home, "build", "exited with code 1", "server.c:7: error: no such header");
    // The run also says so before the first trial, when the user can still fix it.
    ended.says(&["bad: build:", "to get what it fetches: fetch it", "server.c:7: error: no such header"]);
    let listed = home.run(["systems", "--json"]).code(0).json();
    let bad = listed.as_array().into_iter().flatten().find(|system| system["name"] == "bad").expect("it");
    let missing = (&bad["missing"][0]["detail"], &bad["missing"][0]["get"], &bad["available"]);
    let expected = (&"server.c:7: error: no such header".into(), &"fetch it".into(), &false.into());
    assert_eq!(missing, expected, "{listed}");
}

#[test]
fn processes_that_a_system_starts_end_with_it() {
    let home = Home::new();
    let script = "sleep 3600 &\nsetsid sleep 3601 &\n(setsid sh -c 'sleep 3602; true' &)\n\
                  exec \"$narrows\" serve --any \"$port\"";
    home.shell_server("family", script, "");
    home.experiment("requests", "[\"family\"]", 1, "[[grid]]\nconnections = 2\n");
    // Every run asserts that nothing is left.
    home.run(["run", "e", "--rounds", "file"]).code(0);
    home.measured("family");
}

#[test]
fn a_system_that_ignores_sigterm_is_killed() {
    let home = Home::new();
    let script = "trap '' TERM\n\"$narrows\" serve --any \"$port\" &\nwhile true; do sleep 1; done";
    home.shell_server("stubborn", script, "[stop]\ngrace_ms = 100");
    home.experiment("requests", "[\"stubborn\"]", 1, "[[grid]]\nconnections = 2\n");
    home.run(["run", "e", "--rounds", "file"]).code(0);
    home.measured("stubborn");
}

#[test]
fn a_client_that_breaks_the_contract_fails_with_the_reason() {
    let home = Home::new();
    let done = |successes: u32| {
        format!(
            r#"{{"event":"done","elapsed_us":100000,"attempts":3,"successes":{successes},"errors":{{}},"in_flight":0,"latency_us":[],"total":{{"attempts":3,"successes":{successes},"errors":{{}}}}}}"#
        )
    };
    let clients = [
        ("silent", "echo 'I will not speak' >&2\nread line\nexit 4".to_owned()),
        ("babbling", "read line\necho 'Hello!'\nexec sleep 3600".to_owned()),
        (
            "honest-fool",
            "read line\necho '{\"event\":\"error\",\"message\":\"no pool left\"}'\nexit 1".to_owned(),
        ),
        (
            "boaster",
            format!("read line\necho '{{\"event\":\"ready\"}}'\nread go\nsleep 1\necho '{}'", done(2)),
        ),
        (
            "underflow",
            format!(
                "read line\necho '{{\"event\":\"ready\"}}'\nread go\nsleep 1\necho '{}'",
                done(3).replace("\"latency_us\":[]", "\"late\":18446744073709551615,\"latency_us\":[[10,3]]")
            ),
        ),
    ];
    for (name, script) in &clients {
        let manifest = format!(
            "name = \"{name}\"\nrole = \"client\"\nworkloads = [\"clients\"]\nlanguage = \"sh\"\nabout = \"of a test\"\n\
             [start]\ncommand = [\"sh\", \"client.sh\"]\n"
        );
        home.write(&format!("systems/{name}/system.toml"), &manifest);
        home.write(&format!("systems/{name}/client.sh"), script);
    }
    let names = "[\"silent\", \"babbling\", \"honest-fool\", \"boaster\", \"underflow\"]";
    home.experiment("clients", names, 1, "[[grid]]\npool_size = 2\nconcurrency = 2\ndelay_ms = 1\n");
    home.run(["run", "e", "--rounds", "file"]).code(1);
    home.measured("reference-client");
    for (name, stage, reason, output) in [
        ("silent", "system", "exited with code 4", "I will not speak"),
        ("babbling", "system", "does not keep the driver contract", "Hello!"),
        ("honest-fool", "system", "no pool left", ""),
        ("boaster", "counts", "does not add up", ""),
        // The run can still be read.
        ("underflow", "counts", "`late` is 18446744073709551615", ""),
    ] {
        let failure = home.failed(name).remove(0);
        assert_eq!(failure.stage.name(), stage, "{name}: {failure:#?}");
        assert!(failure.reason.contains(reason) && failure.output.contains(output), "{name}: {failure:#?}");
    }
}

#[test]
fn a_system_that_floods_its_output_is_measured_all_the_same() {
    let home = Home::new();
    // Both streams, as fast as pipes take it.
    let script = "yes 'a line of a log that nobody reads' &\nyes 'another' >&2 &\nexec \"$narrows\" serve --any \"$port\"";
    home.shell_server("loud", script, "");
    home.experiment("requests", "[\"loud\"]", 2, "[[grid]]\nconnections = 2\n");
    home.run(["run", "e", "--rounds", "file"]).code(0);
    assert_eq!((home.measured("loud").len(), home.measured("reference").len()), (2, 2));
}

/// A server of Node.js that does this at its sixth request, when it is being measured.
fn at_the_sixth(home: &Home, act: &str) {
    let script = format!(
        "let n = 0;\nrequire('http').createServer((request, answer) => {{ if (++n === 6) {{ {act} }} answer.end('ok'); }})\
         .listen(port, '127.0.0.1');"
    );
    home.node_server("bad", &script, "[ready]\nhttp = \"/\"\ntimeout_s = 120");
}

#[test]
fn a_system_that_stops_itself_costs_its_own_trials_and_is_ended() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    at_the_sixth(&home, "process.kill(process.pid, 'SIGSTOP');");
    home.twin("good");
    home.timed_experiment("requests", "[\"bad\", \"good\"]", 1, 2.0, "[[grid]]\nconnections = 2\n");
    let text = std::fs::read_to_string(home.path("experiments/e.toml")).expect("it");
    home.write("experiments/e.toml", &text.replace("measure_s", "timeout_s = 1\nmeasure_s"));
    home.run(["run", "e", "--rounds", "file"]).code(0);
    for measured in home.measured("bad") {
        assert!(measured.errors.contains_key("request_timeout"), "{measured:#?}");
    }
    assert_eq!((home.measured("good").len(), home.measured("reference").len()), (1, 1));
}

#[test]
fn a_system_that_fills_its_memory_is_ended_at_its_limit() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    at_the_sixth(&home, "const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1));");
    home.twin("good");
    // Filling the memory takes a tenth of a second, and more on a busy machine.
    let grid = "[[grid]]\nconnections = 2\nmemory = \"128M\"\n";
    home.timed_experiment("requests", "[\"bad\", \"good\"]", 1, 4.0, grid);
    home.run(["run", "e", "--rounds", "file"]);
    let failure = home.failed("bad").remove(0);
    // Where no control group may be made, every trial with a limit fails and says so.
    if !failure.reason.contains("no control group may be made here") {
        assert_eq!(failure.stage, Stage::System, "{failure:#?}");
        let reason = "was killed by signal 9; its limit on memory may be too low";
        assert!(failure.reason.contains(reason), "{failure:#?}");
        assert_eq!(home.measured("good").len(), 1);
    }
}

#[test]
fn a_trial_with_more_connections_than_the_machine_allows_fails_before_its_system_starts() {
    let home = Home::new();
    home.shell_server("noted", "echo >> starts; exec \"$narrows\" serve --any \"$port\"", "");
    // No address has a million ports, and few processes may open so many files.
    home.experiment("requests", "[\"noted\"]", 1, "[[grid]]\nconnections = [2, 1000000]\n");
    home.run(["run", "e", "--rounds", "file"]);
    let (mut failed, mut measured) = (0, 0);
    for seen in home.observations() {
        match (seen.trial.scenario.work().connections(), seen.outcome) {
            (2, Outcome::Measured(_)) => measured += 1,
            (1_000_000, Outcome::Failed(failure)) => {
                assert_eq!(failure.stage, Stage::Start, "{failure:#?}");
                assert!(failure.reason.starts_with("1000000 connections"), "{failure:#?}");
                assert!(failure.reason.ends_with("or ask for fewer"), "{failure:#?}");
                failed += 1;
            }
            (_, outcome) => panic!("{outcome:#?}"),
        }
    }
    assert!(failed >= 1 && measured >= 2, "{failed} {measured}");
    let starts = std::fs::read_to_string(home.path("systems/noted/starts")).expect("it was started");
    assert_eq!(starts.lines().count(), 1);
}
