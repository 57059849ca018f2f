//! The few system calls that the server and the floors are made of.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A listener on this machine, with as long a queue as the kernel allows; port 0 takes a free one.
pub fn listener(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    // SAFETY: listening again on our own listener only changes the length of its queue.
    check(unsafe { libc::listen(listener.as_raw_fd(), i32::MAX) })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// An open connection to a port of this machine.
pub fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The address of a port of this machine, as the kernel reads it.
pub fn address(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() },
        sin_zero: [0; 8],
    }
}

/// A socket that has begun to connect, without waiting for it.
pub fn begin_connect(to: &libc::sockaddr_in) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the descriptor that comes back is owned here and nowhere else.
    let fd = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?) };
    let size = size_of::<libc::sockaddr_in>() as u32;
    // SAFETY: the address lives across the call and has the size that is given.
    match check(unsafe { libc::connect(fd.as_raw_fd(), std::ptr::from_ref(to).cast(), size) }) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(fd),
    }
}

/// From now on operations on this socket, which did not wait, do.
pub fn blocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: no pointers; no other flag of a new socket can be set this way.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, 0) })?;
    Ok(())
}

/// Takes a waiting connection, if there is one.
pub fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null pointers are allowed: the peer's address is not wanted.
    let fd = check(unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags) })?;
    // SAFETY: just made by the kernel, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Answers are sent at once.
pub fn no_delay(fd: RawFd) {
    let on: i32 = 1;
    // SAFETY: the value lives across the call and has the size that is given.
    unsafe {
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, std::ptr::from_ref(&on).cast(), 4);
    }
}

/// Sends what the socket takes.
pub fn send(fd: RawFd, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the bytes live across the call.
    size(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags | libc::MSG_NOSIGNAL) })
}

/// Receives what is there.
pub fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is writable and lives across the call.
    size(unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// As many open files as may be had.
pub fn raise_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours; raising the soft limit up to the hard one is always allowed.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// The number of files that may be open at once.
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
        // SAFETY: the descriptor that comes back is owned here and nowhere else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) }))
    }

    pub fn add(&self, fd: RawFd, events: i32, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: data };
        // SAFETY: the event lives across the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// Waits; the events that came.
    pub fn wait<'a>(
        &self,
        events: &'a mut [libc::epoll_event],
        timeout_ms: i32,
    ) -> io::Result<&'a [libc::epoll_event]> {
        let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
        // SAFETY: the kernel writes at most `room` events, which there is room for.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, timeout_ms) };
        match check(count) {
            Ok(count) => Ok(&events[..count as usize]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(error) => Err(error),
        }
    }
}

/// What a failed system call left in `errno`.
pub fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
