//! Tests of manifests: the contract's example, and every mistake with its position and remedy.

use super::*;
use crate::knob::{Kind, Value};

const GOOD: &str = r#"name = "cowboy2"
role = "server"
workloads = ["upload", "requests"]
language = "Erlang"
about = "Cowboy 2 with a handler that counts the body"
[[needs]]
name = "Erlang/OTP"
probe = ["erl", "-noshell"]
version = '^(\S+)'
get = "apt-get install erlang-base"
packages = ["erlang-base"]
[build]
command = ["sh", "build.sh", "{out}"]
timeout_s = 180
version = ["cat", "{out}/VERSION"]
[start]
command = ["erl", "-pa", "{out}", "{port}", "{buffer}"]
env = { ERL_CRASH_DUMP = "/dev/null" }
[ready]
http = "/"
timeout_s = 10
[stop]
grace_ms = 2000
[knobs.buffer]
type = "size"
default = 1460
values = [1460, "8K", 65536]
min = 1
max = "64M"
about = "user-level buffer of the socket"
workloads = ["upload"]
[apply]
buffer = "{{buffer, {value}}}"
"#;

fn parse_all(text: &str) -> Result<Vec<Manifest>, InputError> {
    let dir = Path::new("/home/n/systems/cowboy2");
    Manifest::parse(&Source::new("system.toml", text), dir)
}

fn started(manifest: &Manifest) -> &Start {
    match &manifest.program {
        Program::Started(start) => start,
        Program::Attached(attached) => panic!("{attached:?}"),
    }
}

/// The plain system.
fn parse(text: &str) -> Result<Manifest, InputError> {
    parse_all(text).map(|mut all| all.remove(0))
}

#[test]
fn the_example_in_the_contracts_is_valid() {
    let manifest = parse(GOOD).unwrap();
    assert_eq!(manifest.role, Role::Server);
    assert_eq!(manifest.grace, Duration::from_secs(2));
    assert_eq!(manifest.ready.http.as_deref(), Some("/"));
    assert_eq!(manifest.home(), Path::new("/home/n"));
    let knob = &manifest.knobs["buffer"];
    assert_eq!((knob.kind, knob.max), (Kind::Size, Some(64 << 20)));
    assert_eq!(knob.values, [1460, 8192, 65536].map(Value::Integer));
    assert!(manifest.knob(Workload::Upload, "buffer").is_some());
    assert!(manifest.knob(Workload::Requests, "buffer").is_none());
    assert!(manifest.knob(Workload::Requests, "pipeline").is_some());
    let names: Vec<&str> = manifest.knobs_in(Workload::Upload).map(|(name, _)| name).collect();
    let of_work = ["size", "concurrency", "reuse", "expect", "http", "tls", "certificate", "sessions"];
    assert_eq!(names, [&of_work[..], &["buffer"]].concat());
    assert_eq!(applied(&manifest.apply["buffer"], &Value::Integer(65536)), "{buffer, 65536}");
    assert_eq!(applied("sendfile {on_off};", &Value::Boolean(true)), "sendfile on;");
    assert_eq!(applied("sendfile {on_off};", &Value::Boolean(false)), "sendfile off;");
}

#[test]
fn inputs() {
    let inputs = "inputs = ['../a', '{home}/{$B}', '$B_1', './$B']\n[start]";
    let build = parse(&GOOD.replace("[start]", inputs)).unwrap().build.unwrap();
    let path = |text: &str| BuildInput::Path(text.to_owned());
    let expected = [path("../a"), path("{home}/{$B}"), BuildInput::Variable("B_1".to_owned()), path("./$B")];
    assert_eq!(build.inputs, expected);
}

#[test]
fn optional_fields_have_defaults() {
    let text = "name='cowboy2'\nrole='client'\nworkloads=['clients']\nlanguage=''\nabout=''\n\
                [start]\ncommand=['x']\n";
    let manifest = parse(text).unwrap();
    assert_eq!(manifest.grace, Duration::from_secs(1));
    let ready = Ready { http: None, timeout: Duration::from_secs(10), more_if_busy: true, outside: false };
    assert_eq!(manifest.ready, ready);
    assert!(manifest.build.is_none() && manifest.knobs.is_empty() && manifest.needs.is_empty());
}

/// What to replace in the valid manifest, the replacement, and the expected error.
const BROKEN: &[(&str, &str, &str)] = &[
    ("\"cowboy2\"", "\"cowboy\"", "1:8: the name `cowboy` is not the folder's, `cowboy2`"),
    ("\"cowboy2\"", "\"../x\"", "1:8: `../x` cannot be a system's name"),
    ("about = \"Cowboy", "abuot = \"Cowboy", "5:1: unknown field `abuot`"),
    ("about = \"Cowboy", "abuot = \"Cowboy", "did you mean `about`?"),
    ("language = \"Erlang\"\n", "", "missing field `language`"),
    ("\"server\"", "\"sever\"", "2:8: unknown variant `sever`"),
    ("\"server\"", "\"sever\"", "did you mean `server`?"),
    ("\"upload\", \"requests\"", "\"uploads\"", "3:14: unknown variant `uploads`"),
    ("[\"upload\", \"requests\"]", "[]", "3:13: no workload"),
    ("\"requests\"]", "\"upload\"]", "3:24: `upload` is listed twice"),
    ("\"requests\"]", "\"clients\"]", "3:24: a server cannot do `clients`"),
    ("\"server\"", "\"client\"", "3:14: a client cannot do `upload`"),
    ("[\"erl\", \"-noshell\"]", "[]", "8:9: an empty probe"),
    ("probe = [\"erl\", \"-noshell\"]\n", "", "7:8: it does not say how to find out whether it is there"),
    ("get = \"apt-get install erlang-base\"\n", "", "7:8: it does not say how to get it (add get ="),
    (
        "[build]",
        "debian = { release = 'bullseye', packages = ['a1'] }\n[build]",
        "12:10: packages and debian at once (keep one",
    ),
    (r"'^(\S+)'", "'^('", "9:11: not a regular expression: error: unclosed group"),
    ("[\"sh\", \"build.sh\", \"{out}\"]", "[]", "13:11: an empty command"),
    (
        "build.sh",
        "{ouT}",
        "13:18: unknown placeholder `{ouT}` (did you mean {out}? known here: {http}, {narrows}, {dir}",
    ),
    ("build.sh", "{port}", "13:18: unknown placeholder `{port}`"),
    ("build.sh", "a}b", "13:18: a single `}`"),
    ("180", "0", "14:13: timeout_s = 0 is out of range (choose timeout_s from 1 to 86400)"),
    (
        "timeout_s = 180",
        "inputs = ['']",
        "14:11: an empty input (name a path, or an environment variable as \"$NAME\"",
    ),
    (
        "timeout_s = 180",
        "inputs = ['a', '$A-B']",
        "14:16: `A-B` cannot name an environment variable (write \"$NAME\" for its value",
    ),
    ("timeout_s = 180", "inputs = ['$']", "14:11: `` cannot name an environment variable"),
    ("timeout_s = 180", "inputs = ['a}b']", "14:11: a single `}`"),
    (
        "timeout_s = 180",
        "inputs = ['{out}/x']",
        "14:11: unknown placeholder `{out}` (known here: {dir}, {home}, {variant}, {narrows}, {debian}, {$NAME}",
    ),
    ("\"{buffer}\"]", "\"{bufer}\"]", "17:45: unknown placeholder `{bufer}` (did you mean {buffer}?"),
    ("\"{port}\", ", "", "17:11: the server is not told its port"),
    (", \"{buffer}\"]", "]", "24:8: the program is not told the knob `buffer`"),
    ("ERL_CRASH_DUMP", "\"A=B\"", "18:9: `A=B` cannot name an environment variable"),
    ("/dev/null", "{x}", "18:26: unknown placeholder `{x}`"),
    ("http = \"/\"", "http = \"x y\"", "20:8: `x y` is not a path"),
    ("http = \"/\"", "tcp = false", "20:7: nothing shows that it is ready"),
    ("http = \"/\"", "http = \"/\"\ntcp = true", "21:7: tcp and http at once"),
    ("2000", "-1", "23:12: grace_ms = -1 is out of range"),
    ("[knobs.buffer]", "[knobs.size]", "24:8: `size` is already a knob of the workload `upload`"),
    ("[knobs.buffer]", "[knobs.port]", "24:8: `port` is already the name of something else"),
    ("[knobs.buffer]", "[knobs.'a b']", "24:8: `a b` cannot be a knob's name"),
    ("type = \"size\"", "type = \"sice\"", "25:8: unknown variant `sice`"),
    ("default = 1460", "default = 0", "26:11: `0` is not allowed: use a size"),
    ("default = 1460", "default = 1.5", "26:11: not a knob's value"),
    ("default = 1460", "default = \"x\"", "26:11: `x` is not a size"),
    ("\"8K\"", "\"1G\"", "27:17: `1G` is not allowed: use a size such as 1460, 64K, 1M or 1G from 1 to 64M"),
    ("\"8K\"", "1460", "27:17: this value is listed twice"),
    ("\"64M\"", "0", "29:7: max = 0 is below min = 1"),
    ("\"size\"", "\"choice\"", "28:7: only an integer or a size has bounds"),
    ("workloads = [\"upload\"]", "workloads = [\"frames\"]", "31:14: the system does not do `frames`"),
    ("workloads = [\"upload\"]", "workloads = []", "31:13: no workload"),
    ("buffer = \"{{", "bufer = \"{{", "33:1: there is no knob `bufer` here (did you mean `buffer`?"),
    ("{value}", "{valu}", "33:10: unknown placeholder `{valu}` (did you mean {value}?"),
    ("{value}", "1460", "33:10: the value is missing here"),
    ("role = \"server\"", "role = \"server", "2:"),
];

/// For each case, appends `text` to `before` with the first string replaced by the second. The error must contain the
/// third.
fn assert_mistakes(before: &str, text: &str, cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (old, new, expected) in cases {
        assert!(text.contains(old), "{old}");
        let whole = format!("{before}{}", text.replacen(old, new, 1));
        let line = parse(&whole).map_or_else(|e| e.one_line(), |_| "no error".to_owned());
        if !line.contains(expected) {
            wrong.push(format!("{line}\n  has no {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_have_position_and_remedy() {
    assert_mistakes("", GOOD, BROKEN);
}

/// The valid manifest with packages of a release.
const OF_A_RELEASE: &str = r#"name = "cowboy2"
role = "client"
workloads = ["clients"]
language = ""
about = ""
[[needs]]
name = "Erlang/OTP"
debian = { release = "bullseye", packages = ["erlang-base", "erlang-ssl"] }
[start]
command = ["{debian}/usr/bin/erl"]
"#;

#[test]
fn packages_of_a_release_need_neither_a_probe_nor_a_way_to_get_them() {
    let manifest = parse(OF_A_RELEASE).unwrap();
    let packages = ["erlang-base", "erlang-ssl"].map(str::to_owned).to_vec();
    let expected = Debian { release: "bullseye".to_owned(), packages, dependencies: true, name: None };
    assert_eq!(manifest.debian(None), Some(&expected));
    let alone = parse(&OF_A_RELEASE.replace("] }", "], dependencies = false }")).unwrap();
    assert!(!alone.debian(None).unwrap().dependencies);
    let mistakes = [
        ("bullseye", "-o", "8:22: `-o` cannot be a release's name (a release's name has small letters"),
        ("bullseye", "a b", "8:22: `a b` cannot be a release's name"),
        ("\"erlang-ssl\"", "\"x=1\"", "8:61: `x=1` cannot be a package's name"),
        ("\"erlang-ssl\"", "\"--yes\"", "8:61: `--yes` cannot be a package's name"),
        ("[\"erlang-base\", \"erlang-ssl\"]", "[]", "8:10: no package (name at least one"),
        ("release", "realease", "did you mean `release`?"),
        (
            "debian = { release = \"bullseye\", packages = [\"erlang-base\", \"erlang-ssl\"] }",
            "probe = ['erl']\nget = ''",
            "1:8: no need has the packages of {debian} (add a need with debian =",
        ),
        (
            "[start]",
            "[[needs]]\nname = 'x'\ndebian = { release = 'sid', packages = ['a1'] }\n[start]",
            "1:8: two needs with packages of a release and one placeholder (give one of them a name",
        ),
        ("{debian}", "{debian.x}", "1:8: no need has the packages of {debian.x}"),
        ("{debian}", "{debianx}", "10:12: unknown placeholder `{debianx}`"),
        ("release =", "name = '../x', release =", "8:19: `../x` cannot be a folder's name"),
    ];
    assert_mistakes("", OF_A_RELEASE, &mistakes);
    // A variant may have its own.
    let other = "[variants.new]\n[[variants.new.needs]]\nname = 'Erlang/OTP'\n\
                 debian = { release = 'trixie', packages = ['erlang-base'] }\n";
    let all = parse_all(&format!("{OF_A_RELEASE}{other}")).unwrap();
    let releases: Vec<&str> =
        all.iter().filter_map(|system| Some(system.debian(None)?.release.as_str())).collect();
    assert_eq!(releases, ["bullseye", "trixie"]);
    // Two folders have two names.
    let second =
        "[[needs]]\nname = 'x'\ndebian = { release = 'sid', packages = ['a1'], name = 'x' }\n[start]";
    let both = OF_A_RELEASE.replace("[start]", second).replace("{debian}", "{debian.x}{debian}");
    assert_eq!(parse(&both).unwrap().debian(Some("x")).unwrap().release, "sid");
}

const VARIANTS: &str = r#"
[variants.emu]
about = "without the JIT"
env = { ERL_FLAGS = "-emu_flavor emu" }
[[variants.emu.needs]]
name = "Erlang/OTP"
probe = ["erl", "-emu"]
get = "build OTP with make FLAVOR=emu"
[variants.otp26]
path = "{$OTP26}/bin"
env = { HERE = "{dir} {home} {variant}" }
get = "OTP26=/opt/otp26"
[variants.other.start]
command = ["erl", "{port}", "{buffer}", "{variant}"]
"#;

#[test]
fn variants_are_complete_manifests() {
    let all = parse_all(&format!("{GOOD}{VARIANTS}")).unwrap();
    let names: Vec<&str> = all.iter().map(|manifest| manifest.name.as_str()).collect();
    assert_eq!(names, ["cowboy2", "cowboy2@emu", "cowboy2@other", "cowboy2@otp26"]);
    let [plain, emu, other, otp26] = &all[..] else { panic!() };
    assert_eq!(*plain, parse(GOOD).unwrap());
    assert!(emu.answers_to("cowboy2") && emu.answers_to("cowboy2@emu") && !plain.answers_to("cowboy2@emu"));
    assert_eq!((emu.about.as_str(), &emu.needs[0].probe[1]), ("without the JIT", &"-emu".to_owned()));
    assert_eq!((emu.needs.len(), &emu.program, &emu.build), (1, &plain.program, &plain.build));
    assert_eq!(
        (&started(other).command[3], other.about.as_str()),
        (&"{variant}".to_owned(), &plain.about[..])
    );
    assert!(started(other).env.is_empty(), "a [start] of a variant replaces the whole table");

    let set = |name: &str| (name == "OTP26").then(|| "/".into());
    assert_eq!(plain.environment(set), Ok(vec![]));
    assert_eq!(emu.environment(set), Ok(vec![("ERL_FLAGS".to_owned(), "-emu_flavor emu".to_owned())]));
    let environment = otp26.environment(set).unwrap();
    assert_eq!(environment[0].1, "/home/n/systems/cowboy2 /home/n otp26");
    assert_eq!(environment[1], ("PATH".to_owned(), "//bin".to_owned()));
    for (value, wrong) in [(None, "the environment variable OTP26"), (Some("/nowhere"), "/nowhere/bin")] {
        let unset = otp26.environment(|_| value.map(Into::into)).unwrap_err();
        assert_eq!(unset.name, wrong);
    }
    // An empty value counts as unset, because "/bin" would be another runtime.
    assert!(otp26.environment(|_| Some("".into())).is_err());
}

#[test]
fn mistakes_in_variants_are_errors() {
    let cases = [
        ("[variants.emu]", "[variants.'a b']", ":11: `a b` cannot be a variant's name"),
        ("[variants.emu]", "[variants.emu]\nknobs = 1", "unknown field `knobs`"),
        (
            "{$OTP26}",
            "{OTP26}",
            "unknown placeholder `{OTP26}` (known here: {dir}, {home}, {variant}, {debian}, {$NAME}",
        ),
        ("{$OTP26}", "{$}", "unknown placeholder `{$}`"),
        ("get = \"OTP26=/opt/otp26\"\n", "", "it does not say how to get what the user must set"),
        ("env = { HERE", "env = { PATH = \"/\", HERE", "path and env.PATH at once"),
        ("\"{port}\", \"{buffer}\", \"{variant}\"", "\"{buffer}\"", "the server is not told its port"),
        ("\"{buffer}\", \"{variant}\"", "\"{variant}\"", "the program is not told the knob `buffer`"),
        ("\"{variant}\"]", "\"{$OTP26}\"]", "unknown placeholder `{$OTP26}`"),
    ];
    assert_mistakes(GOOD, VARIANTS, &cases);
}

const ATTACHED: &str = r#"name = "cowboy2"
role = "server"
workloads = ["requests"]
language = "C++"
about = "a server of the user's"
attach = "http://127.0.0.1:8082/"
get = "./server"
[answer]
body = ""
closes = true
about = "no body"
"#;

#[test]
fn the_address_of_a_users_server_is_parsed() {
    let manifest = parse(ATTACHED).unwrap();
    let attached = manifest.attached().unwrap();
    assert_eq!(attached.url, "http://127.0.0.1:8082");
    assert_eq!(attached.listening, Listening::Address("127.0.0.1:8082".parse().unwrap()));
    assert_eq!(manifest.answer_body(), "");
    assert!(manifest.answer.is_some_and(|answer| answer.closes && answer.fault.is_none()));
    assert_eq!(parse(GOOD).unwrap().answer_body(), "ok");
    assert!(parse(GOOD).unwrap().attached().is_none());
    let frames = ATTACHED.split("[answer]").next().unwrap();
    let frames =
        frames.replace("\"requests\"", "\"frames\"").replace("http://127.0.0.1", "frames://localhost");
    assert_eq!(parse(&frames).unwrap().attached().unwrap().listening, Listening::Port(8082));
    let six = ATTACHED.replace("127.0.0.1", "[::1]");
    let listening = parse(&six).unwrap().attached().unwrap().listening.clone();
    assert_eq!(listening, Listening::Address("[::1]:8082".parse().unwrap()));
}

#[test]
fn the_name_that_a_users_server_must_have_in_tls_is_that_of_its_address() {
    for (host, name) in [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("localhost", "localhost")] {
        let text = ATTACHED.replace("http://127.0.0.1", &format!("https://{host}"));
        let manifest = parse(&text.replace("[answer]", "[tls]\ninsecure = true\n[answer]")).unwrap();
        assert_eq!(manifest.tls.unwrap().name, name);
    }
}

#[test]
fn mistakes_in_attaching_are_errors() {
    let cases = [
        ("http://127.0.0.1:8082/", "http://10.0.0.1:8082", "6:10: cannot attach to `http://10.0.0.1:8082`"),
        ("http://127.0.0.1:8082/", "127.0.0.1:8082", "cannot attach to"),
        ("http://127.0.0.1:8082/", "http://127.0.0.1", "cannot attach to"),
        ("http://127.0.0.1:8082/", "http://127.0.0.1:0", "cannot attach to"),
        ("http://127.0.0.1:8082/", "http://127.0.0.1:8082/path", "cannot attach to"),
        ("http://127.0.0.1:8082/", "http://::1:8082", "cannot attach to"),
        ("http://127.0.0.1:8082/", "http://[::2]:8082", "cannot attach to"),
        ("http://", "frames://", "6:10: `frames://127.0.0.1:8082` does not do `requests`"),
        ("get = \"./server\"\n", "", "6:10: it does not say how to start it"),
        ("attach = \"http://127.0.0.1:8082/\"\n", "", "6:7: get without attach"),
        ("[answer]", "[start]\ncommand = [\"x\", \"{port}\"]\n[answer]", "attach and [start] at once"),
        ("[answer]", "[variants.a]\n[answer]", "attach and [variants] at once"),
        (
            "[answer]",
            "[knobs.a]\ntype = \"boolean\"\ndefault = true\nabout = \"\"\n[answer]",
            "attach and [knobs] at once",
        ),
        ("\"requests\"", "\"upload\"", "[answer] is for systems that do requests only"),
        ("about = \"no body\"", "", "missing field `about`"),
    ];
    assert_mistakes("", ATTACHED, &cases);
    let neither = GOOD.split("[start]").next().unwrap();
    assert!(parse(neither).unwrap_err().one_line().contains("1:8: it does not say how to start it"));
}

#[test]
fn choices() {
    let knob = |lines: &str| {
        let (head, _) = GOOD.split_once("type = \"size\"").unwrap();
        parse(&format!("{head}about = ''\n{lines}\n"))
    };
    let manifest = knob("type='choice'\ndefault='inet'\nvalues=['inet','socket']").unwrap();
    assert_eq!(manifest.knobs["buffer"].default, Value::Text("inet".to_owned()));
    let manifest = knob("type='any'\ndefault='auto'\nvalues=['auto',1,64]\nmin=1").unwrap();
    assert_eq!(manifest.knobs["buffer"].check(&Value::Integer(9)), Ok(Value::Integer(9)));
    for (lines, expected) in [
        ("type='choice'\ndefault='inets'\nvalues=['inet','socket']", "27:9: `inets` is not allowed"),
        ("type='choice'\ndefault='inets'\nvalues=['inet','socket']", "did you mean `inet`?"),
        ("type='choice'\ndefault='inet'", "a choice without words"),
        ("type='choice'\ndefault='4'\nvalues=['4',8]", "28:13: `8` is not allowed"),
        ("type='any'\ndefault='auto'\nvalues=['auto',0]\nmin=1", "28:16: `0` is not allowed"),
        ("type='boolean'\ndefault='true'", "27:9: write true without the quotes"),
        ("type='integer'\ndefault='64K'", "27:9: `64K` is not allowed: use an integer"),
        ("type='boolean'\ndefault=true\nvalues=[[1]]", "28:9: not a knob's value"),
    ] {
        let line = knob(lines).unwrap_err().one_line();
        assert!(line.contains(expected), "{line}\nhas no {expected}");
    }
}

#[test]
fn placeholders_are_filled() {
    let manifest = parse(GOOD).unwrap();
    let (narrows, out) = (Path::new("/bin/narrows"), Path::new("/out"));
    let (point, port, certificate) = (Point::new(), Listening::Port(8080), Path::new("/tmp/c/p256.pem"));
    let address = "::1".parse().unwrap();
    let start = OfStart { address, listening: Some(&port), certificate: Some(certificate), point: &point };
    let fill = Fill { manifest: &manifest, narrows, out, cores: 2, start: Some(start) };
    let text = fill.text("{narrows} {dir} {out} {home} {cores} {address} {port} {buffer} {{x}}").unwrap();
    assert_eq!(text, "/bin/narrows /home/n/systems/cowboy2 /out /home/n 2 ::1 8080 1460 {x}");
    assert_eq!(fill.text("{cert} {key} {tls}").unwrap(), "/tmp/c/p256.pem /tmp/c/p256.pem.key off");
    let point =
        ["buffer", "tls"].map(str::to_owned).into_iter().zip([Value::Integer(7), Value::Text("1.2".into())]);
    let point = point.collect();
    let start = OfStart { address, listening: None, certificate: None, point: &point };
    assert_eq!(Fill { start: Some(start), ..fill }.text("{buffer} {tls}").unwrap(), "7 1.2");
    assert!(Fill { start: Some(start), ..fill }.text("{cert}").is_err());
    assert!(Fill { start: None, ..fill }.text("{buffer}").is_err());
    assert!(Fill { start: None, ..fill }.text("{address}").is_err(), "a build listens nowhere");
}

#[test]
fn a_server_that_is_not_told_its_address_is_deaf_elsewhere() {
    let deaf = |head: &str, address: &str| {
        let text = format!("name='x'\nlanguage=''\nabout=''\n{head}");
        let read = Manifest::parse(&Source::new("system.toml", text), Path::new("/h/systems/x"));
        read.map(|all| all[0].why_unreachable_at(address.parse().unwrap())).map_err(|error| error.one_line())
    };
    let server =
        |words: &str| format!("role='server'\nworkloads=['requests']\n[start]\ncommand=['x'{words}]\n");
    let untold = "it listens at 127.0.0.1 only: use {address} in start.command";
    for (head, why) in [
        (server(",'{port}'"), Some(untold)),
        (server(",'{address}:{port}'"), None),
        (server(",'{port}'") + "env={ HOST = '{address}' }", None),
        (server(",'{socket}'"), None),
        (server("") + "finds_port=true", Some(untold)),
        (server(",'{address}'") + "finds_port=true", None),
        ("role='client'\nworkloads=['clients']\n[start]\ncommand=['x']".to_owned(), None),
        (
            "role='server'\nworkloads=['requests']\nattach='http://127.0.0.1:80'\nget=''".to_owned(),
            Some("its user started it at http://127.0.0.1:80, and Narrows cannot move it"),
        ),
    ] {
        for address in ["127.0.0.2", "::1"] {
            assert_eq!(deaf(&head, address), Ok(why.map(str::to_owned)), "{head}");
        }
        assert_eq!(deaf(&head, "127.0.0.1"), Ok(None), "{head}");
    }
    let client = "role='client'\nworkloads=['clients']\n[start]\ncommand=['x','{address}']";
    assert!(deaf(client, "::1").unwrap_err().contains("unknown placeholder `{address}`"));
}

#[test]
fn what_a_server_can_be_spoken_to_follows_from_its_placeholders() {
    let speaks = |words: &str| {
        let command = format!("command = ['x', '{{port}}'{words}]");
        let text = format!(
            "name='x'\nrole='server'\nworkloads=['requests']\nlanguage=''\nabout=''\n[start]\n{command}"
        );
        let read = Manifest::parse(&Source::new("system.toml", text), Path::new("/h/systems/x"));
        read.map(|all| (all[0].speaks(false), all[0].speaks(true)))
    };
    assert_eq!(speaks("").ok(), Some((true, false)));
    assert_eq!(speaks(", '{cert}', '{key}', '{tls}'").ok(), Some((true, true)));
    assert_eq!(speaks(", '{cert}'").ok(), Some((false, true)));
    for half in [", '{key}'", ", '{tls}'"] {
        let error = speaks(half).unwrap_err().one_line();
        assert!(error.contains("{key} or {tls} without {cert}"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(position in 0usize..900, junk in "[\\[\\]{}=\"'\\\\a-z0-9\n .ö]{0,6}") {
        let position = position.min(GOOD.len());
        let _ = parse(&format!("{}{junk}{}", &GOOD[..position], &GOOD[position..]));
    }
}
