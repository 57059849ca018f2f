//! The work of one trial: a workload whose knobs are set, as values. Pure.
//!
//! When a scenario is made, its knobs become a [`Work`]. Code that drives, estimates or judges a trial reads this. Each
//! workload has a file that says everything about it.

mod about;
mod clients;
mod frames;
pub mod http;
mod rate;
mod requests;
mod streams;
pub mod tls;
mod upload;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::tls::Tls;
use about::KnobReader;
pub use about::{About, KnobValue, Purpose, WorkUnit};
pub use clients::Clients;
pub use frames::Frames;
pub use rate::Rate;
pub use requests::Requests;
pub use streams::{Interface, Streams};
pub use upload::Upload;

use crate::knob::{Knob, Point};
use crate::workload::{Role, Workload};

/// The work of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// POST bodies.
    Upload(Upload),
    /// Streams of length-prefixed frames.
    Frames(Frames),
    /// HTTP requests.
    Requests(Requests),
    /// Streamed answers, in either interface.
    Streams(Streams),
    /// The system is a client of Narrows' server.
    Clients(Clients),
}

impl Work {
    /// The kind of work.
    pub fn workload(&self) -> Workload {
        match self {
            Self::Upload(_) => Workload::Upload,
            Self::Frames(_) => Workload::Frames,
            Self::Requests(_) => Workload::Requests,
            Self::Streams(work) => work.interface.workload(),
            Self::Clients(_) => Workload::Clients,
        }
    }

    /// The arrivals of an open loop. `None` for a closed loop.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::Requests(work) => work.rate,
            Self::Clients(work) => work.rate,
            Self::Upload(_) | Self::Frames(_) | Self::Streams(_) => None,
        }
    }

    /// How a server is spoken to in TLS. `None` for plain text.
    pub fn tls(&self) -> Option<Tls> {
        match self {
            Self::Upload(work) => work.tls,
            Self::Requests(work) => work.tls,
            Self::Streams(work) => work.tls,
            Self::Frames(_) | Self::Clients(_) => None,
        }
    }

    /// Whether a server is spoken to in HTTP/2.
    pub fn http2(&self) -> bool {
        match self {
            Self::Upload(work) => work.http2,
            Self::Requests(work) => work.streams.is_some(),
            Self::Streams(work) => work.http2,
            Self::Frames(_) | Self::Clients(_) => false,
        }
    }

    /// Whether arrivals follow a schedule that does not depend on answers.
    pub fn is_open_loop(&self) -> bool {
        self.rate().is_some()
    }

    /// How many connections are open at once. A client may make fewer.
    pub fn connections(&self) -> u64 {
        match self {
            Self::Upload(work) => work.concurrency,
            Self::Frames(work) => work.connections,
            Self::Requests(work) => work.connections,
            Self::Streams(work) => work.connections,
            Self::Clients(work) => work.pools.saturating_mul(work.pool_size),
        }
    }

    /// The most connections that a client was told to make. `None` for servers.
    pub fn pool_cap(&self) -> Option<u64> {
        match self {
            Self::Clients(_) => Some(self.connections()),
            Self::Upload(_) | Self::Frames(_) | Self::Requests(_) | Self::Streams(_) => None,
        }
    }

    /// Whether Narrows' server closes a client's connections, and says so in the last answer.
    pub fn announces_closes(&self) -> bool {
        matches!(self, Self::Clients(work) if work.max_keepalive > 0 && !work.silent)
    }

    /// Whether a pool or a rate limits the work. It then limits the reference as well.
    pub fn has_own_limit(&self) -> bool {
        self.pool_cap().is_some() || self.is_open_loop()
    }

    /// Payload bytes of one operation. 1 if the payload does not matter.
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Self::Upload(work) => work.size,
            Self::Frames(work) => work.frame_size,
            Self::Requests(_) | Self::Streams(_) | Self::Clients(_) => 1,
        }
    }
}

impl Workload {
    /// What is known of the workload.
    pub fn about(self) -> &'static About {
        match self {
            Self::Upload => &upload::ABOUT,
            Self::Frames => &frames::ABOUT,
            Self::Requests => &requests::ABOUT,
            Self::Streams => &streams::STREAMS,
            Self::Chats => &streams::CHATS,
            Self::Clients => &clients::ABOUT,
        }
    }

    /// The name in manifests, experiments and reports.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// The side of the wire that a system of this workload is on.
    pub fn role(self) -> Role {
        self.about().role
    }

    /// The name of Narrows' own system in this workload.
    pub fn reference(self) -> &'static str {
        match self.role() {
            Role::Server => "reference",
            Role::Client => "reference-client",
        }
    }

    /// Its own knobs, in the order of the documentation.
    pub fn knobs(self) -> impl Iterator<Item = (&'static str, &'static Knob)> {
        self.about().knobs.iter().map(|(name, _, knob)| (*name, knob))
    }

    /// The definition of one of its own knobs.
    pub fn knob(self, name: &str) -> Option<&'static Knob> {
        self.about().knob(name).map(|(_, _, knob)| knob)
    }

    /// What a knob sets.
    pub fn purpose(self, knob: &str) -> Purpose {
        self.about().knob(knob).map_or(Purpose::Behaviour, |(_, purpose, _)| *purpose)
    }

    /// Its work at a point. Ignores the system's knobs in the point.
    ///
    /// # Errors
    /// The knob of the workload whose value is not allowed, and the allowed values.
    pub fn work(self, point: &Point) -> Result<Work, String> {
        let knobs = &KnobReader { about: self.about(), point };
        Ok(match self {
            Self::Upload => Work::Upload(Upload::read(knobs)?),
            Self::Frames => Work::Frames(Frames::read(knobs)?),
            Self::Requests => Work::Requests(Requests::read(knobs)?),
            Self::Streams => Work::Streams(Streams::read(knobs, Interface::Events)?),
            Self::Chats => Work::Streams(Streams::read(knobs, Interface::Chats)?),
            Self::Clients => Work::Clients(Clients::read(knobs)?),
        })
    }
}

/// Whether a system is one of Narrows' own.
pub fn is_reference(system: &str) -> bool {
    Workload::ALL.into_iter().any(|workload| workload.reference() == system)
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::Value;

    #[test]
    fn every_knob_keeps_its_own_constraints() {
        for workload in Workload::ALL {
            for (name, knob) in workload.knobs() {
                for value in knob.values.iter().chain([&knob.default]) {
                    assert_eq!(knob.check(value).as_ref(), Ok(value), "{workload} {name}");
                    assert_eq!(knob.parse(&knob.show(value)).as_ref(), Ok(value), "{workload} {name}");
                }
                assert_eq!(knob.workloads, [workload]);
                assert_eq!(workload.knob(name), Some(knob));
            }
        }
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let default = |w: Workload, name| w.knob(name).map(|k| k.show(&k.default)).unwrap();
        assert_eq!(default(Workload::Upload, "size"), "1M");
        assert_eq!(default(Workload::Frames, "frame_size"), "1000");
        assert_eq!(default(Workload::Requests, "connections"), "100");
        assert_eq!(default(Workload::Streams, "event_size"), "100");
        assert_eq!(default(Workload::Clients, "close"), "announced");
        assert_eq!(default(Workload::Clients, "timeout_ms"), "1000");
    }

    #[test]
    fn work_is_resolved_from_words_and_defaults() {
        for workload in Workload::ALL {
            let usual = workload.work(&Point::new()).expect("the defaults are work");
            assert_eq!(usual.workload(), workload);
            assert!(!usual.is_open_loop());
            for settings in workload.about().others.iter().chain([&workload.about().small]) {
                let point = settings.iter().map(|(knob, value)| ((*knob).to_owned(), value.clone()));
                workload.work(&point.collect()).expect("small work is work");
            }
        }
        let point = |knob: &str, value: Value| Point::from([(knob.to_owned(), value)]);
        let open = Workload::Requests.work(&point("rate", Value::Integer(50))).expect("a rate");
        assert!(open.is_open_loop());
        let wide = Workload::Clients.work(&point("pools", Value::Integer(4))).expect("four pools");
        assert_eq!(wide.pool_cap(), Some(4 * 32));
        for (knob, value) in [("size", Value::Boolean(true)), ("size", Value::Integer(-1))] {
            let wrong = Workload::Upload.work(&point(knob, value)).expect_err("no size");
            assert!(wrong.starts_with("knob size: "), "{wrong}");
        }
        let secured = Workload::Upload.work(&point("tls", Value::Text("1.2".to_owned()))).expect("a version");
        assert_eq!(secured.tls().map(|tls| (tls.version.name(), tls.sessions)), Some(("1.2", false)));
        assert_eq!(Workload::Frames.work(&Point::new()).expect("frames").tls(), None);
        // The workload ignores a system's own knob.
        assert!(Workload::Frames.work(&point("size", Value::Boolean(true))).is_ok());
    }
}
