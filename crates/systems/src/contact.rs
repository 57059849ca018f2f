//! A blocking connection to a server, in plain text or in TLS: for readiness, for a first look, and for checks.
//!
//! Knows sockets. What is said on a connection is its callers' matter.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tls::{ClientChannel, Dialer, Dialing, Parameters, Trust};

use crate::listening::Listening;
use crate::trace;
use crate::wait::{deadline_in, poll};
use http2::Interpreter;

mod http2;

/// Where a server is reached, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Access {
    /// Where it listens.
    pub server: Listening,
    /// How to speak TLS; `None` for plain text.
    pub tls: Option<Dialing>,
    /// Whether to speak HTTP/2. Whoever has a contact writes and reads HTTP/1.1 all the same.
    pub http2: bool,
    /// What each connection begins with, before TLS.
    pub opening: Option<Opening>,
    /// The value of `Host`, if it is not where the server listens.
    pub host: Option<String>,
}

/// Makes the first bytes of a connection from its own address and the server's, which a Unix socket has not.
pub type Opening = fn(Option<(SocketAddr, SocketAddr)>) -> Vec<u8>;

impl Access {
    /// A server that is spoken to in plain text.
    pub fn plain(server: &Listening) -> Self {
        Self { server: server.clone(), tls: None, http2: false, opening: None, host: None }
    }

    /// The value of `Host`.
    pub fn host(&self) -> String {
        if let Some(host) = &self.host {
            return host.clone();
        }
        match (&self.server, &self.tls) {
            (Listening::Socket(_), _) => "localhost".to_owned(),
            // Some servers want the name that TLS says.
            (Listening::Port(port), Some(dialing)) => at(&dialing.name, *port),
            (Listening::Address(address), Some(dialing)) => at(&dialing.name, address.port()),
            (Listening::Port(port), None) => Listening::usual(*port).to_string(),
            (Listening::Address(address), None) => address.to_string(),
        }
    }
}

/// A name or an address, and a port, as a URL has them.
fn at(name: &str, port: u16) -> String {
    match name.parse::<IpAddr>() {
        Ok(address) => SocketAddr::from((address, port)).to_string(),
        Err(_) => format!("{name}:{port}"),
    }
}

/// A connection.
pub struct Contact {
    socket: Socket,
    channel: Option<Box<ClientChannel>>,
    /// What was decrypted and not read yet.
    plain: Vec<u8>,
    /// What speaks HTTP/2, and its answers that were not read yet.
    interpreter: Option<Box<Interpreter>>,
    answers: Vec<u8>,
    /// Whether the connection ends with them.
    over: bool,
    /// Whether something was sent, and received. Only the first bytes are traced.
    sent: bool,
    received: bool,
}

pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// How long a server may take to shake hands while it is only asked whether it speaks TLS.
const LONGEST_TRY: Duration = Duration::from_millis(500);

/// Whether a server that is reached like this, but in plain text, shakes hands in TLS, with whatever certificate.
pub fn speaks_tls(access: &Access) -> bool {
    let anyone = Dialing {
        name: "localhost".to_owned(),
        trust: Trust::Anyone,
        identity: None,
        parameters: Parameters::default(),
    };
    Contact::open(&Access { tls: Some(anyone), http2: false, ..access.clone() }, LONGEST_TRY).is_ok()
}

/// The bytes that are taken from a socket at once: a record of TLS.
const PIECE: usize = 1 << 14;

impl Contact {
    /// Connects, and makes the handshake if the server speaks TLS. Both together take no longer than `patience`.
    ///
    /// # Errors
    /// Nothing accepted the connection, or the handshake failed.
    pub fn open(access: &Access, patience: Duration) -> io::Result<Self> {
        let deadline = deadline_in(patience);
        let socket = Socket::connect(&access.server, patience)?;
        let mut contact = Self {
            socket,
            channel: None,
            plain: Vec::new(),
            interpreter: None,
            answers: Vec::new(),
            over: false,
            sent: false,
            received: false,
        };
        if let Some(opening) = access.opening {
            let bytes = opening(contact.socket.ends());
            contact.socket.write_all(&bytes)?;
        }
        if let Some(dialing) = &access.tls {
            let dialer = Dialer::new(dialing).map_err(io::Error::other)?;
            let channel = dialer.line().open(SystemTime::now()).map_err(failed)?;
            contact.channel = Some(Box::new(channel));
            contact.shake_hands(deadline)?;
        }
        if access.http2 {
            contact.interpreter = Some(Box::new(Interpreter::new(access.tls.is_some())));
        }
        Ok(contact)
    }

    fn shake_hands(&mut self, deadline: Instant) -> io::Result<()> {
        self.flush()?;
        while self.channel.as_ref().is_some_and(|channel| !channel.ready()) {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let end = self.take(left).map_err(|error| match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    io::Error::new(error.kind(), "no TLS handshake in time")
                }
                _ => error,
            })?;
            if end {
                return Err(failed(tls::Fault::EndedInHandshake));
            }
        }
        Ok(())
    }

    /// Reads what has arrived or arrives within `left`. 0 means that the server has ended its side.
    ///
    /// # Errors
    /// Nothing arrived in time, or the connection is of no more use. `UnexpectedEof` means that the server ended a connection
    /// in TLS without saying so.
    pub fn read_within(&mut self, buffer: &mut [u8], left: Duration) -> io::Result<usize> {
        let read = match self.interpreter {
            Some(_) => self.read_answers(buffer, left),
            None => self.read(buffer, left),
        };
        if let Ok(count) = read
            && !std::mem::replace(&mut self.received, true)
        {
            trace::say(|| format!("got {}", trace::beginning(buffer.get(..count).unwrap_or_default())));
        }
        read
    }

    /// The same for answers of HTTP/2.
    fn read_answers(&mut self, buffer: &mut [u8], left: Duration) -> io::Result<usize> {
        let (deadline, mut piece) = (deadline_in(left), [0; PIECE]);
        while self.answers.is_empty() && !self.over {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let count = self.read(&mut piece, left)?;
            let Some(interpreter) = self.interpreter.as_mut().filter(|_| count > 0) else { return Ok(0) };
            let bytes = piece.get(..count).unwrap_or_default();
            self.over = interpreter.hear(bytes, &mut self.answers).map_err(io::Error::other)?;
            let out = interpreter.take_output();
            self.put(&out)?;
        }
        let count = buffer.iter_mut().zip(self.answers.iter()).map(|(free, byte)| *free = *byte).count();
        self.answers.drain(..count);
        Ok(count)
    }

    fn read(&mut self, buffer: &mut [u8], left: Duration) -> io::Result<usize> {
        if self.channel.is_none() {
            return self.socket.read_within(buffer, Some(left));
        }
        let deadline = deadline_in(left);
        while self.plain.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            if self.take(left)? {
                return Ok(0);
            }
        }
        let count = buffer.iter_mut().zip(self.plain.iter()).map(|(free, byte)| *free = *byte).count();
        self.plain.drain(..count);
        Ok(count)
    }

    /// Takes bytes from the socket and decrypts them. Returns whether the server has ended its side.
    #[expect(clippy::indexing_slicing, reason = "a read fills in no more than the piece has")]
    fn take(&mut self, left: Duration) -> io::Result<bool> {
        let Some(channel) = &mut self.channel else { return Ok(true) };
        if channel.ended() {
            return Ok(true);
        }
        let mut piece = [0; PIECE];
        let count = self.socket.read_within(&mut piece, Some(left))?;
        let plain = &mut self.plain;
        let heard = match count {
            0 => channel.end(),
            count => channel.receive(&mut piece[..count], |bytes| plain.extend_from_slice(bytes)),
        };
        // The alert that says what is wrong with the server's bytes goes out first.
        let flushed = self.flush();
        heard.map_err(failed)?;
        flushed?;
        Ok(count == 0)
    }

    /// Sends all of these bytes.
    ///
    /// # Errors
    /// The server does not read them in time, or the connection is of no more use.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !std::mem::replace(&mut self.sent, true) {
            trace::say(|| format!("sent {}", trace::beginning(bytes)));
        }
        let Some(interpreter) = &mut self.interpreter else { return self.put(bytes) };
        interpreter.say(bytes).map_err(io::Error::other)?;
        let out = interpreter.take_output();
        self.put(&out)
    }

    /// Sends these bytes as they are, or sealed.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(channel) = &mut self.channel else { return self.socket.write_all(bytes) };
        let mut sealed = Vec::new();
        channel.send(bytes, &mut sealed).map_err(failed)?;
        self.socket.write_all(&sealed)
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub fn half_close(&mut self) -> io::Result<()> {
        if let Some(channel) = &mut self.channel {
            let mut sealed = Vec::new();
            channel.close_notify(&mut sealed);
            self.socket.write_all(&sealed)?;
        }
        self.socket.shutdown(Shutdown::Write)
    }

    /// Sends what TLS itself has to say.
    fn flush(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        if let Some(channel) = &mut self.channel {
            channel.take_output(&mut out);
        }
        if out.is_empty() { Ok(()) } else { self.socket.write_all(&out) }
    }
}

fn failed(fault: tls::Fault) -> io::Error {
    let kind = match fault {
        tls::Fault::Truncated => ErrorKind::UnexpectedEof,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, format!("TLS: {fault}"))
}

impl Socket {
    pub(crate) fn connect(server: &Listening, patience: Duration) -> io::Result<Self> {
        match server {
            Listening::Port(port) => Self::tcp(Listening::usual(*port), patience),
            Listening::Address(address) => Self::tcp(*address, patience),
            Listening::Socket(path) => Self::unix(path, patience),
        }
    }

    /// While the queue of a Unix socket is full, a call that blocks would wait as long as the server likes.
    fn unix(path: &Path, patience: Duration) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = SocketAddrUnix::new(path)?;
        let mut answer = Ok(());
        poll(deadline_in(patience), || {
            answer = connect(&socket, &address);
            !matches!(answer, Err(Errno::AGAIN | Errno::INTR))
        });
        answer.map_err(|error| match error {
            Errno::AGAIN => io::Error::new(ErrorKind::TimedOut, "its queue of connections stayed full"),
            error => error.into(),
        })?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self::Unix(stream))
    }

    fn tcp(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        // The kernel may choose this very port as the local one. TCP then connects to itself.
        if stream.local_addr().is_ok_and(|local| local == address) {
            return Err(io::Error::new(ErrorKind::ConnectionRefused, "nothing listened"));
        }
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self::Tcp(stream))
    }

    /// Its own address and the server's.
    fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(stream) => stream.local_addr().ok().zip(stream.peer_addr().ok()),
            Self::Unix(_) => None,
        }
    }

    /// Another handle of the same socket.
    pub(crate) fn twin(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        }
    }

    pub(crate) fn read_within(&mut self, buffer: &mut [u8], left: Option<Duration>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
            Self::Unix(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use tls::{Parameters, Trust};

    use super::*;

    #[test]
    fn host_has_brackets_around_an_address_of_ipv6() {
        let named = |name: &str| {
            let parameters = Parameters::default();
            Dialing { name: name.to_owned(), trust: Trust::Anyone, identity: None, parameters }
        };
        for (server, name, host) in [
            (Listening::Address("[::1]:443".parse().unwrap()), "::1", "[::1]:443"),
            (Listening::Address("127.0.0.1:443".parse().unwrap()), "127.0.0.1", "127.0.0.1:443"),
            (Listening::Port(443), "localhost", "localhost:443"),
        ] {
            let access = Access { tls: Some(named(name)), ..Access::plain(&server) };
            assert_eq!(access.host(), host);
        }
        let server = Listening::Address("[::1]:80".parse().unwrap());
        assert_eq!(Access::plain(&server).host(), "[::1]:80");
    }

    #[test]
    fn a_full_queue_of_a_unix_socket_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.socket");
        let listener = UnixListener::bind(&path).unwrap();
        // The shortest queue that there is.
        rustix::net::listen(&listener, 0).unwrap();
        let access = Access::plain(&Listening::Socket(path));
        let mut waiting = Vec::new();
        let full = loop {
            match Contact::open(&access, Duration::from_millis(20)) {
                Ok(contact) => waiting.push(contact),
                Err(error) => break error,
            }
        };
        assert_eq!((full.kind(), waiting.is_empty()), (ErrorKind::TimedOut, false));
        listener.accept().unwrap();
        let mut contact = Contact::open(&access, Duration::from_secs(60)).unwrap();
        contact.write_all(b"there is room again").unwrap();
    }
}
