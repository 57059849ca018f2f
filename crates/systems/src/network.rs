//! The interface through which a machine's packets go, and what it does to them. Reads `/proc` and `/sys`, and asks `ethtool`
//! for the offloads if it is installed, because the kernel tells them to nobody else without privileged calls.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::subprocess;
use crate::wait::deadline_in;

/// The interface that a machine uses for its own addresses.
const LOOPBACK: &str = "lo";
/// How long `ethtool` may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The offloads that change how many packets there are, as `ethtool` names them, and their usual names.
const OFFLOADS: [(&str, &str); 4] = [
    ("tcp-segmentation-offload", "tso"),
    ("generic-segmentation-offload", "gso"),
    ("generic-receive-offload", "gro"),
    ("large-receive-offload", "lro"),
];

/// A network interface. What the machine does not say is absent, empty or zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The largest packet in bytes.
    pub mtu: u64,
    /// The speed of the link, if it has one.
    pub megabits_per_s: Option<u64>,
    /// Whether each offload is on. Empty where there is no `ethtool`.
    pub offloads: BTreeMap<String, bool>,
    /// The cores that handled its interrupts since the machine started, and the percentage of each. Empty if it has none.
    pub interrupts: BTreeMap<usize, u64>,
}

impl Interface {
    /// The interface that leads to an address. None if there is no way.
    pub fn towards(address: IpAddr) -> Option<Self> {
        let own = address.is_loopback() || UdpSocket::bind((address, 0)).is_ok();
        let name = if own { LOOPBACK.to_owned() } else { routed(address)? };
        Some(Self::read(&name))
    }

    /// The interface that has this address of the machine. None if it cannot be told.
    pub fn with(address: IpAddr) -> Option<Self> {
        let name = if address.is_loopback() { LOOPBACK.to_owned() } else { routed(address)? };
        Some(Self::read(&name))
    }

    fn read(name: &str) -> Self {
        let folder = Path::new("/sys/class/net").join(name);
        let number = |field: &str| -> Option<u64> {
            let text = fs::read_to_string(folder.join(field)).ok()?;
            text.trim().parse().ok()
        };
        let received = || number("statistics/rx_bytes");
        let (before, counted, after) = (received(), received_by(name), received());
        // `/sys` can be that of another network namespace, whose interface of this name is another one. Two that have received
        // nothing cannot be told apart.
        let ours = before.is_some_and(|bytes| bytes > 0) && before <= counted && counted <= after;
        Self {
            name: name.to_owned(),
            mtu: number("mtu").filter(|_| ours).or_else(|| mtu_of_ipv6(name)).unwrap_or(0),
            megabits_per_s: number("speed").filter(|speed| ours && *speed > 0),
            offloads: offloads(name),
            interrupts: if ours { interrupts_of(name, &folder) } else { BTreeMap::new() },
        }
    }
}

/// The bytes that an interface of this network namespace has received.
fn received_by(name: &str) -> Option<u64> {
    let table = fs::read_to_string("/proc/net/dev").ok()?;
    let mut interfaces = table.lines().filter_map(|line| line.trim().split_once(':'));
    let (_, counts) = interfaces.find(|(known, _)| *known == name)?;
    counts.split_ascii_whitespace().next()?.parse().ok()
}

/// The largest packet of IPv6 in this network namespace, which is that of the interface unless somebody has made it smaller.
fn mtu_of_ipv6(name: &str) -> Option<u64> {
    let file = Path::new("/proc/sys/net/ipv6/conf").join(name).join("mtu");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The cores that handle the interrupts of an interface that is a device; empty for others.
fn interrupts_of(name: &str, folder: &Path) -> BTreeMap<usize, u64> {
    let Ok(device) = fs::canonicalize(folder.join("device")) else { return BTreeMap::new() };
    let lists = [device.join("msi_irqs"), device.join("../msi_irqs")].map(fs::read_dir);
    let entries = lists.into_iter().flatten().flatten().flatten();
    let numbers: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let table = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    interrupts(&table, &numbers, &[Some(name), device.file_name().and_then(|name| name.to_str())])
}

/// The interface of the most specific route to an address in the kernel's main table. Rules of other tables are not read.
fn routed(address: IpAddr) -> Option<String> {
    match address {
        IpAddr::V4(address) => routed4(&fs::read_to_string("/proc/net/route").ok()?, address),
        IpAddr::V6(address) => routed6(&fs::read_to_string("/proc/net/ipv6_route").ok()?, address),
    }
}

/// A route that leads nowhere (`RTF_REJECT`).
const REJECT: u32 = 0x200;

fn routed4(table: &str, address: Ipv4Addr) -> Option<String> {
    let route = |line: &str| {
        // Iface Destination Gateway Flags RefCnt Use Metric Mask: hexadecimal, in the byte order of the machine.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let (destination, mask) = (hex(1)?.to_ne_bytes(), hex(7)?.to_ne_bytes());
        let (destination, mask) = (u32::from_be_bytes(destination), u32::from_be_bytes(mask));
        let leads = hex(3)? & REJECT == 0 && address.to_bits() & mask == destination;
        leads.then_some((mask.count_ones(), (*words.first()?).to_owned()))
    };
    best(table.lines().skip(1).filter_map(route))
}

fn routed6(table: &str, address: Ipv6Addr) -> Option<String> {
    let route = |line: &str| {
        // Destination, its length, source, its length, next hop, metric, references, uses, flags, interface: hexadecimal.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let destination = u128::from_str_radix(words.first()?, 16).ok()?;
        let hex = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let (length, flags, name) = (hex(1)?, hex(8)?, *words.get(9)?);
        let mask = u128::MAX.checked_shl(128u32.checked_sub(length)?).unwrap_or(0);
        let leads = flags & REJECT == 0 && address.to_bits() & mask == destination;
        leads.then(|| (length, name.to_owned()))
    };
    best(table.lines().filter_map(route))
}

/// The interface of the first of the longest routes.
fn best(routes: impl Iterator<Item = (u32, String)>) -> Option<String> {
    let longest = routes.reduce(|best, next| if next.0 > best.0 { next } else { best });
    longest.map(|(_, name)| name)
}

/// Asks `ethtool`. Empty if it is not installed or knows nothing.
fn offloads(name: &str) -> BTreeMap<String, bool> {
    let mut command = Command::new("ethtool");
    command.args(["-k", name]);
    match subprocess::capture(command, deadline_in(PATIENCE), &AtomicBool::new(false)) {
        Ok(said) if said.is_success() => read_offloads(&said.out),
        _ => BTreeMap::new(),
    }
}

fn read_offloads(said: &str) -> BTreeMap<String, bool> {
    let known = |line: &str| {
        let (feature, state) = line.trim().split_once(':')?;
        let (_, name) = OFFLOADS.into_iter().find(|(known, _)| *known == feature)?;
        // `off [fixed]` cannot be changed.
        Some((name.to_owned(), state.split_whitespace().next()? == "on"))
    };
    said.lines().filter_map(known).collect()
}

/// The share of each core in percent, of the lines of `/proc/interrupts` with these numbers or with a name that begins with one
/// of these.
fn interrupts(table: &str, numbers: &[String], names: &[Option<&str>]) -> BTreeMap<usize, u64> {
    let mut lines = table.lines();
    let core = |word: &str| word.strip_prefix("CPU")?.parse::<usize>().ok();
    let cores: Vec<usize> = lines.next().unwrap_or_default().split_whitespace().filter_map(core).collect();
    let is_ours = |number: &str, action: &str| {
        let named = |name: &str| {
            let rest = action.strip_prefix(name);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        numbers.iter().any(|known| known == number) || names.iter().flatten().any(|name| named(name))
    };
    let mut sums = vec![0u64; cores.len()];
    for line in lines {
        let Some((number, rest)) = line.trim().split_once(':') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        if words.len() <= cores.len() || !is_ours(number, words.last().copied().unwrap_or_default()) {
            continue;
        }
        for (sum, word) in sums.iter_mut().zip(&words) {
            *sum = sum.saturating_add(word.parse().unwrap_or(0));
        }
    }
    let all = sums.iter().fold(0u64, |all, sum| all.saturating_add(*sum)) as f64;
    let shares = cores.into_iter().zip(sums).filter(|(_, sum)| *sum > 0);
    let percent = shares.map(|(core, sum)| (core, (sum as f64 / all * 100.0).round() as u64));
    percent.filter(|(_, percent)| *percent > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_route_leads_to_an_address() {
        // As a machine with this byte order prints it.
        let hex = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
        let line = |name: &str, to: [u8; 4], mask: [u8; 4], flags: &str| {
            format!("{name}\t{}\t00000000\t{flags}\t0\t0\t0\t{}\t0\t0\t0\n", hex(to), hex(mask))
        };
        let table = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n".to_owned(),
            line("wan", [0, 0, 0, 0], [0, 0, 0, 0], "0003"),
            line("lan", [10, 1, 0, 0], [255, 255, 0, 0], "0001"),
            line("rack", [10, 1, 2, 0], [255, 255, 255, 0], "0001"),
            line("none", [10, 1, 2, 9], [255, 255, 255, 255], "0201"),
        ]
        .concat();
        for (address, name) in
            [([10, 1, 2, 3], "rack"), ([10, 1, 2, 9], "rack"), ([10, 1, 7, 3], "lan"), ([8, 8, 8, 8], "wan")]
        {
            assert_eq!(routed4(&table, address.into()).as_deref(), Some(name), "{address:?}");
        }
        assert_eq!(routed4("", [10, 1, 2, 3].into()), None);
        let zeros = "00000000000000000000000000000000";
        let table = format!(
            "fd000000000000010000000000000000 40 {zeros} 00 {zeros} 00000100 00000001 00000000 00000001     rack\n\
             {zeros} 00 {zeros} 00 {zeros} 00000400 00000001 00000000 00000003      wan\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n"
        );
        let to = |address: &str| routed6(&table, address.parse().expect("an address"));
        assert_eq!(
            (to("fd00:0:0:1::7").as_deref(), to("fd00:0:0:2::7").as_deref()),
            (Some("rack"), Some("wan"))
        );
    }

    #[test]
    fn interrupts_are_those_of_the_interface() {
        let table = "           CPU0       CPU1\n  1:          9          0  IO-APIC   1-edge      i8042\n \
                     24:         10         30  PCI-MSI 5-edge      eth0-rx-0\n 25:         50         10  PCI-MSI 6-edge      mlx5_comp0\n \
                     26:        900          0  PCI-MSI 7-edge      eth01\nLOC:  5  5  Local timer interrupts\n";
        let of = |numbers: &[&str], name| {
            let numbers: Vec<String> = numbers.iter().map(|number| (*number).to_owned()).collect();
            interrupts(table, &numbers, &[Some(name), None])
        };
        assert_eq!(of(&[], "eth0"), BTreeMap::from([(0, 25), (1, 75)]));
        assert_eq!(of(&["25"], "eth0"), BTreeMap::from([(0, 60), (1, 40)]));
        assert_eq!(of(&[], "veth"), BTreeMap::new());
    }

    #[test]
    fn offloads_are_on_or_off() {
        let said = "Features for eth0:\ntx-checksumming: on\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\n\
                    generic-receive-offload: off\nlarge-receive-offload: off [fixed]\n";
        let expected = [("tso", true), ("gro", false), ("lro", false)];
        assert_eq!(read_offloads(said), expected.map(|(name, on)| (name.to_owned(), on)).into());
    }

    #[test]
    fn this_machine_reaches_itself_without_a_network() {
        let interface = Interface::towards(Ipv4Addr::LOCALHOST.into()).expect("a way");
        assert!(interface.name == "lo" && interface.mtu > 0, "{interface:?}");
    }
}
