//! Messages with the time of their arrival (`SO_TIMESTAMPNS`), as a multishot `recvmsg` delivers them: a header, control
//! messages and the bytes, in one buffer.

use std::mem;
use std::time::Duration;

use io_uring::types::RecvMsgOut;

use crate::Delivery;

/// Room for one control message with one time.
// SAFETY: CMSG_SPACE is arithmetic.
const CONTROL: usize = unsafe { libc::CMSG_SPACE(size_of::<libc::timespec>() as u32) } as usize;

/// What a stamped receive is asked for with; the kernel reads it when the receive begins.
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

    /// Leaves the bytes alone in a delivery, and the time of their arrival if the kernel gave it. None are left at the end of the stream.
    pub(super) fn unwrap(&self, delivery: &mut Delivery) {
        // SAFETY: so many bytes the kernel wrote into a buffer of ours, which nobody else touches before it is recycled.
        let all = unsafe { std::slice::from_raw_parts(delivery.start, delivery.len) };
        let Ok(parts) = RecvMsgOut::parse(all, &self.0) else {
            delivery.len = 0;
            return;
        };
        let payload = parts.payload_data();
        delivery.stamp = stamp(parts.control_data());
        delivery.start = payload.as_ptr();
        delivery.len = payload.len();
    }
}

/// The time in the only control message that was asked for.
fn stamp(control: &[u8]) -> Option<Duration> {
    let (head, time) = (size_of::<libc::cmsghdr>(), size_of::<libc::timespec>());
    let bytes = control.get(..head + time)?;
    // SAFETY: the lengths are those of the two structures, which are plain numbers and may lie anywhere.
    let (head, time) = unsafe {
        let start = bytes.as_ptr();
        (
            start.cast::<libc::cmsghdr>().read_unaligned(),
            start.add(head).cast::<libc::timespec>().read_unaligned(),
        )
    };
    let ours = head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_TIMESTAMPNS;
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    ours.then(|| Duration::new(seconds, nanos))
}
