//! Lists TCP sockets through netlink (sock_diag(7), netlink(7)).
//!
//! The kernel's structures are read by their offsets, which never change: later kernels only append fields. A field that
//! the kernel's answer is too short for is absent.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{netlink, recv, send, socket_with};

use super::TcpEnd;
use super::listeners::Listener;

/// One socket of a connection to the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    /// Whether it is the server's end.
    pub(super) of_server: bool,
    /// What it did since it was opened.
    pub(super) did: TcpEnd,
}

/// Sockets by the kernel's number for each, which no two sockets ever share.
pub(super) type Sockets = HashMap<u64, Socket>;

/// A netlink socket that asks the kernel which sockets there are.
#[derive(Debug)]
struct SockDiag {
    netlink: OwnedFd,
    buffer: Vec<u8>,
}

/// The kernel's answers have at most this many bytes each.
const ANSWER: usize = 64 << 10;
/// The kernel answers at once. This only ensures that nothing waits for ever.
const PATIENCE: Duration = Duration::from_secs(1);

impl SockDiag {
    fn open() -> io::Result<Self> {
        let protocol = Some(netlink::SOCK_DIAG);
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&netlink, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { netlink, buffer: vec![0; ANSWER] })
    }

    /// Calls `each` for each socket of this family in one of these states, with its `struct inet_diag_msg` and these attributes, a bit for each.
    ///
    /// # Errors
    /// The kernel's. The rest of its answer may still come then.
    fn dump(
        &mut self,
        family: AddressFamily,
        states: u32,
        attributes: u8,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        send(&self.netlink, &request(family.as_raw(), states, attributes), SendFlags::empty())?;
        loop {
            let (length, _) = recv(&self.netlink, self.buffer.as_mut_slice(), RecvFlags::empty())?;
            if parse(self.buffer.get(..length).unwrap_or_default(), &mut each)? {
                return Ok(());
            }
        }
    }
}

/// Lists the connections of a port.
#[derive(Debug)]
pub(super) struct Listing {
    diag: SockDiag,
    port: u16,
}

impl Listing {
    pub(super) fn open(port: u16) -> io::Result<Self> {
        Ok(Self { diag: SockDiag::open()?, port })
    }

    /// Adds the connections' sockets as they are now, at either end and of either family.
    ///
    /// # Errors
    /// The kernel's. Later listings use a new netlink socket, because the rest of the old answer may still arrive.
    pub(super) fn read(&mut self, sockets: &mut Sockets) -> io::Result<()> {
        let listed = self.list(sockets);
        if listed.is_err() {
            *self = Self::open(self.port)?;
        }
        listed
    }

    fn list(&mut self, sockets: &mut Sockets) -> io::Result<()> {
        let mut found = Sockets::new();
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            // A listing takes the kernel milliseconds, however few it finds. The server's end of a connection may be of the
            // other family.
            if !found.values().any(|socket| socket.of_server) {
                self.diag.dump(family, CONNECTED, ACCOUNT, |message| {
                    found.extend(socket(message, self.port));
                })?;
            }
        }
        sockets.extend(found);
        Ok(())
    }
}

/// The sockets that listen, of either family.
///
/// # Errors
/// The kernel's: it may not have sock_diag.
pub(super) fn listeners() -> io::Result<Vec<Listener>> {
    let (mut diag, mut found) = (SockDiag::open()?, Vec::new());
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        diag.dump(family, LISTENING, 0, |message| found.extend(listener(message)))?;
    }
    Ok(found)
}

/// `SOCK_DIAG_BY_FAMILY`: a request, and each socket of its answer.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` and `NLM_F_DUMP`: all that match.
const DUMP: u16 = 0x301;
/// The types of messages that end an answer (netlink(7)).
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `INET_DIAG_INFO`, the attribute with `struct tcp_info`.
const INFO: u16 = 2;
/// `INET_DIAG_SKMEMINFO`, the attribute with the socket's memory: 32-bit numbers, of which the second is the size of its receive buffer
/// (`SK_MEMINFO_RCVBUF`).
const MEMORY: u16 = 7;
/// Both, as a request asks for them: a bit for each attribute, from 1.
const ACCOUNT: u8 = 1 << (INFO - 1) | 1 << (MEMORY - 1);
/// The states of sockets that have such an account: not `TIME_WAIT`, not `LISTEN`, not closed, not half open.
const CONNECTED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// `TCP_LISTEN`.
const LISTENING: u32 = 1 << 10;
const TCP: u8 = 6;

/// `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn request(family: u16, states: u32, attributes: u8) -> Vec<u8> {
    const LENGTH: usize = 72;
    let mut bytes = Vec::with_capacity(LENGTH);
    bytes.extend((LENGTH as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend([0; 8]); // sequence and sender
    bytes.extend([family as u8, TCP, attributes, 0]);
    bytes.extend(states.to_ne_bytes());
    bytes.resize(LENGTH, 0); // any port, any address, any interface, no cookie
    bytes
}

/// Calls `each` with each socket of a datagram. Returns whether it ends the answer.
///
/// # Errors
/// The kernel's, and a message that is cut short.
fn parse(mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<bool> {
    while !bytes.is_empty() {
        let header = Fields(bytes);
        let cut = || io::Error::from(io::ErrorKind::InvalidData);
        let (length, kind) = header.u32(0).zip(header.u16(4)).ok_or_else(cut)?;
        let body = bytes.get(16..length as usize).ok_or_else(cut)?;
        match kind {
            // A listing that fails may end with its error, too.
            DONE | ERROR => match Fields(body).u32(0).ok_or_else(cut)?.cast_signed() {
                0.. if kind == DONE => return Ok(true),
                code => return Err(io::Error::from_raw_os_error(code.saturating_neg())),
            },
            BY_FAMILY => each(body),
            _ => {}
        }
        bytes = bytes.get(aligned(length as usize)..).unwrap_or_default();
    }
    Ok(false)
}

/// Messages and attributes begin at multiples of four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// `struct inet_diag_msg` and its attributes. `None` if it has no account, or has the port at neither end.
fn socket(message: &[u8], port: u16) -> Option<(u64, Socket)> {
    let fields = Fields(message);
    let (from, to) = (fields.u16(4)?.to_be(), fields.u16(6)?.to_be());
    let of_server = from == port;
    // The other end counts only on this machine: the server's port may be usual elsewhere, too.
    let near = |at: usize| fields.at::<16>(at);
    let here = near(8) == near(24) || near(24).is_some_and(is_loopback);
    if !of_server && (to != port || !here) {
        return None;
    }
    let cookie = fields.u64(44)?;
    let (mut did, mut receive_buffer) = (None, None);
    let mut attributes = message.get(72..)?;
    while let Some((length, kind)) = Fields(attributes).u16(0).zip(Fields(attributes).u16(2)) {
        let value = attributes.get(4..usize::from(length))?;
        match kind {
            INFO => did = account(value),
            MEMORY => receive_buffer = Fields(value).u32(4).map(u64::from),
            _ => {}
        }
        attributes = attributes.get(aligned(length.into())..).unwrap_or_default();
    }
    Some((cookie, Socket { of_server, did: TcpEnd { receive_buffer, ..did? } }))
}

/// `struct inet_diag_msg` of a socket that listens. `None` if it is cut short.
fn listener(message: &[u8]) -> Option<Listener> {
    let fields = Fields(message);
    let address = match u16::from(*message.first()?) {
        family if family == AddressFamily::INET.as_raw() => IpAddr::from(fields.at::<4>(8)?),
        _ => IpAddr::from(fields.at::<16>(8)?).to_canonical(),
    };
    Some(Listener { port: fields.u16(4)?.to_be(), inode: fields.u32(68)?.into(), address })
}

/// Whether the 16 bytes of an address begin with 127, or are those of `::1` or of the former in the form of IPv6. An address
/// of IPv4 has four bytes, and zeros follow.
fn is_loopback(address: [u8; 16]) -> bool {
    let v6 = Ipv6Addr::from(address);
    let v4 = address[0] == 127 && address[4..] == [0; 12];
    v4 || v6.is_loopback() || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
}

/// `struct tcp_info`. `None` if it does not have the segments (before Linux 4.6).
fn account(info: &[u8]) -> Option<TcpEnd> {
    let fields = Fields(info);
    // Bytes sent less those sent again; before Linux 4.19, those that were acknowledged.
    let sent = fields.u64(200).zip(fields.u64(208)).map(|(sent, again)| sent.saturating_sub(again));
    Some(TcpEnd {
        sockets: 1,
        segments: fields.u32(136)?.into(),
        data_segments: fields.u32(156)?.into(),
        bytes: sent.or_else(|| fields.u64(120))?,
        retransmits: fields.u32(100)?.into(),
        busy_us: fields.u64(168),
        window_limited_us: fields.u64(176),
        buffer_limited_us: fields.u64(184),
        receive_buffer: None,
    })
}

/// Numbers of the machine's byte order at offsets. `None` behind the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..)?.first_chunk().copied()
    }

    fn u16(&self, offset: usize) -> Option<u16> {
        self.at(offset).map(u16::from_ne_bytes)
    }

    fn u32(&self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_ne_bytes)
    }

    fn u64(&self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(16, 0);
        bytes.extend(body);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    /// A socket from one port to another, with its cookie and its account.
    fn listed(family: u8, from: u16, to: u16, cookie: u64, info: &[u8]) -> Vec<u8> {
        let mut body = vec![family, 1, 0, 0];
        body.extend(from.to_be_bytes());
        body.extend(to.to_be_bytes());
        body.resize(44, 9);
        body.extend(cookie.to_ne_bytes());
        body.resize(72, 0);
        body.extend(attribute(8, &[0]));
        body.extend(attribute(INFO, info));
        body.extend(attribute(MEMORY, &[0_u32, 131_072, 0, 0].map(u32::to_ne_bytes).concat()));
        message(BY_FAMILY, &body)
    }

    /// An account of so many bytes, as long as the kernel's may be.
    fn info(length: usize) -> Vec<u8> {
        let mut info = vec![0; 280];
        let narrow = [(100, 3_u32), (136, 50), (156, 40)];
        let wide = [(120, 9_000_u64), (168, 1000), (176, 250), (184, 100), (200, 9_500), (208, 300)];
        narrow.iter().for_each(|(at, value)| info[*at..at + 4].copy_from_slice(&value.to_ne_bytes()));
        wide.iter().for_each(|(at, value)| info[*at..at + 8].copy_from_slice(&value.to_ne_bytes()));
        info.truncate(length);
        info
    }

    fn parsed(bytes: &[u8]) -> (io::Result<bool>, Sockets) {
        let mut sockets = Sockets::new();
        (parse(bytes, |message| sockets.extend(socket(message, 8080))), sockets)
    }

    #[test]
    fn sockets_of_both_ends_and_families_are_found() {
        let bytes = [
            listed(2, 8080, 40_000, 5, &info(280)),
            listed(10, 40_000, 8080, 6, &info(280)),
            listed(2, 22, 40_001, 7, &info(280)),
            message(DONE, &[0; 4]),
        ]
        .concat();
        let (last, sockets) = parsed(&bytes);
        let did = TcpEnd {
            sockets: 1,
            segments: 50,
            data_segments: 40,
            bytes: 9_200,
            retransmits: 3,
            busy_us: Some(1000),
            window_limited_us: Some(250),
            buffer_limited_us: Some(100),
            receive_buffer: Some(131_072),
        };
        assert!(last.unwrap());
        let expected = [(5, Socket { of_server: true, did }), (6, Socket { of_server: false, did })];
        assert_eq!(sockets, expected.into());
    }

    #[test]
    fn an_account_that_is_short_lacks_what_it_does_not_have() {
        let end = |length| account(&info(length));
        let busy = |length| end(length).map(|end| (end.bytes, end.busy_us, end.buffer_limited_us));
        assert_eq!(busy(280), Some((9_200, Some(1000), Some(100))));
        assert_eq!(busy(207), Some((9_000, Some(1000), Some(100))), "Linux 4.10");
        assert_eq!(busy(168), Some((9_000, None, None)), "Linux 4.9");
        assert_eq!(busy(160), Some((9_000, None, None)));
        assert_eq!((busy(156), busy(104), busy(0)), (None, None, None), "older");
    }

    #[test]
    fn what_is_cut_anywhere_is_an_error_or_has_fewer_sockets() {
        let whole = [listed(2, 8080, 1, 5, &info(280)), listed(2, 8080, 2, 6, &info(280))].concat();
        assert_eq!(parsed(&whole).1.len(), 2);
        for length in 0..whole.len() {
            let (last, sockets) = parsed(&whole[..length]);
            assert!(
                sockets.len() < 2
                    && last.is_ok_and(|last| !last) == (length == 0 || length == whole.len() / 2)
            );
        }
        // Lengths that lead nowhere.
        for wrong in [0, 3, 15, u32::MAX] {
            let mut bytes = whole.clone();
            bytes[..4].copy_from_slice(&wrong.to_ne_bytes());
            assert!(parsed(&bytes).0.is_err(), "{wrong}");
        }
        for wrong in [0, 3, u16::MAX] {
            let mut bytes = whole.clone();
            bytes[88..90].copy_from_slice(&wrong.to_ne_bytes());
            assert_eq!(parsed(&bytes).1.len(), 1, "{wrong}");
        }
    }

    #[test]
    fn the_kernels_errors_are_returned() {
        for kind in [ERROR, DONE] {
            let (error, _) = parsed(&message(kind, &(-libc::ENOENT).to_ne_bytes()));
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
            assert!(parsed(&message(kind, &[])).0.is_err());
        }
    }
}
