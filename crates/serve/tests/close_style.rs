//! How the server closes a connection after its maximum number of requests, seen from a client over real sockets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use reactor::Backend;
use serve::{CloseStyle, Config, Http2, Limits, Speaks};

/// The number of requests after which the server closes.
const KEEP: usize = 100;

fn config(farewell: CloseStyle, backend: Backend) -> Config {
    Config {
        ports: vec![(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Speaks::Http)],
        threads: vec![None],
        max_keepalive: Some(KEEP as u64),
        tls: None,
        farewell,
        limits: Limits::default(),
        http2: Http2::USUAL,
        backend,
    }
}

/// A client that continues to send after its last answered request reads every answer and then the end, not a reset.
#[test]
fn a_client_that_pipelines_past_the_last_request_gets_all_its_answers() {
    for backend in [Backend::Auto, Backend::Epoll] {
        for farewell in [CloseStyle::Announced, CloseStyle::Silent] {
            let server = serve::start(&config(farewell, backend)).expect("a server");
            for _ in 0..20 {
                let mut client = TcpStream::connect(server.address()).expect("a connection");
                client.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
                let asked = b"GET /wait/1 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(KEEP + 50);
                client.write_all(&asked).expect("it reads");
                let mut heard = String::new();
                client.read_to_string(&mut heard).expect("an end, and no reset");
                assert_eq!(heard.matches("HTTP/1.1 200").count(), KEEP, "{farewell:?}");
                assert_eq!(heard.contains("onnection: close"), farewell == CloseStyle::Announced);
            }
            let counts = server.stop().expect("its counts");
            let keep = KEEP as u64;
            assert_eq!((counts.connections, counts.closes, counts.responses), (20, 20, 20 * keep));
        }
    }
}

/// Connections that the client ends do not count as the server's closes.
#[test]
fn only_closes_by_the_server_are_counted() {
    let server = serve::start(&config(CloseStyle::Silent, Backend::Auto)).expect("a server");
    let talk = |said: &[u8]| {
        let mut client = TcpStream::connect(server.address()).expect("a connection");
        client.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        client.write_all(said).expect("it reads");
        client.shutdown(std::net::Shutdown::Write).expect("an end");
        let mut heard = String::new();
        client.read_to_string(&mut heard).expect("an end");
        heard.matches("HTTP/1.1 200").count()
    };
    assert_eq!(talk(&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3)), 3);
    assert_eq!(talk(b""), 0);
    let counts = server.stop().expect("its counts");
    assert_eq!((counts.connections, counts.closes, counts.responses), (2, 0, 3));
}
