//! Systems on the BEAM with packages from hex: how they are listed if the registry answers and if it does not; and what
//! their common driver computes and sends by a schedule. rebar3 and elixir are replaced, so that no test depends on a
//! registry.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::home::{Home, all_took_part};
use crate::support::{Ended, checkout, has, run, squeezed};

/// The systems of the checkout that declare packages for rebar3 or mix.
fn declared() -> Vec<String> {
    let folders =
        fs::read_dir(checkout().join("systems")).expect("systems/").map(|entry| entry.expect("an entry"));
    let ours =
        folders.filter(|f| f.path().join("rebar.config").exists() || f.path().join("mix.exs").exists());
    let mut names: Vec<String> = ours.map(|f| f.file_name().into_string().expect("UTF-8")).collect();
    names.sort_unstable();
    names
}

/// A home with copies of these systems, without fetched packages, and with a rebar3 that answers `pkgs` with this text.
fn home(systems: &[&str], answer: &str) -> Home {
    let home = Home::new();
    for name in systems.iter().chain(&["shared"]) {
        for file in
            fs::read_dir(checkout().join("systems").join(name)).expect("a system").map(|f| f.expect("a file"))
        {
            if file.file_type().expect("a type").is_file() {
                let place = format!("systems/{name}/{}", file.file_name().into_string().expect("UTF-8"));
                home.write(&place, &fs::read_to_string(file.path()).expect("text"));
            }
        }
    }
    let rebar3 = format!(
        "#!/bin/sh\n[ $1 = --version ] && exec echo 'rebar 3.19.0 on Erlang/OTP 25 Erts 13.1.5'\n\
         [ $1 = pkgs ] && echo '{answer}'\n"
    );
    for (program, script) in [("rebar3", &*rebar3), ("elixir", "#!/bin/sh\necho 1.14.0\n")] {
        home.write(&format!("bin/{program}"), script);
        fs::set_permissions(home.path(&format!("bin/{program}")), PermissionsExt::from_mode(0o755))
            .expect("its mode");
    }
    home
}

fn narrows(home: &Home, words: &[&str], more: &[(&str, &Path)]) -> Ended {
    let mut command = home.narrows(words);
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").expect("a PATH"));
    command.env("PATH", path).env_remove("MIX_DEPS_PATH").env_remove("MIX_ARCHIVES").env_remove("MIX_HOME");
    command.envs(more.iter().copied());
    run(&mut command)
}

/// The entry of a system in `narrows systems`.
fn listed(home: &Home, system: &str, more: &[(&str, &Path)]) -> Value {
    let all = narrows(home, &["systems", "--json"], more).code(0).json();
    all.as_array()
        .expect("a list")
        .iter()
        .find(|entry| entry["name"] == system)
        .expect("it is listed")
        .clone()
}

#[test]
fn without_a_registry_each_is_missing_with_reason_and_command() {
    let names = declared();
    assert!(names.len() > 10, "{names:?}");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let home = home(&names, "hexpm: Error fetching from this repo.");
    let nowhere = home.path("nowhere");
    let all = narrows(&home, &["systems", "--json"], &[("HOME", &nowhere)]).code(0).json();
    for name in names {
        let system = all
            .as_array()
            .expect("a list")
            .iter()
            .find(|system| system["name"] == name)
            .expect("it is listed");
        assert_eq!(system["broken"], Value::Null, "{system}");
        let missing = system["missing"].as_array().expect("what is missing");
        let [missing] = &missing[..] else { panic!("{name} lacks more: {missing:?}") };
        let get = missing["get"].as_str().expect("a command");
        assert!(get.contains("rebar3 get-deps") || get.contains("mix deps.get"), "{get}");
        assert!(get.contains(&format!("systems/{name},")), "{get}");
        let detail = missing["detail"].as_str().expect("a reason");
        assert!(detail.contains("the registry d"), "{name}: {detail}"); // it does not answer, or did not a moment ago
    }
}

#[test]
fn a_run_continues_without_the_missing_libraries() {
    let home = home(&["cowboy1", "bandit"], "hexpm: Error fetching from this repo.");
    home.twin("good");
    home.experiment("requests", r#"["cowboy1", "good", "bandit"]"#, 1, "[[grid]]\nconnections = 1\n");
    let nowhere = home.path("nowhere");
    narrows(&home, &["run", "e", "--rounds", "file"], &[("HOME", &nowhere)]).code(0).says(&[
        "cowboy1 takes no part: cowboy 1.1.2 from hex is missing (rebar3 get-deps in systems/cowboy1",
        "bandit takes no part: bandit 1.8.0 from hex is missing (mix deps.get in systems/bandit",
    ]);
    home.measured("good");
    let report = home.run(["report", "last"]).code(0);
    assert!(squeezed(&report.stdout).contains("not run here: cowboy1, bandit"), "{report:#?}");
    home.assert_nothing_left();
}

#[test]
fn the_registry_is_asked_for_the_exact_version() {
    let has = home(&["ibrowse"], "hexpm:\n    Name: ibrowse\n    Versions: 4.4.2, 4.4.1, 4.4.0");
    let ibrowse = listed(&has, "ibrowse", &[]);
    assert_eq!((&ibrowse["available"], &ibrowse["missing"]), (&true.into(), &serde_json::json!([])));
    // The versions of needs are an input of the build. Fetching the package must not change them.
    has.write("systems/ibrowse/_build/default/lib/ibrowse/x", "");
    assert_eq!(listed(&has, "ibrowse", &[])["versions"], ibrowse["versions"]);
    for other in ["4.4.2, 4.4.0", "4.4.10, 14.4.1, 4.4.1-rc.1", "4.4.11"] {
        let lacks = home(&["ibrowse"], &format!("hexpm:\n    Name: ibrowse\n    Versions: {other}"));
        let ibrowse = listed(&lacks, "ibrowse", &[]);
        let detail = ibrowse["missing"][0]["detail"].as_str().expect("a reason");
        assert!(detail.contains("the registry has no ibrowse 4.4.1"), "{other}: {detail}");
    }
}

#[test]
fn the_registry_is_not_asked_for_installed_packages() {
    let home = home(&["gun", "mint"], "hexpm: Error fetching from this repo.");
    let (nowhere, mix, deps) = (home.path("nowhere"), home.path("mix"), home.path("deps"));
    // _checkouts, from which rebar3 uses the user's sources. The system is missing as long as one package is.
    home.write("systems/gun/_checkouts/gun/x", "");
    assert_eq!(listed(&home, "gun", &[])["available"], false);
    home.write("systems/gun/_build/default/lib/cowlib/x", "");
    assert_eq!(listed(&home, "gun", &[])["available"], true);
    // mix's folders. Without Hex mix can use none of them.
    home.write("deps/mint/x", "");
    assert_eq!(listed(&home, "mint", &[("HOME", &nowhere), ("MIX_DEPS_PATH", &deps)])["available"], false);
    home.write("mix/archives/hex-2.0.6/x", "");
    assert_eq!(listed(&home, "mint", &[("MIX_HOME", &mix), ("MIX_DEPS_PATH", &deps)])["available"], true);
    assert_eq!(listed(&home, "mint", &[("MIX_HOME", &mix)])["available"], false);
    home.write("systems/mint/_build/deps/mint/x", "");
    assert_eq!(listed(&home, "mint", &[("MIX_HOME", &mix)])["available"], true);
}

/// Evaluates an expression with the driver loaded; it must be `true`.
fn erlang(folder: &Path, expression: &str) {
    let program =
        format!("case ({expression}) of true -> halt(0); Other -> io:format(\"~p\", [Other]), halt(1) end.");
    let ended = Command::new("erl").args(["-noshell", "-pa"]).arg(folder).args(["-eval", &program]).output();
    let ended = ended.expect("erl");
    assert!(ended.status.success(), "{expression}: {}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn what_the_driver_computes() {
    if !has("erl") || !has("erlc") {
        return;
    }
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let source = checkout().join("systems/shared/narrows_client.erl");
    let compiled = Command::new("erlc").args(["-Werror", "-o"]).arg(folder.path()).arg(source).status();
    assert!(compiled.expect("erlc").success());
    for expression in [
        // Headers in any case, as strings or binaries. No id and two ids both count as none.
        r#"{ok, 200, <<"7">>, <<"ok">>, unknown} =:= narrows_client:answer(200, [{"X-Request-ID", "7"}], "ok")"#,
        r#"{ok, 200, <<"7">>, <<"ok">>, unknown} =:= narrows_client:answer(200, [{<<"a">>, <<>>}, {<<"x-request-id">>, <<"7">>}], [<<"o">>, "k"])"#,
        r#"{ok, 404, undefined, <<>>, unknown} =:= narrows_client:answer(404, [{<<"y-request-id">>, <<"7">>}], <<>>)"#,
        r#"{ok, 200, undefined, <<>>, unknown} =:= narrows_client:answer(200, [{"x-request-id", "7"}, {"x-request-id", "8"}], "")"#,
        // A request in a separate process: its answer, its crash, its timeout, and nothing left of it.
        "{ok, 1} =:= narrows_client:bounded(5000, fun() -> {ok, 1} end)",
        "{error, other, oops} =:= narrows_client:bounded(5000, fun() -> exit(oops) end)",
        "begin Self = self(), {error, timeout, timeout} = narrows_client:bounded(1, fun() -> Self ! self(), receive after infinity -> ok end end), \
         not is_process_alive(receive Pid -> Pid end) andalso {messages, []} =:= process_info(self(), messages) end",
        // Errors of sockets, as clients report them.
        "[connect_refused, reset, closed_early, timeout, busy, other] =:= \
         [narrows_client:class(R) || R <- [econnrefused, econnreset, closed, timeout, busy, {odd, 1}]]",
        "[pool_wait, connect_timeout, closed_early, closed_early, reset, timeout, other] =:= \
         [narrows_client:class(R) || R <- [checkout_timeout, {error, connect_timeout}, {shutdown, normal}, {stream_error, {closed, \"lost\"}}, \
          {down, {shutdown, {error, econnreset}}}, {error, timeout}, {shutdown, odd}]]",
        // The remaining time is never negative.
        "0 =:= narrows_client:left(narrows_client:deadline(-5))",
        "narrows_client:left(narrows_client:deadline(60000)) > 1000",
        // Versions, also of applications that are not started.
        r#"match =:= re:run(narrows_client:versions([kernel, stdlib]), "^kernel [0-9.]+, stdlib [0-9.]+$", [{capture, none}])"#,
    ] {
        erlang(folder.path(), expression);
    }
}

/// The open loop of the common driver, with the only client that needs no package.
#[test]
fn drivers_send_by_a_schedule() {
    let home = Home::with(&["httpc"]);
    // In the last one, two callers with answers after 50 ms carry 40 of 1000 arrivals per second.
    let grid = "[[grid]]\npool_size = 4\nconcurrency = 16\ndelay_ms = 1\ntimeout_ms = 20000\nrate = 400\ngaps = [\"constant\", \"poisson\"]\n\
                [[grid]]\npool_size = 2\nconcurrency = 2\ndelay_ms = 50\ntimeout_ms = 20000\nrate = 1000\n";
    home.timed_experiment("clients", "[\"httpc\"]", 1, 0.5, grid);
    let ended = home.run(["run", "e", "--rounds", "1"]);
    if !all_took_part(&ended) {
        return;
    }
    ended.code(0);
    let seen = home.observations();
    let of_httpc = seen.iter().filter(|observation| observation.trial.scenario.system == "httpc");
    let (scenarios, measured) = (of_httpc.map(|o| &o.trial.scenario), home.measured("httpc"));
    assert_eq!(measured.len(), 3);
    for (scenario, m) in scenarios.zip(&measured) {
        let errors: u64 = m.errors.values().sum();
        assert_eq!(m.attempts, m.successes + errors + m.in_flight, "{m:#?}");
        assert_eq!(m.response_us.count, m.successes, "{m:#?}");
        let server = m.server.as_ref().expect("counts");
        assert!(server.client_successes > 0 && server.client_successes <= server.responses, "{server:#?}");
        assert!(server.requests <= server.client_attempts, "{server:#?}");
        // Each arrival of the window was sent or is counted as dropped, whatever the machine does. Those of the
        // warm-up's 0.05 s may be added.
        let arrivals = m.attempts + m.dropped;
        let poisson = scenario.point.get("gaps") == Some(&systems::Value::Text("poisson".to_owned()));
        let expected = match scenario.work().rate().map(|rate| rate.per_s) {
            Some(1000) => 500..=550,
            _ if poisson => 120..=320,
            _ => 200..=220,
        };
        assert!(expected.contains(&arrivals), "{scenario:?}: {m:#?}");
        if scenario.work().rate().map(|rate| rate.per_s) == Some(1000) {
            assert!(m.late + m.dropped > m.successes, "{m:#?}");
        }
    }
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let warnings = report["experiments"][0]["warnings"].as_array().expect("warnings").clone();
    assert!(warnings.iter().any(|warning| warning["code"] == "behind_schedule"), "{warnings:?}");

    let words = [
        "run",
        "e",
        "--rounds",
        "1",
        "--systems",
        "httpc",
        "--set",
        "rate=2000000",
        "--set",
        "gaps=constant",
    ];
    home.run(words).code(1);
    let failure = home.failed("httpc").remove(0);
    assert!(failure.reason.contains("this driver supports rates above 0"), "{failure:#?}");
}
