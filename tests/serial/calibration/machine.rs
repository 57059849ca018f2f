//! Makes the endpoint's truth precise: the kernel's arrival stamps, separate cores for endpoint and generator, and
//! real-time priority over other work if the kernel grants it.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds of the real-time clock, which arrival stamps also use.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

/// The endpoint's core and the generator's; the same if there is only one.
pub fn cores() -> (usize, usize) {
    // SAFETY: an all-zero set is a valid one, and it is alive during the calls.
    let allowed: Vec<usize> = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(libc::getpid(), size_of_val(&set), &raw mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    };
    (*allowed.last().expect("a core"), allowed[0])
}

/// Pins the calling thread, makes its timers exact and gives it priority.
pub fn steady(core: usize) {
    pin(core);
    // SAFETY: prctl(2) with PR_SET_TIMERSLACK takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
    go_first();
}

/// Pins the calling thread.
pub fn pin(core: usize) -> bool {
    // SAFETY: an all-zero set is a valid one, and it is alive during the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
    }
}

/// Gives the calling thread real-time priority, if it is permitted.
fn go_first() -> bool {
    order(libc::SCHED_FIFO, 1)
}

/// Sets the calling thread's scheduling.
pub fn order(policy: libc::c_int, priority: libc::c_int) -> bool {
    let order = libc::sched_param { sched_priority: priority };
    // SAFETY: `order` is alive during the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const order) == 0 }
}

/// Starts the generator with the same priority.
pub fn first(command: &mut Command) -> &mut Command {
    // SAFETY: one system call, which is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            go_first();
            Ok(())
        })
    }
}

fn option<T>(stream: &impl AsRawFd, name: libc::c_int, value: T) {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is alive during the call and as large as is said.
    let done = unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, name, (&raw const value).cast(), size)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Makes the kernel stamp arrivals on each connection that this listener accepts.
pub fn stamp_arrivals(listener: &TcpListener) {
    option(listener, libc::SO_TIMESTAMPNS, 1_i32);
}

/// Closes with a reset.
pub fn reset(stream: Option<TcpStream>) {
    let stream = stream.expect("a connection");
    option(&stream, libc::SO_LINGER, libc::linger { l_onoff: 1, l_linger: 0 });
}

/// Receives bytes. Returns their number (0 at the end of the connection, for whatever reason) and when the last one
/// arrived.
pub fn receive(stream: &TcpStream, buffer: &mut [u8]) -> (usize, u64) {
    let mut control = [0_u64; 16];
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: an all-zero header is a valid one; what it points to is alive during the calls, and a control message of
    // this type holds a timespec.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        let length = loop {
            let length = libc::recvmsg(stream.as_raw_fd(), &raw mut header, 0);
            if length >= 0 || *libc::__errno_location() != libc::EINTR {
                break usize::try_from(length).unwrap_or(0);
            }
        };
        let woken = now();
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(found) = message.as_ref() {
            if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_TIMESTAMPNS {
                let stamp: libc::timespec =
                    libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
                return (length, stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64);
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
        (length, woken)
    }
}

/// A listener that never accepts and whose queue is full, so that the kernel answers no other client.
pub struct Full {
    pub listener: TcpListener,
    waiting: Vec<std::io::Result<TcpStream>>,
}

impl Full {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        // SAFETY: listen(2) again only sets the length of the queue.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let address = listener.local_addr().expect("its address");
        let mut waiting = Vec::new();
        while waiting.last().is_none_or(std::io::Result::is_ok) {
            assert!(waiting.len() < 16, "the queue never fills");
            waiting.push(TcpStream::connect_timeout(&address, Duration::from_millis(300)));
        }
        Self { listener, waiting }
    }

    /// The number of connections in the queue that nobody has accepted.
    pub fn queued(&self) -> usize {
        self.waiting.iter().filter(|dialled| dialled.is_ok()).count()
    }
}
