//! Completion-based I/O, one loop per core: io_uring, with epoll where the kernel refuses it.
//!
//! A [`Reactor`] owns its sockets and buffers. A [`Handler`] is told what happened ([`Event`]) and answers through [`Io`]:
//! connect, send, half-close, close. Receiving needs no asking: every open connection delivers what arrives.
//! The reactor knows sockets and nothing of what travels in them. It belongs to one thread.

mod epoll;
mod payload;
mod slots;
mod socket;
mod thread;
mod time;
pub mod timers;
mod uring;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use payload::{Payload, Shared};
pub use slots::Conn;
pub use socket::{listener, unused};
pub use thread::{exact_timers, open_files, pin, thread_cpu};
pub use time::Time;

use epoll::Epoll;
use slots::Slots;
use socket::RawAddress;
use uring::Uring;

/// Which kernel interface carries the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// io_uring where the kernel has all of it, epoll otherwise.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// epoll.
    Epoll,
}

/// What a reactor is made with.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Which kernel interface.
    pub backend: Backend,
    /// Bytes of one receive buffer, for messages; see [`Io::expect_bulk`].
    pub buffer_size: u32,
    /// How many receive buffers all connections of this reactor share; a power of two.
    pub buffers: u16,
    /// Where the kernel can, what connections made by this reactor receive carries the time of its arrival, so that
    /// [`Reactor::sleep`] may leave it lying. A stamp costs some time at each message.
    pub stamps: bool,
}

impl Config {
    /// For many connections with small messages.
    pub const MESSAGES: Self =
        Self { backend: Backend::Auto, buffer_size: 1024, buffers: 2048, stamps: false };
    /// For few connections whose answers are small.
    pub const FEW: Self = Self { backend: Backend::Auto, buffer_size: 16 * 1024, buffers: 64, stamps: false };
}

/// What happened on a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// The listener of this name took this new connection.
    Accepted(Conn),
    /// The connection asked for is open.
    Connected,
    /// Bytes arrived, in order; the last of them this long ago, which is nothing where the kernel has not stamped them.
    Received(&'a [u8], Duration),
    /// The payload is with the kernel; it comes back for reuse.
    Sent(Payload),
    /// The peer will send no more. The connection can still send; it must be closed in the end.
    Eof,
    /// The connection is lost; its handler needs to close it. The number is the kernel's `errno`.
    Failed(i32),
}

/// How long a listener rests when no file was free: trying at once would burn a core.
const STALL: Duration = Duration::from_millis(10);

/// Told what happens; answers through [`Io`].
pub trait Handler {
    /// One event of one connection.
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>);
}

/// Bytes that the kernel delivered, valid until recycled.
#[derive(Clone, Copy)]
struct Delivery {
    start: *const u8,
    len: usize,
    buffer: u16,
    bulk: bool,
    /// When the last byte arrived, by the clock of the day, which is the kernel's for this.
    stamp: Option<Duration>,
}

impl Delivery {
    /// How long ago it arrived. A clock that is set while a message lies there spoils the age of that one.
    fn age(&self) -> Duration {
        let Some(stamp) = self.stamp else { return Duration::ZERO };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(stamp)
    }
}

/// One finished operation, as a backend reports it.
enum Done {
    Accepted(Conn),
    Connected,
    Received(Delivery),
    Sent(Payload),
    Eof,
    Failed(i32),
}

/// The operations of a reactor. All of them take effect at the latest when the loop turns; their
/// failures arrive as [`Event::Failed`].
pub struct Io {
    // First, so that its end begins before what it may read is freed.
    kernel: Kernel,
    slots: Slots,
    /// Addresses that connections are made to; counted, because the kernel reads them later, wherever the vector moved.
    addresses: Vec<Rc<RawAddress>>,
    /// Bytes that the kernel may read at any time.
    kept: Vec<Shared>,
}

enum Kernel {
    Uring(Box<Uring>),
    Epoll(Box<Epoll>),
}

/// What a connection is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// Any traffic.
    Anything,
    /// One small send and its answer: the kernel makes the socket by itself, and nothing stands when it is closed.
    OneExchange,
}

/// An address prepared once and connected to many times.
#[derive(Debug, Clone, Copy)]
pub struct AddressId(usize);

impl Io {
    /// Prepares an address to connect to.
    pub fn address(&mut self, address: SocketAddr) -> AddressId {
        self.addresses.push(Rc::new(RawAddress::new(address)));
        AddressId(self.addresses.len() - 1)
    }

    /// Begins a connection; [`Event::Connected`] or [`Event::Failed`] follows.
    ///
    /// # Errors
    /// The socket could not be made: out of files or memory.
    pub fn connect(&mut self, to: AddressId, carries: Carries) -> io::Result<Conn> {
        let address = &self.addresses[to.0];
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.connect(&mut self.slots, address, carries),
            Kernel::Epoll(epoll) => epoll.connect(&mut self.slots, address),
        }
    }

    /// Bytes that are sent again and again, and stay for the reactor's life: if they are no longer than [`Io::SILENT`] as a whole,
    /// payloads of them are sent without an [`Event::Sent`] where the kernel can do so.
    pub fn keep(&mut self, shared: &Shared) {
        self.kept.push(shared.clone());
    }

    /// The most bytes that are sent in silence: less than any socket's buffer, so that silent sends keep their order.
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

    /// Sends `payload`; [`Event::Sent`] brings it back if the answer is true, nothing does if it is false. One payload at a
    /// time per connection: a second one before that event is refused and given back.
    pub fn send(&mut self, conn: Conn, payload: Payload) -> Result<bool, Payload> {
        if let (Payload::Shared(shared, _), Kernel::Uring(uring)) = (&payload, &mut self.kernel) {
            let free = self.slots.get(conn).is_some_and(|slot| slot.payload.is_none());
            // Of the whole, of which several parts may be under way at once.
            let small = shared.bytes().len() <= Self::SILENT;
            if free && small && self.kept.iter().any(|kept| kept.same(shared)) {
                uring.send_silently(&mut self.slots, conn, payload.bytes());
                return Ok(false);
            }
        }
        match self.slots.get(conn) {
            Some(slot) if slot.payload.is_none() => slot.payload = Some((payload, 0)),
            _ => return Err(payload),
        }
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.send(&mut self.slots, conn),
            Kernel::Epoll(epoll) => epoll.send(&mut self.slots, conn),
        }
        Ok(true)
    }

    /// Says that much will be received on this connection: worth larger buffers.
    pub fn expect_bulk(&mut self, conn: Conn) {
        let Some(slot) = self.slots.get(conn) else { return };
        if !std::mem::replace(&mut slot.bulk, true)
            && let Kernel::Uring(uring) = &mut self.kernel
        {
            uring.rebuffer(&mut self.slots, conn);
        }
    }

    /// Says that nothing more will be sent; receiving goes on. Call it when no send is under way: after the last
    /// [`Event::Sent`], and not behind silent sends.
    pub fn half_close(&mut self, conn: Conn) {
        match (self.slots.fd(conn), &mut self.kernel) {
            (Some(fd), _) => socket::shutdown_write(fd),
            (None, Kernel::Uring(uring)) => uring.half_close(&mut self.slots, conn),
            (None, Kernel::Epoll(_)) => {}
        }
    }

    /// Closes the connection; no more events come for it.
    pub fn close(&mut self, conn: Conn) {
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.close(&mut self.slots, conn),
            Kernel::Epoll(epoll) => epoll.close(&mut self.slots, conn),
        }
    }

    /// `io_uring` or `epoll`.
    pub fn backend(&self) -> &'static str {
        match &self.kernel {
            Kernel::Uring(_) => "io_uring",
            Kernel::Epoll(_) => "epoll",
        }
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.wait(&mut self.slots, timeout),
            Kernel::Epoll(epoll) => epoll.wait(timeout),
        }
    }

    fn next(&mut self) -> Option<(Conn, Done)> {
        match &mut self.kernel {
            Kernel::Uring(uring) => uring.next(&mut self.slots),
            Kernel::Epoll(epoll) => epoll.next(&mut self.slots),
        }
    }

    fn recycle(&mut self, conn: Conn, delivery: Delivery) {
        if let Kernel::Uring(uring) = &mut self.kernel {
            uring.recycle(delivery);
            uring.receive_more(&mut self.slots, conn);
        }
    }
}

/// The loop of one core.
pub struct Reactor {
    io: Io,
}

impl Reactor {
    /// A reactor for the calling thread.
    ///
    /// # Errors
    /// The kernel refused the interface asked for, or it is out of memory or files.
    pub fn new(config: Config) -> io::Result<Self> {
        let kernel = match config.backend {
            Backend::Epoll => Kernel::Epoll(Box::new(Epoll::new(config.buffer_size)?)),
            Backend::Uring => Kernel::Uring(Box::new(Uring::new(&config)?)),
            // Seccomp profiles, sysctls and old kernels refuse io_uring in different ways; all mean the same here.
            Backend::Auto => match Uring::new(&config) {
                Ok(uring) => Kernel::Uring(Box::new(uring)),
                Err(_) => Kernel::Epoll(Box::new(Epoll::new(config.buffer_size)?)),
            },
        };
        Ok(Self { io: Io { kernel, slots: Slots::default(), addresses: Vec::new(), kept: Vec::new() } })
    }

    /// The operations, for use outside of an event.
    pub fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// Waits for at least one event, or for `timeout`, and hands every event at hand to `handler`.
    ///
    /// # Errors
    /// The kernel's interface failed as a whole; single connections fail as events.
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

    /// Lets `time` pass, in which nothing is heard of and nothing wakes this thread: what arrives meanwhile carries its stamp.
    /// False, and at once, where something may happen that has none: a connection that is being made, a send that is
    /// waited for, all that epoll tells of. Messages must be smaller than a buffer: the rest of a longer one would stay in the
    /// socket, and in the end with the peer.
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
