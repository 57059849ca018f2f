//! The options that name other machines. `run`, `try` and `tune` share them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use lab::session::{Executor, Generator, Here};
use machines::Machine;
use systems::machine::available_cores;
use systems::{Catalog, Limit};

use crate::common::Usage;
use crate::fleet::MachineList;
use crate::fleet::driving::Fleet;
use crate::fleet::generators::Generators;
use crate::fleet::lab::Opening;
use crate::fleet::patient::Patient;
use crate::fleet::sut::Sut;
use crate::lab_args;

/// Other machines.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FleetArgs {
    /// Build, start and measure the systems on this machine: ssh://[user@]host[:port], exec:COMMAND that gives a pipe to `narrows
    /// agent`, or local
    #[arg(long = "sut", value_name = "MACHINE", help_heading = "Machines")]
    sut: Option<MachineList>,
    /// Drive from these machines together, or serve clients from the first; separated by commas
    #[arg(long = "gen", value_name = "MACHINES", help_heading = "Machines")]
    generators: Vec<MachineList>,
}

impl FleetArgs {
    /// Whether another machine is named.
    pub fn any(&self) -> bool {
        self.sut.is_some() || !self.generators.is_empty()
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
            return Ok(Box::new(lab_args::bench(catalog, files, cancel)?));
        }
        let address = None;
        let machines: Vec<Machine> = self.generators.iter().flat_map(|list| list.0.clone()).collect();
        let generator = |towards: IpAddr| -> anyhow::Result<Box<dyn Generator>> {
            if machines.is_empty() {
                return Ok(Box::new(Here { cores: available_cores() }));
            }
            // The user has named the machine of the systems, or it is this one.
            let mut generators = Generators::new(machines.clone(), files, true);
            generators.reach()?;
            Ok(Box::new(Fleet::new(generators, towards)))
        };
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let executor: Box<dyn Executor> = match self.sut()? {
            None => {
                let generator = generator(address.unwrap_or(here))?;
                Box::new(lab_args::bench(catalog, files, cancel)?.driven_by(generator))
            }
            Some(machine) => {
                let opening = Opening { address };
                let sut = Sut::reach(machine.clone(), opening, files, Arc::clone(cancel), generator)?;
                Box::new(sut)
            }
        };
        Ok(Box::new(Patient(executor)))
    }
}
