//! `narrows run` and `systems --check` with servers that speak TLS.

use lab::observation::Outcome;
use measurement::{Handshakes, Measurement};
use systems::Value;

use crate::support::home::Home;
use crate::support::{checkout, has, squeezed};

/// A server of Node.js that speaks TLS if it is told so. `more` is executed with its `server`.
fn node(home: &Home, name: &str, more: &str) {
    let script = format!(
        "const [port, tls, cert, key] = process.argv.slice(2), fs = require('fs');\n\
         const answer = (request, response) => response.end('ok');\n\
         const files = () => ({{ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }});\n\
         const server = tls === 'off' ? require('http').createServer(answer) : require('https').createServer(files(), answer);\n\
         {more}\nserver.listen(port, '127.0.0.1');\n"
    );
    home.write(&format!("systems/{name}/server.js"), &script);
    home.server(name, r#"["node", "server.js", "{port}", "{tls}", "{cert}", "{key}"]"#, "");
}

/// The reference under another name. `words` come behind its port.
fn serve(home: &Home, name: &str, words: &str) {
    let words: String = words.split_whitespace().map(|word| format!(", \"{word}\"")).collect();
    let command = format!(r#"["{{narrows}}", "serve", "-p", "{{port}}"{words}]"#);
    home.server_of(name, r#"["requests", "upload"]"#, &command, "");
}

const BOTH: &str = "--tls={tls} --cert {cert} --key {key}";

fn word(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// The measurements of a system where knobs have these values.
fn measured_at(home: &Home, system: &str, point: &[(&str, &str)]) -> Vec<Measurement> {
    let at = |knob: &str, value: &str, seen: &systems::Point| seen.get(knob) == Some(&word(value));
    let found: Vec<Measurement> = home
        .observations()
        .into_iter()
        .filter(|seen| seen.trial.scenario.system == system)
        .filter(|seen| point.iter().all(|(knob, value)| at(knob, value, &seen.trial.scenario.point)))
        .map(|seen| match seen.outcome {
            Outcome::Measured(measured) => *measured,
            Outcome::Failed(failure) => panic!("{:?}: {failure:#?}", seen.trial.scenario),
        })
        .collect();
    assert!(!found.is_empty(), "no trial of {system} at {point:?}");
    found
}

fn handshakes(m: &Measurement) -> &Handshakes {
    m.handshakes.as_ref().unwrap_or_else(|| panic!("no handshakes: {m:#?}"))
}

#[test]
fn trials_run_in_plain_text_and_in_tls_with_each_kind_of_key() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    node(&home, "both", "");
    let grid = "[[grid]]\nconnections = 2\nkeep_alive = false\ntls = [\"off\", \"1.3\", \"1.2\"]\n\
                certificate = [\"p256\", \"rsa2048\"]\n";
    home.timed_experiment("requests", "[\"both\"]", 1, 1.0, grid);
    home.run(["run", "e", "--rounds", "file"]).code(0);
    // Without TLS there is one point, whatever the certificate.
    for system in ["both", "reference"] {
        for m in measured_at(&home, system, &[("tls", "off")]) {
            assert!(m.successes > 0 && m.errors.is_empty() && m.handshakes.is_none(), "{m:#?}");
        }
    }
    assert_eq!(measured_at(&home, "both", &[("tls", "off")]).len(), 1);
    for version in ["1.3", "1.2"] {
        for kind in ["p256", "rsa2048"] {
            let all = measured_at(&home, "both", &[("tls", version), ("certificate", kind)]);
            let m = &all[0];
            let found = handshakes(m);
            assert!(m.errors.is_empty() && m.successes > 0, "{m:#?}");
            assert!(found.full > 0 && found.resumed == 0 && found.offered == 0, "{found:#?}");
            assert_eq!(found.opening_us.count, found.all());
        }
    }
    let report = home.run(["report", "last"]).code(0).stdout;
    assert!(report.contains("full") && !report.contains("refused"), "{report}");
    let json = home.run(["report", "last", "--format", "json"]).code(0).json();
    let estimates = json["experiments"][0]["figures"][0]["estimates"].as_array().expect("estimates").clone();
    let secured = estimates.iter().filter(|e| e["scenario"]["point"]["tls"] != "off");
    assert!(secured.clone().count() >= 4);
    for estimate in secured.filter(|e| e["scenario"]["system"] == "both") {
        assert!(estimate["handshakes"]["full"].as_u64() > Some(0), "{estimate}");
    }
}

#[test]
fn the_certificate_is_a_file_for_the_run_only_that_its_owner_may_read() {
    let home = Home::new();
    let script = "stat -c '%a %n' \"$4\" >> ../../seen; exec \"$narrows\" serve -p \"$port\" --tls=$5 --cert \"$3\" --key \"$4\"";
    home.shell_server("seen", script, "");
    let command = r#"["sh", "start.sh", "{narrows}", "{port}", "{cert}", "{key}", "{tls}"]"#;
    home.server("seen", command, "");
    let grid = "[[grid]]\nconnections = 1\ntls = [\"off\", \"1.3\"]\ncertificate = \"rsa2048\"\n";
    home.experiment("requests", "[\"seen\"]", 1, grid);
    home.run(["run", "e", "--rounds", "file"]).code(0);
    assert_eq!(home.measured("seen").len(), 2);
    let seen = std::fs::read_to_string(home.path("seen")).expect("it has started");
    let lines: Vec<(&str, &str)> = seen.lines().filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(lines.len(), 2, "{seen}");
    for (mode, path) in lines {
        assert_eq!(mode, "600", "{seen}");
        let certificate = path.strip_suffix(".key").expect("the key is beside the certificate");
        assert!(
            !std::path::Path::new(path).exists() && !std::path::Path::new(certificate).exists(),
            "{path}"
        );
    }
}

#[test]
fn sessions_are_resumed_if_asked_for_and_a_server_that_does_not_resume_them_is_named() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    serve(&home, "resumes", &format!("{BOTH} --tickets"));
    serve(&home, "gives-none", BOTH);
    node(
        &home,
        "forgets",
        "server.on('connection', () => server.setTicketKeys(require('crypto').randomBytes(48)));",
    );
    let grid = "[[grid]]\nconnections = 2\nkeep_alive = false\ntls = \"1.3\"\nsessions = \"always\"\n";
    home.timed_experiment("requests", r#"["resumes", "gives-none", "forgets"]"#, 2, 1.0, grid);
    home.run(["run", "e", "--rounds", "file"]).code(0);
    for m in home.measured("resumes") {
        let found = handshakes(&m);
        assert!(found.resumed > 0 && found.refused() == 0 && m.errors.is_empty(), "{m:#?}");
    }
    for m in home.measured("forgets") {
        let found = handshakes(&m);
        assert!(found.resumed == 0 && found.refused() > 0 && m.errors.is_empty(), "{m:#?}");
    }
    let json = home.run(["report", "last", "--format", "json"]).code(0).json();
    let advice = json["experiments"][0]["figures"][0]["advice"].to_string();
    assert!(
        advice.contains("had no session to offer, so they made full handshakes")
            || advice
                .contains("the server refused 100 % of the offered sessions, so these are full handshakes"),
        "{advice}"
    );
    let estimates = json["experiments"][0]["figures"][0]["estimates"].as_array().expect("estimates");
    let doubt = |system: &str| {
        let of = estimates.iter().find(|e| e["scenario"]["system"] == system).expect("its estimate");
        of["doubts"]["not_resumed"]["kind"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(doubt("resumes"), "");
    assert_eq!(doubt("gives-none"), "no_sessions");
    assert_eq!(doubt("forgets"), "sessions_refused");
    let report = home.run(["report", "last", "--details"]).code(0).stdout;
    assert!(report.contains("resumed") && report.contains("refused"), "{report}");
}

#[test]
fn a_system_takes_part_only_where_it_can_be_spoken_to() {
    let home = Home::new();
    serve(&home, "both", BOTH);
    serve(&home, "only", "--tls --cert {cert} --key {key}");
    serve(&home, "plain", "");
    home.experiment("requests", r#"["both", "only", "plain"]"#, 1, "[[grid]]\nconnections = 1\n");
    let only_plain = home.run(["run", "e", "--rounds", "file"]).code(0);
    only_plain.says(&["only takes no part: it speaks only TLS"]);
    assert_eq!(home.measured("both").len() + home.measured("plain").len(), 2);
    let ended = home.run(["run", "e", "--rounds", "file", "--set", "tls=1.3"]).code(0);
    ended.says(&["plain takes no part: it speaks no TLS"]);
    assert_eq!(home.measured("both").len() + home.measured("only").len(), 2);
    assert!(home.observations().iter().all(|seen| seen.trial.scenario.point["tls"] == word("1.3")));
    let ended = home.run(["run", "e", "--rounds", "file", "--set", "tls=off,1.2"]).code(0);
    let says =
        ["only takes no part at some points: it speaks only TLS", "plain takes no part at some points"];
    ended.says(&says);
    let answer = squeezed(&home.run(["report", "last"]).code(0).stdout);
    assert!(answer.contains("not run: plain at some points: it speaks no TLS"), "{answer}");
    assert_eq!(home.measured("both").len(), 2);
    home.run(["run", "e", "--set", "tls=1.1"]).says(&["1.1", "1.2"]);
}

#[test]
fn uploads_arrive_whole_in_tls() {
    let home = Home::new();
    serve(&home, "both", BOTH);
    let grid = "[[grid]]\nsize = \"300K\"\ntls = \"1.3\"\nreuse = [true, false]\nexpect = [false, true]\n";
    home.timed_experiment("upload", "[\"both\"]", 1, 1.0, grid);
    home.run(["run", "e", "--rounds", "file"]).code(0);
    let measured = home.measured("both");
    assert_eq!(measured.len(), 4);
    assert!(
        measured.iter().all(|m| m.successes > 0 && m.errors.is_empty() && m.no_continue == 0),
        "{measured:#?}"
    );
}

#[test]
fn an_experiment_of_the_checkout_runs_in_tls() {
    let text = std::fs::read_to_string(checkout().join("experiments/connections.toml"));
    let text = text.expect("the experiment");
    let systems = text.lines().find_map(|line| line.strip_prefix("systems = [")).expect("its systems");
    let systems: Vec<&str> =
        systems.split(['"', ',', ' ', ']']).map(|name| name.split('@').next().unwrap_or("")).collect();
    let mut systems: Vec<&str> = systems.into_iter().filter(|name| !name.is_empty()).collect();
    systems.dedup();
    let home = Home::with(&systems);
    serve(&home, "both", BOTH);
    home.write("experiments/connections.toml", &text);
    let words = ["run", "connections", "--systems", "both", "--set", "tls=1.3", "--set", "connections=2,4"];
    home.run(words.into_iter().chain(["--rounds", "1"])).code(0);
    let measured = home.measured("both");
    // A short window may see few of the new connections end.
    assert!(measured.iter().all(|m| m.errors.is_empty()), "{measured:#?}");
    assert!(measured.iter().any(|m| m.successes > 0), "{measured:#?}");
    assert!(!home.measured("reference").is_empty());
}

#[test]
fn a_server_that_speaks_otherwise_than_it_is_told_fails_before_anything_is_timed() {
    let home = Home::new();
    let ready = "[ready]\nhttp = \"/\"\ntimeout_s = 2";
    for (more, stage) in [("", "equal_work"), (ready, "ready")] {
        for (words, why) in [
            // All authorities of Narrows have one name, so the other one's key is tried.
            ("--tls", "the peer's certificate has a wrong signature"),
            ("", "the peer does not speak TLS"),
        ] {
            let script = format!("exec \"$narrows\" serve -p \"$port\" {words}");
            home.shell_server("other", &script, more);
            let command = r#"["sh", "start.sh", "{narrows}", "{port}", "{cert}"]"#;
            home.server("other", command, more);
            home.experiment("requests", "[\"other\"]", 1, "[[grid]]\nconnections = 1\ntls = \"1.3\"\n");
            home.run(["run", "e", "--rounds", "file"]).code(1);
            let failed = home.failed("other");
            assert_eq!(failed[0].stage.name(), stage, "{failed:#?}");
            assert!(failed[0].reason.contains(why), "{failed:#?}");
        }
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_check_speaks_tls_with_each_kind_of_key() {
    let home = Home::new();
    serve(&home, "both", BOTH);
    serve(&home, "only", "--tls --cert {cert} --key {key}");
    for system in ["both", "only"] {
        let checked = home.run(["systems", "--check", system]).code(0).stdout;
        for of in
            ["TLS 1.3 with a key of p256", "TLS 1.3 with a key of rsa2048", "TLS 1.2 with a key of p256"]
        {
            for workload in ["requests", "upload"] {
                assert!(
                    checked.contains(&format!("ok      {workload}: {of}: 200, \"ok\"; 3 requests")),
                    "{checked}"
                );
            }
        }
    }
    // One that always speaks plain text, and one that has one certificate for all.
    serve(&home, "deaf", "--tls=off --cert {cert} --key {key}{tls}");
    home.shell_server("stiff", "exec \"$narrows\" serve -p \"$port\" --tls=$3", "");
    home.server("stiff", r#"["sh", "start.sh", "{narrows}", "{port}", "{tls}", "{cert}"]"#, "");
    for (system, why) in [("deaf", "does not speak TLS"), ("stiff", "certificate")] {
        let json = home.run(["systems", "--check", system, "--json"]).code(1).json();
        let checks = json[0]["checks"].as_array().expect("checks").clone();
        let broken: Vec<_> = checks.iter().filter(|check| check["verdict"] == "broken").collect();
        assert!(!broken.is_empty(), "{checks:#?}");
        for check in broken {
            assert!(check["name"].as_str().is_some_and(|name| name.contains(": TLS 1.")), "{check}");
            assert!(check["seen"].as_str().is_some_and(|seen| seen.contains(why)), "{check}");
        }
    }
}

#[test]
fn wrong_placeholders_and_tables_of_tls_are_named() {
    let home = Home::new();
    home.experiment("requests", "[\"odd\"]", 1, "[[grid]]\nconnections = 1\n");
    let attach = "name = \"odd\"\nrole = \"server\"\nworkloads = [\"requests\"]\nlanguage = \"-\"\nabout = \"-\"\nget = \"x\"\n";
    for (manifest, why) in [
        (None, "{key} or {tls} without {cert}"),
        (Some("attach = \"https://127.0.0.1:1\"\n"), "whose certificate is accepted"),
        (Some("attach = \"https://127.0.0.1:1\"\n[tls]\nsni = \"a\"\n"), "whose certificate is accepted"),
        (Some("attach = \"https://127.0.0.1:1\"\n[tls]\ncacert = \"none.pem\"\n"), "cannot read"),
        (Some("attach = \"https://127.0.0.1:1\"\n[tls]\ninsecure = true\nciphers = [\"RC4\"]\n"), "RC4"),
        (Some("attach = \"http://127.0.0.1:1\"\n[tls]\ninsecure = true\n"), "a server without TLS"),
    ] {
        match manifest {
            None => home.server("odd", r#"["x", "{port}", "{tls}"]"#, ""),
            Some(lines) => home.write("systems/odd/system.toml", &format!("{attach}{lines}")),
        }
        let ended = home.run(["run", "e"]);
        let said = squeezed(&ended.stderr);
        assert!(said.contains(why), "{why:?}: {said}");
    }
}
