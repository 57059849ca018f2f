//! TCP ports of this machine: finds free ones, and finds who listens on the others.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::listening::Listening;
use crate::proc;
use crate::tcp::listeners;
use crate::tree::Tree;

const FIRST: u32 = 10_000;
/// How many ports a run reserves. Using each once takes longer than the 60 s for which a closed connection lingers.
const BLOCK: u32 = 256;

/// A port on which nobody listens at the usual address.
pub fn free_port() -> io::Result<u16> {
    free_port_at(Listening::USUAL)
}

/// A port on which nobody listens at this address.
///
/// It lies below the range of local ports, if there is room. Otherwise one of the generator's own connections could
/// occupy it before the server binds. Ports are used in turn, so that a server does not meet the lingering connections
/// of the last trial.
pub fn free_port_at(address: IpAddr) -> io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static CLAIMED: OnceLock<Option<Block>> = OnceLock::new();
    let blocks = ephemeral_start().saturating_sub(FIRST) / BLOCK;
    if let Some(block) = CLAIMED.get_or_init(|| Block::claim(blocks)) {
        for _ in 0..BLOCK {
            #[expect(clippy::arithmetic_side_effects, reason = "no block ends behind the last port")]
            let offset = block.number * BLOCK + NEXT.fetch_add(1, Ordering::Relaxed) % BLOCK;
            if let Ok(port) = u16::try_from(FIRST.saturating_add(offset))
                && port_free((address, port).into())
            {
                return Ok(port);
            }
        }
    }
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}

/// A block of ports that no other run uses. Without it two runs at the same time could choose the same free port before
/// their servers bind it.
struct Block {
    number: u32,
    /// A socket bound to the block's name. The kernel gives a name to one process at a time, and frees it when that
    /// process ends, however it ends.
    _held: UnixDatagram,
}

impl Block {
    /// Claims the first free one of `count` blocks. Each process begins its search at a different place.
    fn claim(count: u32) -> Option<Self> {
        let begin = std::process::id();
        (0..count).find_map(|n| {
            let number = begin.wrapping_add(n).checked_rem(count)?;
            let name = UnixAddr::from_abstract_name(format!("narrows-ports-{number}")).ok()?;
            let _held = UnixDatagram::bind_addr(&name).ok()?;
            Some(Self { number, _held })
        })
    }
}

fn ephemeral_start() -> u32 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_ascii_whitespace().next().and_then(|low| low.parse().ok()).unwrap_or(32_768)
}

/// Whether nobody holds exactly this address and port.
pub(crate) fn is_unheld(at: SocketAddr) -> bool {
    !TcpListener::bind(at).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Whether a server could listen there. At the usual address it may take ::1 as well, if this machine has it.
pub fn port_free(at: SocketAddr) -> bool {
    let free_at_v6 = || is_unheld((Ipv6Addr::LOCALHOST, at.port()).into());
    TcpListener::bind(at).is_ok() && (at.ip() != Listening::USUAL || free_at_v6())
}

/// The processes that hold a socket listening there. Other users' processes are visible only to root.
pub fn listeners(at: SocketAddr) -> Vec<u32> {
    let inodes = listeners::listening(at);
    if inodes.is_empty() { Vec::new() } else { holders(proc::pids(), &inodes) }
}

/// The processes that hold the Unix socket of this path, and listen on it.
pub(crate) fn listeners_at(path: &Path) -> Vec<u32> {
    let Ok(path) = path.canonicalize() else { return Vec::new() };
    let mut bound = proc::unix_listeners();
    bound.retain(|(_, at)| at.file_name() == path.file_name());
    let leads_there = |pid: &u32| {
        let held: HashSet<u64> = proc::sockets(*pid).collect();
        // A path that is not absolute was bound from the folder of its server.
        let whole = |at: &Path| proc::folder(*pid).unwrap_or_default().join(at).canonicalize().ok();
        bound.iter().any(|(inode, at)| held.contains(inode) && whole(at).as_ref() == Some(&path))
    };
    if bound.is_empty() { Vec::new() } else { proc::pids().filter(leads_there).collect() }
}

/// Who holds a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A process of the given tree.
    Own,
    /// Another process.
    Stranger,
    /// Not known: nobody listens, the socket changed hands, or processes came and went during the search. Ask again.
    Unsettled,
}

/// Finds out whether a process of this tree listens there.
pub(crate) fn holder(at: SocketAddr, tree: &Tree) -> Holder {
    let inodes = listeners::listening(at);
    if inodes.is_empty() {
        return Holder::Unsettled;
    }
    match tree.any(|pid| proc::holds(pid, &inodes)) {
        Some(true) => Holder::Own,
        // A server may close one listener and open another during the search. Only a socket that existed both before and after it
        // belongs to someone else.
        Some(false) if !listeners::listening(at).is_disjoint(&inodes) => Holder::Stranger,
        _ => Holder::Unsettled,
    }
}

/// The ports on which processes of this tree listen.
pub(crate) fn of_tree(tree: &Tree) -> BTreeSet<u16> {
    at_of_tree(tree).into_iter().map(|at| at.port()).collect()
}

/// The addresses and ports at which processes of this tree listen.
pub(crate) fn at_of_tree(tree: &Tree) -> BTreeSet<SocketAddr> {
    let held: HashSet<u64> = tree.members().into_iter().flat_map(proc::sockets).collect();
    let listeners = listeners::all().into_iter().filter(|listener| held.contains(&listener.inode));
    listeners.map(|listener| (listener.address, listener.port).into()).collect()
}

/// Whether processes of this tree listen on this port of `::1` and at no other address. Another program may have the port of
/// 127.0.0.1 then.
pub(crate) fn only_at_v6(port: u16, tree: &Tree) -> bool {
    let at_v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    // This is quicker than to read what each process holds.
    if !listeners::all().iter().any(|listener| (listener.address, listener.port) == (at_v6.ip(), port)) {
        return false;
    }
    let mut own = at_of_tree(tree);
    own.retain(|at| at.port() == port);
    own == BTreeSet::from([at_v6])
}

fn holders(pids: impl Iterator<Item = u32>, inodes: &HashSet<u64>) -> Vec<u32> {
    pids.filter(|pid| proc::holds(*pid, inodes)).collect()
}

/// Who listens there, as messages show it: "process 17 (nginx)".
pub(crate) fn owner(at: SocketAddr) -> String {
    match listeners(at).first() {
        Some(pid) => format!("process {pid} ({})", proc::name(*pid)),
        None => "another user's process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::wait::poll;

    /// Whether something comes true soon. A child that another test is just starting has the sockets of this process, too, until it
    /// executes its program.
    fn soon(comes_true: impl FnMut() -> bool) -> bool {
        poll(Instant::now() + Duration::from_secs(60), comes_true)
    }

    #[test]
    fn no_two_runs_have_the_same_block() {
        // Far more blocks than there are ports, so that running programs do not interfere.
        let count = 1 << 22;
        let blocks: Vec<Block> = (0..3).filter_map(|_| Block::claim(count)).collect();
        let numbers: HashSet<u32> = blocks.iter().map(|block| block.number).collect();
        assert_eq!((blocks.len(), numbers.len()), (3, 3));
        let first = numbers.iter().min().copied().expect("three");
        drop(blocks);
        let name = UnixAddr::from_abstract_name(format!("narrows-ports-{first}")).expect("a name");
        assert!(soon(|| UnixDatagram::bind_addr(&name).is_ok()), "it is given back");
        assert!(Block::claim(0).is_none());
    }

    #[test]
    fn a_listener_belongs_to_its_tree_or_to_a_stranger() {
        let (tree, none) = (Tree::around_us(), Tree::empty());
        for address in ["127.0.0.1", "127.0.0.2"] {
            let address: IpAddr = address.parse().unwrap();
            let at = SocketAddr::from((address, free_port_at(address).unwrap()));
            let listener = TcpListener::bind(at).unwrap();
            assert_eq!(holder(at, &tree), Holder::Own);
            assert!(at_of_tree(&tree).contains(&at) && of_tree(&tree).contains(&at.port()));
            assert!(at_of_tree(&none).is_empty());
            assert_eq!(holder(at, &none), Holder::Stranger);
            let elsewhere = SocketAddr::from(([127, 0, 0, 3], at.port()));
            assert_eq!(holder(elsewhere, &tree), Holder::Unsettled, "nobody listens there");
            drop(listener);
            assert!(soon(|| holder(at, &tree) == Holder::Unsettled));
        }
    }

    #[test]
    fn free_ports_are_free_and_taken_ones_are_not() {
        let port = free_port().unwrap();
        assert_ne!(port, free_port().unwrap());
        let usual = Listening::usual(port);
        let elsewhere = SocketAddr::from(([127, 0, 0, 2], port));
        let listener = TcpListener::bind(usual).unwrap();
        assert!(!port_free(usual) && port_free(elsewhere));
        assert!(listeners(usual).contains(&std::process::id()) && listeners(elsewhere).is_empty());
        let released = |listener: TcpListener, at| {
            drop(listener);
            assert!(soon(|| is_unheld(at)), "{at} is free again");
        };
        released(listener, usual);
        let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], port))).unwrap();
        assert!(!port_free(usual) && !port_free(elsewhere));
        assert!(listeners(elsewhere).contains(&std::process::id()));
        released(listener, elsewhere);
        let (tree, none) = (Tree::around_us(), Tree::empty());
        if let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, port)) {
            assert!(!port_free(usual) && port_free(elsewhere));
            assert!(only_at_v6(port, &tree) && !only_at_v6(port, &none));
            let both = TcpListener::bind(usual).unwrap();
            assert!(!only_at_v6(port, &tree));
            released(both, usual);
            assert!(listeners((Ipv6Addr::LOCALHOST, port).into()).contains(&std::process::id()));
            drop(listener);
        }
    }
}
