//! The highest rate under an objective: of `narrows load --find-max-rate` the bracket, or the reason why there is none;
//! of an experiment the figure `max_rate`.

use load::search::Ladder;

use crate::support::home::Home;
use crate::support::peer::Peer;
use crate::support::{Served, has, load, squeezed};
use lab::observation::{Outcome, Stage};

/// Five connections with answers after 50 ms carry at most 100 requests per second on any machine.
#[test]
fn a_limit_is_bracketed_and_attempts_last_as_long_as_the_objectives_need() {
    let server = Served::start(&[]);
    let target = format!("{}/wait/50", server.http);
    let words =
        ["-c", "5", "-d", "500ms", "--rate", "20", "--find-max-rate", "--slo", "p50<10s,errors<5%", "--json"];
    let ended = load(&[&[target.as_str()], &words[..]].concat()).code(0);
    let found = ended.json();
    let (holds, fails) = (found["holds"].as_f64().expect("held"), found["fails"].as_f64().expect("failed"));
    assert!(holds < fails && holds <= 150.0, "{found}");
    let first = &found["steps"][0];
    assert_eq!(first["rate"], 20.0, "{found}");
    // Half a second has ten arrivals, but a median needs twenty answers.
    assert!(!found.to_string().contains("needs 20 answers, and there were 1"), "{found}");
}

#[test]
fn a_target_that_fails_at_every_rate_says_why() {
    let peer = Peer::new(|mut connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let target = peer.url("http");
    let words = ["-c", "2", "-d", "50ms", "--rate", "1000", "--find-max-rate", "--slo", "p50<1s"];
    let ended = load(&[&[target.as_str()], &words[..]].concat()).code(3);
    let said = squeezed(&ended.stdout);
    for words in ["failed: status", "a longer -d tries lower rates"] {
        assert!(said.contains(words), "{said}");
    }
}

/// A server whose knob lets each answer wait. No rate meets an objective that is shorter than the wait.
fn server_that_waits(home: &Home) {
    let knob = "[ready]\nhttp = \"/\"\ntimeout_s = 120\n[knobs.delay]\ntype = \"integer\"\ndefault = 0\n\
                values = [0, 300]\nmin = 0\nabout = \"milliseconds before an answer\"";
    home.server("waiter", r#"["node", "server.js", "{port}", "{delay}"]"#, knob);
    let script = "const [port, delay] = process.argv.slice(2).map(Number);
        require('http').createServer((request, answer) => {
            if (delay > 0) setTimeout(() => answer.end('ok'), delay); else answer.end('ok');
        }).listen(port, '127.0.0.1');";
    home.write("systems/waiter/server.js", script);
}

/// An experiment `e` with one round of the server's two delays.
fn experiment_of_the_highest_rate(home: &Home) {
    let mut text = "name = \"e\"\ntitle = \"Of a test\"\nworkload = \"requests\"\nsystems = [\"waiter\"]\n\
                    figure = \"max_rate\"\nalso = [\"p50_us\"]\nobjective = \"p50<100ms,errors<20%\"\n"
        .to_owned();
    for form in ["quick", "full"] {
        text += &format!(
            "[{form}]\nrounds = 1\nwarmup_s = 0.05\nmeasure_s = 0.1\n[[{form}.grid]]\nconnections = 4\ndelay = [0, 300]\n"
        );
    }
    home.write("experiments/e.toml", &text);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_experiment_finds_the_highest_rate_of_each_setting_that_can_meet_the_objective() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    server_that_waits(&home);
    experiment_of_the_highest_rate(&home);
    home.run(["run", "e", "--rounds", "file"]).code(0);
    let seen = home.observations();
    let of = |delay: i64| {
        let delayed = |point: &systems::Point| point.get("delay") == Some(&systems::Value::Integer(delay));
        let outcomes = seen.iter().filter(|seen| delayed(&seen.trial.scenario.point));
        let outcomes: Vec<&Outcome> = outcomes.map(|seen| &seen.outcome).collect();
        assert_eq!(outcomes.len(), 1, "{seen:#?}");
        outcomes[0]
    };
    let Outcome::Measured(quick) = of(0) else { panic!("{seen:#?}") };
    let found = quick.max_rate.expect("a rate");
    // Every trial tries the same rates.
    let ladder = Ladder::SHARED;
    assert_eq!(ladder.below(found.per_s), ladder.above(found.per_s), "{found:?}");
    assert!(found.fails_at.is_none_or(|fails| found.per_s < fails) && found.tries > 1, "{found:?}");
    // The rest of the measurement is of the window at that rate, in which the objective held.
    let p50 = quick.response_us.percentile(50.0).expect("enough answers").value();
    assert!(quick.arrivals > 0 && p50 < 100_000, "{quick:#?}");
    let Outcome::Failed(failure) = of(300) else { panic!("{seen:#?}") };
    assert_eq!(failure.stage, Stage::Objective, "{failure:#?}");
    for said in ["`p50<100ms,errors<20%` does not hold at", "the lowest rate that was tried: ", "measure_s"] {
        assert!(failure.reason.contains(said), "{said}: {failure:#?}");
    }
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let e = &report["experiments"][0];
    assert_eq!((&e["figure"], &e["objective"]), (&"max_rate".into(), &"p50<100ms,errors<20%".into()));
    // A figure is a mean of logarithms, of which twelve digits are kept.
    let figure = e["figures"][0]["estimates"][0]["figure"].as_f64().expect("a figure");
    assert!((figure / found.per_s - 1.0).abs() < 1e-9, "{figure} of {found:?}");
    let text = squeezed(&home.run(["report", "last", "--details"]).code(0).stdout);
    let said = "of the highest rate of requests at which p50<100ms,errors<20% held";
    assert!(text.contains(said) && text.contains("at objective:"), "{text}");
}

#[test]
fn arms_are_compared_by_the_highest_rate_under_an_objective() {
    let home = Home::new();
    let server = format!("{} serve -p {{port}}", env!("CARGO_BIN_EXE_narrows"));
    let how = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms", "-c", "4"];
    let words = ["try", &server, "--slo", "p50<1s,errors<20%", "--figure", "max-rate,cpu"];
    home.run(words.into_iter().chain(how)).code(0);
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let e = &report["experiments"][0];
    assert_eq!((&e["figure"], &e["objective"]), (&"max_rate".into(), &"p50<1s,errors<20%".into()));
    assert!(e["figures"][0]["estimates"][0]["figure"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
}
