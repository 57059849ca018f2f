//! The server that every generator drives: one thread, epoll, one read and one write per request.
//!
//! - `GET /` and any other path: 200 "ok". The connection is kept unless the request says `Connection: close`. Then this
//!   server closes first, together with the answer's last segment.
//! - `GET /hold`: never answers. Idle connections wait for it.
//! - `GET /count`: the counts since the start. Every generator's operations are taken from them.
//! - `POST` with a length, any path: reads and counts the body, and answers the number of its bytes.
//! - A second port takes a stream and counts its bytes. At the end of the stream it answers with one frame of two numbers,
//!   frames and payload bytes. All frames are equal, so it reads only the first length.
//! - A third port speaks HTTP over TLS, if there is a certificate. Its connections are counted when their handshake is
//!   complete, and each read is answered with one record. Clients get tickets, and may resume their sessions.
//!
//! It is not an example of a careful server: it closes a connection whose socket does not take an answer at once.

mod head;
mod secure;

use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::SystemTime;

use tls::{Listener, ServerChannel};

use crate::net::{self, Epoll};
use head::{Head, Route};

/// The ports of the server.
#[derive(clap::Args)]
pub struct Args {
    /// Port for HTTP; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Port for streams; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    stream_port: u16,
    /// Port for HTTP over TLS; 0 takes a free one
    #[arg(long, default_value_t = 0, requires = "certificate")]
    tls_port: u16,
    /// Also speak TLS, with the certificate in this folder
    #[arg(long, value_name = "FOLDER")]
    certificate: Option<PathBuf>,
}

/// The answer on a connection that is kept.
pub const KEEP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// The answer on a connection that is closed.
pub const CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
/// The answer that tells an HTTP/1.0 client that the connection is kept.
const KEEP_OLD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";

const BUFFER: usize = 64 * 1024;
/// Reads from one connection before others get their turn.
const GREEDY: usize = 16;
const HTTP: u64 = u64::MAX;
const STREAM: u64 = u64::MAX - 1;
const TLS: u64 = u64::MAX - 2;

struct Conn {
    fd: OwnedFd,
    stream: bool,
    /// The beginning of an incomplete request, or the first bytes of a stream.
    partial: Vec<u8>,
    /// Body bytes that have not arrived yet; for a stream, the bytes that have arrived.
    left: u64,
    /// All bytes of the body.
    body: u64,
    close: bool,
    /// With TLS: the channel, and the answers that are not encrypted yet.
    channel: Option<Box<ServerChannel>>,
    answers: Option<Vec<u8>>,
}

/// The port for TLS, and what its connections are made from.
struct Tls {
    port: TcpListener,
    listener: Listener,
}

struct Server {
    epoll: Epoll,
    http: TcpListener,
    stream: TcpListener,
    tls: Option<Tls>,
    /// What is to be sent, encrypted.
    sealed: Vec<u8>,
    /// Connections by descriptor.
    conns: Vec<Option<Box<Conn>>>,
    /// The last request, which is likely to be repeated.
    last: (Vec<u8>, Head),
    requests: u64,
    connections: u64,
    bytes: u64,
}

/// What to do with the connection.
#[derive(PartialEq)]
enum Then {
    Keep,
    Close,
}

/// Serves until it is killed. Prints the ports in one line: HTTP, streams, and TLS or 0.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let tls = args.certificate.as_deref().map(|folder| secure::tls(args.tls_port, folder)).transpose()?;
    let mut server = Server::new(net::listener(args.port)?, net::listener(args.stream_port)?, tls)?;
    let ports = [Some(&server.http), Some(&server.stream), server.tls.as_ref().map(|tls| &tls.port)];
    let mut out = io::stdout();
    for port in ports {
        write!(out, "{} ", port.map_or(Ok(0), |port| port.local_addr().map(|address| address.port()))?)?;
    }
    writeln!(out)?;
    out.flush()?;
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 1024];
    let mut buffer = vec![0; BUFFER];
    loop {
        for event in server.epoll.wait(&mut events, -1)? {
            match event.u64 {
                port @ (HTTP | STREAM | TLS) => server.accept(port)?,
                fd => server.ready(fd as RawFd, &mut buffer),
            }
        }
    }
}

impl Server {
    fn new(http: TcpListener, stream: TcpListener, tls: Option<Tls>) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(http.as_raw_fd(), libc::EPOLLIN, HTTP)?;
        epoll.add(stream.as_raw_fd(), libc::EPOLLIN, STREAM)?;
        if let Some(tls) = &tls {
            epoll.add(tls.port.as_raw_fd(), libc::EPOLLIN, TLS)?;
        }
        Ok(Self {
            epoll,
            http,
            stream,
            tls,
            sealed: Vec::new(),
            conns: Vec::new(),
            last: (Vec::new(), Head::default()),
            requests: 0,
            connections: 0,
            bytes: 0,
        })
    }

    fn accept(&mut self, port: u64) -> io::Result<()> {
        let tls = self.tls.as_ref().filter(|_| port == TLS);
        let listener = match tls {
            Some(tls) => tls.port.as_raw_fd(),
            None if port == STREAM => self.stream.as_raw_fd(),
            None => self.http.as_raw_fd(),
        };
        // On failure (no files, or the peer is gone) the next turn tries again.
        while let Ok(fd) = net::accept(listener) {
            net::no_delay(fd.as_raw_fd());
            let index = fd.as_raw_fd() as usize;
            self.epoll.add(fd.as_raw_fd(), libc::EPOLLIN, index as u64)?;
            if self.conns.len() <= index {
                self.conns.resize_with(index + 1, || None);
            }
            let channel = tls.map(|tls| tls.listener.accept(SystemTime::now())).transpose();
            let Ok(channel) = channel else { continue };
            let conn = Conn {
                fd,
                stream: port == STREAM,
                partial: Vec::new(),
                left: 0,
                body: 0,
                close: false,
                answers: channel.is_some().then(Vec::new),
                channel: channel.map(Box::new),
            };
            self.conns[index] = Some(Box::new(conn));
            self.connections += u64::from(port == HTTP);
        }
        Ok(())
    }

    fn ready(&mut self, fd: RawFd, buffer: &mut [u8]) {
        let Some(mut conn) = self.conns.get_mut(fd as usize).and_then(Option::take) else { return };
        for _ in 0..GREEDY {
            let then = match net::receive(fd, buffer) {
                Ok(0) if conn.stream => {
                    summarize(&conn);
                    Then::Close
                }
                Ok(count) if count > 0 && conn.channel.is_some() => {
                    self.opened(&mut conn, &mut buffer[..count])
                }
                Ok(count) if count > 0 => self.received(&mut conn, &buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                _ => Then::Close,
            };
            if then == Then::Close {
                return;
            }
            // After a request nothing more is expected. A body or a stream continues.
            if !conn.stream && conn.left == 0 {
                break;
            }
        }
        self.conns[fd as usize] = Some(conn);
    }

    fn received(&mut self, conn: &mut Conn, bytes: &[u8]) -> Then {
        if conn.stream {
            let missing = 4usize.saturating_sub(conn.partial.len()).min(bytes.len());
            conn.partial.extend_from_slice(&bytes[..missing]);
            conn.left += bytes.len() as u64;
            self.bytes += bytes.len() as u64;
            return Then::Keep;
        }
        let known = self.last.1.route == Route::Ok && alike(bytes, &self.last.0);
        if known && conn.left == 0 && conn.partial.is_empty() {
            return self.answer(conn, self.last.1);
        }
        self.requests(conn, bytes)
    }

    /// Handles any number of requests, or parts of one.
    fn requests(&mut self, conn: &mut Conn, bytes: &[u8]) -> Then {
        let mut rest = bytes;
        while !rest.is_empty() {
            if conn.left > 0 {
                let count = conn.left.min(rest.len() as u64);
                conn.left -= count;
                self.bytes += count;
                rest = &rest[count as usize..];
                if conn.left == 0 && self.uploaded(conn) == Then::Close {
                    return Then::Close;
                }
                continue;
            }
            let before = conn.partial.len();
            conn.partial.extend_from_slice(rest);
            let Some(head) = Head::parse(&conn.partial) else { return Then::Keep };
            let mut text = std::mem::take(&mut conn.partial);
            rest = &rest[head.len - before..];
            text.truncate(head.len);
            self.last = (text, head);
            if self.answer(conn, head) == Then::Close {
                return Then::Close;
            }
        }
        Then::Keep
    }

    fn answer(&mut self, conn: &mut Conn, head: Head) -> Then {
        match head.route {
            Route::Ok => {
                self.requests += 1;
                let text = match (head.close, head.old) {
                    (true, _) => CLOSE,
                    (false, true) => KEEP_OLD,
                    (false, false) => KEEP,
                };
                reply(conn, text, head.close)
            }
            Route::Hold => Then::Keep,
            Route::Count => {
                let text = format!("{} {} {}", self.requests, self.connections, self.bytes);
                reply(conn, &with_body(&text), head.close)
            }
            Route::Upload(length) => {
                (conn.left, conn.body, conn.close) = (length, length, head.close);
                if head.expects {
                    reply(conn, b"HTTP/1.1 100 Continue\r\n\r\n", false);
                }
                if length == 0 { self.uploaded(conn) } else { Then::Keep }
            }
        }
    }

    fn uploaded(&mut self, conn: &mut Conn) -> Then {
        self.requests += 1;
        reply(conn, &with_body(&conn.body.to_string()), conn.close)
    }
}

/// Whether two requests are the same, but perhaps for the five digits of an item, so that many items cost no more than one.
fn alike(one: &[u8], other: &[u8]) -> bool {
    const ITEM: &[u8] = b"GET /item/";
    let same_rest =
        || one.get(ITEM.len() + 5..).is_some_and(|rest| Some(rest) == other.get(ITEM.len() + 5..));
    one == other || one.starts_with(ITEM) && other.starts_with(ITEM) && same_rest()
}

/// An answer with this body.
pub fn with_body(text: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

/// Sends an answer. If the connection closes, holds the answer back so that the FIN is sent in the same segment.
fn reply(conn: &mut Conn, bytes: &[u8], close: bool) -> Then {
    if let Some(answers) = &mut conn.answers {
        answers.extend_from_slice(bytes);
        return if close { Then::Close } else { Then::Keep };
    }
    let flags = if close { libc::MSG_MORE } else { 0 };
    match net::send(conn.fd.as_raw_fd(), bytes, flags) {
        Ok(count) if count == bytes.len() && !close => Then::Keep,
        _ => Then::Close,
    }
}

/// Answers the end of a stream.
fn summarize(conn: &Conn) {
    let Ok(first) = <[u8; 4]>::try_from(conn.partial.as_slice()) else { return };
    let size = u64::from(u32::from_be_bytes(first));
    let frames = conn.left / (size + 4);
    let mut answer = 16u32.to_be_bytes().to_vec();
    answer.extend_from_slice(&frames.to_be_bytes());
    answer.extend_from_slice(&(frames * size).to_be_bytes());
    let _ = net::send(conn.fd.as_raw_fd(), &answer, 0);
}
