//! Trials on other machines: `narrows run` and `try` with `--sut` and `--gen`. All machines are this one.

use std::fs;

use lab::observation::Outcome;
use lab::store::Store;
use measurement::Measurement;
use serde_json::Value;

use crate::support::home::Home;
use crate::support::{Ended, NARROWS, has};

const CLOSED: &str = "[[grid]]\nconnections = 4\n";

/// A home with an honest server, and an experiment with it.
fn home(workload: &str, grid: &str) -> Home {
    let home = Home::new();
    home.twin("twin");
    home.timed_experiment(workload, "[\"twin\"]", 3, 0.2, grid);
    home
}

fn run_on(home: &Home, machines: &[&str]) -> Ended {
    home.run([&["run", "e", "--rounds", "file"][..], machines].concat())
}

/// The measurements of all trials, of which each must have some by this many generators.
fn together(home: &Home, generators: usize) -> Vec<Measurement> {
    let all: Vec<Measurement> = home.measured("twin");
    assert!(!all.is_empty());
    for m in &all {
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
        let together = m.together.as_ref().expect("several generators");
        assert_eq!(together.generators.len(), generators, "{m:#?}");
        let sum: u64 = together.generators.iter().map(|generator| generator.successes).sum();
        assert_eq!(sum, m.successes, "{m:#?}");
        assert!(together.skew_s > Some(0.0) && together.path.is_some_and(|path| path.round_trip_us > 0.0));
    }
    all
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_system_there_is_driven_by_several_generators() {
    for (workload, grid) in
        [("requests", CLOSED), ("frames", CLOSED), ("upload", "[[grid]]\nsize = \"100K\"\nconcurrency = 4\n")]
    {
        let home = home(workload, grid);
        run_on(&home, &["--sut", "local", "--gen", "local,local"]).code(0);
        let all = together(&home, 2);
        // The system's side was read there.
        assert!(all.iter().any(|m| m.system.cpu_s > 0.0 && m.system.peak_pss_bytes > 0), "{all:#?}");
        let environment = environment(&home);
        assert_eq!(environment["generators"].as_array().map(Vec::len), Some(2), "{environment}");
        assert_eq!(environment["machines"]["sut"], "local", "{environment}");
        assert!(environment["cpu"].is_string(), "{environment}");
        home.assert_nothing_left();
    }
}

fn environment(home: &Home) -> Value {
    let store = Store::open(&home.store_path()).expect("the store");
    store.header(store.resolve("last").expect("a run")).expect("its header").environment
}

#[test]
fn a_system_here_is_driven_from_there() {
    let home = home("requests", "[[grid]]\nconnections = [1, 4]\nrate = [0, 200]\n");
    run_on(&home, &["--gen", "local,local"]).code(0);
    for m in home.measured("twin") {
        // A single connection has a single generator.
        let generators = m.together.as_ref().map(|together| together.generators.len() as u64);
        assert_eq!(generators, Some(m.connections.min(2)), "{m:#?}");
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
    }
}

#[test]
fn a_client_there_meets_the_server_of_a_generator() {
    let home = Home::new();
    home.twin_client("twin");
    home.timed_experiment("clients", "[\"twin\"]", 1, 0.2, "[[grid]]\nconcurrency = 4\n");
    run_on(&home, &["--sut", "local", "--gen", "local"]).code(0);
    for m in home.measured("twin") {
        let server = m.server.as_ref().expect("the server's counts");
        assert!(m.successes > 0 && server.client_successes <= server.responses, "{m:#?}");
        assert!(m.generator.cpu_s > 0.0, "{m:#?}");
    }
    home.assert_nothing_left();
}

/// A machine that shares nothing with this one but the program: another cache, another folder, other systems.
fn stranger(home: &Home) -> String {
    let cache = home.path("cache").display().to_string();
    home.write("stranger", &format!("cd /; XDG_CACHE_HOME={cache} NARROWS_HOME= exec {NARROWS} agent"));
    format!("exec:sh {}", home.path("stranger").display())
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_machine_gets_the_systems_that_it_lacks() {
    let home = home("requests", CLOSED);
    let (machine, systems) = (stranger(&home), home.path("cache/narrows/agents/systems"));
    let on_it = ["--sut", &machine, "--gen", "local", "--address", "127.0.0.1"];
    run_on(&home, &on_it).code(0);
    together(&home, 1);
    let sent = || fs::read_dir(&systems).map(|folders| folders.count()).unwrap_or_default();
    assert_eq!(sent(), 1, "the files of one system");
    run_on(&home, &on_it).code(0);
    assert_eq!(sent(), 1, "they are sent once");
    // A command that was typed runs there, too.
    let command = format!("{NARROWS} serve --host {{address}} -p {{port}}");
    let short = ["--rounds", "3", "-d", "200ms", "--warmup", "50ms"];
    let ended = home.run([&["try", &command][..], &short, &on_it].concat()).code(0);
    assert!(ended.stdout.contains("narrows"), "{ended:#?}");
    home.assert_nothing_left();
}

/// Passes on what an agent says, and multiplies a field of each measurement.
const LIAR: &str = r#"
import json, sys
field, times = sys.argv[1], float(sys.argv[2])
said, out = sys.stdin.buffer, sys.stdout.buffer
def spoil(value):
    if isinstance(value, dict):
        if "elapsed_s" in value and field in value:
            kind = type(value[field])
            value[field] = kind(value[field] * times)
        value = list(value.values())
    for part in value if isinstance(value, list) else []:
        spoil(part)
while len(head := said.read(4)) == 4:
    message = json.loads(said.read(int.from_bytes(head, "big")))
    if "executed" in str(message):
        spoil(message)
    text = json.dumps(message).encode()
    out.write(len(text).to_bytes(4, "big") + text)
    out.flush()
"#;

#[test]
fn a_machine_cannot_say_other_counts_than_this_side_has() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.twin("twin");
    home.timed_experiment("requests", "[\"twin\"]", 1, 0.2, CLOSED);
    home.write("liar.py", LIAR);
    let machine = |field: &str, times: &str| {
        let script = home.path("liar.py").display().to_string();
        format!("exec:sh -c '{NARROWS} agent | python3 {script} {field} {times}'")
    };
    let run = |field: &str, times: &str| {
        run_on(&home, &["--sut", &machine(field, times), "--gen", "local", "--address", "127.0.0.1"])
    };
    run("elapsed_s", "1").code(0);
    together(&home, 1);
    for (field, times) in [("elapsed_s", "0.5"), ("units", "1000"), ("payload_bytes", "0")] {
        run(field, times).code(1);
        let why = format!("`{field}` is not what this side counted in any of its drives");
        let is_refused =
            |outcome: &Outcome| matches!(outcome, Outcome::Failed(failure) if failure.reason.contains(&why));
        let seen = home.observations();
        assert!(!seen.is_empty() && seen.iter().all(|seen| is_refused(&seen.outcome)), "{seen:#?}");
    }
    home.assert_nothing_left();
}

/// A home whose server says by a file that it was started.
fn home_with_sign() -> Home {
    let home = Home::new();
    let started = home.path("started").display().to_string();
    home.shell_server("twin", &format!("touch {started}; exec \"$narrows\" serve --any \"$port\""), "");
    home.timed_experiment("requests", "[\"twin\"]", 3, 0.5, CLOSED);
    home
}

/// A machine whose agent is killed once, in the midst of the first trial of the system. Before that, `after` happens. It is away
/// while the file `away` is there.
fn mortal(home: &Home, name: &str, after: &str) -> String {
    let path = |name: &str| home.path(name).display().to_string();
    let (away, spared, started) = (path("away"), path(&format!("{name}-spared")), path("started"));
    let script = format!(
        "test -e {away} && exit 1\nexec 3<&0\n{NARROWS} agent <&3 &\nagent=$!\n\
         if ! test -e {spared}; then touch {spared}; (until test -e {started} || ! kill -0 $agent; do sleep 0.05; done; sleep 0.3; {after}; kill -9 $agent) <&- >&- 2>&- & fi\nwait $agent\n"
    );
    home.write(name, &script);
    format!("exec:sh {}", path(name))
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_trial_whose_machine_dies_is_done_again() {
    for part in ["sut", "gen"] {
        let home = home_with_sign();
        let dies = mortal(&home, part, ":");
        let (sut, generators) = match part {
            "sut" => (dies, "local".to_owned()),
            _ => ("local".to_owned(), format!("local,{dies}")),
        };
        let machines = ["--sut", &sut, "--gen", &generators, "--address", "127.0.0.1"];
        let ended = run_on(&home, &machines).code(0);
        ended.says(&["the trial is done again"]);
        let seen = home.observations();
        assert_eq!(seen.len(), home.planned());
        assert!(seen.iter().all(|seen| matches!(seen.outcome, Outcome::Measured(_))), "{seen:#?}");
        home.assert_nothing_left();
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_run_whose_machine_stays_away_goes_on_when_it_is_back() {
    let home = home_with_sign();
    let away = home.path("away");
    let machine = mortal(&home, "gen", &format!("touch {}", away.display()));
    let ended = run_on(&home, &["--gen", &machine]).code(1);
    ended.says(&["the trial is done again in 1 s", "in 5 s", &format!("machine {machine}"), "--resume"]);
    let kept = home.observations().len();
    assert!(kept < home.planned());
    fs::remove_file(&away).expect("the file");
    home.run(["run", "--resume", "last"]).code(0);
    assert_eq!(home.observations().len(), home.planned());
    assert!(home.measured("twin").iter().all(|m| m.together.is_some()));
    home.assert_nothing_left();
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_run_goes_on_without_a_generator_only_if_asked_and_as_another_run() {
    let home = home_with_sign();
    let machine = mortal(&home, "gen", &format!("touch {}", home.path("away").display()));
    let both = format!("local,{machine}");
    let ended = run_on(&home, &["--gen", &both, "--go-on-without"]).code(0);
    ended.says(&["--resume 1", "another run begins", &format!("--without '{machine}'")]);
    let store = Store::open(&home.store_path()).expect("the store");
    let runs: Vec<_> = store.runs().expect("runs").into_iter().flatten().collect();
    let done: Vec<(bool, bool)> = runs.iter().map(|run| (run.finished, run.done < run.planned)).collect();
    assert_eq!(done, [(false, true), (true, false)], "the trials of both sets are apart: {runs:#?}");
    for m in home.measured("twin") {
        assert_eq!(m.together.map(|together| together.generators.len()), Some(1));
    }
    let environment = environment(&home);
    assert_eq!(environment["machines"]["without"], serde_json::json!([machine]), "{environment}");
    home.run(["compare", "1", "2"]).code(1).says(&["generators"]);
    home.assert_nothing_left();
}

#[test]
fn reports_have_a_line_for_each_generator_and_the_skew() {
    let home = home("requests", CLOSED);
    run_on(&home, &["--sut", "local", "--gen", "local,local"]).code(0);
    let both = ["the way to the system", "their windows were apart by at most"];
    for format in ["markdown", "html"] {
        let report = home.run(["report", "last", "--format", format]).code(0).stdout;
        assert!(both.iter().all(|line| report.contains(line)), "{format}: {report}");
        assert_eq!(report.matches("its busiest core worked at most").count(), 2, "{format}: {report}");
    }
    let details = home.run(["report", "last", "--details"]).code(0).stdout;
    assert_eq!(details.matches("generators: local: ").count(), 2, "{details}");
    assert!(home.run(["report", "last"]).code(0).stdout.contains("driven by 2 generators"));
    let json = home.run(["report", "last", "--format", "json"]).code(0).json();
    let found = &json["experiments"][0]["generators"];
    assert_eq!(found["each"].as_array().map(Vec::len), Some(2), "{found}");
    assert!(found["skew_s"].as_f64() > Some(0.0), "{found}");
    // A generator called local beside a local system shares its cores.
    assert!(json.to_string().contains("cores_shared"), "{json}");
    let environment = environment(&home);
    for machine in [&environment["machines"], &environment["machines"]["each generator"]["2"]] {
        assert_eq!(machine["interface"]["name"], "lo", "{environment}");
        assert!(machine["interface"]["mtu"].as_u64() > Some(0), "{environment}");
    }
    assert!(environment["machines"]["each generator"]["1"]["kernel"].is_string(), "{environment}");
    // A run with another set of generators is another experiment.
    run_on(&home, &["--sut", "local", "--gen", "local"]).code(0);
    home.run(["compare", "1", "2"]).code(1).says(&["generators"]);
}

#[test]
fn other_machines_are_named_if_they_cannot_be_used() {
    let home = home("requests", CLOSED);
    run_on(&home, &["--sut", "exec:false"]).code(1).says(&["machine exec:false"]);
    run_on(&home, &["--sut", "local,local"]).code(2).says(&["--sut takes one machine"]);
    let nameless = format!("exec:env -u SSH_CONNECTION {NARROWS} agent");
    run_on(&home, &["--sut", &nameless]).code(1).says(&["--address"]);
    assert!(home.observations().is_empty());
}
