//! What `narrows try` refuses before anything starts, in words that say what is wrong.

use crate::support::fake::Try;

/// A command of a user's, which is never started.
const SERVER: &str = "./server {port}";
const SECURED: &str = "./server {port} {cert}";
const FIRST: [&str; 2] = ["--first", "POST /login {\"name\":\"ann\"}"];

/// Asserts that each of these command lines is a usage error that says these words, and that nothing has run.
fn refused(cases: &[(&[&str], &[&str])]) {
    let tried = Try::new("");
    tried.home.write("list", "GET /a\n\nGET /b?{{user}}\n");
    tried.home.write("users", "user\nann\n");
    for (words, says) in cases {
        tried.home.run([&["try"], *words].concat()).code(2).says(says);
    }
    assert!(!tried.home.has_run());
}

#[test]
fn commands_and_their_knobs() {
    refused(&[
        (&["node", "server.js", "{port}"], &["quote it: 'node server.js {port}'"]),
        (&["server", "--port", "{port}"], &["quote it: 'server --port {port}'"]),
        (&["a && b"], &["this needs a shell", "--shell"]),
        (&["A=1 b"], &["--env NAME=VALUE"]),
        (&["node socket.js {socket} {port}"], &["both {port} and {socket}"]),
        (&["s {prot}"], &["nothing gives {prot} a value", "did you mean `port`?"]),
        (&[SERVER, "--knob", "w=1,2"], &["no command contains {w}", "--env NAME={w}"]),
        (&[SERVER, "--knob", "cores=1000"], &["cores"]),
        (&[SERVER, "--knob", "w=1..0"], &["1 is above 0"]),
        (
            &[SERVER, "-k", "files=9000000000000"],
            &["9000000000000 is more than this machine allows", "VALUE"],
        ),
        (&[SERVER, "-k", "files=as_it_is"], &["did you mean `as-it-is`?"]),
        (&["http://127.0.0.1:1/a", "http://127.0.0.1:2/b"], &["different paths"]),
        (&["http://192.0.2.1:80"], &["cannot attach", "this machine"]),
    ]);
}

#[test]
fn requests_and_figures() {
    refused(&[
        (&[SERVER, "--rate", "0.3"], &["--rate is a whole number"]),
        (
            &[SERVER, "--figure", "rate", "--rate", "200"],
            &["--rate says how many requests arrive", "the same for every arm", "leave --rate out"],
        ),
        (
            &[SERVER, "--figure", "p99", "--rate", "200", "-d", "300ms"],
            &["--figure p99 needs 1000 answers in each trial, and 200 arrive in a second: use -d 6s"],
        ),
        (
            &[SERVER, "--unequal", "--fail-if", "rate<0.9"],
            &["--fail-if rate<0.9 is about a ratio, and --unequal compares nothing"],
        ),
        (&[SERVER, "--figure", "max-rate"], &["needs its objective, such as --slo"]),
        (&[SERVER, "--slo", "p99<1s", "--figure", "rate"], &["add max-rate to --figure"]),
        (&[SERVER, "--slo", "p99<1s", "--figure", "rate,max-rate"], &["leave one of them out"]),
        (&[SERVER, "--slo", "p99<1s", "--rate", "100"], &["leave --rate out"]),
        (&[SERVER, "--slo", "p99<1s", "--frames"], &["not of frames"]),
        (&[SERVER, "--frames", "--proxy-protocol", "1"], &["--proxy-protocol works only with requests here"]),
    ]);
}

#[test]
fn duets() {
    refused(&[
        (&["--duet", "http://127.0.0.1:1", "http://127.0.0.1:2"], &["give commands instead of URLs"]),
        (&["--duet", SERVER, SERVER, "--fail-if", "p99>5ms", "--figure", "p99"], &["limit a ratio"]),
        (&["--duet", SERVER, SERVER, "--slo", "p99<5ms"], &["--slo"]),
        (&["--duet", SERVER, SERVER, "--unequal"], &["--unequal"]),
        (&["--duet", SERVER, SERVER, "--frames"], &["--duet needs requests"]),
    ]);
}

#[test]
fn files_of_requests() {
    let file = "the file of --requests has the paths: leave --path out";
    refused(&[
        (&[SERVER, "--requests", "list", "--path", "/a"], &[file]),
        (&[SERVER, "--requests", "list", "-X", "PUT"], &["cannot be used with"]),
        (&[SERVER, "--requests", "list", "--frames"], &["only with requests, not with frames"]),
        (
            &[SERVER, "--requests", "list", "--requests-order", "once", "--data", "users"],
            &["use in-order or random"],
        ),
        (&[SERVER, "--requests", "list"], &["list:3:"]),
        (&[SERVER, "--requests", "list", "--data", "users", "--save", "x"], &["--save writes one request"]),
        (&[SERVER, "--requests", "list", "--gen", "local"], &["cannot be sent to other machines"]),
    ]);
}

#[test]
fn values_of_a_first_answer() {
    let [first, post] = FIRST;
    let capture = ["--capture", "token=json.access.token"];
    refused(&[
        (
            &[SERVER, first, post, capture[0], capture[1], "--path", "/me"],
            &["no path, header or body has {{token}}"],
        ),
        (
            &[SERVER, first, post, capture[0], capture[1], "-H", "Authorization: Bearer {{tokn}}"],
            &["{{tokn}} has no value: --capture gives one to {{token}}"],
        ),
        (&[SERVER, first, post, "--path", "/me"], &["--first needs a --capture or --cookies"]),
        (&[SERVER, capture[0], capture[1], "--path", "/me"], &["--first"]),
        (&[SERVER, first, post, "--capture", "token=xml.a"], &["a value is json.NAME, header:NAME"]),
    ]);
}

#[test]
fn places_that_no_url_can_have() {
    let url = "http://a.example";
    refused(&[
        (&["node server.js {port}", "--unix", "a"], &["servers that run already, which URLs name"]),
        (&[url, "--unix", "a", "--connect-to", "127.0.0.1:1"], &["leave one of them out"]),
        (&[url, "--connect-to", "192.0.2.1:80"], &["must be an address such as 127.0.0.1:80 here"]),
        (&[url, "--unix", "a", "--save", "x"], &["leave --unix and --connect-to out, or --save"]),
        (&[url, "--unix", "a", "--gen", "local"], &["places of this machine"]),
    ]);
    let gone = Try::new("").home.run(["try", url, "--unix", "a"]).code(1);
    gone.says(&["nothing listens on", "/a: No such file"]);
}

#[test]
fn options_of_tls_that_mean_nothing() {
    refused(&[
        (&[SERVER, "--insecure"], &["https://"]),
        (&[SECURED, "--insecure"], &["Narrows makes the certificate"]),
        (&[SECURED, "--tls", "1.2,1.3"], &["one version"]),
        (&[SECURED, "--tls", "1.3", "-k", "tls=1.2,1.3"], &["give one of them"]),
        (&[SECURED, "--tls-sessions", "always", "-k", "sessions=never,always"], &["give one of them"]),
        (&["https://localhost:1", "--save", "x"], &["--cacert"]),
    ]);
}

#[test]
fn addresses_at_which_nothing_can_listen() {
    let home = Try::new("").home;
    for (address, why) in [
        ("192.0.2.1", "nothing can listen there"),
        ("0.0.0.0", "not the address of one machine"),
        ("localhost", "write an IP address"),
    ] {
        for verb in ["run", "try", "tune"] {
            let arm = Some(SERVER).filter(|_| verb != "run");
            let words = ["--address", address].into_iter().chain(arm);
            home.run(std::iter::once(verb).chain(words)).code(2).says(&[why]);
        }
    }
}

const READ: [&str; 2] = ["--read", "rate=/(.*)/"];

#[test]
fn what_a_driver_cannot_do() {
    let home = Try::new("").home;
    for (driver, words, said) in [
        ("wrk-that-is-not-there -d1", &READ[..], "there is no program `wrk-that-is-not-there`"),
        ("./none/wrk -d1", &[], "there is no program `./none/wrk`"),
        ("sh -c true", &[], "no reader is built in for `sh`"),
        ("sh {prot}", &READ, "{prot} is no placeholder of a driver"),
        ("sh", &["--read", "rate=/(/"], "--read"),
        ("sh -c true", &["--read", "rate=/(.*)/", "--figure", "p99"], "say where it is with --read p99="),
        (
            "sh -c true",
            &["--read", "rate=/(.*)/", "--figure", "rate,first-event"],
            "only Narrows' own generator",
        ),
        ("sh -c true", &["--read", "rate=/(.*)/", "--figure", "start"], "only Narrows' own generator"),
        ("sh -c true", &["--read", "rate=/(.*)/", "-c", "5"], "-c does not reach the command of --driver"),
        ("sh -c true", &["--read", "rate=/(.*)/", "-d", "5s"], "-d does not reach the command of --driver"),
        ("sh -c true", &["--read", "rate=/(.*)/", "--warmup", "1s"], "--warmup does not reach"),
        ("sh -c true", &["--read", "rate=/(.*)/", "-k", "connections=1,2"], "-k connections does not reach"),
        ("sh -c true", &["--read", "rate=/(.*)/", "-k", "pipeline=1,2"], "-k pipeline is a knob of Narrows'"),
        (
            "sh -c true",
            &["--read", "rate=/(.*)/", "--duet"],
            "--duet needs a driver that can be told how long",
        ),
        ("sh -c true", &["--driver-timeout", "1s"], "no reader"),
    ] {
        home.run([&["try", SERVER, "--driver", driver][..], words].concat()).code(2).says(&[said]);
    }
    for option in [
        &["--rate", "100"][..],
        &["--timeout", "3s"],
        &["--close"],
        &["--pipeline", "2"],
        &["--http2"],
        &["--request", "PUT"],
        &["--header", "a: b"],
        &["--body", "x"],
        &["--body-size", "1K"],
        &["--expect", "status=200"],
        &["--expect-status", "201"],
        &["--compressed"],
        &["--path", "/x"],
        &["--proxy-protocol", "1"],
        &["--cold"],
        &["--unequal"],
        &["--save", "x"],
    ] {
        let words = [&["try", SERVER, "--driver", "sh -c true"][..], &READ, option].concat();
        let said = format!("{} is an option of Narrows' own generator", option[0]);
        home.run(words).code(2).says(&[&said]);
    }
    assert!(!home.has_run());
}

#[test]
fn what_is_for_commands_only() {
    let home = Try::new("").home;
    home.write("list", "GET /a\n");
    for (words, why) in [
        (&["tune", "nginx", "--requests", "list"][..], "--requests is for commands"),
        (&["tune", "nginx", "--proxy-protocol", "1"], "--proxy-protocol is for commands"),
        (&["tune", "./s {n} {port}", "-k", "n=1,2", "--duet", "--slo", "p99<5ms"], "--slo"),
        (&["tune", SERVER, "-k", "files=9000000000000"], "is more than this machine allows"),
    ] {
        home.run(words).code(2).says(&[why]);
    }
    assert!(!home.has_run());
}
