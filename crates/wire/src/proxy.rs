//! The header of the PROXY protocol, versions 1 and 2: what a proxy says first on a connection, so that the server behind it
//! knows whose connection it is (proxy-protocol.txt of HAProxy).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The version of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    One,
    /// Bytes of fixed places.
    Two,
}

/// The bytes with which every header of version 2 begins.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, and a connection that is made on behalf of someone.
const PROXY: u8 = 0x21;
/// Version 2, and a connection of the proxy's own.
const LOCAL: u8 = 0x20;
/// A stream over IPv4.
const TCP4: u8 = 0x11;
/// A stream over IPv6.
const TCP6: u8 = 0x21;

/// The header of a connection that came from `source` and was made to `destination`. Without them it says that they are not
/// known: version 1 says `UNKNOWN`, and version 2 says `LOCAL`.
pub fn header(version: Version, ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    match version {
        Version::One => line(ends).into_bytes(),
        Version::Two => bytes(ends),
    }
}

/// Two addresses of one family. If only one is of IPv4, it has the form of IPv6.
enum Pair {
    V4([u8; 8]),
    V6([u8; 32]),
}

fn pair(source: IpAddr, destination: IpAddr) -> Pair {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut both = [0; 8];
            both[..4].copy_from_slice(&source.octets());
            both[4..].copy_from_slice(&destination.octets());
            Pair::V4(both)
        }
        (source, destination) => {
            let mut both = [0; 32];
            both[..16].copy_from_slice(&v6(source).octets());
            both[16..].copy_from_slice(&v6(destination).octets());
            Pair::V6(both)
        }
    }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

fn line(ends: Option<(SocketAddr, SocketAddr)>) -> String {
    let Some((source, destination)) = ends else { return "PROXY UNKNOWN\r\n".to_owned() };
    let ports = format!("{} {}", source.port(), destination.port());
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            format!("PROXY TCP4 {source} {destination} {ports}\r\n")
        }
        (source, destination) => format!("PROXY TCP6 {} {} {ports}\r\n", v6(source), v6(destination)),
    }
}

fn bytes(ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(52);
    out.extend(SIGNATURE);
    let Some((source, destination)) = ends else {
        out.extend([LOCAL, 0, 0, 0]);
        return out;
    };
    match pair(source.ip(), destination.ip()) {
        Pair::V4(both) => {
            out.extend([PROXY, TCP4, 0, 12]);
            out.extend(both);
        }
        Pair::V6(both) => {
            out.extend([PROXY, TCP6, 0, 36]);
            out.extend(both);
        }
    }
    out.extend(source.port().to_be_bytes());
    out.extend(destination.port().to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(source: &str, destination: &str) -> Option<(SocketAddr, SocketAddr)> {
        Some((source.parse().expect(source), destination.parse().expect(destination)))
    }

    #[test]
    fn version_1_is_a_line() {
        for (ends, expected) in [
            (None, "PROXY UNKNOWN\r\n"),
            (
                ends("192.168.0.1:56324", "192.168.0.11:443"),
                "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
            ),
            (
                ends("[::1]:1", "[2001:db8::8a2e:370:7334]:80"),
                "PROXY TCP6 ::1 2001:db8::8a2e:370:7334 1 80\r\n",
            ),
            (ends("[fe80::1%3]:1", "[fe80::2%3]:2"), "PROXY TCP6 fe80::1 fe80::2 1 2\r\n"),
            (ends("127.0.0.1:1", "[::1]:2"), "PROXY TCP6 ::ffff:127.0.0.1 ::1 1 2\r\n"),
        ] {
            let header = header(Version::One, ends);
            assert_eq!(String::from_utf8_lossy(&header), expected);
            assert!(header.len() <= 107, "the longest that a reader must accept");
        }
    }

    #[test]
    fn version_2_has_fixed_places() {
        let v6: [&[u8]; 5] = [
            b"\x21\x21\x00\x24",
            &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0xff, 0xff],
            &[0x01, 0xbb],
        ];
        let mixed: [&[u8]; 4] = [
            b"\x21\x21\x00\x24",
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0, 1, 0, 2],
        ];
        for (ends, expected) in [
            (None, b"\x20\x00\x00\x00".to_vec()),
            (
                ends("192.168.0.1:56324", "10.0.0.11:443"),
                b"\x21\x11\x00\x0c\xc0\xa8\x00\x01\x0a\x00\x00\x0b\xdc\x04\x01\xbb".to_vec(),
            ),
            (ends("[2001:db8::5]:65535", "[::1]:443"), v6.concat()),
            (ends("127.0.0.1:1", "[::1]:2"), mixed.concat()),
        ] {
            let header = header(Version::Two, ends);
            let signature = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
            assert_eq!(header[..12], signature);
            assert_eq!(header[12..], expected);
            assert_eq!(usize::from(header[15]), header.len() - 16, "the length of the rest");
        }
    }
}
