//! Whether this machine has room for the connections of a trial: files, ports, memory, and the queue of a listening socket. Ports
//! of connections that are closed (TIME_WAIT) are no limit: they are kept from the same server only, and each trial's server has
//! a new port.
//!
//! Reads the machine's limits. What they allow is decided by values.

use std::net::{IpAddr, Ipv4Addr};

use systems::{Listening, Work, machine};

/// Files of a process besides its connections.
const OTHER_FILES: u64 = 64;
/// The least memory that a connection takes at both of its ends together, in bytes. 60,000 idle ones took 12 KB each.
const CONNECTION_BYTES: u64 = 8 << 10;

/// Addresses of this machine that connections to one of its loopback addresses may come from: 127.0.0.1 to 127.0.0.254.
const SOURCES: u8 = 254;

/// The addresses from which so many connections go to this address, in turn. Empty if the kernel chooses: it is slow only when half
/// of the ports of an address are taken.
pub(super) fn sources(connections: u64, to: IpAddr, ports: u64) -> Vec<IpAddr> {
    let loopback = matches!(to, IpAddr::V4(to) if to.is_loopback());
    if !loopback || ports == 0 || connections.saturating_mul(2) <= ports {
        return Vec::new();
    }
    let addresses =
        u8::try_from(connections.saturating_mul(2).div_ceil(ports)).unwrap_or(u8::MAX).min(SOURCES);
    (1..=addresses).map(|last| Ipv4Addr::new(127, 0, 0, last).into()).collect()
}

/// How many addresses of this machine connections to this server can come from: [several](sources) only to 127.0.0.0/8, and none if
/// it has a Unix socket. A server that is not known yet finds its own port of 127.0.0.1.
pub(super) fn addresses(server: Option<&Listening>) -> u64 {
    match server {
        None | Some(Listening::Port(_)) => SOURCES.into(),
        Some(Listening::Address(address)) if address.is_ipv4() && address.ip().is_loopback() => {
            SOURCES.into()
        }
        Some(Listening::Address(_)) => 1,
        Some(Listening::Socket(_)) => 0,
    }
}

/// What there is of each limit; 0 where the kernel does not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Open files of Narrows. Systems have as many.
    pub(super) files: u64,
    /// Local ports for connections to one address.
    pub(super) ports: u64,
    /// Memory that programs can still get, in bytes.
    pub(super) memory: u64,
    /// Connections that may wait to be accepted.
    pub(super) backlog: u64,
}

impl Room {
    pub(super) fn read() -> Self {
        Self {
            files: machine::file_limit(),
            ports: machine::ports(),
            memory: machine::available_memory(),
            backlog: machine::backlog(),
        }
    }

    /// What there is too little of for this work, and how to get more. `addresses` are those of this machine from which connections
    /// [can come](addresses).
    pub(super) fn lacks(&self, work: &Work, addresses: u64) -> Option<String> {
        let connections = work.connections();
        let lacks = |there_is: u64, needed: u64| there_is > 0 && there_is < needed;
        let files = connections.saturating_add(OTHER_FILES);
        if lacks(self.files, files) {
            let limit = self.files;
            return Some(format!(
                "{connections} connections need {files} open files, and the limit is {limit}: raise it with `ulimit -n {files}` \
                 (as root: `ulimit -Hn {files}` first), or ask for fewer"
            ));
        }
        // A client chooses its addresses itself, and has one.
        let addresses = if matches!(work, Work::Clients(_)) { addresses.min(1) } else { addresses };
        let ports = self.ports.saturating_mul(addresses);
        if addresses > 0 && lacks(ports, connections) {
            return Some(format!(
                "{connections} connections to one address need as many local ports, and there are {ports}: widen \
                 net.ipv4.ip_local_port_range (`sysctl -w net.ipv4.ip_local_port_range='1024 65535'`), or ask for fewer"
            ));
        }
        let memory = connections.saturating_mul(CONNECTION_BYTES);
        if lacks(self.memory, memory) {
            let (needed, free) = (memory >> 20, self.memory >> 20);
            return Some(format!(
                "{connections} connections need {needed} MB of memory at least, and {free} MB are free: end other programs, \
                 or ask for fewer"
            ));
        }
        None
    }

    /// What a person should know before trials with so many connections begin.
    pub(super) fn caution(&self, connections: u64) -> Option<String> {
        let backlog = self.backlog;
        (backlog > 0 && connections > backlog).then(|| {
            format!(
                "{connections} connections are opened at once, and only {backlog} may wait to be accepted: where a system accepts \
                 slowly, some open a second later; `sysctl -w net.core.somaxconn={connections}` gives them room if the \
                 system asks for it"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use systems::{Point, Value, Workload};

    use super::*;
    use crate::observation::Scenario;

    fn work(workload: Workload, knobs: &[(&str, i64)]) -> Work {
        let knobs = knobs.iter().map(|(name, value)| ((*name).to_owned(), Value::Integer(*value)));
        let scenario = Scenario::new("e", "s", workload, knobs.collect::<Point>()).expect("its knobs");
        *scenario.work()
    }

    #[test]
    fn each_limit_is_named_with_what_is_needed_and_the_remedy() {
        let work = work(Workload::Requests, &[("connections", 60_000)]);
        let room = Room { files: 100_000, ports: 64_512, memory: 1 << 30, backlog: 4096 };
        assert_eq!(room.lacks(&work, 1), None);
        let lacks = |room: Room, words: &[&str]| {
            let said = room.lacks(&work, 1).expect("it lacks something");
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        };
        lacks(Room { files: 20_000, ..room }, &["60064 open files", "20000", "ulimit -Hn 60064"]);
        lacks(Room { ports: 28_232, ..room }, &["28232", "sysctl -w net.ipv4.ip_local_port_range"]);
        // The generator's connections come from several addresses.
        assert_eq!(Room { ports: 28_232, ..room }.lacks(&work, 254), None);
        lacks(Room { memory: 100 << 20, ..room }, &["468 MB", "100 MB are free"]);
        // A Unix socket has no ports, and what is unknown is not too little.
        assert_eq!(Room { ports: 100, ..room }.lacks(&work, 0), None);
        assert_eq!(Room { files: 0, ports: 0, memory: 0, backlog: 0 }.lacks(&work, 1), None);
    }

    #[test]
    fn connections_are_those_of_all_pools() {
        let clients = work(Workload::Clients, &[("pools", 3), ("pool_size", 10_000)]);
        let room = Room { files: 20_000, ports: 0, memory: 0, backlog: 128 };
        let said =
            Room { ports: 28_232, files: 0, ..room }.lacks(&clients, 254).expect("a client has one address");
        assert!(said.contains("there are 28232"), "{said}");
        assert!(room.caution(129).is_some_and(|said| said.contains("net.core.somaxconn=129")));
        assert_eq!(room.caution(128), None);
    }

    #[test]
    fn many_connections_come_from_several_addresses() {
        let number =
            |connections, to: &str, ports| sources(connections, to.parse().expect("an address"), ports).len();
        assert_eq!(number(14_116, "127.0.0.1", 28_232), 0);
        assert_eq!(number(14_117, "127.0.0.1", 28_232), 2);
        assert_eq!(number(60_000, "127.0.0.1", 28_232), 5);
        assert_eq!(number(u64::MAX, "127.0.0.1", 1), 254);
        assert_eq!(number(60_000, "127.0.0.1", 0), 0);
        assert_eq!(number(60_000, "::1", 28_232), 0);
        assert_eq!(number(60_000, "10.0.0.1", 28_232), 0);
        assert_eq!(
            sources(2, IpAddr::from([127, 0, 0, 9]), 2),
            [[127, 0, 0, 1], [127, 0, 0, 2]].map(IpAddr::from)
        );
    }
}
