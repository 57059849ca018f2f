//! Starting, watching and stopping systems that behave and systems that do not: what is reported, and that nothing is
//! left behind.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::{CALM, Home, eventually, late, odd_seconds, soon, with_argument};
use systems::{Exit, Listening, Manifest, Point, Stage, Value, free_port};

/// Not a test. Other tests start this binary again with this function as the program under test.
#[test]
#[ignore = "a helper that other tests start as a separate program"]
fn helper() {
    let value = |name| std::env::var(name).ok();
    if let Some(port) = value("HELPER_PORT") {
        serve(port.parse().unwrap(), &value("HELPER_STATUS").unwrap_or("200 OK".to_owned()));
    }
    if let Some(seconds) = value("HELPER_CRASH") {
        let home = Home::new();
        let manifest = home.client(&format!("exec sleep {seconds}"));
        let running = home.start(&manifest, None).unwrap();
        eventually("the program runs", || with_argument(&seconds).contains(&running.pid()));
        std::process::abort();
    }
}

fn serve(port: u16, status: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    for mut stream in listener.incoming().flatten() {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
    }
}

fn helper_server(home: &Home, env: &str, ready: &str) -> Manifest {
    let exe = std::env::current_exe().unwrap();
    let arguments = "'helper','--exact','--ignored','--nocapture'";
    let env = format!("env = {{ HELPER_PORT = '{{port}}', {env} }}");
    let start = format!("[start]\ncommand=['{}',{arguments}]\n{env}\n[ready]\n{ready}\n", exe.display());
    home.manifest("server", &start)
}

#[test]
fn a_server_is_started_pinned_and_stopped() {
    let home = Home::new();
    for ready in ["http='/'", "tcp=true"] {
        let manifest = helper_server(&home, "", ready);
        let core = *systems::machine::available_cores().last().unwrap();
        let mut running = home.start_on(&manifest, Some(free_port().unwrap()), &[core]).unwrap();
        running.wait_ready(late(), &CALM).unwrap();
        let pid = running.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{core}\n")), "{status}");
        let [soft, hard] = limits(pid);
        assert_eq!(soft, hard);
        assert!(running.alive() && running.check_alive().is_ok());
        let stopped = running.stop();
        assert_eq!((stopped.exit, stopped.killed), (Some(Exit::Signal(libc::SIGTERM)), false));
        assert!(stopped.tail.contains("running 1 test"), "{stopped:?}");
    }
}

/// The soft and the hard limit on open files of a process.
fn limits(pid: u32) -> [String; 2] {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = files.split_whitespace().collect();
    [words[3], words[4]].map(str::to_owned)
}

#[test]
fn a_limit_on_open_files_is_that_of_the_system_and_of_no_other() {
    let home = Home::new();
    let point = |files: i64| Point::from([("files".to_owned(), Value::Integer(files))]);
    let seconds = odd_seconds();
    let client = home.client(&format!("sleep {seconds} & exec sleep {seconds}"));
    let own = limits(std::process::id());
    let running = home.start_at(&client, None, &[], &point(99)).unwrap();
    eventually("both run", || with_argument(&seconds).len() == 2);
    for pid in with_argument(&seconds) {
        assert_eq!(limits(pid), ["99", "99"]);
    }
    assert_eq!(limits(std::process::id()), own);
    running.stop();
    // Nothing starts with more than this machine allows.
    let error = home.start_at(&client, None, &[], &point(1 << 40)).unwrap_err();
    assert_eq!(error.stage, Stage::Start);
    assert!(error.reason.starts_with("files 1099511627776: more than this machine allows, "), "{error}");
    assert!(with_argument(&seconds).is_empty());
}

#[test]
fn a_server_that_answers_something_else_is_not_ready() {
    let home = Home::new();
    let manifest = helper_server(&home, "HELPER_STATUS = '503 Busy'", "http='/'");
    let port = free_port().unwrap();
    let mut running = home.start(&manifest, Some(port)).unwrap();
    eventually("it listens", || !systems::port_free(Listening::usual(port)));
    let error = running.wait_ready(soon(), &CALM).unwrap_err();
    assert_eq!(error.stage, Stage::Ready);
    assert!(error.reason.contains("no 200 to GET / on 127.0.0.1:"), "{error}");
}

#[test]
fn a_program_that_dies_at_once_is_quoted() {
    let home = Home::new();
    let manifest = home.server("echo out; echo boom >&2; exit 3", "");
    let mut running = home.start(&manifest, Some(free_port().unwrap())).unwrap();
    let error = running.wait_ready(late(), &CALM).unwrap_err();
    assert_eq!(error.to_string(), "probe: ready: its program exited with code 3 before it was ready");
    assert!(error.output.contains("boom") && error.output.contains("out"), "{error:?}");
    assert!(!running.alive());
    assert_eq!(running.check_alive().unwrap_err().stage, Stage::System);
    assert_eq!(running.stop().exit, Some(Exit::Code(3)));
}

#[test]
fn a_program_that_is_never_ready_fails_the_check() {
    let home = Home::new();
    let seconds = odd_seconds();
    let manifest = home.server(&format!("echo waiting; exec sleep {seconds}"), "");
    let mut running = home.start(&manifest, Some(free_port().unwrap())).unwrap();
    eventually("it prints", || running.tail() == "waiting");
    let error = running.wait_ready(soon(), &CALM).unwrap_err();
    assert!(error.reason.starts_with("not ready in time: no connection on 127.0.0.1:"), "{error}");
    assert_eq!(error.output, "waiting");
    let error = running.wait_ready(late(), &AtomicBool::new(true)).unwrap_err();
    assert_eq!(error.reason, "interrupted");
    drop(running);
    assert!(with_argument(&seconds).is_empty());
}

#[test]
fn a_program_that_is_busy_gets_more_time_unless_one_was_given() {
    let home = Home::new();
    let exe = std::env::current_exe().unwrap();
    let start = |busy: &str, ready: &str| {
        let script = format!("{busy}; exec \"$0\" \"$@\"");
        let arguments = "'helper','--exact','--ignored','--nocapture'";
        let start = format!(
            "[start]\ncommand=['sh','-c','{script}','{}',{arguments}]\nenv = {{ HELPER_PORT = '{{port}}' }}\n\
             [ready]\nhttp='/'\n{ready}\n",
            exe.display()
        );
        home.start(&home.manifest("server", &start), Some(free_port().unwrap())).unwrap()
    };
    // It is compiled, so to speak.
    let mut running = start("i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done", "");
    running.wait_ready(std::time::Instant::now(), &CALM).unwrap();
    let mut running = start("while :; do :; done", "timeout_s=1");
    let error = running.wait_ready(soon(), &CALM).unwrap_err();
    assert!(error.reason.starts_with("not ready in time"), "{error}");
}

#[test]
fn a_program_that_ignores_sigterm_is_killed() {
    let home = Home::new();
    let seconds = odd_seconds();
    let script = format!("trap '' TERM; echo up; while :; do sleep {seconds}; done").replace('\'', "\"");
    let manifest = home.server(&script, "[stop]\ngrace_ms=100\n");
    let running = home.start(&manifest, Some(free_port().unwrap())).unwrap();
    eventually("the trap is set", || running.tail() == "up" && !with_argument(&seconds).is_empty());
    let stopped = running.stop();
    assert_eq!((stopped.exit, stopped.killed), (Some(Exit::Signal(libc::SIGKILL)), true));
    assert!(with_argument(&seconds).is_empty());
}

#[test]
fn descendants_are_killed_even_if_they_left_the_group() {
    let home = Home::new();
    for stop in [true, false] {
        let seconds = odd_seconds();
        let sleep = format!("sleep {seconds}");
        let script =
            format!("{sleep} & (trap \"\" TERM; exec {sleep}) & setsid {sleep} & (setsid {sleep} &); wait");
        let manifest = home.server(&script, "[stop]\ngrace_ms=50\n");
        let running = home.start(&manifest, Some(free_port().unwrap())).unwrap();
        // `sh` has the script as one argument, so only the sleepers match.
        eventually("its children run", || with_argument(&seconds).len() == 4);
        if stop {
            assert!(running.stop().killed);
        } else {
            drop(running);
        }
        assert_eq!(with_argument(&seconds), Vec::<u32>::new());
    }
}

#[test]
fn a_child_that_outlives_its_parent_is_killed() {
    let home = Home::new();
    let seconds = odd_seconds();
    let manifest = home.server(&format!("sleep {seconds} & exit 0"), "");
    let running = home.start(&manifest, Some(free_port().unwrap())).unwrap();
    assert_eq!(running.wait_exit(late(), &CALM), Some(Exit::Code(0)));
    running.stop();
    assert!(with_argument(&seconds).is_empty());
}

#[test]
fn dead_descendants_that_left_the_group_are_reaped() {
    let home = Home::new();
    let manifest =
        home.client("setsid sh -c \"echo \\$\\$\" & wait; (setsid sh -c \"echo \\$\\$; exit\" &); read end");
    let running = home.start(&manifest, None).unwrap();
    let patience = Duration::from_secs(60);
    let pids = [(); 2].map(|()| running.line(patience).unwrap().unwrap());
    running.stop();
    let next = home.start(&home.client("exit 0"), None).unwrap();
    next.stop();
    for pid in pids {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        assert!(!status.contains("(zombie)"), "{status}");
    }
}

#[test]
fn nothing_outlives_a_crash() {
    let seconds = odd_seconds();
    let exe = std::env::current_exe().unwrap();
    let mut crash = std::process::Command::new(exe);
    crash.args(["helper", "--exact", "--ignored", "--nocapture"]).env("HELPER_CRASH", &seconds);
    let output = crash.output().unwrap();
    assert!(!output.status.success());
    eventually("the kernel ends the program", || with_argument(&seconds).is_empty());
}

#[test]
fn megabytes_of_output_do_not_block_and_only_the_end_is_kept() {
    let home = Home::new();
    let script = "head -c 8000000 /dev/zero | tr \"\\0\" x; echo; echo the end; exec sleep 6000";
    let manifest = home.server(script, "");
    let running = home.start(&manifest, Some(free_port().unwrap())).unwrap();
    eventually("all is read", || running.tail().ends_with("x\nthe end"));
    assert!(running.tail().len() <= 4096);
    running.stop();
    // Lines that nobody reads do not block a driver from stopping.
    let manifest = home.client("while echo line; do :; done");
    let running = home.start(&manifest, None).unwrap();
    assert_eq!(running.line(Duration::from_secs(60)).unwrap().as_deref(), Some("line"));
    assert_eq!(running.stop().exit, Some(Exit::Signal(libc::SIGTERM)));
}

#[test]
fn a_port_in_use_and_another_process_on_it_are_detected() {
    let home = Home::new();
    let port = free_port().unwrap();
    let manifest = home.server("exec sleep 6000", "");
    let mut running = home.start(&manifest, Some(port)).unwrap();
    let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let me = std::process::id();
    let error = running.wait_ready(late(), &CALM).unwrap_err();
    let expected = format!("port {port} is served by process {me} (");
    assert!(error.reason.starts_with(&expected), "{error}");
    let error = home.start(&manifest, Some(port)).err().unwrap();
    assert_eq!(error.stage, Stage::Start);
    assert!(error.reason.starts_with(&format!("port {port} is in use by process {me} (")), "{error}");
    drop(stranger);
    assert!(home.start(&manifest, None).is_err());
}

#[test]
fn a_program_that_is_not_installed_is_named() {
    let home = Home::new();
    let manifest = home.manifest("client", "[start]\ncommand=['no-such-program']\n");
    let error = home.start(&manifest, None).err().unwrap();
    assert!(error.reason.starts_with("cannot start `no-such-program` in "), "{error}");
}

#[test]
fn a_driver_exchanges_lines() {
    let home = Home::new();
    let manifest = home.client("read a; echo \"got $a\"; echo aside >&2; read b; echo \"got $b\"; exit 7");
    let mut running = home.start(&manifest, None).unwrap();
    running.wait_ready(late(), &CALM).unwrap();
    assert_eq!(running.line(Duration::from_millis(20)).unwrap(), None);
    let patience = Duration::from_secs(60);
    for word in ["one", "two"] {
        running.write_line(word).unwrap();
        assert_eq!(running.line(patience).unwrap(), Some(format!("got {word}")));
    }
    let error = running.line(patience).unwrap_err();
    assert_eq!(error.to_string(), "probe: system: its program exited with code 7");
    assert!(error.output.contains("aside") && error.output.contains("got two"), "{error:?}");
    assert!(running.write_line("three").is_err());
    assert_eq!(running.stop().exit, Some(Exit::Code(7)));
}

#[test]
fn a_driver_sees_the_end_of_its_standard_input() {
    let home = Home::new();
    let mut running = home.start(&home.client("cat >/dev/null; exit 5"), None).unwrap();
    running.close_stdin();
    assert_eq!(running.wait_exit(late(), &CALM), Some(Exit::Code(5)));
}
