//! Stores with made-up observations and real plans, of any size and with any text in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{self, Form};
use lab::observation::{Failure, Observation, Outcome, Stage, Trial};
use lab::plan::{self, Plan};
use lab::store::{RunHeader, Store};
use measurement::{GeneratorUse, Latency, Measurement, SystemUse};
use serde_json::{Value, json};
use systems::Catalog;

use super::home::Home;

/// What the made-up run contains.
pub struct MadeUp<'a> {
    /// Systems with the knobs `threads` and `buffer`.
    pub systems: &'a [&'a str],
    /// Values of `threads`, from 1.
    pub threads: u32,
    /// Values of `buffer`: 1K, 2K, 4K and so on.
    pub buffers: u32,
    pub rounds: u32,
    /// The number of different latencies in each trial.
    pub latencies: u64,
}

impl MadeUp<'_> {
    /// Writes the store into the home. `edit` changes the plan as text before it is used. `outcome` can replace the
    /// outcome of a trial.
    pub fn store(
        &self,
        home: &Home,
        edit: impl Fn(String) -> String,
        outcome: impl Fn(&Trial) -> Option<Outcome>,
    ) -> PathBuf {
        let path = home.path("narrows.db");
        let plan = serde_json::to_string(&self.plan(home)).expect("a plan is JSON");
        let plan: Plan = serde_json::from_str(&edit(plan)).expect("still a plan");
        let store = Store::open(&path).expect("a store");
        let header = RunHeader {
            started_unix_s: 1_700_000_000.0,
            command: "run e --rounds 20 </script><script>alert(2)</script>".to_owned(),
            question: None,
            environment: json!({ "kernel": "6.18 <b>", "cpu": { "model": "none", "cores": [0, 1] } }),
            plan: plan.clone(),
        };
        let run = store.begin(&header).expect("a run");
        for trial in &plan.trials {
            let made_up = || Outcome::Measured(Box::new(self.measurement(trial)));
            let observation = Observation {
                trial: trial.clone(),
                began_unix_s: 1_700_000_000.0 + f64::from(trial.index),
                took_s: 1.5,
                duet: None,
                outcome: outcome(trial).unwrap_or_else(made_up),
            };
            store.append(run, &[observation]).expect("it is kept");
        }
        store.finish(run).expect("it ends");
        path
    }

    fn plan(&self, home: &Home) -> Plan {
        let list = |values: Vec<String>| format!("[{}]", values.join(", "));
        let threads = list((1..=self.threads).map(|n| n.to_string()).collect());
        let buffers = list((0..self.buffers).map(|n| (1024_u64 << n).to_string()).collect());
        for system in self.systems {
            home.server(
                system,
                r#"["true", "{port}", "{threads}", "{buffer}"]"#,
                &format!(
                    "[knobs.threads]\ntype = \"integer\"\ndefault = 1\nvalues = {threads}\nabout = \"threads\"\n\
                     [knobs.buffer]\ntype = \"size\"\ndefault = 1024\nvalues = {buffers}\nabout = \"buffer\"\n\
                     [apply]\nthreads = \"threads: {{value}}\"\nbuffer = \"set_buffer({{value}}); // <bytes>\"\n"
                ),
            );
        }
        let systems: Vec<String> = self.systems.iter().map(|name| format!("{name:?}")).collect();
        let grid = format!("[[grid]]\nconnections = 64\nthreads = {threads}\nbuffer = {buffers}\n");
        home.experiment("requests", &list(systems), self.rounds, &grid);
        let experiment =
            experiment::load(&[systems::Home::named(&home.path(""))], "e").expect("an experiment");
        let request = Request { experiment, form: Form::Quick, overrides: Overrides::default() };
        let catalog = Catalog::load(Path::new(&home.path("")));
        plan::plan(&[request], &catalog, &BTreeMap::new(), 7).expect("a plan")
    }

    /// Up to four threads and up to 64K more is faster. Trials differ by a few percent.
    fn measurement(&self, trial: &Trial) -> Measurement {
        let knob = |name: &str, default: f64| match trial.scenario.point.get(name) {
            Some(systems::Value::Integer(number)) => *number as f64,
            _ => default,
        };
        let system = trial.scenario.system.bytes().map(u64::from).sum::<u64>() % 5;
        let wobble = 1.0 + (trial.index * 37 % 11) as f64 / 200.0;
        let speed = 4e3 * (1.0 + system as f64 / 3.0) * knob("threads", 4.0).min(4.0) * wobble;
        let per_s = speed * (knob("buffer", 65536.0).min(65536.0) / 1024.0).powf(0.4);
        let successes = per_s as u64;
        let mean_us = 64.0 / per_s * 1e6;
        let bucket = |i: u64| ((mean_us * (0.5 + 3.0 * i as f64 / self.latencies as f64)) as u64 + i, 0);
        let mut buckets: Vec<(u64, u64)> = (0..self.latencies).map(bucket).collect();
        let share = successes / self.latencies;
        buckets.iter_mut().for_each(|bucket| bucket.1 = share);
        buckets[0].1 += successes - share * self.latencies;
        let latency = Latency::from_buckets(buckets);
        let peak_pss_bytes = 30_000_000 + system * 7_000_000;
        Measurement {
            elapsed_s: 1.0,
            attempts: successes + 64,
            successes,
            in_flight: 64,
            units: successes,
            service_us: latency.clone(),
            response_us: latency,
            tenths: (0..10).map(|i| successes / 10 + i).collect(),
            concurrency: 64,
            system: SystemUse {
                cpu_s: 0.9,
                peak_pss_bytes,
                pss_course: (0..10).map(|i| (i * 100, peak_pss_bytes / 40 * (31 + i))).collect(),
                context_switches: successes / 3,
                socket_memory_bytes: 4_000_000,
                cores: vec![1],
                version: format!("{system}.0 <i>"),
                ..SystemUse::default()
            },
            generator: GeneratorUse { busiest_core: 0.5, cores: vec![0], ..GeneratorUse::default() },
            ..Measurement::default()
        }
    }
}

/// The outcome of a trial that failed for this reason with this output.
pub fn failed(reason: &str, output: &str) -> Outcome {
    let (reason, output) = (reason.to_owned(), output.to_owned());
    Outcome::Failed(Failure { stage: Stage::Start, reason, output })
}

/// A string as it is written inside JSON, without the quotes.
pub fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
