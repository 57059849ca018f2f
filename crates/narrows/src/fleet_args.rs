//! The options that name other machines. `run`, `try` and `tune` share them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{anyhow, bail};
use lab::session::{Bench, Executor, TrialError, Without};
use machines::{AddressError, Machine};
use serde::{Deserialize, Serialize};
use serve::CounterSnapshot;
use systems::machine::available_cores;
use systems::network::Interface;
use systems::{Catalog, Limit};

use crate::command::CommandArgs;
use crate::common::Usage;
use crate::fleet::driving::{Fleet, Link};
use crate::fleet::generators::Generators;
use crate::fleet::lab::Opening;
use crate::fleet::reconnecting::{About, Reconnecting};
use crate::fleet::sut::{self, Sut};
use crate::fleet::workshop::Workshop;
use crate::fleet::{self, At, MachineList, Order, path};
use crate::here;

/// Where systems listen on one machine.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Other machines.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct FleetArgs {
    /// Build, start and measure the systems on this machine: ssh://[user@]host[:port], exec:COMMAND that gives a pipe to `narrows
    /// agent`, slurm:1 for a node of a Slurm cluster, or local
    #[arg(long = "sut", value_name = "MACHINE", help_heading = "Machines")]
    sut: Option<MachineList>,
    /// Drive from these machines together, or serve clients from the first. Write them as for --sut, with commas between; slurm:N
    /// means N nodes
    #[arg(long = "gen", value_name = "MACHINES", help_heading = "Machines")]
    generators: Vec<MachineList>,
    /// Let systems listen at this address of their machine, which {address} stands for in commands [default: 127.0.0.1; with
    /// --sut ssh://…, the address at which the machine was reached]
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = "Machines")]
    pub address: Option<IpAddr>,
    /// Let systems and the generator of this machine go before all its other programs, which get what is left. Needs root
    #[arg(long, help_heading = "Machines")]
    #[serde(skip)]
    pub priority: bool,
    /// Begin the run again without a generator that stays away. It is another run, so trials with different generators are not
    /// mixed
    #[arg(long, requires = "generators", help_heading = "Machines")]
    go_on_without: bool,
    /// A generator without which the run goes on, because an earlier one lost it. Saved command lines have this option
    #[arg(long, value_name = "MACHINE", hide = true)]
    without: Vec<String>,
}

/// Reads an address at which systems can be reached.
pub fn address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr =
        text.parse().map_err(|_| "write an IP address, such as 127.0.0.2, 10.0.0.1 or ::1".to_owned())?;
    if address.is_unspecified() || address.is_multicast() {
        return Err("it is not the address of one machine: `ip address` lists those of this one".to_owned());
    }
    Ok(address)
}

impl FleetArgs {
    /// Whether everything happens on this machine.
    pub fn is_here(&self) -> bool {
        self.sut.is_none() && self.generators.is_empty()
    }

    /// Whether another machine is named.
    pub fn any(&self) -> bool {
        self.sut.is_some() || !self.generators.is_empty()
    }

    /// Goes on with other generators, without the one that was lost.
    ///
    /// # Errors
    /// One of the others has no name of a machine.
    pub fn go_on(&mut self, without: &Without) -> Result<(), AddressError> {
        self.generators = without.others.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
        self.without.insert(0, without.lost.clone());
        Ok(())
    }

    /// Checks that systems can listen at the address, and that a command line asks nothing of another machine that happens here
    /// only.
    ///
    /// # Errors
    /// The option that is wrong.
    pub fn check_commands(&self, command: &CommandArgs) -> Result<(), Usage> {
        self.check_address()?;
        let services = command.has_services();
        if self.any() && command.sent.file.any() {
            return Err(Usage(
                "files of requests cannot be sent to other machines yet: leave --requests out, or --sut and --gen"
                    .to_owned(),
            ));
        }
        if self.any() && command.sent.way.leads_elsewhere() {
            return Err(Usage(
                "--unix and --connect-to name places of this machine: leave them out, or --sut and --gen"
                    .to_owned(),
            ));
        }
        match &self.sut {
            Some(_) if services => Err(Usage(
                "--service and --upstream start a command on this machine: start it on the machine of --sut yourself"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// The machine of `--sut`, to build commits on it.
    ///
    /// # Errors
    /// It cannot be reached, or each reach may get another machine.
    pub fn workshop(&self, files: Limit, cancel: &Arc<AtomicBool>) -> anyhow::Result<Option<Workshop>> {
        match self.sut()? {
            None => Ok(None),
            Some(Machine::Slurm(_)) => bail!(Usage(
                "--git cannot use slurm:1, because the trials may get another node than the build: name the node, as in ssh://NODE"
                    .to_owned()
            )),
            Some(sut) => Workshop::reach(sut, files, cancel).map(Some),
        }
    }

    /// This machine, for the systems of a catalog.
    fn bench(&self, catalog: &Catalog, files: Limit, cancel: &Arc<AtomicBool>) -> anyhow::Result<Bench> {
        let mut bench = here::bench(catalog, files, cancel)?;
        if let Some(address) = self.address {
            self.check_address()?;
            bench.listen_at(address);
        }
        Ok(bench)
    }

    /// Checks an address of this machine. That of another machine shows when systems start there.
    fn check_address(&self) -> Result<(), Usage> {
        let Some(address) = self.address.filter(|_| self.sut.is_none()) else { return Ok(()) };
        let bound = TcpListener::bind((address, 0)).map(drop);
        bound.map_err(|error| {
            Usage(format!(
                "--address {address}: nothing can listen there: {error}; `ip address` lists the addresses of this machine"
            ))
        })
    }

    fn sut(&self) -> anyhow::Result<Option<&Machine>> {
        match self.sut.as_ref().map(|list| &list.0[..]) {
            None => Ok(None),
            Some([machine]) => Ok(Some(machine)),
            Some(_) => bail!(Usage("--sut takes one machine: systems run on one".to_owned())),
        }
    }

    /// What carries out trials: this machine, or those that are named.
    ///
    /// # Errors
    /// A machine cannot be reached.
    pub fn lab(
        &self,
        catalog: &Catalog,
        files: Limit,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Box<dyn Executor>> {
        if !self.any() {
            return Ok(Box::new(self.bench(catalog, files, cancel)?));
        }
        let mut machines: Vec<Machine> = self.generators.iter().flat_map(|list| list.0.clone()).collect();
        let dispensable = if self.go_on_without { machines.clone() } else { Vec::new() };
        let known = move |about| About { without: self.without.clone(), dispensable, ..about };
        let Some(sut) = self.sut()? else {
            let address = self.address.unwrap_or(HERE);
            let server = lab::session::start_server(0, false, (address, 0).into(), &available_cores());
            let server = server.map_err(|error| match error {
                TrialError::Failed(failure) => anyhow!(failure.reason),
                TrialError::Interrupted => anyhow!("interrupted"),
            })?;
            let far = Far {
                here: true,
                server: server.address(),
                threads: available_cores().len(),
                counts: &mut || Ok(server.counts()),
            };
            let (fleet, mut about) = reached(machines, address, files, far, cancel)?;
            about.interface = Interface::with(address);
            drop(server);
            let bench = self.bench(catalog, files, cancel)?.driven_by(Box::new(fleet));
            return Ok(Box::new(Reconnecting::new(Box::new(bench), known(about), cancel)));
        };
        if machines.is_empty() {
            machines.push(Machine::Local);
        }
        let usual = (*sut == Machine::Local).then_some(HERE);
        let opening = Opening { address: self.address.or(usual) };
        let (mut about, here) = (About::default(), *sut == Machine::Local);
        let sut =
            Sut::reach(sut.clone(), catalog, opening, (files, Arc::clone(cancel)), |address, remote| {
                let described = fleet::describe(std::slice::from_mut(remote), At::Own(address))?;
                let (server, threads) = sut::serve(remote, At::Own(address))?;
                let far = Far { here, server, threads, counts: &mut || sut::counts(remote, &Order::Counts) };
                let (fleet, found) = reached(machines, address, files, far, cancel)?;
                sut::counts(remote, &Order::StopServing)?;
                let interface = described.into_iter().find_map(|described| described.interface);
                about = About { sut: Some(remote.machine().to_string()), interface, ..found };
                Ok(Box::new(fleet))
            })?;
        Ok(Box::new(Reconnecting::new(Box::new(sut), known(about), cancel)))
    }
}

/// A server of Narrows' own on the machine of the systems.
struct Far<'a> {
    /// Whether that is this machine.
    here: bool,
    server: SocketAddr,
    threads: usize,
    counts: &'a mut dyn FnMut() -> anyhow::Result<CounterSnapshot>,
}

/// Reaches the generators, and measures the way to the systems.
fn reached(
    machines: Vec<Machine>,
    address: IpAddr,
    files: Limit,
    far: Far<'_>,
    cancel: &Arc<AtomicBool>,
) -> anyhow::Result<(Fleet, About)> {
    // The user has named the machine of the systems, or it is this one.
    let mut generators = Generators::new(machines, files, true);
    let remotes = generators.reach(cancel)?;
    let described = fleet::describe(remotes, At::Towards(address))?;
    let names = remotes.iter().map(|remote| remote.machine().to_string());
    let known = names.zip(described).collect();
    let path = path::measure(&mut generators, far.server, far.threads, far.counts, cancel)?;
    let fleet = Fleet::new(generators, Link { towards: address, here: far.here, path }, cancel);
    let about = About { generators: known, path, lost: fleet.lost(), ..About::default() };
    Ok((fleet, about))
}
