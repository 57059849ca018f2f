//! The system calls that the server and the floors use.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Creates a loopback listener with the longest queue that the kernel allows. Port 0 takes a free port.
pub fn listener(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    // SAFETY: a second listen on our own listener only changes the length of its queue.
    check(unsafe { libc::listen(listener.as_raw_fd(), i32::MAX) })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to a port of this machine.
pub fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The loopback address with this port, in the kernel's format.
pub fn address(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() },
        sin_zero: [0; 8],
    }
}

/// Creates a socket and begins to connect it, without waiting.
pub fn begin_connect(to: &libc::sockaddr_in) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the returned descriptor has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?) };
    let size = size_of::<libc::sockaddr_in>() as u32;
    // SAFETY: the address is alive during the call and has the given size.
    match check(unsafe { libc::connect(fd.as_raw_fd(), std::ptr::from_ref(to).cast(), size) }) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(fd),
    }
}

/// Makes a non-blocking socket blocking.
pub fn blocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: no pointers. A new socket has no other flag that this could clear.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, 0) })?;
    Ok(())
}

/// Accepts a waiting connection, if there is one.
pub fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null pointers are allowed; they mean that the peer's address is not requested.
    let fd = check(unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Disables Nagle's algorithm, so that answers are sent at once.
pub fn no_delay(fd: RawFd) {
    let on: i32 = 1;
    // SAFETY: the value is alive during the call and has the given size.
    unsafe {
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, std::ptr::from_ref(&on).cast(), 4);
    }
}

/// Sends as much as the socket takes.
pub fn send(fd: RawFd, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the bytes are alive during the call.
    size(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags | libc::MSG_NOSIGNAL) })
}

/// Receives what has arrived.
pub fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is writable and alive during the call.
    size(unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Raises the limit of open files as far as allowed.
pub fn raise_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours; raising the soft limit up to the hard one is always allowed.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// The limit of open files.
pub fn files() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur
}

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the returned descriptor has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) }))
    }

    pub fn add(&self, fd: RawFd, events: i32, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: data };
        // SAFETY: the event is alive during the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// Waits for events and returns them.
    pub fn wait<'a>(
        &self,
        events: &'a mut [libc::epoll_event],
        timeout_ms: i32,
    ) -> io::Result<&'a [libc::epoll_event]> {
        let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
        // SAFETY: the kernel writes at most `room` events.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, timeout_ms) };
        match check(count) {
            Ok(count) => Ok(&events[..count as usize]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(error) => Err(error),
        }
    }
}

/// Turns the result of a system call into an error if it failed.
pub fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
