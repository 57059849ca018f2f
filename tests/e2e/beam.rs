//! Systems on the BEAM with packages of hex.pm: how they are listed if the registry answers and if it does not; how
//! sources on disk are compiled instead; and what their common driver computes and sends by a schedule. No test depends
//! on a registry: where it would be asked, rebar3 and elixir are replaced.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
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

fn narrows(home: &Home, words: &[&str]) -> Ended {
    let mut command = home.narrows(words);
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").expect("a PATH"));
    command.env("PATH", path);
    run(&mut command)
}

/// The entry of a system in `narrows systems`.
fn listed(home: &Home, system: &str) -> Value {
    let all = narrows(home, &["systems", "--json"]).code(0).json();
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
    let all = narrows(&home, &["systems", "--json"]).code(0).json();
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
        let list = get.split_once(&format!("systems/{name}/")).and_then(|(_, rest)| rest.split_once(','));
        let (list, _) = list.expect("where the packages are named");
        assert!(home.path(&format!("systems/{name}/{list}")).exists(), "{get}");
        assert!(
            get.starts_with("access to hex.pm; or ") && get.ends_with(&format!("systems/{name}/_checkouts"))
        );
        let detail = missing["detail"].as_str().expect("a reason");
        assert!(detail.contains("the registry d"), "{name}: {detail}"); // it does not answer, or did not a moment ago
    }
}

#[test]
fn a_run_continues_without_the_missing_libraries() {
    let home = home(&["cowboy1", "bandit"], "hexpm: Error fetching from this repo.");
    home.twin("good");
    home.experiment("requests", r#"["cowboy1", "good", "bandit"]"#, 1, "[[grid]]\nconnections = 1\n");
    narrows(&home, &["run", "e", "--rounds", "file"]).code(0).says(&[
        "cowboy1 takes no part: cowboy 1.1.2 is missing (access to hex.pm; or sources",
        "bandit takes no part: bandit 1.8.0 is missing (access to hex.pm; or sources",
    ]);
    home.measured("good");
    let report = home.run(["report", "last"]).code(0);
    assert!(squeezed(&report.stdout).contains("not run here: cowboy1, bandit"), "{report:#?}");
    home.assert_nothing_left();
}

#[test]
fn the_registry_is_asked_for_the_exact_version() {
    let has = home(&["ibrowse"], "hexpm:\n    Name: ibrowse\n    Versions: 4.4.2, 4.4.1, 4.4.0");
    let ibrowse = listed(&has, "ibrowse");
    assert_eq!((&ibrowse["available"], &ibrowse["missing"]), (&true.into(), &serde_json::json!([])));
    // The versions of needs are an input of the build. Fetching the package must not change them.
    has.write("systems/ibrowse/_build/default/lib/ibrowse/x", "");
    assert_eq!(listed(&has, "ibrowse")["versions"], ibrowse["versions"]);
    for other in ["4.4.2, 4.4.0", "4.4.10, 14.4.1, 4.4.1-rc.1", "4.4.11"] {
        let lacks = home(&["ibrowse"], &format!("hexpm:\n    Name: ibrowse\n    Versions: {other}"));
        let ibrowse = listed(&lacks, "ibrowse");
        let detail = ibrowse["missing"][0]["detail"].as_str().expect("a reason");
        assert!(detail.contains("the registry has no ibrowse 4.4.1"), "{other}: {detail}");
    }
}

/// Whether a system is available, and if not, why.
fn verdict(home: &Home, system: &str) -> Result<(), String> {
    match &listed(home, system)["missing"][0]["detail"] {
        Value::String(why) => Err(why.replace("`sh` exited with code 1: ", "")),
        _ => Ok(()),
    }
}

#[test]
fn the_registry_is_not_asked_for_sources_on_disk() {
    let home = home(&["gun", "mojito"], "hexpm: Error fetching from this repo.");
    let silent = "the registry did not answer a moment ago";
    assert!(verdict(&home, "gun").is_err_and(|why| why.contains("the registry does not answer")));
    for (system, library, fetched) in
        [("gun", "cowlib", "_build/default/lib"), ("mojito", "mint", "_build/deps")]
    {
        let own = |file: &str| format!("systems/{system}/{file}");
        // What is missing is named. The registry is not the only way to get it.
        home.write(&own(&format!("_checkouts/{system}/x")), "");
        home.write(&own("_checkouts/castore/x"), "");
        home.write(&own("_checkouts/poolboy/x"), "");
        let version = if system == "gun" { "2.17.1" } else { "0.2.1" };
        let lacks = format!("_checkouts lacks {library} {version}, and {silent}");
        assert_eq!(verdict(&home, system), Err(lacks.clone()));
        // A library is taken from where the tool fetched it before. Another version is no substitute.
        let file = own(&format!("{fetched}/{library}/ebin/{library}.app"));
        home.write(&file, &format!("{{application, {library}, [\n {{ vsn, \"9.9.9\" }}]}}."));
        assert_eq!(verdict(&home, system), Err(lacks));
        home.write(&file, "");
        assert_eq!(verdict(&home, system), Ok(()));
    }
}

#[test]
fn sources_of_another_version_are_refused() {
    let home = home(&["machine-gun"], "hexpm: Error fetching from this repo.");
    let own = |file: &str| format!("systems/machine-gun/_checkouts/{file}");
    // The ways in which libraries say their version. What is compiled already says it as well, and may be stale.
    let versions = |[machine_gun, gun, cowlib, poolboy]: [&str; 4]| {
        home.write(
            &own("machine_gun/mix.exs"),
            &format!("[\n  elixir: \"~> 1.5\",\n  version: \"{machine_gun}\",\n]"),
        );
        home.write(&own("cowlib/mix.exs"), &format!("  @version \"{cowlib}\"\n  [version: @version]"));
        home.write(&own("gun/ebin/gun.app"), &format!("{{application, gun, [{{vsn,\"{gun}\"}}]}}."));
        home.write(&own("poolboy/ebin/poolboy.app"), "{application, poolboy, [{vsn,\"0.0.1\"}]}.");
        home.write(&own("poolboy/src/poolboy.app.src"), &format!("[{{vsn, \"{poolboy}\"}}]"));
        verdict(&home, "machine-gun")
    };
    assert_eq!(versions(["0.1.5", "1.3.0", "2.6.0", "1.5.2"]), Ok(()));
    let other = "gun 1.3.3 instead of 1.3.0, cowlib 2.6.0-rc.1 instead of 2.6.0";
    let refused = versions(["0.1.5", "1.3.3", "2.6.0-rc.1", "1.5.2"]);
    assert_eq!(refused, Err(format!("_checkouts has {other}")));
    let refused = versions(["0.1.6", "1.3.0", "2.6.0", "1.5.20"]);
    let other = "machine_gun 0.1.6 instead of 0.1.5, poolboy 1.5.20 instead of 1.5.2";
    assert_eq!(refused, Err(format!("_checkouts has {other}")));
}

/// A server with these libraries as sources on disk, and its list of packages.
fn with_sources(name: &str, list: &str, packages: &str, sources: &[(&str, &str)]) -> Home {
    let home = Home::new();
    symlink(checkout().join("systems/shared"), home.path("systems/shared")).expect("a link");
    let build = "[build]\ncommand = [\"sh\", \"../shared/hex.sh\", \"build\", \"{out}\"]\n\
                 version = [\"cat\", \"{out}/VERSION\"]\n[[needs]]\nname = \"alpha 1.0.0\"\nget = \"sources\"\n\
                 probe = [\"sh\", \"../shared/hex.sh\", \"have\"]\n";
    home.server(name, r#"["{narrows}", "serve", "--any", "{port}"]"#, build);
    home.write(&format!("systems/{name}/{list}"), packages);
    for (file, text) in sources {
        home.write(&format!("systems/{name}/_checkouts/{file}"), text);
    }
    home.experiment("requests", &format!("[\"{name}\"]"), 1, "[[grid]]\nconnections = 1\n");
    home
}

/// Runs with the machine's own tools, which have neither Hex nor a registry.
fn built(home: &Home) -> Ended {
    let mut command = home.narrows(["run", "e", "--rounds", "1"]);
    for name in ["MIX_HOME", "MIX_ARCHIVES", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "REBAR_CACHE_DIR"] {
        command.env_remove(name);
    }
    command.env("HOME", home.path("nobody")).env("MIX_DEPS_PATH", "/nowhere");
    command.env("HEX_CDN", "http://127.0.0.1:9").env("HEX_MIRROR", "http://127.0.0.1:9");
    run(&mut command)
}

#[test]
fn mix_compiles_sources_in_the_order_of_dependencies() {
    if !has("mix") || !has("rebar3") {
        return;
    }
    let project = |name: &str, version: &str, dependency: &str| {
        format!(
            "defmodule {name}.MixProject do\n  use Mix.Project\n  def project do\n    [app: :{}, version: \"{version}\", \
             deps: [{dependency}]]\n  end\nend\n",
            name.to_lowercase()
        )
    };
    // By name the order is the wrong one: each needs the next when it is compiled. One of them is in Erlang.
    let packages = "{:alpha, \"1.0.0\", override: true},\n{:beta, \"2.0.0\", override: true},\n\
                    {:gamma, \"3.0.0\", override: true}\n";
    let home = with_sources(
        "mixed",
        "mix.exs",
        &project("Mixed", "1.0.0", packages),
        &[
            (
                "alpha/mix.exs",
                &project("Alpha", "1.0.0", "{:beta, \"~> 2.0\"}, {:dev_tool, \"~> 1.0\", only: :dev}"),
            ),
            (
                "alpha/lib/alpha.ex",
                "defmodule Alpha do\n  @answer Beta.answer()\n  def answer, do: @answer\nend\n",
            ),
            ("beta/mix.exs", &project("Beta", "2.0.0", "{:gamma, \"~> 2.0 or ~> 3.0\"}")),
            (
                "beta/lib/beta.ex",
                "defmodule Beta do\n  @answer :gamma.answer()\n  def answer, do: @answer\nend\n",
            ),
            ("gamma/rebar.config", "{deps, []}.\n"),
            (
                "gamma/src/gamma.app.src",
                "{application, gamma, [{vsn, \"3.0.0\"}, {applications, [kernel, stdlib]}]}.\n",
            ),
            ("gamma/src/gamma.erl", "-module(gamma).\n-export([answer/0]).\nanswer() -> 42.\n"),
        ],
    );
    built(&home).code(0);
    assert_eq!(home.measured("mixed")[0].system.version, "alpha 1.0.0");
    home.assert_nothing_left();
}

#[test]
fn rebar3_compiles_sources_in_the_order_of_dependencies() {
    if !has("rebar3") {
        return;
    }
    let application = |name: &str, version: &str| {
        format!("{{application, {name}, [{{vsn, {version}}}, {{applications, [kernel, stdlib]}}]}}.\n")
    };
    let home = with_sources(
        "rebarred",
        "rebar.config",
        "{deps, [\n{alpha, \"1.0.0\"},\n{beta, \"2.0.0\"}\n]}.\n",
        &[
            ("alpha/rebar.config", "{deps, [{beta, \"2.0.0\"}]}.\n{erl_opts, [{parse_transform, beta}]}.\n"),
            ("alpha/src/alpha.app.src", &application("alpha", "\"1.0.0\"")),
            ("alpha/src/alpha.erl", "-module(alpha).\n-export([answer/0]).\nanswer() -> 42.\n"),
            ("beta/src/beta.app.src", &application("beta", "\"2.0.0\"")),
            (
                "beta/src/beta.erl",
                "-module(beta).\n-export([parse_transform/2]).\nparse_transform(Forms, _) -> Forms.\n",
            ),
        ],
    );
    built(&home).code(0);
    assert_eq!(home.measured("rebarred")[0].system.version, "alpha 1.0.0");
    // Here the version is known after the build only.
    home.write("systems/rebarred/_checkouts/beta/src/beta.app.src", &application("beta", "git"));
    built(&home).code(1);
    let failed = home.failed("rebarred");
    let output = &failed[0].output;
    assert!(
        failed[0].stage == lab::observation::Stage::Build
            && output.contains("it was built with beta 0.0.0 instead of 2.0.0"),
        "{failed:#?}"
    );
    home.assert_nothing_left();
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
#[ignore = "long; `make test-long` runs it"]
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
        let given_up: u64 = m.response_us.unanswered.iter().map(|(_, count)| count).sum();
        let arrived = m.attempts + m.dropped;
        let fits = if scenario.work().is_open_loop() {
            m.response_us.count + given_up <= arrived
        } else {
            m.response_us.count == m.successes
        };
        assert!(fits, "{m:#?}");
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
    let warnings = report["experiments"][0]["figures"][0]["warnings"].as_array().expect("warnings").clone();
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
