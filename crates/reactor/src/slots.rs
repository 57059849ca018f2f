//! The connections of a reactor. Each has a slot; slots are reused, and a generation tells their connections apart.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::payload::Payload;
use crate::uring::Piece;

/// The handle of a connection within one reactor. The handle of a closed connection is invalid, even when its slot is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conn {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Conn {
    /// The index of its slot. Indexes are small and reused, so callers can keep tables by index.
    pub fn index(self) -> usize {
        self.index as usize
    }

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation & GENERATION_MASK) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 & GENERATION_MASK }
    }
}

/// The 64 bits of user data hold an 8-bit operation code, a 24-bit generation and a 32-bit index.
const GENERATION_MASK: u32 = 0x00ff_ffff;

/// A reactor's state of one connection.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The descriptor; `None` if the socket is in the ring's own file table, at the slot's index.
    fd: Option<OwnedFd>,
    generation: u32,
    /// Operations that the kernel has not completed. The slot is not reused before they have completed.
    pub(crate) pending: u8,
    /// The owner has closed the connection: no more events are reported.
    pub(crate) closing: bool,
    /// A receive is pending, or epoll watches for reading.
    pub(crate) reading: bool,
    /// The owner wants nothing more for now: no receive begins before it asks for more.
    pub(crate) paused: bool,
    /// Why the ring could not create the socket.
    pub(crate) errno: Option<i32>,
    /// The connection carries one exchange. Receives are requested one by one, so that none is pending at the close.
    pub(crate) once: bool,
    /// The connection carries bulk data and wants the large buffers.
    pub(crate) bulk: bool,
    /// The pending receive uses the large buffers.
    pub(crate) reading_bulk: bool,
    /// The socket stamps what arrives.
    pub(crate) stamped: bool,
    /// The slot is a listener that accepts connections.
    pub(crate) listening: bool,
    /// A connect is under way.
    pub(crate) connecting: bool,
    /// The payload being sent, and how many bytes of it the kernel has taken.
    pub(crate) payload: Option<(Payload, usize)>,
    /// The payload is the rest of a post, of which the owner hears nothing.
    pub(crate) hidden: bool,
    /// What the owner sends behind it.
    pub(crate) next: Option<Payload>,
    /// Bytes that were posted and are not submitted, and those that were submitted last.
    pub(crate) post: Option<Piece>,
    pub(crate) posted: Option<Piece>,
}

impl Slot {
    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.fd.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Whether the kernel has not taken all of the payload yet.
    pub(crate) fn unsent(&self) -> bool {
        self.payload.as_ref().is_some_and(|(payload, done)| *done < payload.bytes().len())
    }

    /// Takes the descriptor out of the slot. The caller must close it.
    pub(crate) fn take_fd(&mut self) -> Option<OwnedFd> {
        self.fd.take()
    }
}

#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    pub(crate) fn insert(&mut self, fd: Option<OwnedFd>) -> Conn {
        let slot = Slot {
            fd,
            generation: 0,
            pending: 0,
            closing: false,
            reading: false,
            paused: false,
            errno: None,
            once: false,
            bulk: false,
            reading_bulk: false,
            stamped: false,
            listening: false,
            connecting: false,
            payload: None,
            hidden: false,
            next: None,
            post: None,
            posted: None,
        };
        let free = self.free.pop().and_then(|index| Some((index, self.slots.get_mut(index as usize)?)));
        let Some((index, old)) = free else {
            self.slots.push(slot);
            return Conn { index: (self.slots.len() - 1) as u32, generation: 0 };
        };
        let generation = old.generation;
        *old = Slot { generation, ..slot };
        Conn { index, generation }
    }

    /// The descriptor of an open connection, if it has one.
    pub(crate) fn fd(&mut self, conn: Conn) -> Option<RawFd> {
        self.get(conn)?.fd()
    }

    /// The slot of a connection that is neither closed nor closing.
    #[inline]
    pub(crate) fn get(&mut self, conn: Conn) -> Option<&mut Slot> {
        self.any(conn).filter(|slot| !slot.closing)
    }

    /// The slot of a connection that is not closed, but may be closing.
    #[inline]
    pub(crate) fn any(&mut self, conn: Conn) -> Option<&mut Slot> {
        self.slots.get_mut(conn.index()).filter(|slot| slot.generation == conn.generation)
    }

    /// Frees the slot of a socket that could not be created.
    pub(crate) fn discard(&mut self, conn: Conn) {
        if let Some(slot) = self.any(conn) {
            slot.closing = true;
            self.release(conn);
        }
    }

    /// Gives a descriptor to a connection that was inserted without one.
    pub(crate) fn give(&mut self, conn: Conn, fd: OwnedFd) {
        if let Some(slot) = self.any(conn) {
            slot.fd = Some(fd);
        }
    }

    /// Frees the slot if it is closing and the kernel has no operation of it left.
    pub(crate) fn release(&mut self, conn: Conn) {
        if let Some(slot) = self.any(conn)
            && slot.closing
            && slot.pending == 0
        {
            slot.fd = None;
            (slot.payload, slot.next) = (None, None);
            // The handle becomes invalid here; `insert` continues from this generation.
            slot.generation = (slot.generation + 1) & GENERATION_MASK;
            self.free.push(conn.index);
        }
    }
}
