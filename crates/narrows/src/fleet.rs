//! The machines that a command names, and what its verb and `narrows agent` say to each other.

pub mod driving;
pub mod generators;
pub mod lab;
pub mod path;
pub mod reconnecting;
pub mod sut;
mod witness;
pub mod workshop;

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ::lab::session::shortest_window;
use anyhow::Context;
use load::{Asked, Assignment, Contradiction, Stop, Tally};
use machines::{AddressError, Caller, Hello, Machine, MachineError, Offset, PROTOCOL, Remote};
use printable::{is_hidden, printable_lines};
use reactor::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serve::CounterSnapshot;
use systems::machine::Environment;
use systems::network::Interface;

use crate::common;
use crate::examined::Examined;

/// How long a machine may take to describe itself.
const DESCRIPTION: Duration = Duration::from_secs(10);

/// Machines that are separated by commas.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MachineList(pub Vec<Machine>);

impl TryFrom<String> for MachineList {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<MachineList> for String {
    fn from(list: MachineList) -> Self {
        machines::names(&list.0).join(",")
    }
}

impl FromStr for MachineList {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        machines::parse_list(text).map(Self)
    }
}

/// What an agent is asked to do.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Examine the machine as `narrows doctor` does.
    Examine,
    /// Describe the machine, and its interface for an address.
    Describe(At),
    /// Say how long this is.
    Weigh(String),
    /// Prepare a drive: make the connections and warm up.
    Drive(Box<DriveOrder>),
    /// Open the window of the drive when the agent's clock shows so many nanoseconds.
    Begin(u64),
    /// End the drive or the task soon, and say what has come of it.
    Stop,
    /// Serve a client.
    Serve(ServeOrder),
    /// Say what the server has counted so far.
    Counts,
    /// Stop the server, and say what it has counted.
    StopServing,
    /// A task for the bench of the machine.
    Task(Box<lab::Task>),
    /// What the bench wanted.
    Reply(Box<lab::Reply>),
    /// A step towards a commit that is built there.
    Workshop(Box<workshop::Step>),
}

/// A server of Narrows' own.
#[derive(Serialize, Deserialize)]
pub struct ServeOrder {
    /// Where it listens.
    pub at: At,
    /// The requests after which it closes a connection; 0 for never.
    pub max_keepalive: u64,
    /// Whether it does not announce that.
    pub silent: bool,
}

/// An address of a machine.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// This one.
    Own(IpAddr),
    /// The one from which the machine reaches this address.
    Towards(IpAddr),
    /// The one at which the machine was reached.
    Reached,
}

/// A generator's part of a drive.
#[derive(Serialize, Deserialize)]
pub struct DriveOrder {
    /// What to do.
    pub job: Assignment,
    /// Whether the target may be on another machine than the generator's.
    pub allow_remote: bool,
    /// How long to wait until the target accepts connections.
    pub wait: Option<Duration>,
}

/// What an agent answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentReply {
    /// To [`Order::Examine`].
    Examined(Box<Examined>),
    /// To [`Order::Describe`].
    Described(Box<Described>),
    /// To [`Order::Weigh`], in bytes.
    Weighed(usize),
    /// The drive waits for [`Order::Begin`].
    Ready,
    /// The drive of a number of exchanges goes on: at least one ended.
    Goes,
    /// The window of the drive has closed.
    Closed,
    /// The drive has ended.
    Driven(Box<AgentDrive>),
    /// To [`Order::Serve`].
    Serves {
        /// Where it listens.
        address: SocketAddr,
        /// How many threads it has.
        threads: usize,
    },
    /// To [`Order::Counts`] and [`Order::StopServing`].
    Counted(CounterSnapshot),
    /// The bench wants something in the midst of its task.
    Want(Box<lab::Want>),
    /// What the bench says of its task.
    Done(Box<lab::Done>),
    /// To [`Order::Workshop`].
    Workshop(Box<workshop::Stage>),
    /// The order cannot be carried out.
    Failed(String),
}

/// A machine, as it is saved with a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Described {
    /// What it is, and how it is set.
    #[serde(flatten)]
    pub environment: Environment,
    /// Its architecture.
    pub architecture: String,
    /// The interface for an address. `None` if it cannot be told.
    pub interface: Option<Interface>,
}

/// A drive that has ended.
#[derive(Serialize, Deserialize)]
pub struct AgentDrive {
    /// What it counted.
    pub tally: Tally,
    /// What the agent's clock showed when the window opened, in nanoseconds; 0 if it never did.
    pub opened_ns: u64,
    /// The same of its end.
    pub closed_ns: u64,
    /// See [`systems::machine::Disturbance`].
    pub stolen_s: f64,
    /// As above.
    pub throttles: u64,
    /// The number of ports from which connections to one address can come.
    pub ports: u64,
    /// How many files the agent may open.
    pub files: u64,
}

impl AgentDrive {
    /// Whether this drive can have counted this.
    ///
    /// # Errors
    /// A value that makes no sense.
    pub fn check(&self, asked: &Asked<'_>) -> Result<(), Contradiction> {
        // Each field is named, so that a new one is not forgotten here.
        let Self { tally, opened_ns, closed_ns, stolen_s, throttles, ports, files: _ } = self;
        tally.check(asked)?;
        let refuse =
            |row, value: String, by| Err(Contradiction::new(row, format!("{value} contradicts {by}")));
        let (Asked { job, lasted, whole }, elapsed) = (*asked, tally.elapsed);
        if let Stop::After(length) = job.stop
            && whole
        {
            if elapsed < shortest_window(length) {
                return refuse("elapsed", format!("{:.3} s", elapsed.as_secs_f64()), "the window of the job");
            }
            if let Some(row) =
                [("opened_ns", *opened_ns), ("closed_ns", *closed_ns)].iter().find(|end| end.1 == 0)
            {
                return refuse(row.0, "0".to_owned(), "a drive that has ended");
            }
        }
        // No machine has a million cores, so no more time than this can be stolen.
        let most = 1e6 * (elapsed.as_secs_f64() + 1.0);
        if !(0.0..=most).contains(stolen_s) {
            return refuse("stolen_s", stolen_s.to_string(), "`elapsed`");
        }
        // None of them gets too hot a thousand times a second.
        if *throttles as f64 > most * 1e3 {
            return refuse("throttles", throttles.to_string(), "`elapsed`");
        }
        let open = closed_ns.saturating_sub(*opened_ns);
        let long = Duration::from_nanos(open) > lasted + lasted / 10 + Duration::from_secs(1);
        if *closed_ns > 0 && (closed_ns < opened_ns || (*opened_ns > 0 && long)) {
            return refuse("closed_ns", closed_ns.to_string(), "`opened_ns` and the length of the drive");
        }
        if *ports > MOST_PORTS {
            return refuse("ports", ports.to_string(), "the size of a port's number");
        }
        Ok(())
    }
}

/// As many ports as TCP has.
const MOST_PORTS: u64 = 1 << 16;

/// The clock of both sides of a pipe.
pub fn clock() -> u64 {
    Time::now().nanos()
}

/// What this side says first.
pub fn hello(files: systems::Limit) -> Hello {
    let Environment { kernel, cpu, cores, .. } = Environment::read(files);
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        orders: false,
        architecture: std::env::consts::ARCH.to_owned(),
        kernel,
        cpu,
        cores,
    }
}

/// Reaches these machines.
///
/// # Errors
/// The first machine that cannot be reached, or the user interrupted.
pub fn reach(
    machines: &[Machine],
    files: systems::Limit,
    cancel: &AtomicBool,
) -> anyhow::Result<Vec<Remote>> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let hello = Hello { orders: true, ..hello(files) };
    let caller = Caller { own: &own, hello: &hello, clock, cancel, notice: &|what| common::say(what) };
    Ok(Remote::reach(machines, &caller)?)
}

/// Sends an order.
///
/// # Errors
/// The machine takes nothing any more.
pub fn order(remote: &mut Remote, order: &Order) -> Result<(), MachineError> {
    let what = serde_json::to_value(order).map_err(|why| remote.error(why.to_string()))?;
    remote.send(what)
}

/// The next answer, if there is one within `patience`.
///
/// # Errors
/// The machine is gone, its answer makes no sense, or it cannot carry the order out.
pub fn answer(remote: &mut Remote, patience: Duration) -> Result<Option<AgentReply>, MachineError> {
    let Some(mut what) = remote.receive(patience)? else { return Ok(None) };
    if is_shown(&what) {
        make_printable(&mut what);
    }
    match serde_json::from_value(what) {
        Ok(AgentReply::Failed(why)) => Err(remote.error(why)),
        Ok(answer) => Ok(Some(answer)),
        Err(why) => Err(remote.error(format!("its answer makes no sense: {why}"))),
    }
}

/// Whether the texts of an answer are for people. Those of jobs, of the answers of systems and of the paths of builds must stay as
/// they are.
fn is_shown(what: &Value) -> bool {
    !["/want", "/done/looked", "/workshop/built"].iter().any(|place| what.pointer(place).is_some())
}

/// Replaces what would change how others look in all texts of a value. What another machine says does not control this terminal.
fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(is_hidden) => *text = printable_lines(text),
        Value::Array(values) => values.iter_mut().for_each(make_printable),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains(is_hidden)) {
                let named = std::mem::take(fields).into_iter();
                *fields = named.map(|(name, value)| (printable_lines(&name), value)).collect();
            }
            fields.values_mut().for_each(make_printable);
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Lets machines describe themselves and their interfaces, all at the same time.
///
/// # Errors
/// One of them is gone, or does not answer in time.
pub fn describe(remotes: &mut [Remote], interface: At) -> Result<Vec<Described>, MachineError> {
    for remote in remotes.iter_mut() {
        order(remote, &Order::Describe(interface))?;
    }
    let described = |remote: &mut Remote| match answer(remote, DESCRIPTION)? {
        Some(AgentReply::Described(described)) => Ok(*described),
        Some(_) => Err(unasked(remote)),
        None => Err(remote.error(format!(
            "it did not describe itself within {} s: look what else it does",
            DESCRIPTION.as_secs()
        ))),
    };
    remotes.iter_mut().map(described).collect()
}

/// The error of an answer to something that was not asked.
pub fn unasked(remote: &Remote) -> MachineError {
    remote.error("it answered what was not asked")
}

/// How a machine's clock compares, in words.
pub fn shown_clock(offset: &Offset) -> String {
    report::number::micros(offset.error_ns as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use load::target::{Http, Traffic};
    use load::{Job, Target};

    use super::*;

    fn honest() -> AgentDrive {
        AgentDrive {
            tally: Tally { elapsed: Duration::from_secs(1), ..Tally::default() },
            opened_ns: 5_000_000_000,
            closed_ns: 6_000_000_000,
            stolen_s: 0.0,
            throttles: 0,
            ports: 1 << 16,
            files: 1024,
        }
    }

    /// Which row contradicts a drive of one second that took three.
    fn contradicted(drive: &AgentDrive, whole: bool) -> Option<&'static str> {
        let target = Target {
            address: SocketAddr::from(([127, 0, 0, 1], 9)).into(),
            traffic: Traffic::Http(Http::get("a", "/")),
        };
        let job = Job::new(target, 1, Stop::After(Duration::from_secs(1)));
        let asked = Asked { job: &job, lasted: Duration::from_secs(3), whole };
        drive.check(&asked).err().map(|found| found.row)
    }

    #[test]
    fn what_a_drive_says_beside_its_counts_is_bounded() {
        assert_eq!(contradicted(&honest(), true), None);
        type Spoil = fn(&mut AgentDrive);
        // Each pair is the last value that fits, and the first that does not.
        let table: [(&str, Spoil, Spoil); 6] = [
            (
                "elapsed",
                |drive| drive.tally.elapsed = Duration::from_millis(900),
                |drive| drive.tally.elapsed = Duration::from_millis(899),
            ),
            ("stolen_s", |drive| drive.stolen_s = 2e6, |drive| drive.stolen_s = 2.1e6),
            ("throttles", |drive| drive.throttles = 2_000_000_000, |drive| drive.throttles = 2_000_000_001),
            (
                "closed_ns",
                |drive| drive.closed_ns = drive.opened_ns + 4_300_000_000,
                |drive| drive.closed_ns = drive.opened_ns + 4_300_000_001,
            ),
            (
                "closed_ns",
                |drive| drive.closed_ns = drive.opened_ns,
                |drive| drive.closed_ns = drive.opened_ns - 1,
            ),
            ("ports", |drive| drive.ports = 1 << 16, |drive| drive.ports = (1 << 16) + 1),
        ];
        for (row, fits, contradicts) in table {
            let [mut last, mut first] = [honest(), honest()];
            fits(&mut last);
            contradicts(&mut first);
            assert_eq!([contradicted(&last, true), contradicted(&first, true)], [None, Some(row)]);
        }
        for stolen_s in [-0.1, f64::NAN] {
            assert_eq!(contradicted(&AgentDrive { stolen_s, ..honest() }, true), Some("stolen_s"));
        }
    }

    #[test]
    fn a_drive_that_was_ended_early_may_lack_its_window() {
        let unopened = AgentDrive { opened_ns: 0, closed_ns: 0, ..honest() };
        assert_eq!(
            [contradicted(&unopened, true), contradicted(&unopened, false)],
            [Some("opened_ns"), None]
        );
        let open = AgentDrive { closed_ns: 0, ..honest() };
        assert_eq!([contradicted(&open, true), contradicted(&open, false)], [Some("closed_ns"), None]);
    }
}
