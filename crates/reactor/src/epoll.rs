//! The epoll backend: turns readiness into the same completions as io_uring.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use crate::slots::{Conn, Slots};
use crate::socket::{self, RawAddress};
use crate::{Delivery, Done, STALL};

const EVENTS: usize = 1024;

/// A completion that has not been reported yet. A sent payload stays in its slot until it is reported.
enum Ready {
    Accepted(Conn),
    Sent,
    Failed(i32),
}

pub(crate) struct Epoll {
    fd: OwnedFd,
    scratch: Box<[u8]>,
    events: Vec<libc::epoll_event>,
    cursor: usize,
    /// Completions that needed no waiting.
    ready: VecDeque<(Conn, Ready)>,
    /// Listeners that are paused because no file was free, and when they resume.
    stalled: Vec<(Instant, Conn)>,
}

impl Epoll {
    pub(crate) fn new(buffer_size: u32) -> io::Result<Self> {
        // SAFETY: epoll_create1(2) takes no pointers; its result is a descriptor of our own.
        let fd = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self {
            fd,
            scratch: vec![0; buffer_size as usize].into_boxed_slice(),
            events: Vec::with_capacity(EVENTS),
            cursor: 0,
            ready: VecDeque::new(),
            stalled: Vec::new(),
        })
    }

    fn control(&self, op: libc::c_int, fd: RawFd, events: libc::c_int, conn: Conn) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: conn.to_bits() };
        // SAFETY: `event` is alive during the call.
        match unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), op, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn fail(&mut self, conn: Conn, error: &io::Error) {
        self.ready.push_back((conn, Ready::Failed(error.raw_os_error().unwrap_or(libc::EIO))));
    }

    pub(crate) fn connect(
        &mut self,
        slots: &mut Slots,
        address: &RawAddress,
        source: Option<&RawAddress>,
    ) -> io::Result<Conn> {
        let socket = socket::stream_from(address.family(), source)?;
        let fd = socket.as_raw_fd();
        let conn = slots.insert(Some(socket));
        if let Some(slot) = slots.get(conn) {
            slot.connecting = true;
        }
        // SAFETY: the address is alive during the call.
        let result = unsafe { libc::connect(fd, address.pointer(), address.len()) };
        let error = io::Error::last_os_error();
        if result < 0 && error.raw_os_error() != Some(libc::EINPROGRESS) {
            self.fail(conn, &error);
        } else if let Err(error) = self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLOUT, conn) {
            self.fail(conn, &error);
        }
        Ok(conn)
    }

    pub(crate) fn listen(&mut self, slots: &mut Slots, conn: Conn) -> io::Result<()> {
        let Some(slot) = slots.get(conn) else { return Ok(()) };
        slot.listening = true;
        let Some(fd) = slot.fd() else { return Ok(()) };
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, conn)
    }

    /// Tells epoll what the connection waits for now.
    pub(crate) fn watch(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        let reading = if slot.reading && !slot.paused { libc::EPOLLIN } else { 0 };
        let writing = if slot.unsent() { libc::EPOLLOUT } else { 0 };
        let Some(fd) = slot.fd() else { return };
        if let Err(error) = self.control(libc::EPOLL_CTL_MOD, fd, reading | writing, conn) {
            self.fail(conn, &error);
        }
    }

    pub(crate) fn send(&mut self, slots: &mut Slots, conn: Conn) {
        if !self.write(slots, conn) {
            self.watch(slots, conn);
        }
    }

    /// Writes as much as the socket takes. Returns true if there is nothing left to wait for.
    fn write(&mut self, slots: &mut Slots, conn: Conn) -> bool {
        let Some(slot) = slots.get(conn) else { return true };
        let Some(fd) = slot.fd() else { return true };
        let Some((payload, done)) = &mut slot.payload else { return true };
        loop {
            let rest = payload.rest(*done);
            // SAFETY: `rest` is alive during the call.
            let count = unsafe { libc::send(fd, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
            if count < 0 {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => return false,
                    _ => {
                        slot.payload = None;
                        self.fail(conn, &error);
                        return true;
                    }
                }
            }
            *done += count as usize;
            if *done == payload.bytes().len() {
                self.ready.push_back((conn, Ready::Sent));
                return true;
            }
        }
    }

    pub(crate) fn close(&mut self, slots: &mut Slots, conn: Conn) {
        if let Some(slot) = slots.get(conn) {
            slot.closing = true;
            slots.release(conn);
        }
    }

    /// Resumes listeners whose pause is over.
    #[cold]
    fn resume(&mut self, slots: &mut Slots) {
        let now = Instant::now();
        for (until, conn) in std::mem::take(&mut self.stalled) {
            if until > now {
                self.stalled.push((until, conn));
                continue;
            }
            // A listener that has been closed has no slot any more. Another file may have its number.
            let Some(fd) = slots.fd(conn) else { continue };
            if self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, conn).is_err() {
                self.stalled.push((now + STALL, conn));
            }
        }
    }

    pub(crate) fn wait(&mut self, slots: &mut Slots, timeout: Duration) -> io::Result<()> {
        if !self.stalled.is_empty() {
            self.resume(slots);
        }
        let timeout = if self.ready.is_empty() { timeout } else { Duration::ZERO };
        self.events.clear();
        self.cursor = 0;
        // SAFETY: the vector has room for EVENTS entries, and its length becomes the number that the kernel wrote.
        unsafe {
            let count = wait_exactly(self.fd.as_raw_fd(), self.events.as_mut_ptr(), timeout);
            if count < 0 {
                let error = io::Error::last_os_error();
                return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
            }
            self.events.set_len(count as usize);
        }
        Ok(())
    }

    pub(crate) fn next(&mut self, slots: &mut Slots) -> Option<(Conn, Done)> {
        loop {
            if let Some((conn, ready)) = self.ready.pop_front() {
                let Some(slot) = slots.get(conn) else { continue };
                match ready {
                    Ready::Accepted(listener) => return Some((conn, Done::Accepted(listener))),
                    Ready::Failed(errno) => return Some((conn, Done::Failed(errno))),
                    Ready::Sent => match slot.payload.take() {
                        Some((payload, _)) => return Some((conn, Done::Sent(payload))),
                        None => continue,
                    },
                }
            }
            let event = *self.events.get(self.cursor)?;
            self.cursor += 1;
            if let Some(done) = self.readiness(slots, event.events as libc::c_int, Conn::from_bits(event.u64))
            {
                return Some(done);
            }
        }
    }

    fn readiness(&mut self, slots: &mut Slots, events: libc::c_int, conn: Conn) -> Option<(Conn, Done)> {
        let slot = slots.get(conn)?;
        if slot.connecting {
            return self.connected(slots, conn);
        }
        if slot.listening {
            self.accept(slots, conn);
            return None;
        }
        if events & libc::EPOLLOUT != 0 && slot.unsent() && self.write(slots, conn) {
            self.watch(slots, conn);
        }
        if events & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) != 0 {
            return self.read(slots, conn);
        }
        None
    }

    fn connected(&mut self, slots: &mut Slots, conn: Conn) -> Option<(Conn, Done)> {
        let slot = slots.get(conn)?;
        slot.connecting = false;
        slot.reading = true;
        match pending_error(slot.fd()?) {
            0 => {
                self.watch(slots, conn);
                Some((conn, Done::Connected))
            }
            errno => Some((conn, Done::Failed(errno))),
        }
    }

    fn accept(&mut self, slots: &mut Slots, listener: Conn) {
        let Some(fd) = slots.fd(listener) else { return };
        loop {
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            // SAFETY: no address is requested; a non-negative result is a new descriptor of our own.
            let accepted = unsafe {
                match libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), flags) {
                    new if new >= 0 => Ok(OwnedFd::from_raw_fd(new)),
                    _ => Err(io::Error::last_os_error()),
                }
            };
            let new = match accepted {
                Ok(new) => new,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR | libc::ECONNABORTED) => continue,
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        // Level-triggered readiness would spin until a file is free.
                        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, listener);
                        self.stalled.push((Instant::now() + STALL, listener));
                        return;
                    }
                    _ => return,
                },
            };
            socket::no_delay(new.as_raw_fd());
            let raw = new.as_raw_fd();
            let conn = slots.insert(Some(new));
            if let Some(slot) = slots.get(conn) {
                slot.reading = true;
            }
            self.ready.push_back((conn, Ready::Accepted(listener)));
            if let Err(error) = self.control(libc::EPOLL_CTL_ADD, raw, libc::EPOLLIN, conn) {
                self.fail(conn, &error);
            }
        }
    }

    fn read(&mut self, slots: &mut Slots, conn: Conn) -> Option<(Conn, Done)> {
        let slot = slots.get(conn)?;
        let fd = slot.fd()?;
        if !slot.reading {
            // Both directions are shut down. Only an error could follow, and a send reports that.
            let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, conn);
            return None;
        }
        // SAFETY: the scratch buffer is ours and has the given length.
        let count = unsafe { libc::recv(fd, self.scratch.as_mut_ptr().cast(), self.scratch.len(), 0) };
        if count > 0 {
            let delivery = Delivery {
                start: self.scratch.as_ptr(),
                len: count as usize,
                buffer: 0,
                bulk: false,
                once: false,
                stamp: 0,
            };
            return Some((conn, Done::Received(delivery)));
        }
        if count == 0 {
            slot.reading = false;
            self.watch(slots, conn);
            return Some((conn, Done::Eof));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => None,
            _ => Some((conn, Done::Failed(error.raw_os_error().unwrap_or(libc::EIO)))),
        }
    }
}

/// Calls epoll_pwait2(2), whose timeout is in nanoseconds. Before Linux 5.11, calls epoll_wait(2) with the timeout rounded up
/// to milliseconds: a wait of 0.3 ms must not become a busy loop.
///
/// # Safety
/// `events` has room for [`EVENTS`] entries.
unsafe fn wait_exactly(epoll: RawFd, events: *mut libc::epoll_event, timeout: Duration) -> libc::c_int {
    let exact = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos().into() };
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: the caller promises room for the events. The timeout is alive during the call, and there is no mask.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll,
            events,
            EVENTS as libc::c_int,
            &raw const exact,
            no_mask,
            0,
        )
    };
    if count >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
        return count as libc::c_int;
    }
    let millis = timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
    // SAFETY: as above.
    unsafe { libc::epoll_wait(epoll, events, EVENTS as i32, millis) }
}

/// The error of a finished connect; 0 if it succeeded.
fn pending_error(fd: RawFd) -> libc::c_int {
    let mut value: libc::c_int = 0;
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value is one int, and `len` is its size.
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut value).cast(), &raw mut len) };
    value
}
