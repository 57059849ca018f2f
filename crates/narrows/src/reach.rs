//! The options that say how a target is reached: through which socket or address, from where, and what a connection says first.

use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use lab::ask::ProxyProtocol;
use load::Job;
use load::target::{self, Url};
use reactor::Address;
use serde::{Deserialize, Serialize};
use systems::contact::Access;
use systems::{Listening, machine};
use tls::Dialing;

use crate::common::Usage;

/// How connections are made.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct ReachArgs {
    /// Connect from these addresses of this machine, from each in turn, such as 127.0.0.1,127.0.0.2. Each has ports of its own
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    source: Vec<IpAddr>,
    #[command(flatten)]
    way: WayArgs,
    /// Allow a target on another machine
    #[arg(long)]
    allow_remote: bool,
}

/// Where connections lead to in place of the URL's host, and what they say first.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Connections")]
pub struct WayArgs {
    /// Connect to the Unix socket of this path. The URL still names the path, the header Host and the certificate
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Connect to this host and port. The URL still names the header Host and the certificate
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    connect_to: Option<(String, u16)>,
    /// Begin each connection with its addresses, as a proxy does, in this version of the PROXY protocol: 1 or 2
    #[arg(long, value_name = "VERSION", value_parser = version)]
    pub proxy_protocol: Option<ProxyProtocol>,
}

/// Where connections lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The address.
    pub address: Address,
    /// The host that was resolved, if it is a name.
    name: Option<String>,
    /// The other addresses of the name.
    others: Vec<IpAddr>,
    /// The URL names another place.
    instead: bool,
}

impl ReachArgs {
    /// Finds the place to which connections to this URL lead. Resolves its host if that is needed.
    ///
    /// # Errors
    /// The options contradict each other or the target, the host has no address, or it is not this machine.
    pub fn place(&self, url: &Url) -> anyhow::Result<Destination> {
        if let Some(path) = &self.way.unix {
            if !self.source.is_empty() {
                bail!(Usage(
                    "connections to a Unix socket come from no address: leave out --source".to_owned()
                ));
            }
            let address = self.way.socket(path).map_err(Usage)?;
            return Ok(Destination { address, name: None, others: Vec::new(), instead: true });
        }
        let (host, port) = match &self.way.connect_to {
            Some((host, port)) => (host.as_str(), *port),
            None => (url.host.as_str(), url.port),
        };
        let found = target::resolve(host, port, self.allow_remote)?;
        check_sources(&self.source, found.address.ip()).map_err(Usage)?;
        let is_address = target::bare(host).parse::<IpAddr>().is_ok();
        Ok(Destination {
            address: found.address.into(),
            name: (!is_address).then(|| host.to_owned()),
            others: found.others,
            instead: self.way.connect_to.is_some(),
        })
    }

    /// How a single exchange with a server at this address is made.
    pub fn access(&self, address: &Address, tls: Option<Dialing>) -> Access {
        let server = match address {
            Address::Tcp(address) => Listening::Address(*address),
            Address::Unix(path) => Listening::Socket(path.clone()),
        };
        let opening = self.way.proxy_protocol.map(ProxyProtocol::opening);
        Access { tls, opening, ..Access::plain(&server) }
    }

    /// Whether the target may be on another machine.
    pub fn allows_remote(&self) -> bool {
        self.allow_remote
    }

    /// Lets a job make its connections this way, from so many other machines together, or from this one if there are none.
    ///
    /// # Errors
    /// There are fewer ports than connections.
    pub fn apply(&self, job: &mut Job, generators: usize) -> anyhow::Result<()> {
        if let Address::Tcp(address) = &job.target.address {
            let to = address.ip();
            let wanted = (job.connections.div_ceil(generators.max(1)) as u64, machine::ports());
            check_ports(wanted, to, &self.source).map_err(Usage)?;
        }
        job.sources = self.source.clone();
        job.announce = self.way.proxy_protocol.map(Into::into);
        Ok(())
    }
}

impl WayArgs {
    /// Whether connections lead elsewhere than the URL.
    pub fn leads_elsewhere(&self) -> bool {
        self.unix.is_some() || self.connect_to.is_some()
    }

    /// The place on this machine to which connections lead instead. None if the URL says it.
    ///
    /// # Errors
    /// The options contradict each other, or name no place of this machine.
    pub fn instead(&self) -> anyhow::Result<Option<Listening>> {
        if let Some(path) = &self.unix {
            self.socket(path).map_err(Usage)?;
            return Ok(Some(Listening::Socket(std::path::absolute(path)?)));
        }
        let Some((host, port)) = &self.connect_to else { return Ok(None) };
        let found = target::resolve(host, *port, true)?.address;
        if !found.ip().is_loopback() {
            bail!(Usage(format!(
                "--connect-to {host}:{port} must be an address such as 127.0.0.1:{port} here, because the server's processes are \
                 measured: `narrows load` drives other machines"
            )));
        }
        Ok(Some(Listening::Address(found)))
    }

    fn socket(&self, path: &Path) -> Result<Address, String> {
        if self.connect_to.is_some() {
            return Err("--unix and --connect-to name two places: leave one of them out".to_owned());
        }
        let address = Address::unix(path.to_owned());
        let address = address.map_err(|why| {
            format!("--unix {why}: use a shorter path, such as one from the current folder")
        })?;
        // That nothing is there is found out later, because --wait may wait for it.
        if std::fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
            return Err(format!(
                "--unix {} is not a socket: give the path on which the server listens",
                path.display()
            ));
        }
        Ok(address)
    }
}

impl Destination {
    /// The target as it was typed, and where it is if that does not show.
    pub fn shown(&self, target: &str) -> String {
        let listed: Vec<String> = self.others.iter().map(ToString::to_string).collect();
        let also = match listed.as_slice() {
            [] => String::new(),
            others => format!(", and also {}, which is not driven", others.join(", ")),
        };
        match (&self.name, &self.address) {
            (Some(name), Address::Tcp(address)) if self.instead => {
                format!("{target} (at {name}:{}, which is {}{also})", address.port(), address.ip())
            }
            (Some(name), Address::Tcp(address)) => format!("{target} ({name} is {}{also})", address.ip()),
            (_, address) if self.instead => format!("{target} (at {address})"),
            _ => target.to_owned(),
        }
    }

    /// What to try if nothing listens there.
    pub fn remedy(&self) -> Option<String> {
        let (name, other) = (self.name.as_ref()?, self.others.first()?);
        let shown = if other.is_ipv6() { format!("[{other}]") } else { other.to_string() };
        Some(format!(
            "{name} is also {other}, which is not tried: write {shown} instead of {name} to drive it"
        ))
    }
}

/// Checks that connections to this address can come from these.
fn check_sources(sources: &[IpAddr], to: IpAddr) -> Result<(), String> {
    let family = if to.is_ipv4() { "IPv4" } else { "IPv6" };
    for (index, source) in sources.iter().enumerate() {
        let why = if sources.iter().take(index).any(|other| other == source) {
            "is there twice: name each address once".to_owned()
        } else if source.is_unspecified() {
            "stands for every address: name the addresses one by one".to_owned()
        } else if source.is_ipv4() != to.is_ipv4() {
            format!("cannot connect to {to}, which is of another family: name addresses of {family}")
        } else if source.is_loopback() && !to.is_loopback() {
            format!("cannot connect to {to}, which is not on this machine: name an address of its network")
        } else if let Err(why) = reactor::unused((*source, 0).into()) {
            format!("cannot be used ({why}): name addresses of this machine, such as those of `ip address`")
        } else {
            continue;
        };
        return Err(format!("--source {source} {why}"));
    }
    Ok(())
}

/// Checks that so many connections to one address can be open at once, with so many ports for each of their sources.
fn check_ports((connections, ports): (u64, u64), to: IpAddr, sources: &[IpAddr]) -> Result<(), String> {
    let there_are = ports.saturating_mul(sources.len().max(1) as u64);
    if ports == 0 || connections <= there_are {
        return Ok(());
    }
    let needed = connections.div_ceil(ports).min(254);
    let remedy = match to {
        IpAddr::V4(to) if to.is_loopback() => {
            let first: Vec<String> = (1..=needed.min(4)).map(|number| format!("127.0.0.{number}")).collect();
            let rest = if needed > 4 { format!(" and so on to 127.0.0.{needed}") } else { String::new() };
            format!("use --source {}{rest}", first.join(","))
        }
        IpAddr::V6(to) if to.is_loopback() => {
            "widen net.ipv4.ip_local_port_range, because ::1 is the only address of its kind".to_owned()
        }
        _ => format!("name {needed} addresses of this machine with --source"),
    };
    Err(format!(
        "{connections} connections need as many local ports, and there are {there_are}: {remedy}, or ask for fewer with -c"
    ))
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || "write it as HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080".to_owned();
    let url = Url::parse(&format!("frames://{text}")).map_err(|_| wrong())?;
    Ok((url.host, url.port))
}

fn version(text: &str) -> Result<ProxyProtocol, String> {
    match text {
        "1" => Ok(ProxyProtocol::One),
        "2" => Ok(ProxyProtocol::Two),
        _ => Err("it must be 1 or 2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn a_place_is_shown_where_the_url_does_not() {
        let tcp = |text: &str| Address::Tcp(text.parse().expect(text));
        let place = |address, name: Option<&str>, others: &[&str], instead| Destination {
            address,
            name: name.map(str::to_owned),
            others: others.iter().map(|other| ip(other)).collect(),
            instead,
        };
        for (place, shown) in [
            (place(tcp("127.0.0.1:80"), None, &[], false), "URL"),
            (place(tcp("127.0.0.1:80"), Some("localhost"), &[], false), "URL (localhost is 127.0.0.1)"),
            (
                place(tcp("127.0.0.1:80"), Some("h"), &["::1"], false),
                "URL (h is 127.0.0.1, and also ::1, which is not driven)",
            ),
            (place(tcp("[::1]:80"), None, &[], true), "URL (at [::1]:80)"),
            (place(tcp("127.0.0.1:80"), Some("h"), &[], true), "URL (at h:80, which is 127.0.0.1)"),
            (place(Address::Unix("/a/b".into()), None, &[], true), "URL (at /a/b)"),
        ] {
            assert_eq!(place.shown("URL"), shown);
        }
        let remedy = place(tcp("127.0.0.1:80"), Some("h"), &["::1", "127.0.0.2"], false).remedy();
        let says = "h is also ::1, which is not tried: write [::1] instead of h to drive it";
        assert_eq!(remedy.as_deref(), Some(says));
        assert_eq!(place(tcp("127.0.0.1:80"), Some("h"), &[], false).remedy(), None);
    }

    #[test]
    fn connections_are_limited_by_the_ports_of_their_sources() {
        let refused = |connections, to: &str, sources: &[&str]| {
            let sources: Vec<IpAddr> = sources.iter().map(|source| ip(source)).collect();
            check_ports((connections, 100), ip(to), &sources).err().unwrap_or_default()
        };
        for (connections, to, sources, says) in [
            (100, "127.0.0.1", &[][..], ""),
            (101, "127.0.0.1", &[][..], "there are 100: use --source 127.0.0.1,127.0.0.2, or ask"),
            (200, "127.0.0.1", &["127.0.0.1", "127.0.0.2"][..], ""),
            (201, "127.0.0.1", &["127.0.0.1", "127.0.0.2"][..], "--source 127.0.0.1,127.0.0.2,127.0.0.3,"),
            (1000, "127.0.0.1", &[][..], "127.0.0.3,127.0.0.4 and so on to 127.0.0.10,"),
            (101, "::1", &[][..], "widen net.ipv4.ip_local_port_range"),
            (101, "192.0.2.1", &[][..], "name 2 addresses of this machine with --source"),
        ] {
            let error = refused(connections, to, sources);
            assert!(
                error.contains(says) && error.is_empty() == says.is_empty(),
                "{connections} {to}: {error}"
            );
        }
        assert_eq!(check_ports((1000, 0), ip("127.0.0.1"), &[]), Ok(()), "the range is not known");
    }

    #[test]
    fn a_host_with_its_port() {
        assert_eq!(host_and_port("[::1]:80"), Ok(("[::1]".to_owned(), 80)));
        assert_eq!(host_and_port("localhost:1"), Ok(("localhost".to_owned(), 1)));
        for wrong in ["", "localhost", ":80", "h:0", "h:99999", "::1:80", "http://h:80", "h:80/path"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
