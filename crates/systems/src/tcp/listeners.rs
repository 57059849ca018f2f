//! Which TCP sockets accept connections.
//!
//! sock_diag(7) lists them alone, in 20 us. The tables in `/proc/net` also list connections. To fill a page, the kernel walks its whole
//! table of connections, which takes 2.5 ms on a machine with 24 GiB of memory.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::diag;
use crate::unread;

/// The inodes of the sockets that accept TCP connections at this address and port.
pub(crate) fn listening(at: SocketAddr) -> HashSet<u64> {
    all().into_iter().filter(|listener| listener.accepts(at)).map(|listener| listener.inode).collect()
}

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) port: u16,
    pub(crate) inode: u64,
    /// Its address. One of IPv4 is never mapped to IPv6.
    pub(crate) address: IpAddr,
}

impl Listener {
    /// Whether it accepts connections at this address and port. A socket of all addresses does; one of IPv6 is taken to accept
    /// IPv4 too, because the tables in `/proc/net` do not say whether it refuses.
    pub(crate) fn accepts(&self, at: SocketAddr) -> bool {
        let all = self.address.is_unspecified() && (self.address.is_ipv6() || at.is_ipv4());
        self.port == at.port() && (all || self.address == at.ip().to_canonical())
    }
}

/// All listening TCP sockets, at any address.
pub(crate) fn all() -> Vec<Listener> {
    diag::listeners().unwrap_or_else(|_| of_tables())
}

/// The same from the kernel's tables, where it does not answer otherwise.
fn of_tables() -> Vec<Listener> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    tables.flat_map(|table| parse_listening(unread::lines(table))).collect()
}

/// Reads a table of sockets only as far as they listen. The kernel lists these first (its documentation says so). After
/// them it lists connections, and tens of thousands that linger after a trial took it more than 0.1 s.
fn parse_listening(table: impl Iterator<Item = String>) -> Vec<Listener> {
    const LISTEN: &str = "0A";
    let rows = table.skip(1).map_while(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (address, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (address, port) = address.rsplit_once(':')?;
        let (address, port) = (parse_address(address)?, u16::from_str_radix(port, 16).ok()?);
        (*state == LISTEN).then_some(Listener { port, inode: inode.parse().ok()?, address })
    });
    rows.collect()
}

/// Reads an address of such a table: one word, or four for IPv6, each in the order of the machine.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "there are four words of four bytes"
)]
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = std::array::from_fn(|index| words[index / 4][index % 4]);
            Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::holds;

    #[test]
    fn listening_sockets_are_read_up_to_the_first_other_one() {
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let row = |address: &str, state: &str, inode: u32| {
            format!(
                "   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"
            )
        };
        let (four, zero) = (word([127, 0, 0, 2]), word([0; 4]));
        let six = format!("{zero}{zero}{zero}{}", word([0, 0, 0, 1]));
        let mapped = format!("{zero}{zero}{}{four}", word([0, 0, 255, 255]));
        let listening = [(&four, 5), (&zero, 6), (&six, 7), (&mapped, 8)]
            .map(|(address, inode)| row(&format!("{address}:1F90"), "0A", inode))
            .concat();
        let text = format!(
            "  sl  local_address rem_address   st\n{listening}{}cut",
            row(&format!("{four}:1F90"), "06", 0)
        );
        let seen = parse_listening(text.lines().map(str::to_owned));
        let shown: Vec<_> = seen.iter().map(|seen| (seen.address.to_string(), seen.inode)).collect();
        let expected = [("127.0.0.2", 5), ("0.0.0.0", 6), ("::1", 7), ("127.0.0.2", 8)];
        assert_eq!(shown, expected.map(|(address, inode)| (address.to_owned(), inode)));
        for (at, accepting) in [
            ("127.0.0.2:8080", &[5, 6, 8][..]),
            ("127.0.0.1:8080", &[6]),
            ("[::1]:8080", &[7]),
            ("127.0.0.2:8081", &[]),
        ] {
            let accepts = seen.iter().filter(|seen| seen.accepts(at.parse().unwrap()));
            assert_eq!(accepts.map(|seen| seen.inode).collect::<Vec<_>>(), accepting, "{at}");
        }
        let all_of_v6 = Listener { port: 80, inode: 0, address: Ipv6Addr::UNSPECIFIED.into() };
        assert!(all_of_v6.accepts("127.0.0.1:80".parse().unwrap()));
        assert_eq!(parse_listening(std::iter::empty()), []);
    }

    #[test]
    fn both_ways_find_the_same_sockets() {
        let bound = |at: &str| std::net::TcpListener::bind(at).ok();
        let mine: Vec<_> =
            ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"].into_iter().filter_map(bound).collect();
        let (listed, read) = (diag::listeners().expect("sock_diag"), of_tables());
        for listener in &mine {
            let at = listener.local_addr().unwrap();
            let find = |all: &[Listener]| all.iter().find(|found| found.port == at.port()).copied();
            let found = find(&listed).expect("it is listed");
            assert_eq!((Some(found), found.address), (find(&read), at.ip()));
            let inodes = listening(at);
            assert!(inodes.contains(&found.inode));
            assert!(holds(std::process::id(), &inodes) && !holds(1, &inodes));
        }
        assert!(!mine.is_empty());
    }
}
