//! The socket calls that both backends share.

use std::fmt;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address and port of TCP.
    Tcp(SocketAddr),
    /// A Unix socket's path. See [`Address::unix`] for its length.
    Unix(PathBuf),
}

/// The longest path of a Unix socket in bytes (unix(7)). A zero byte follows it.
const LONGEST_PATH: usize = 107;

impl Address {
    /// A Unix socket.
    ///
    /// # Errors
    /// The path is longer than the kernel allows, or contains a zero byte.
    pub fn unix(path: PathBuf) -> io::Result<Self> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() > LONGEST_PATH || bytes.contains(&0) {
            let why = format!("{}: a Unix socket's path has at most {LONGEST_PATH} bytes", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Self::Unix(path))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// A socket address in the kernel's form.
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl RawAddress {
    pub(crate) fn new(address: &Address) -> Self {
        // SAFETY: all-zero bytes are a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let len = match address {
            Address::Unix(path) => {
                let mut raw =
                    libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
                let bytes = path.as_os_str().as_bytes();
                for (to, byte) in raw.sun_path.iter_mut().zip(bytes.iter().take(LONGEST_PATH)) {
                    *to = *byte as libc::c_char;
                }
                // SAFETY: sockaddr_storage is at least as large and as aligned as every sockaddr.
                unsafe { (&raw mut storage).cast::<libc::sockaddr_un>().write(raw) };
                size_of::<libc::sockaddr_un>()
            }
            Address::Tcp(SocketAddr::V4(v4)) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // SAFETY: as above.
                unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
                size_of::<libc::sockaddr_in>()
            }
            Address::Tcp(SocketAddr::V6(v6)) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: as above.
                unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
                size_of::<libc::sockaddr_in6>()
            }
        };
        Self { storage, len: len as libc::socklen_t }
    }

    pub(crate) fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }

    pub(crate) fn pointer(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(crate) fn len(&self) -> libc::socklen_t {
        self.len
    }
}

/// Where connections lead to, and where they come from.
pub(crate) struct Route {
    /// The kernel reads it later, when the route may have moved.
    to: Rc<RawAddress>,
    /// The sources in turn. If there are none, the kernel chooses.
    sources: Vec<RawAddress>,
    turn: usize,
}

impl Route {
    pub(crate) fn new(to: &Address) -> Self {
        Self { to: Rc::new(RawAddress::new(to)), sources: Vec::new(), turn: 0 }
    }

    pub(crate) fn come_from(&mut self, sources: &[IpAddr]) {
        let raw = |source: &IpAddr| RawAddress::new(&SocketAddr::new(*source, 0).into());
        self.sources = sources.iter().map(raw).collect();
    }

    /// Where the next connection leads to and comes from.
    pub(crate) fn next(&mut self) -> (&RawAddress, Option<&RawAddress>) {
        if self.sources.is_empty() {
            return (&self.to, None);
        }
        let turn = self.turn % self.sources.len();
        self.turn = turn + 1;
        (&self.to, self.sources.get(turn))
    }
}

/// The addresses of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Of this side.
    pub own: SocketAddr,
    /// Of the other side.
    pub peer: SocketAddr,
}

/// The addresses of a socket; `None` if it is not TCP, or not connected.
pub(crate) fn ends(fd: RawFd) -> Option<Ends> {
    // SAFETY: the descriptor is open, and it is not closed here.
    let stream = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(fd) });
    Some(Ends { own: stream.local_addr().ok()?, peer: stream.peer_addr().ok()? })
}

/// Creates a socket as [`stream`] does, and binds it to the source, if there is one.
pub(crate) fn stream_from(family: libc::c_int, source: Option<&RawAddress>) -> io::Result<OwnedFd> {
    let fd = stream(family)?;
    if let Some(source) = source {
        // Without this option the port would be chosen before the target is known, and each port could be used only once.
        set(fd.as_raw_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT);
        bind(&fd, source)?;
    }
    Ok(fd)
}

fn bind(fd: &OwnedFd, address: &RawAddress) -> io::Result<()> {
    // SAFETY: the address is alive during the call.
    match unsafe { libc::bind(fd.as_raw_fd(), address.pointer(), address.len()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Creates a non-blocking stream socket that sends small messages immediately.
pub(crate) fn stream(family: libc::c_int) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket(2) takes no pointers.
    let fd = unsafe { libc::socket(family, flags, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    no_delay(fd);
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How many connections may wait to be accepted. The kernel limits it to `net.core.somaxconn`.
const BACKLOG: libc::c_int = 65_535;

/// Creates a listening socket. With `shared`, several of them may listen on the same address, and the kernel distributes
/// the connections over them.
///
/// # Errors
/// The address is in use, or does not belong to this machine.
pub fn listener(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let fd = bound(address, shared)?;
    // SAFETY: listen(2) takes no pointers.
    if unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd.into())
}

/// Makes a socket stop listening. The kernel refuses connections from now on, and a reactor that accepts from the socket
/// turns at once.
pub fn stop_listening(listener: &TcpListener) {
    // SAFETY: shutdown(2) takes no pointers. Failure is harmless: the reactor turns at its timeout.
    unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Checks that nobody uses this address, shared or not. Returns it with the port that the kernel chose in place of port 0.
/// Never listens, so no client can mistake the check for a server.
///
/// # Errors
/// The address is in use, or does not belong to this machine.
pub fn unused(address: SocketAddr) -> io::Result<SocketAddr> {
    TcpListener::from(bound(address, false)?).local_addr()
}

fn bound(address: SocketAddr, shared: bool) -> io::Result<OwnedFd> {
    let raw = RawAddress::new(&address.into());
    let fd = stream(raw.family())?;
    set(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR);
    if shared {
        set(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT);
    }
    bind(&fd, &raw)?;
    Ok(fd)
}

/// Disables Nagle's algorithm. Its delay would be part of every measurement.
pub(crate) fn no_delay(fd: RawFd) {
    set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY);
}

/// Makes the close of a socket a reset, so that the kernel frees what it could not deliver.
pub(crate) fn close_by_reset(fd: RawFd) {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of_val(&at_once) as libc::socklen_t;
    // SAFETY: the option's value is alive during the call, and `length` is its size. Failure is harmless.
    unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const at_once).cast(), length) };
}

/// Switches an option on. Failure is harmless (the socket may not be TCP).
fn set(fd: RawFd, level: libc::c_int, name: libc::c_int) {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is one int, alive during the call.
    unsafe { libc::setsockopt(fd, level, name, (&raw const on).cast(), size_of_val(&on) as _) };
}

/// Asks the kernel to stamp each message with its arrival time. If the kernel refuses, messages have no stamp.
pub(crate) fn stamp_arrivals(fd: RawFd) {
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
}

/// Half-closes the connection. An error means that the connection is gone, which the receive side reports.
pub(crate) fn shutdown_write(fd: RawFd) {
    // SAFETY: shutdown(2) takes no pointers.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}
