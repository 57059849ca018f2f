//! Messages with their arrival times (`SO_TIMESTAMPNS`). A multishot `recvmsg` delivers a header, control messages and the
//! payload in one buffer.

use std::mem;

use io_uring::types::RecvMsgOut;

use crate::Delivery;

/// Room for one control message that contains one time.
// SAFETY: CMSG_SPACE is arithmetic.
const CONTROL: usize = unsafe { libc::CMSG_SPACE(size_of::<libc::timespec>() as u32) } as usize;

/// The header of a stamped receive. The kernel reads it when the receive begins.
pub(super) struct Stamps(Box<libc::msghdr>);

impl Default for Stamps {
    fn default() -> Self {
        // SAFETY: all-zero bytes are a valid msghdr: no name, no vectors, no flags.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_controllen = CONTROL as _;
        Self(Box::new(header))
    }
}

impl Stamps {
    pub(super) fn header(&self) -> *const libc::msghdr {
        &raw const *self.0
    }

    /// Reduces a delivery to its payload, and sets the arrival time if the kernel gave one. At the end of the stream the
    /// payload is empty.
    pub(super) fn unwrap(&self, delivery: &mut Delivery) {
        // SAFETY: the kernel wrote this many bytes into our buffer, and nobody else touches it before it is recycled.
        let all = unsafe { std::slice::from_raw_parts(delivery.start, delivery.len) };
        let Ok(parts) = RecvMsgOut::parse(all, &self.0) else {
            delivery.len = 0;
            return;
        };
        let payload = parts.payload_data();
        delivery.stamp = stamp(parts.control_data()).unwrap_or(0);
        delivery.start = payload.as_ptr();
        delivery.len = payload.len();
    }
}

/// The time in the only control message that was requested, in nanoseconds.
fn stamp(control: &[u8]) -> Option<u64> {
    let (head, time) = (size_of::<libc::cmsghdr>(), size_of::<libc::timespec>());
    let bytes = control.get(..head + time)?;
    // SAFETY: the slice has the length of both structures. They are plain numbers, and the reads need no alignment.
    let (head, time) = unsafe {
        let start = bytes.as_ptr();
        (
            start.cast::<libc::cmsghdr>().read_unaligned(),
            start.add(head).cast::<libc::timespec>().read_unaligned(),
        )
    };
    let ours = head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_TIMESTAMPNS;
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    ours.then(|| seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}
