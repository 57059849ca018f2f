//! `narrows try` with what `load` can send: the requests of a file, values from a first answer, compressed answers, the PROXY
//! protocol, other places than those of URLs.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;

use lab::observation::Outcome;

use crate::support::home::Home;
use crate::support::{Guarded, has, squeezed, until};

/// One round of short trials, which decides nothing.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms", "--seed", "1"];

/// A server of Node.js that answers with the path, 404 to `/missing`, and the body to `/echo`. With a word behind its port it
/// answers that to `/b`. `POST /login` with a name gives a token and a cookie, which only this process knows, and `/me` is for
/// requests that have one of them.
const SERVER: &str = "const token = require('crypto').randomUUID();
require('http').createServer((request, answer) => {
    let body = '';
    request.on('data', piece => body += piece).on('end', () => {
        const path = request.url.split('?')[0];
        const {authorization, cookie} = request.headers;
        if (path == '/login') {
            answer.statusCode = body.includes('ann') && request.headers['content-type'] == 'application/json' ? 200 : 403;
            answer.setHeader('Set-Cookie', `session=${token}; Path=/; HttpOnly`);
            return answer.end(JSON.stringify({access: {token}}));
        }
        if (path == '/me') {
            answer.statusCode = authorization == `Bearer ${token}` || cookie == `session=${token}` ? 200 : 401;
            return answer.end('me');
        }
        answer.statusCode = path == '/missing' ? 404 : 200;
        answer.end(path == '/echo' ? body : path == '/b' && process.argv[3] || path);
    });
}).listen(Number(process.argv[2]), '127.0.0.1');\n";

const LIST: &str = "{\"path\":\"/a\"}\n{\"path\":\"/b\"}\n{\"path\":\"/missing\",\"expect\":[\"status=404\"]}\n\
                    {\"method\":\"POST\",\"path\":\"/echo\",\"body\":\"{{counter}} {{user}}\"}\n";

fn home() -> Home {
    let home = Home::new();
    home.write("server.js", SERVER);
    home.write("list", LIST);
    home.write("users", "user\nann\nbob\n");
    home
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn both_arms_get_the_requests_of_a_file() {
    if !has("node") {
        return;
    }
    let home = home();
    let words = ["try", "node server.js {port}", "--names", "a,b", "node server.js {port} /b"];
    let file = ["--requests", "list", "--data", "users"];
    let ended = home.run(words.into_iter().chain(file).chain(SHORT)).code(0);
    let said = squeezed(&ended.stdout);
    assert!(
        said.contains("The 4 requests of list: every answer was 2xx, or as its request expects"),
        "{said}"
    );
    let observations = home.observations();
    assert_eq!(observations.len(), 3);
    for seen in observations {
        let Outcome::Measured(m) = seen.outcome else { panic!("{seen:#?}") };
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
    }
}

#[test]
fn an_arm_that_answers_one_request_of_a_file_otherwise_is_refused() {
    if !has("node") {
        return;
    }
    let home = home();
    let words = ["try", "node server.js {port}", "node server.js {port} other", "--requests", "list"];
    let words = words.into_iter().chain(["--data", "users"]).chain(SHORT);
    let ended = home.run(words).code(1);
    ended.says(&["GET /b of list", "the arms do not do the same work", "\"/b\"", "\"other\""]);
    home.write("wrong", "GET /a\n\nGET /missing\n");
    let ended = home.run(["try", "node server.js {port}", "--requests", "wrong"].into_iter().chain(SHORT));
    ended.code(1).says(&["GET /missing of wrong", "it answers 404"]);
}

/// What a trial of each of these words measured: right answers alone.
fn is_right(home: &Home, words: &[&str]) {
    let server = ["try", "node server.js {port}"];
    let ended = home.run([&server[..], words, &SHORT].concat()).code(0);
    for seen in home.observations() {
        let Outcome::Measured(m) = seen.outcome else { panic!("{ended:#?}\n{seen:#?}") };
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
    }
}

const LOGIN: [&str; 2] = ["--first", "POST /login {\"name\":\"ann\"}"];
const TOKEN: [&str; 2] = ["--capture", "token=json.access.token"];

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_value_of_the_first_answer_is_in_all_later_requests() {
    if !has("node") {
        return;
    }
    let bearer = ["-H", "Authorization: Bearer {{token}}"];
    is_right(&home(), &[&LOGIN[..], &TOKEN, &bearer, &["--path", "/me"]].concat());
    is_right(&home(), &[&LOGIN[..], &["--cookies", "--path", "/me"]].concat());
    let listed = home();
    listed.write("mine", "GET /me\nAuthorization: Bearer {{token}}\n\nGET /a?t={{token}}\n");
    is_right(&listed, &[&LOGIN[..], &TOKEN, &["--requests", "mine"]].concat());
}

#[test]
fn a_value_that_is_not_found_is_an_error_that_shows_the_answer() {
    if !has("node") {
        return;
    }
    let home = home();
    let refused = |words: &[&str], says: &[&str]| {
        let words = [&["try", "node server.js {port}"][..], words, &SHORT].concat();
        home.run(words).code(1).says(says);
    };
    let bearer = ["-H", "Authorization: Bearer {{token}}", "--path", "/me"];
    let missing = ["--capture", "token=json.token"];
    let says = ["--capture token=json.token finds no value: it is missing", "it answers 200", "access"];
    refused(&[&LOGIN[..], &missing, &bearer].concat(), &says);
    let stranger = ["--first", "POST /login {\"name\":\"bob\"}"];
    let says = ["the first request, POST /login: it answers 403"];
    refused(&[&stranger[..], &TOKEN, &bearer].concat(), &says);
}

#[test]
fn load_makes_the_first_request_too() {
    let (peer, seen) = crate::load_requests::echo();
    let words = [peer.url("http"), "--first".to_owned(), "PUT /login x".to_owned()];
    let more = ["--capture", "word=body~=(o)k", "-n", "2", "-c", "1", "-H", "Authorization: {{word}}"];
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more).collect();
    let (code, json) = crate::support::load_json(&words);
    assert_eq!((code, json["completed"].as_u64()), (0, Some(2)), "{json}");
    assert_eq!(*seen.lock().expect("requests"), ["PUT /login x", "GET / o", "GET / o"]);
}

/// A server of Node.js that closes each connection whose first bytes are no header of the PROXY protocol with its very addresses.
const BEHIND_A_PROXY: &str =
    "const http = require('http').createServer((request, answer) => answer.end('hi'));
require('net').createServer(socket => socket.on('error', () => {}).once('data', head => {
    socket.pause();
    const second = head.subarray(0, 12).equals(Buffer.from('\\r\\n\\r\\n\\0\\r\\nQUIT\\n'));
    const length = second ? 28 : head.indexOf('\\n') + 1;
    const line = `PROXY TCP4 127.0.0.1 127.0.0.1 ${socket.remotePort} ${socket.localPort}\\r\\n`;
    const bytes = Buffer.from([0x21, 0x11, 0, 12, 127, 0, 0, 1, 127, 0, 0, 1, 0, 0, 0, 0]);
    bytes.writeUInt16BE(socket.remotePort, 12);
    bytes.writeUInt16BE(socket.localPort, 14);
    const right = second ? head.subarray(12, 28).equals(bytes) : head.subarray(0, length).toString() == line;
    if (!right) return socket.destroy();
    if (head.length > length) socket.unshift(head.subarray(length));
    http.emit('connection', socket);
    process.nextTick(() => socket.resume());
})).listen(Number(process.argv[2]), '127.0.0.1');\n";

#[test]
fn every_connection_begins_as_that_of_a_proxy() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    home.write("server.js", BEHIND_A_PROXY);
    let first = ["--first", "GET /", "--capture", "word=body~=(hi)", "-H", "X: {{word}}"];
    for (version, more) in [("1", &[][..]), ("2", &first)] {
        let words = ["try", "node server.js {port}", "--proxy-protocol", version];
        let ended = home.run(words.iter().chain(more).chain(&SHORT).copied()).code(0);
        let said = squeezed(&ended.stdout);
        let header = format!("Connections began with the PROXY protocol, version {version}.");
        assert!(said.contains(&header) && said.contains("after one GET /:") != more.is_empty(), "{said}");
    }
    for seen in home.observations() {
        let Outcome::Measured(m) = seen.outcome else { panic!("{seen:#?}") };
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
    }
    let without = ["try", "node server.js {port}"].into_iter().chain(SHORT);
    home.run(without).code(1).says(&["it closed the connection"]);
}

/// A server of Node.js at a port or a Unix socket that answers only those who call it by its name.
const NAMED: &str = "require('http').createServer((request, answer) => {
    answer.statusCode = request.headers.host == 'a.example' ? 200 : 421;
    answer.end('hi');
}).listen(process.argv[2], '127.0.0.1');\n";

#[test]
fn a_server_is_reached_where_its_url_does_not_say() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    home.write("server.js", NAMED);
    let port = systems::free_port().expect("a free port").to_string();
    // Bound from its own folder, as many servers do.
    for (place, option, told) in
        [("a.socket", "--unix", "a.socket".to_owned()), (&*port, "--connect-to", format!("127.0.0.1:{port}"))]
    {
        let mut node = Command::new("node");
        let mut server = Guarded::spawn(node.args(["server.js", place]).current_dir(home.path("")));
        let accepts = || match option {
            "--unix" => UnixStream::connect(home.path(place)).is_ok(),
            _ => TcpStream::connect(&told).is_ok(),
        };
        assert!(until(accepts));
        let ended = home.run(["try", "http://a.example", option, &told].into_iter().chain(SHORT)).code(0);
        assert!(ended.stdout.contains("a.example"), "{ended:#?}");
        for m in home.measured("a.example") {
            assert!(m.successes > 0 && m.errors.is_empty() && m.system.cpu_s > 0.0, "{m:#?}");
        }
        // Narrows removes only sockets of its own.
        assert!(accepts() && server.running());
    }
    let own = ["try", "node server.js {socket}", "-H", "Host: a.example"];
    home.run(own.into_iter().chain(SHORT)).code(0);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn answers_in_different_codings_are_equal_if_their_content_is() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let script = "require('http').createServer((request, answer) => {
        const text = (process.argv[3] == 'other' ? 'hallo ' : 'hello ').repeat(1000);
        const zips = process.argv[3] != 'plain' && /gzip/.test(request.headers['accept-encoding']);
        if (zips) answer.setHeader('Content-Encoding', 'gzip');
        answer.end(zips ? require('zlib').gzipSync(text) : text);
    }).listen(Number(process.argv[2]), '127.0.0.1');\n";
    home.write("app.js", script);
    let arms = ["try", "node app.js {port} plain", "node app.js {port} gzip", "--compressed"];
    let ended = home.run(arms.into_iter().chain(SHORT)).code(0);
    assert!(squeezed(&ended.stdout).contains("with the same 6000 bytes, decoded"), "{ended:#?}");
    for seen in home.observations() {
        let Outcome::Measured(m) = seen.outcome else { panic!("{seen:#?}") };
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
    }
    let other = ["try", "node app.js {port} plain", "node app.js {port} other", "--compressed"];
    let says = ["the arms do not do the same work", "200 with 6000 bytes, \"hello", "\"hallo"];
    home.run(other.into_iter().chain(SHORT)).code(1).says(&says);
    // Without the option gzip is not asked for.
    home.run(["try", "node app.js {port} plain", "node app.js {port} gzip"].into_iter().chain(SHORT)).code(0);
}
