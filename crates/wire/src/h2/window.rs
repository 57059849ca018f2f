//! Flow control (RFC 9113 section 5.2): what may be sent, and what may arrive.

use super::{Broken, Code, LARGEST_WINDOW};

/// What the peer lets us send, on a stream or on the connection. A change of settings may make it negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of this many bytes.
    #[must_use]
    pub fn new(bytes: u32) -> Self {
        Self(i64::from(bytes))
    }

    /// How many of `wanted` bytes may be sent now.
    #[must_use]
    pub fn allows(self, wanted: u64) -> u64 {
        u64::try_from(self.0).unwrap_or(0).min(wanted)
    }

    /// Bytes are sent, no more than it allows.
    pub fn take(&mut self, bytes: u64) {
        self.0 = self.0.saturating_sub_unsigned(bytes);
    }

    /// The peer lets us send more, or fewer.
    ///
    /// # Errors
    /// The window would be larger than the largest.
    pub fn change(&mut self, by: i64) -> Result<(), Broken> {
        self.0 = self.0.saturating_add(by);
        if self.0 > i64::from(LARGEST_WINDOW) {
            return Err(Broken::new(Code::FLOW_CONTROL_ERROR, "a window becomes larger than it may be"));
        }
        Ok(())
    }
}

/// What we let the peer send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    size: u32,
    left: u32,
}

impl ReceiveWindow {
    /// A window of this many bytes.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self { size, left: size }
    }

    /// Whether the peer was allowed to send so many bytes.
    #[inline]
    #[must_use]
    pub fn has_room(&self, bytes: u32) -> bool {
        bytes <= self.left
    }

    /// Bytes of DATA frames arrived, with their padding.
    ///
    /// # Errors
    /// The peer was not allowed to send so many.
    #[inline]
    pub fn receive(&mut self, bytes: u32) -> Result<(), Broken> {
        let over = Broken::new(Code::FLOW_CONTROL_ERROR, "more DATA arrives than the window allows");
        self.left = self.left.checked_sub(bytes).ok_or(over)?;
        Ok(())
    }

    /// By how much to open it again, if it is worth a frame: half of it is used.
    #[inline]
    pub fn due(&mut self) -> Option<u32> {
        if self.left > self.size / 2 {
            return None;
        }
        let used = self.size.saturating_sub(self.left);
        self.left = self.size;
        (used > 0).then_some(used)
    }
}
