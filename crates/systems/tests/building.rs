//! When builds run, what their failures say, and how a system's needs are reported.

mod common;

use std::sync::atomic::AtomicBool;

use common::{Home, eventually, odd_seconds, with_argument};
use systems::build::last_failure;
use systems::{Availability, Context, Manifest, Stage, availability, build};

const COUNTED: &str = "ls -A {out}; echo x >> {home}/count; cp source {out}/VERSION";

#[test]
fn a_build_runs_only_if_an_input_has_changed() {
    let home = Home::new();
    let version = "version=['cat','{out}/VERSION']";
    let manifest = home.built_by(COUNTED, version);
    let source = home.dir().join("source");
    std::fs::write(&source, "1.0\n").unwrap();
    let run = |manifest: &Manifest| build(manifest, home.context(), "").unwrap();
    let first = run(&manifest);
    assert_eq!(first.version.as_deref(), Some("1.0"));
    assert_eq!(first.out, home.path().join("target/systems/probe"));
    assert_eq!((run(&manifest), home.count()), (first, 1));
    std::fs::write(&source, "2.0\n").unwrap();
    assert_eq!(run(&manifest).version.as_deref(), Some("2.0"));
    assert_eq!(home.count(), 2);
    std::fs::create_dir(home.path().join("systems/shared/deep")).unwrap();
    std::fs::write(home.path().join("systems/shared/deep/file"), "").unwrap();
    run(&manifest);
    assert_eq!(home.count(), 3);
    run(&home.built_by(&format!("{COUNTED}; true"), version));
    assert_eq!(home.count(), 4);
    // What tools leave behind does not count as a change.
    std::fs::create_dir(home.dir().join("__pycache__")).unwrap();
    run(&home.built_by(&format!("{COUNTED}; true"), version));
    assert_eq!(home.count(), 4);
    std::fs::remove_dir_all(home.path().join("target/systems/probe")).unwrap();
    run(&home.built_by(&format!("{COUNTED}; true"), version));
    assert_eq!(home.count(), 5);
}

#[test]
fn a_failed_build_shows_the_end_of_its_output_and_is_tried_again() {
    let home = Home::new();
    let manifest = home.built_by("echo x >> {home}/count; seq 100000; echo broken >&2; exit 4", "");
    for attempt in 1..=2 {
        let error = build(&manifest, home.context(), "").unwrap_err();
        assert_eq!(error.stage, Stage::Build);
        assert!(error.reason.starts_with("the build exited with code 4; its full output is in "), "{error}");
        assert!(error.output.ends_with("100000\nbroken") && error.output.len() <= 4096, "{error:?}");
        assert_eq!(home.count(), attempt);
    }
    let error = build(&home.built_by("true", "version=['cat','{out}/no']"), home.context(), "").unwrap_err();
    assert!(error.reason.contains("build.version: `cat` exited with code 1"), "{error}");
}

#[test]
fn a_failure_is_listed_until_the_build_succeeds_or_changes() {
    let home = Home::new();
    let script = "echo much; if [ ! -e here ]; then echo unreachable >&2; echo; exit 1; fi";
    let manifest = home.built_by(script, "get='fetch it'");
    let listed = |manifest: &Manifest| last_failure(manifest, home.context(), "");
    assert_eq!(listed(&manifest), None, "not tried");
    let error = build(&manifest, home.context(), "").unwrap_err();
    assert!(error.reason.ends_with("; to get what it fetches: fetch it"), "{error}");
    assert_eq!(listed(&manifest).as_deref(), Some("unreachable"));
    assert_eq!(listed(&home.built_by("true", "")), None, "another build");
    let silent = home.built_by("exit 3", "");
    build(&silent, home.context(), "").unwrap_err();
    assert_eq!(listed(&silent).as_deref(), Some("the build exited with code 3"));
    build(&manifest, home.context(), "").unwrap_err();
    std::fs::write(home.dir().join("here"), "").unwrap();
    build(&manifest, home.context(), "").unwrap();
    std::fs::remove_file(home.dir().join("here")).unwrap();
    assert_eq!(listed(&manifest), None, "it succeeded");
}

#[test]
fn a_build_that_hangs_is_killed_with_its_children() {
    let home = Home::new();
    let seconds = odd_seconds();
    let manifest = home.built_by(&format!("sleep {seconds} & sleep {seconds}"), "timeout_s=1");
    let error = build(&manifest, home.context(), "").unwrap_err();
    assert!(error.reason.starts_with("the build was killed after build.timeout_s = 1"), "{error}");
    assert!(with_argument(&seconds).is_empty());
}

#[test]
fn a_build_ends_when_it_is_interrupted() {
    let home = Home::new();
    let seconds = odd_seconds();
    let manifest = home.built_by(&format!("sleep {seconds}"), "");
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let building = scope.spawn(|| build(&manifest, Context { cancel: &cancel, ..home.context() }, ""));
        eventually("it runs", || !with_argument(&seconds).is_empty());
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(building.join().unwrap().unwrap_err().reason.starts_with("interrupted"));
    });
    assert!(with_argument(&seconds).is_empty());
}

#[test]
fn two_builds_of_one_system_exclude_each_other() {
    let home = Home::new();
    let manifest = home.built_by("echo x >> {home}/count; sleep 0.2", "");
    std::thread::scope(|scope| {
        let builds = [(); 3].map(|()| scope.spawn(|| build(&manifest, home.context(), "").unwrap()));
        builds.into_iter().for_each(|building| drop(building.join().unwrap()));
    });
    assert_eq!(home.count(), 1);
}

#[test]
fn a_system_without_a_build_gets_an_empty_folder() {
    let home = Home::new();
    let manifest = home.manifest("client", "[start]\ncommand=['true','{out}']\n");
    let built = build(&manifest, home.context(), "").unwrap();
    assert!(built.out.is_dir() && built.version.is_none());
    // One that does not ask for the folder leaves nothing in the home.
    let home = Home::new();
    let built = build(&home.client("true"), home.context(), "").unwrap();
    assert!(!built.out.exists() && !home.path().join("target").exists());
}

#[test]
fn a_missing_need_is_named_with_its_remedy() {
    let home = Home::new();
    let need = |name: &str, probe: &str| {
        format!(
            "[[needs]]\nname='{name}'\nprobe=['{probe}','x 1.2']\nversion='(\\d\\.\\d)'\nget='get {name}'\n"
        )
    };
    let start = "[start]\ncommand=['true']\n";
    let manifest = home.manifest("client", &format!("{}{start}", need("Echo", "echo")));
    let ready = Availability::Ready { versions: vec![("Echo".to_owned(), "1.2".to_owned())] };
    assert_eq!(availability(&manifest, home.context()), ready);
    let lines = format!("{}{}{start}", need("Echo", "echo"), need("Thing", "no-such-program"));
    let Availability::Missing { what } = availability(&home.manifest("client", &lines), home.context())
    else {
        panic!("it is not there");
    };
    let shown = (what[0].name.as_str(), what[0].get.as_str(), what[0].detail.as_str());
    assert_eq!(shown, ("Thing", "get Thing", "`no-such-program` is not installed"));
    assert_eq!(what.len(), 1);
}

#[test]
fn a_variant_has_its_environment_in_probe_build_and_start() {
    let home = Home::new();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("runtime"), "#!/bin/sh\necho its own, $KIND\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("runtime"), mode).unwrap();
    let text = "name='probe'\nrole='client'\nworkloads=['clients']\nlanguage='sh'\nabout=''\n\
                [[needs]]\nname='runtime'\nprobe=['runtime']\nget='x'\n\
                [build]\ncommand=['sh','-c','echo x >> {home}/count; runtime > {out}/VERSION']\nversion=['cat','{out}/VERSION']\n\
                [start]\ncommand=['sh','-c','runtime; echo {variant}']\n\
                [variants.mine]\npath='{home}/bin'\nenv={KIND='KIND'}\n\
                [variants.none]\npath='{$NARROWS_TEST_NOT_SET}'\nget='set it'\n";
    let parse =
        |text: &str| Manifest::parse(&systems::Source::new("system.toml", text), &home.dir()).unwrap();
    let all = parse(text);
    let [plain, mine, none] = &all[..] else { panic!("{all:?}") };
    // Each variant is available or missing independently.
    let Availability::Missing { what } = availability(plain, home.context()) else { panic!() };
    assert_eq!(what[0].detail, "`runtime` is not installed");
    let Availability::Missing { what } = availability(none, home.context()) else { panic!() };
    assert_eq!((what.len(), what[0].name.as_str()), (1, "the environment variable NARROWS_TEST_NOT_SET"));
    assert_eq!((what[0].get.as_str(), what[0].detail.as_str()), ("set it", "not set"));
    assert!(build(plain, home.context(), "").is_err() && build(none, home.context(), "").is_err());
    let Availability::Ready { versions } = availability(mine, home.context()) else { panic!() };
    assert_eq!(versions[0].1, "its own, KIND");

    let built = build(mine, home.context(), "").unwrap();
    assert_eq!(built.version.as_deref(), Some("its own, KIND"));
    assert_eq!(built.out, home.path().join("target/systems/probe@mine"));
    let running = home.start(mine, None).unwrap();
    let line = || running.line(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!((line().as_deref(), line().as_deref()), (Some("its own, KIND"), Some("mine")));
    running.stop();

    let builds = home.count();
    assert_eq!((build(mine, home.context(), "").unwrap(), home.count()), (built, builds));
    let other = parse(&text.replace("KIND='KIND'", "KIND='other'")).remove(1);
    assert_eq!(build(&other, home.context(), "").unwrap().version.as_deref(), Some("its own, other"));
    assert_eq!(home.count(), builds + 1, "another environment, another build");
}
