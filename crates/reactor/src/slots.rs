//! The connections of a reactor: one slot each, reused, told apart by a generation.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::payload::Payload;

/// Names a connection of one reactor. A name whose connection is closed finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conn {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Conn {
    /// Small and reused: for tables beside the reactor's.
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

/// Generations take 24 bits beside an 8-bit operation code in 64 bits of user data.
const GENERATION_MASK: u32 = 0x00ff_ffff;

/// What a reactor keeps of a connection.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The descriptor; `None` where the kernel keeps the socket in the ring's own table, at the slot's index.
    fd: Option<OwnedFd>,
    generation: u32,
    /// Operations that the kernel still holds; the slot is not reused before they are back.
    pub(crate) pending: u8,
    /// The owner closed it: nothing more is reported.
    pub(crate) closing: bool,
    /// A multishot receive or accept, or an interest in reading, stands.
    pub(crate) reading: bool,
    /// Why the ring could not make its socket.
    pub(crate) errno: Option<i32>,
    /// It carries one exchange: receives are asked for one by one, so that none stands when it is closed.
    pub(crate) once: bool,
    /// It carries bulk, and wants the large buffers.
    pub(crate) bulk: bool,
    /// The standing receive has the large buffers.
    pub(crate) reading_bulk: bool,
    /// Its socket stamps what arrives.
    pub(crate) stamped: bool,
    /// It accepts connections.
    pub(crate) listening: bool,
    /// A connect is under way.
    pub(crate) connecting: bool,
    /// The payload being sent, and how much of it is with the kernel.
    pub(crate) payload: Option<(Payload, usize)>,
}

impl Slot {
    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.fd.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Whether some of the payload is not with the kernel yet.
    pub(crate) fn unsent(&self) -> bool {
        self.payload.as_ref().is_some_and(|(payload, done)| *done < payload.bytes().len())
    }

    /// The descriptor leaves the slot, to be closed by whoever took it.
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
        let mut slot = Slot {
            fd,
            generation: 0,
            pending: 0,
            closing: false,
            reading: false,
            errno: None,
            once: false,
            bulk: false,
            reading_bulk: false,
            stamped: false,
            listening: false,
            connecting: false,
            payload: None,
        };
        let index = match self.free.pop() {
            Some(index) => {
                slot.generation = self.slots[index as usize].generation;
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        Conn { index, generation: self.slots[index as usize].generation }
    }

    /// The descriptor of an open connection that has one.
    pub(crate) fn fd(&mut self, conn: Conn) -> Option<RawFd> {
        self.get(conn)?.fd()
    }

    /// The slot, unless its connection is closed or closing.
    pub(crate) fn get(&mut self, conn: Conn) -> Option<&mut Slot> {
        self.any(conn).filter(|slot| !slot.closing)
    }

    /// The slot, closing or not, of this generation.
    pub(crate) fn any(&mut self, conn: Conn) -> Option<&mut Slot> {
        self.slots.get_mut(conn.index()).filter(|slot| slot.generation == conn.generation)
    }

    /// The slot of a socket that could not be made is free again.
    pub(crate) fn discard(&mut self, conn: Conn) {
        if let Some(slot) = self.any(conn) {
            slot.closing = true;
            self.release(conn);
        }
    }

    /// The connection has a descriptor after all.
    pub(crate) fn give(&mut self, conn: Conn, fd: OwnedFd) {
        if let Some(slot) = self.any(conn) {
            slot.fd = Some(fd);
        }
    }

    /// Gives the slot back if it is closing and the kernel holds nothing of it.
    pub(crate) fn release(&mut self, conn: Conn) {
        if let Some(slot) = self.any(conn)
            && slot.closing
            && slot.pending == 0
        {
            slot.fd = None;
            slot.payload = None;
            // The name dies here; `insert` counts on from this generation.
            slot.generation = (slot.generation + 1) & GENERATION_MASK;
            self.free.push(conn.index);
        }
    }
}
