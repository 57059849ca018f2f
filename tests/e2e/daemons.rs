//! Servers that put themselves into the background: out of their process group and session, with another parent and an empty
//! environment. They are measured like others, and nothing of them is left.

use std::fs;

use crate::support::home::Home;
use crate::support::{Ended, NARROWS, has, installed, until};

/// A shell script that starts a server as a daemon and exits.
const DAEMON: &str = "echo \"$port\" >> ports
    env -i setsid sh -c '\"$0\" serve --any \"$1\" </dev/null >/dev/null 2>&1 &' \"$narrows\" \"$port\"
    exit 0";

/// The ports at which the system was told to listen.
fn ports(home: &Home) -> Vec<u16> {
    let text = fs::read_to_string(home.path("systems/daemon/ports")).unwrap_or_default();
    text.lines().map(|line| line.parse().expect("a port")).collect()
}

/// Asserts that it was started, and that nothing listens at any of its ports.
fn assert_gone(home: &Home) {
    let ports = ports(home);
    assert!(!ports.is_empty());
    for port in ports {
        let free = || systems::port_free(systems::Listening::usual(port));
        assert!(until(free), "port {port} is held");
    }
}

#[test]
fn a_daemon_is_measured_and_ended() {
    let home = Home::new();
    home.shell_server("daemon", DAEMON, "");
    home.experiment("requests", "[\"daemon\"]", 2, "[[grid]]\nconnections = 2\n");
    home.run(["run", "e", "--rounds", "file"]).code(0);
    let measured = home.measured("daemon");
    assert_eq!(measured.len(), 2);
    for trial in measured {
        assert!(trial.system.cpu_s > 0.0 && trial.system.peak_pss_bytes > 0, "{trial:#?}");
    }
    assert_gone(&home);
    let check = home.run(["systems", "--check", "daemon"]).code(0);
    assert!(check.stdout.contains("nothing is left"), "{check:#?}");
    assert_gone(&home);
}

#[test]
fn a_daemon_ends_when_narrows_is_interrupted_or_killed() {
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let home = Home::new();
        home.shell_server("daemon", DAEMON, "");
        home.timed_experiment("requests", "[\"daemon\"]", 1, 3600.0, "[[grid]]\nconnections = 2\n");
        // In one of two orders the reference would run first, for an hour.
        home.write("systems/reference/system.toml", "none");
        let mut run = home.spawn(&["run", "e", "--rounds", "file"]);
        let serves = || ports(&home).iter().any(|port| !systems::port_free(systems::Listening::usual(*port)));
        assert!(until(|| serves() || !run.running()) && run.running());
        run.signal(signal);
        run.end();
        home.assert_nothing_left();
        assert_gone(&home);
    }
}

/// Tries this command for a moment.
fn attempt(home: &Home, command: &str) -> Ended {
    home.run(["try", command, "--shell", "--rounds", "1", "-d", "400ms", "--warmup", "0s", "--ready", "1s"])
}

#[test]
fn a_program_that_exits_and_does_not_serve_says_where_it_went() {
    let home = Home::new();
    attempt(&home, "setsid sleep 3600 & : {port}")
        .code(1)
        .says(&["its first process exited with code 0 and left sleep (process", "in the background"]);
    attempt(&home, ": {port}").code(1).says(&["exited with code 0", "left nothing in the background"]);
}

#[test]
fn a_process_that_does_not_descend_from_the_command_is_measured_if_asked() {
    if !has("prlimit") {
        return;
    }
    let home = Home::new();
    let server = format!(
        "setsid prlimit --locks=unlimited {NARROWS} serve --any {{port}} & trap \"kill $!\" TERM; wait"
    );
    let ended = attempt(&home, &server).code(1);
    ended.says(&["which does not descend from the program", "--attach measures that process"]);
    home.run(["try", &server, "--shell", "--rounds", "1", "-d", "400ms", "--warmup", "0s", "--attach"])
        .code(0);
}

/// A server that listens and then forks 200 times. Each parent ends at once. The last child answers.
const HOPS: &str = "import os, socket, sys
listener = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=1000)
for _ in range(200):
    if os.fork():
        os._exit(0)
while True:
    connection = listener.accept()[0]
    try:
        while connection.recv(65536):
            connection.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok')
    except OSError:
        pass
";

/// Chance decides whether it forks during a search; the unit tests of trees try each order.
#[test]
fn a_server_that_forks_during_the_search_is_no_stranger() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("hops.py", HOPS);
    let words =
        ["try", "python3 hops.py {port}", "-c", "1", "--rounds", "1", "-d", "400ms", "--warmup", "0s"];
    home.run(words.into_iter().chain(["--ready", "60s"])).code(0);
}

#[test]
fn nginx_in_the_background_is_measured_and_ended() {
    let Some(nginx) = installed("nginx") else { return };
    let home = Home::new();
    home.write(
        "systems/daemon/start.sh",
        &format!(
            "port=$1\necho \"$port\" >> ports\nuser=\n[ \"$(id -u)\" != 0 ] || user='user root;'\n\
             cat > nginx.conf <<CONF\n$user\npid nginx.pid;\nevents {{}}\nhttp {{ access_log off; server {{\n\
             listen 127.0.0.1:$port; location / {{ return 200 ok; }} }} }}\nCONF\n\
             exec {} -p . -c nginx.conf -e stderr\n",
            nginx.display()
        ),
    );
    home.server("daemon", r#"["sh", "start.sh", "{port}"]"#, "");
    home.experiment("requests", "[\"daemon\"]", 2, "[[grid]]\nconnections = 2\n");
    home.run(["run", "e", "--rounds", "file"]).code(0);
    let measured = home.measured("daemon");
    assert!(measured.iter().all(|trial| trial.system.cpu_s > 0.0), "{measured:#?}");
    assert_gone(&home);
}

#[test]
fn services_may_be_daemons() {
    let home = Home::new();
    home.write(
        "start.sh",
        &format!("narrows={NARROWS} port=$1\nmkdir -p systems/daemon; cd systems/daemon\n{DAEMON}"),
    );
    let port = systems::free_port().expect("a port");
    let server = format!("{NARROWS} serve --any {{port}}");
    let service = format!("sh start.sh {port}");
    home.run(["try", &server, "--service", &service, "--rounds", "1", "-d", "400ms", "--warmup", "0s"])
        .code(0);
    assert_gone(&home);
}
