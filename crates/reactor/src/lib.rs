//! Completion-based I/O, one loop per core: io_uring, with epoll where the kernel refuses it.
//!
//! A [`Reactor`] owns its sockets and buffers. A [`Handler`] receives each [`Event`] and acts through [`Io`]: connect,
//! send, half-close, close. There is no receive call: every open connection delivers what arrives. The reactor knows
//! sockets and nothing of what travels in them. It belongs to one thread.

// It speaks to io_uring, epoll and sockets itself.
#![allow(unsafe_code)]
// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod epoll;
mod payload;
mod slots;
mod socket;
mod thread;
mod time;
pub mod timers;
mod uring;

use std::io;
use std::net::{IpAddr, TcpListener};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use payload::{Payload, SharedBytes};
pub use slots::Conn;
pub use socket::{Address, Ends, listener, stop_listening, unused};
pub use thread::{exact_timers, open_files, pin, thread_cpu, thread_waited};
pub use time::Time;

use epoll::Epoll;
use slots::Slots;
use socket::Route;
use uring::Uring;

/// Which kernel interface carries the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// io_uring if the kernel supports everything that is needed, otherwise epoll.
    #[default]
    Auto,
    /// io_uring; an error if the kernel does not support it.
    Uring,
    /// epoll.
    Epoll,
}

/// The configuration of a reactor.
#[derive(Debug, Clone, Copy)]
pub struct ReactorConfig {
    /// Which kernel interface.
    pub backend: Backend,
    /// The size of a receive buffer for messages, in bytes. Bulk data has larger ones: see [`Io::expect_bulk`].
    pub buffer_size: u32,
    /// The number of receive buffers, which all connections share; a power of two.
    pub buffers: u16,
    /// Whether connections made by this reactor stamp what they receive with its arrival time, if the kernel can.
    /// [`Reactor::sleep`] needs the stamps. Each costs a little time.
    pub stamps: bool,
}

impl ReactorConfig {
    /// Settings for many connections with small messages.
    pub const MESSAGES: Self =
        Self { backend: Backend::Auto, buffer_size: 1024, buffers: 2048, stamps: false };
    /// Settings for connections that carry many messages at once, so that one buffer holds many.
    pub const STREAMS: Self =
        Self { backend: Backend::Auto, buffer_size: 16 * 1024, buffers: 256, stamps: false };
    /// Settings for few connections whose answers are small.
    pub const FEW: Self = Self { backend: Backend::Auto, buffer_size: 16 * 1024, buffers: 64, stamps: false };
}

/// What happened on a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// The listener with this handle accepted the connection.
    Accepted(Conn),
    /// The requested connection is open.
    Connected,
    /// Bytes arrived, in order. The duration is the age of the last of them; zero if the kernel has not stamped it.
    Received(&'a [u8], Duration),
    /// The kernel has taken the payload, which is returned for reuse.
    Sent(Payload),
    /// The peer will send no more. The connection can still send. The handler must close it in the end.
    Eof,
    /// The connection is lost, and the handler must close it. The number is the kernel's `errno`.
    Failed(i32),
}

/// How long a listener pauses when no file is free. Retrying at once would use a whole core.
const STALL: Duration = Duration::from_millis(10);

/// Receives events, and acts through [`Io`].
pub trait Handler {
    /// Handles one event of one connection.
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>);
}

/// Bytes that the kernel delivered. They are valid until they are recycled.
#[derive(Clone, Copy)]
struct Delivery {
    start: *const u8,
    len: usize,
    buffer: u16,
    bulk: bool,
    /// The connection carries one exchange, whose next receive must be requested.
    once: bool,
    /// When the last byte arrived, in nanoseconds by the wall clock, which the kernel uses for stamps; 0 if there is no stamp.
    stamp: u64,
}

impl Delivery {
    /// How long ago the last byte arrived. If the wall clock is set while a message waits, its age is wrong.
    #[inline]
    fn age(&self) -> Duration {
        if self.stamp == 0 {
            return Duration::ZERO;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(Duration::from_nanos(self.stamp))
    }
}

/// A completed operation, as a backend reports it.
enum Done {
    Accepted(Conn),
    Connected,
    Received(Delivery),
    Sent(Payload),
    Eof,
    Failed(i32),
}

/// The operations of a reactor. All of them take effect no later than the next turn of the loop. Their failures arrive as
/// [`Event::Failed`].
pub struct Io {
    // The first field is dropped first: the kernel must stop before the memory that it may read is freed.
    kernel: Kernel,
    slots: Slots,
    /// Where connections lead to.
    routes: Vec<Route>,
    /// Bytes that the kernel may read at any time.
    kept: Vec<SharedBytes>,
}

enum Kernel {
    Uring(Box<Uring>),
    Epoll(Box<Epoll>),
}

/// What a connection is going to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// Any traffic.
    Anything,
    /// One small send and its answer. The kernel creates the socket by itself, and nothing is pending at the close.
    OneExchange,
    /// Any traffic, and its own addresses in it: [`Io::ends`] knows them. The socket stays out of the ring's own file table,
    /// because the kernel does not tell the addresses of sockets in it.
    Addresses,
}

/// An address that is prepared once and used for many connections.
#[derive(Debug, Clone, Copy)]
pub struct AddressId(usize);

impl AddressId {
    #[expect(
        clippy::indexing_slicing,
        reason = "`Io::address` has given the number, and no route is removed"
    )]
    fn route(self, routes: &mut [Route]) -> &mut Route {
        &mut routes[self.0]
    }
}

impl Io {
    /// Prepares an address to connect to.
    pub fn address(&mut self, address: &Address) -> AddressId {
        self.routes.push(Route::new(address));
        AddressId(self.routes.len() - 1)
    }

    /// Lets connections to an address come from these addresses of this machine, each from the next one in turn.
    pub fn come_from(&mut self, to: AddressId, sources: &[IpAddr]) {
        to.route(&mut self.routes).come_from(sources);
    }

    /// Begins a connection; [`Event::Connected`] or [`Event::Failed`] follows.
    ///
    /// # Errors
    /// The socket could not be created: no files or memory are left, or the source is not an address of this machine.
    pub fn connect(&mut self, to: AddressId, carries: Carries) -> io::Result<Conn> {
        let (address, source) = to.route(&mut self.routes).next();
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.connect(&mut self.slots, address, source, carries),
            Kernel::Epoll(epoll) => epoll.connect(&mut self.slots, address, source),
        }
    }

    /// The addresses of an open connection, if it was to carry [`Carries::Addresses`]. `None` if it is not TCP, or is lost.
    pub fn ends(&mut self, conn: Conn) -> Option<Ends> {
        socket::ends(self.slots.fd(conn)?)
    }

    /// Announces bytes that are sent repeatedly. If at most [`Io::SILENT`] of them are in flight `at_once` on a connection, the
    /// reactor keeps them for its lifetime, and the kernel may send payloads of them without an [`Event::Sent`].
    pub fn keep(&mut self, shared: &SharedBytes, at_once: usize) {
        if at_once <= Self::SILENT {
            self.kept.push(shared.clone());
        }
    }

    /// The most bytes that are sent without an event: fewer than any socket's buffer, so that these sends keep their order.
    pub const SILENT: usize = 4096;

    /// Accepts connections from `listener` until the reactor is dropped.
    ///
    /// # Errors
    /// The kernel refused to watch the listener.
    pub fn listen(&mut self, listener: TcpListener) -> io::Result<Conn> {
        listener.set_nonblocking(true)?;
        let conn = self.slots.insert(Some(listener.into()));
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.listen(&mut self.slots, conn),
            Kernel::Epoll(epoll) => epoll.listen(&mut self.slots, conn)?,
        }
        Ok(conn)
    }

    /// Sends `payload`. If the result is true, [`Event::Sent`] returns the payload later; if it is false, no event follows.
    /// A connection sends one payload at a time: a second one before that event is refused and returned.
    #[inline]
    pub fn send(&mut self, conn: Conn, payload: Payload) -> Result<bool, Payload> {
        let Some(slot) = self.slots.get(conn).filter(|slot| slot.payload.is_none() && slot.post.is_none())
        else {
            return self.send_behind(conn, payload);
        };
        if let (Payload::Shared(shared, _), Kernel::Uring(uring)) = (&payload, &mut self.kernel)
            && self.kept.iter().any(|kept| kept.same(shared))
        {
            uring.send_silently(slot, conn, payload.bytes());
            return Ok(false);
        }
        slot.payload = Some((payload, 0));
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.send(&mut self.slots, conn),
            Kernel::Epoll(epoll) => epoll.send(&mut self.slots, conn),
        }
        Ok(true)
    }

    /// Sends a payload behind what was posted, and refuses it behind another payload.
    #[cold]
    fn send_behind(&mut self, conn: Conn, payload: Payload) -> Result<bool, Payload> {
        let (Some(slot), Kernel::Uring(uring)) = (self.slots.get(conn), &mut self.kernel) else {
            return Err(payload);
        };
        match &slot.payload {
            None => uring.send_with_post(&mut self.slots, conn, &payload),
            Some(_) if slot.hidden && slot.next.is_none() => slot.next = Some(payload),
            Some(_) => return Err(payload),
        }
        Ok(true)
    }

    /// The most bytes that can be posted on a connection in a turn.
    pub const POST: usize = 16 * 1024;

    /// Copies a few bytes and sends them. No event follows. Returns false if that is not possible now: then [`Io::send`] sends
    /// them. A send costs an event, which ends the wait for others.
    #[inline]
    pub fn post(&mut self, conn: Conn, bytes: &[u8]) -> bool {
        match (&mut self.kernel, self.slots.get(conn)) {
            (Kernel::Uring(uring), Some(slot)) => slot.payload.is_none() && uring.post(slot, conn, bytes),
            _ => false,
        }
    }

    /// Tells the reactor to expect bulk data on this connection, which then gets larger buffers.
    pub fn expect_bulk(&mut self, conn: Conn) {
        let Some(slot) = self.slots.get(conn) else { return };
        if !std::mem::replace(&mut slot.bulk, true)
            && let Kernel::Uring(uring) = &mut self.kernel
        {
            uring.rebuffer(&mut self.slots, conn);
        }
    }

    /// Receives nothing more on this connection until [`Io::resume`]. What the kernel has delivered already still arrives as
    /// events; the rest waits in the socket, and in the end the peer must wait.
    pub fn pause(&mut self, conn: Conn) {
        let Some(slot) = self.slots.get(conn) else { return };
        if !std::mem::replace(&mut slot.paused, true) {
            match &mut self.kernel {
                Kernel::Uring(uring) => uring.rebuffer(&mut self.slots, conn),
                Kernel::Epoll(epoll) => epoll.watch(&mut self.slots, conn),
            }
        }
    }

    /// Receives again after [`Io::pause`].
    pub fn resume(&mut self, conn: Conn) {
        let Some(slot) = self.slots.get(conn) else { return };
        if std::mem::replace(&mut slot.paused, false) {
            match &mut self.kernel {
                Kernel::Uring(uring) if !slot.reading => uring.receive(&mut self.slots, conn),
                // When the kernel has released the receive that was cancelled, a new one starts.
                Kernel::Uring(_) => {}
                Kernel::Epoll(epoll) => epoll.watch(&mut self.slots, conn),
            }
        }
    }

    /// Closes the sending side; receiving continues. Call it when no send is in flight: after the last [`Event::Sent`], and
    /// not after sends without an event other than posts.
    pub fn half_close(&mut self, conn: Conn) {
        match (&mut self.kernel, self.slots.fd(conn)) {
            (Kernel::Uring(uring), _) => uring.half_close(&mut self.slots, conn),
            (Kernel::Epoll(_), Some(fd)) => socket::shutdown_write(fd),
            (Kernel::Epoll(_), None) => {}
        }
    }

    /// Closes the connection. It has no more events.
    pub fn close(&mut self, conn: Conn) {
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.close(&mut self.slots, conn),
            Kernel::Epoll(epoll) => epoll.close(&mut self.slots, conn),
        }
    }

    /// Closes the connection with a reset. What its peer has not taken is lost, and the kernel keeps none of it: after a plain
    /// close it would offer the rest to a peer that reads nothing for minutes.
    pub fn abort(&mut self, conn: Conn) {
        if let Some(fd) = self.slots.fd(conn) {
            socket::close_by_reset(fd);
        }
        self.close(conn);
    }

    /// The backend's name: `io_uring` or `epoll`.
    pub fn backend(&self) -> &'static str {
        match &self.kernel {
            Kernel::Uring(_) => "io_uring",
            Kernel::Epoll(_) => "epoll",
        }
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.wait(&mut self.slots, timeout),
            Kernel::Epoll(epoll) => epoll.wait(&mut self.slots, timeout),
        }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<(Conn, Done)> {
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.next(&mut self.slots),
            Kernel::Epoll(epoll) => epoll.next(&mut self.slots),
        }
    }

    #[inline]
    fn recycle(&mut self, conn: Conn, delivery: Delivery) {
        if let Kernel::Uring(uring) = &mut self.kernel {
            uring.recycle(delivery);
            if delivery.once {
                uring.receive_more(&mut self.slots, conn);
            }
        }
    }
}

/// The event loop of one thread.
pub struct Reactor {
    io: Io,
}

/// The kernel charges rings to the user's limit of locked memory, and says no more than that memory is lacking.
fn refused(error: io::Error) -> io::Error {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOMEM) => "raise the limit of locked memory (`ulimit -l`), or use epoll",
        _ => "use epoll instead",
    };
    io::Error::new(error.kind(), format!("the kernel refuses io_uring ({error}); {remedy}"))
}

impl Reactor {
    /// Creates a reactor for the calling thread.
    ///
    /// # Errors
    /// The kernel refused the requested backend, or no memory or files are left.
    pub fn new(config: ReactorConfig) -> io::Result<Self> {
        let kernel = match config.backend {
            Backend::Epoll => Kernel::Epoll(Box::new(Epoll::new(config.buffer_size)?)),
            Backend::Uring => Kernel::Uring(Box::new(Uring::new(&config).map_err(refused)?)),
            // Seccomp profiles, sysctls and old kernels refuse io_uring in different ways. All of them mean epoll.
            Backend::Auto => match Uring::new(&config) {
                Ok(uring) => Kernel::Uring(Box::new(uring)),
                Err(_) => Kernel::Epoll(Box::new(Epoll::new(config.buffer_size)?)),
            },
        };
        Ok(Self { io: Io { kernel, slots: Slots::default(), routes: Vec::new(), kept: Vec::new() } })
    }

    /// The operations, for use outside an event.
    pub fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// Waits for at least one event or until `timeout`, and passes all available events to `handler`.
    ///
    /// # Errors
    /// The backend as a whole failed. The failure of a connection is an event.
    pub fn turn(&mut self, timeout: Duration, handler: &mut impl Handler) -> io::Result<()> {
        self.io.wait(timeout)?;
        while let Some((conn, done)) = self.io.next() {
            match done {
                Done::Accepted(listener) => handler.event(&mut self.io, conn, Event::Accepted(listener)),
                Done::Connected => handler.event(&mut self.io, conn, Event::Connected),
                Done::Sent(payload) => handler.event(&mut self.io, conn, Event::Sent(payload)),
                Done::Eof => handler.event(&mut self.io, conn, Event::Eof),
                Done::Failed(errno) => handler.event(&mut self.io, conn, Event::Failed(errno)),
                Done::Received(delivery) => {
                    // SAFETY: the backend owns these bytes and neither moves nor writes them until `recycle`
                    // below; `Io` offers no operation that reaches receive buffers.
                    let bytes = unsafe { std::slice::from_raw_parts(delivery.start, delivery.len) };
                    handler.event(&mut self.io, conn, Event::Received(bytes, delivery.age()));
                    self.io.recycle(conn, delivery);
                }
            }
        }
        Ok(())
    }

    /// Sleeps for `time`. No event wakes the thread; what arrives in the meantime carries its stamp.
    ///
    /// Returns false at once if something may happen that carries no stamp: a connect or a send whose event is pending, or
    /// anything with epoll. Messages must be smaller than a buffer: the rest of a longer one would stay in the socket, and
    /// in the end with the peer.
    pub fn sleep(&mut self, time: Duration) -> bool {
        let sleeps = match &mut self.io.kernel {
            Kernel::Uring(uring) => uring.may_sleep(),
            Kernel::Epoll(_) => false,
        };
        if sleeps {
            std::thread::sleep(time);
        }
        sleeps
    }
}
