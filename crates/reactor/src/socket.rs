//! The few socket calls that both backends share.

use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A socket address in the kernel's form.
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl RawAddress {
    pub(crate) fn new(address: SocketAddr) -> Self {
        // SAFETY: all-zero bytes are a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let len = match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // SAFETY: sockaddr_storage is at least as large and as aligned as every sockaddr.
                unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
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

/// A non-blocking TCP socket that sends small messages at once.
pub(crate) fn stream(family: libc::c_int) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket(2) takes no pointers.
    let fd = unsafe { libc::socket(family, flags, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    no_delay(fd);
    // SAFETY: a descriptor just made, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How many connections may wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: libc::c_int = 65_535;

/// A listening socket. With `shared`, more of them may listen on the same address: the kernel spreads connections over
/// them.
///
/// # Errors
/// The address is in use, or not of this machine.
pub fn listener(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let fd = bound(address, shared)?;
    // SAFETY: listen(2) takes no pointers.
    if unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd.into())
}

/// Whether nobody has this address, shared or not: then the address, with the port that the kernel chose for port 0.
/// Nothing listens meanwhile, so no client can take this look for a server.
///
/// # Errors
/// The address is in use, or not of this machine.
pub fn unused(address: SocketAddr) -> io::Result<SocketAddr> {
    TcpListener::from(bound(address, false)?).local_addr()
}

fn bound(address: SocketAddr, shared: bool) -> io::Result<OwnedFd> {
    let raw = RawAddress::new(address);
    let fd = stream(raw.family())?;
    set(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR);
    if shared {
        set(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT);
    }
    // SAFETY: the address is alive during the call.
    if unsafe { libc::bind(fd.as_raw_fd(), raw.pointer(), raw.len()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd)
}

/// Requests must not wait for Nagle's algorithm: that is a measurement of the sender's own delay.
pub(crate) fn no_delay(fd: RawFd) {
    set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY);
}

/// Switches an option on. Failure (not TCP) is harmless.
fn set(fd: RawFd, level: libc::c_int, name: libc::c_int) {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is one int, alive during the call.
    unsafe { libc::setsockopt(fd, level, name, (&raw const on).cast(), size_of_val(&on) as _) };
}

/// What arrives on the socket carries the time of its arrival. Where the kernel refuses, it does not.
pub(crate) fn stamp_arrivals(fd: RawFd) {
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
}

/// Half-close. An error means the connection is gone, which its receive side reports.
pub(crate) fn shutdown_write(fd: RawFd) {
    // SAFETY: shutdown(2) takes no pointers.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}
