//! What this side saw of a trial whose system runs on another machine. This side drove or served, so a measurement that the machine
//! makes of it cannot say other counts. Pure.
//!
//! What only the machine can know, such as its system's CPU time, is believed.

use std::time::Duration;

use lab::observation::Trial;
use lab::session::{Driven, shortest_window};
use load::{Arrivals, Job};
use measurement::{Measurement, ServerCounts};
use serve::CounterSnapshot;
use systems::Work;

/// The most drives and servers of one task. A search for the highest rate makes some twenty.
const MOST: usize = 100;

/// What was driven and served for one task.
#[derive(Default)]
pub struct Witness {
    wanted: usize,
    drives: Vec<Drove>,
    /// The counts of the last server, when it was stopped.
    served: Option<CounterSnapshot>,
}

/// A drive.
struct Drove {
    /// The rate of an open loop whose schedule has one.
    per_s: Option<f64>,
    counted: Measurement,
}

impl Witness {
    /// The machine wants a drive or a server.
    ///
    /// # Errors
    /// It has wanted too many.
    pub fn wants(&mut self) -> Result<(), String> {
        self.wanted = self.wanted.saturating_add(1);
        match self.wanted > MOST {
            true => Err(format!("it wants more than {MOST} drives for one task")),
            false => Ok(()),
        }
    }

    /// This side did a job.
    pub fn drove(&mut self, job: &Job, driven: &Driven) {
        let per_s = match &job.arrivals {
            Arrivals::Open(schedule) => Some(schedule.from),
            Arrivals::Closed | Arrivals::Recorded(_) => None,
        };
        let counted = Measurement {
            concurrency: (job.connections * job.pipeline) as u64,
            connections: job.connections as u64,
            together: driven.elsewhere.as_ref().map(|elsewhere| elsewhere.together.clone()),
            ..Measurement::from_tally(&driven.tally)
        };
        self.drives.push(Drove { per_s, counted });
    }

    /// This side served a client, and counted this.
    pub fn served(&mut self, counts: CounterSnapshot) {
        self.served = Some(counts);
    }

    /// Whether a measurement of the trial says what this side saw.
    ///
    /// # Errors
    /// What it says instead.
    pub fn check(&self, trial: &Trial, measured: &Measurement) -> Result<(), String> {
        match trial.scenario.work() {
            Work::Clients(_) => self.check_client(trial, measured),
            _ => self.check_server(trial, measured),
        }
    }

    fn check_server(&self, trial: &Trial, measured: &Measurement) -> Result<(), String> {
        let unlike = |drove: &Drove| drove.counted.counts_unlike(measured);
        let Some(Drove { per_s, counted }) = self.drives.iter().find(|drove| unlike(drove).is_none()) else {
            // The drive that is meant has as many attempts.
            let meant = self.drives.iter().find(|drove| drove.counted.attempts == measured.attempts);
            return Err(match meant.or(self.drives.last()).and_then(unlike) {
                Some(count) => format!("`{count}` is not what this side counted in any of its drives"),
                None => "this side drove nothing".to_owned(),
            });
        };
        if trial.objective.is_some() {
            let found = measured.max_rate.map(|found| found.per_s);
            return match found.is_some() && found == *per_s {
                true => Ok(()),
                false => Err("`max_rate` is not the rate at which this side drove".to_owned()),
            };
        }
        if measured.max_rate.is_some() {
            return Err("it has a `max_rate`, and the trial has no objective".to_owned());
        }
        check_window(trial, counted)
    }

    /// A client counts its own requests. Whether they agree with those of the server is for the doubts, as on this machine.
    fn check_client(&self, trial: &Trial, measured: &Measurement) -> Result<(), String> {
        let (Some(served), Some(told)) = (&self.served, &measured.server) else {
            return Err("this side served no client".to_owned());
        };
        let CounterSnapshot { requests, responses, connections, peak_connections, closes, cpu: _ } = *served;
        let seen =
            ServerCounts { requests, responses, connections, peak_connections, closes, ..told.clone() };
        if seen != *told {
            return Err("`server` is not what this side counted".to_owned());
        }
        let (successes, total) = (measured.successes, told.client_successes);
        if successes > total || measured.units != successes {
            let units = measured.units;
            return Err(format!(
                "`successes` is {successes}, of {total} in the client's life, and `units` is {units}"
            ));
        }
        check_window(trial, measured)
    }
}

/// A trial whose window was shorter than was asked for is another one.
fn check_window(trial: &Trial, measured: &Measurement) -> Result<(), String> {
    let asked = Duration::from_secs_f64(trial.timing.measure_s);
    let told = Duration::try_from_secs_f64(measured.elapsed_s).unwrap_or_default();
    match told < shortest_window(asked) {
        true => Err(format!("`elapsed_s` is {}, and the window was to last {asked:?}", measured.elapsed_s)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::observation::{Scenario, Timing};
    use load::target::{Http, Traffic};
    use load::{ArrivalSchedule, Gaps, Slo, Stop, Tally, Target};
    use measurement::{MaxRate, Together};
    use systems::{Point, Workload};

    fn trial(workload: Workload) -> Trial {
        let scenario = Scenario::new("e", "s", workload, Point::new()).expect("a scenario");
        Trial::alone(scenario, Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 })
    }

    fn job(rate: Option<f64>) -> Job {
        let traffic = Traffic::Http(Http::get("a", "/"));
        let target = Target { address: std::net::SocketAddr::from(([127, 0, 0, 1], 9)).into(), traffic };
        let schedule = |rate| ArrivalSchedule { from: rate, to: rate, gaps: Gaps::Constant };
        let arrivals = rate.map_or(Arrivals::Closed, |rate| Arrivals::Open(schedule(rate)));
        Job { arrivals, ..Job::new(target, 1, Stop::After(Duration::from_secs(1))) }
    }

    fn tally(successes: u64, elapsed: Duration) -> Tally {
        Tally { attempts: successes, successes, units: successes, elapsed, ..Tally::default() }
    }

    fn driven(tally: Tally) -> Driven {
        Driven { tally, elsewhere: None, metered: None }
    }

    /// A witness of two drives: ten exchanges in a tenth of a second, and a hundred in a second.
    fn witness(rate: Option<f64>) -> Witness {
        let mut witness = Witness::default();
        witness.drove(&job(rate), &driven(tally(10, Duration::from_millis(100))));
        witness.drove(&job(rate), &driven(tally(100, Duration::from_secs(1))));
        witness
    }

    fn measured() -> Measurement {
        let counted = Measurement::from_tally(&tally(100, Duration::from_secs(1)));
        Measurement { concurrency: 1, connections: 1, ports: 7, ..counted }
    }

    #[test]
    fn a_measurement_says_what_this_side_counted() {
        let trial = trial(Workload::Requests);
        assert_eq!(witness(None).check(&trial, &measured()), Ok(()));
        assert_eq!(Witness::default().check(&trial, &measured()), Err("this side drove nothing".to_owned()));
        type Spoil = fn(&mut Measurement);
        let table: [(&str, Spoil); 11] = [
            ("attempts", |m| m.attempts = 99),
            ("successes", |m| m.successes = 99),
            ("units", |m| m.units *= 1000),
            ("elapsed_s", |m| m.elapsed_s *= 0.01),
            ("payload_bytes", |m| m.payload_bytes = 1),
            ("service_us", |m| m.service_us.mean = 1.0),
            ("tenths", |m| m.tenths = vec![10; 10]),
            ("generator", |m| m.generator.busiest_core = 0.1),
            ("connections", |m| m.connections = 2),
            ("together", |m| m.together = Some(Together::default())),
            ("max_rate", |m| m.max_rate = Some(MaxRate::default())),
        ];
        for (field, spoil) in table {
            let mut spoiled = measured();
            spoil(&mut spoiled);
            let why = witness(None).check(&trial, &spoiled).expect_err(field);
            assert!(why.contains(&format!("`{field}`")), "{field}: {why}");
        }
        let short = Measurement::from_tally(&tally(10, Duration::from_millis(100)));
        let short = Measurement { concurrency: 1, connections: 1, ..short };
        let why = witness(None).check(&trial, &short).expect_err("another drive");
        assert_eq!(why, "`elapsed_s` is 0.1, and the window was to last 1s");
    }

    #[test]
    fn the_highest_rate_is_one_that_this_side_drove() {
        let objective = Some(Slo::parse("p99<20ms").expect("an objective"));
        let trial = Trial { objective, ..trial(Workload::Requests) };
        let found =
            |per_s| Measurement { max_rate: Some(MaxRate { per_s, ..MaxRate::default() }), ..measured() };
        assert_eq!(witness(Some(500.0)).check(&trial, &found(500.0)), Ok(()));
        assert!(witness(Some(500.0)).check(&trial, &found(501.0)).is_err());
        assert!(witness(None).check(&trial, &found(500.0)).is_err());
        assert!(witness(None).check(&trial, &measured()).is_err());
    }

    #[test]
    fn a_client_met_the_server_of_this_side() {
        let trial = trial(Workload::Clients);
        let counts = CounterSnapshot { requests: 120, responses: 110, ..CounterSnapshot::default() };
        let server = Some(ServerCounts {
            requests: 120,
            responses: 110,
            client_successes: 105,
            ..ServerCounts::default()
        });
        let mut witness = Witness::default();
        let honest = Measurement { server, ..measured() };
        assert_eq!(witness.check(&trial, &honest), Err("this side served no client".to_owned()));
        witness.served(counts);
        assert_eq!(witness.check(&trial, &honest), Ok(()));
        type Spoil = fn(&mut Measurement);
        let table: [(&str, Spoil); 5] = [
            ("no client", |m| m.server = None),
            ("`server`", |m| {
                m.server = Some(ServerCounts { requests: 120, responses: 120, ..ServerCounts::default() })
            }),
            ("`successes` is 106, of 105", |m| (m.successes, m.units) = (106, 106)),
            ("`units` is 200", |m| m.units = 200),
            ("`elapsed_s` is 0.5", |m| m.elapsed_s = 0.5),
        ];
        for (named, spoil) in table {
            let mut spoiled = honest.clone();
            spoil(&mut spoiled);
            let why = witness.check(&trial, &spoiled).expect_err(named);
            assert!(why.contains(named), "{named}: {why}");
        }
    }

    #[test]
    fn a_task_has_a_limit_of_drives() {
        let mut witness = Witness::default();
        assert!((0..MOST).all(|_| witness.wants().is_ok()));
        assert_eq!(witness.wants(), Err("it wants more than 100 drives for one task".to_owned()));
    }
}
