//! A blocking connection to a server, in plain text or in TLS: for readiness, for a first look, and for checks.
//!
//! Knows sockets. What is said on a connection is its callers' matter.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime};

use tls::{ClientChannel, Dialer, Dialing};

use crate::listening::Listening;

/// Where a server is reached, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Access {
    /// Where it listens.
    pub server: Listening,
    /// How to speak TLS; `None` for plain text.
    pub tls: Option<Dialing>,
}

impl Access {
    /// A server that is spoken to in plain text.
    pub fn plain(server: &Listening) -> Self {
        Self { server: server.clone(), tls: None }
    }

    /// The value of `Host`.
    pub fn host(&self) -> String {
        match (&self.server, &self.tls) {
            (Listening::Socket(_), _) => "localhost".to_owned(),
            // Some servers want the name that TLS says.
            (Listening::Port(port), Some(dialing)) => format!("{}:{port}", dialing.name),
            (Listening::Address(address), Some(dialing)) => format!("{}:{}", dialing.name, address.port()),
            (Listening::Port(port), None) => Listening::usual(*port).to_string(),
            (Listening::Address(address), None) => address.to_string(),
        }
    }
}

/// A connection.
pub struct Contact {
    socket: Socket,
    channel: Option<Box<ClientChannel>>,
    /// What was decrypted and not read yet.
    plain: Vec<u8>,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The bytes that are taken from a socket at once: a record of TLS.
const PIECE: usize = 1 << 14;

impl Contact {
    /// Connects, and makes the handshake if the server speaks TLS. Both together take no longer than `patience`.
    ///
    /// # Errors
    /// Nothing accepted the connection, or the handshake failed.
    pub fn open(access: &Access, patience: Duration) -> io::Result<Self> {
        let deadline = Instant::now() + patience;
        let socket = Socket::connect(&access.server, patience)?;
        let mut contact = Self { socket, channel: None, plain: Vec::new() };
        if let Some(dialing) = &access.tls {
            let dialer = Dialer::new(dialing).map_err(io::Error::other)?;
            let channel = dialer.line().open(SystemTime::now()).map_err(failed)?;
            contact.channel = Some(Box::new(channel));
            contact.shake_hands(deadline)?;
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
    /// Nothing arrived in time, or the connection is of no more use.
    pub fn read_within(&mut self, buffer: &mut [u8], left: Duration) -> io::Result<usize> {
        if self.channel.is_none() {
            return self.socket.read_within(buffer, left);
        }
        let deadline = Instant::now() + left;
        while self.plain.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            if self.take(left)? {
                return Ok(0);
            }
        }
        let count = self.plain.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.plain[..count]);
        self.plain.drain(..count);
        Ok(count)
    }

    /// Takes bytes from the socket and decrypts them. Returns whether the server has ended its side.
    fn take(&mut self, left: Duration) -> io::Result<bool> {
        let Some(channel) = &mut self.channel else { return Ok(true) };
        if channel.ended() {
            return Ok(true);
        }
        let mut piece = [0; PIECE];
        let count = self.socket.read_within(&mut piece, left)?;
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
        match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
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
    io::Error::other(format!("TLS: {fault}"))
}

impl Socket {
    fn connect(server: &Listening, patience: Duration) -> io::Result<Self> {
        match server {
            Listening::Port(port) => Self::tcp(Listening::usual(*port), patience),
            Listening::Address(address) => Self::tcp(*address, patience),
            Listening::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Self::Unix(stream))
            }
        }
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

    fn read_within(&mut self, buffer: &mut [u8], left: Duration) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(left)).and_then(|()| stream.read(buffer)),
            Self::Unix(stream) => stream.set_read_timeout(Some(left)).and_then(|()| stream.read(buffer)),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }
}
