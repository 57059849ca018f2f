//! Runs whose systems are on one machine and whose generators are on three others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lab::observation::Outcome;

use crate::support::home::Home;
use crate::support::{Guarded, until};
use crate::{GENERATORS, agents, command, say};

/// The rates of the systems of experiment `e`: the median of all rounds.
fn rates(home: &Home) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for seen in home.observations() {
        let Outcome::Measured(m) = &seen.outcome else { panic!("{seen:#?}") };
        assert!(m.successes > 0 && m.errors.is_empty(), "{seen:#?}");
        all.entry(seen.trial.scenario.system).or_default().push(m.units as f64 / m.elapsed_s);
    }
    let middle = |mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    all.into_iter().map(|(system, rates)| (system, middle(rates))).collect()
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn h_runs_over_four_machines_and_over_one_agree() {
    for (workload, systems) in
        [("requests", ["nginx", "node"]), ("frames", ["erlang-packet", "erlang-socket"])]
    {
        let home = Home::with(&systems);
        let grid = "[[grid]]\nconnections = 12\n";
        home.timed_experiment(workload, &format!("{systems:?}"), 6, 0.5, grid);
        let mut said = Vec::new();
        let [one, three] = ["ssh://gen1", GENERATORS].map(|all| ["--sut", "ssh://sut", "--gen", all]);
        let places =
            [("one machine", &[][..]), ("one generator", &one[..]), ("three generators", &three[..])];
        for (name, machines) in places {
            let began = Instant::now();
            home.run([&["run", "e", "--rounds", "file", "--seed", "1"][..], machines].concat()).code(0);
            let took = began.elapsed();
            assert_eq!(home.observations().len(), home.planned());
            let mut times: Vec<f64> = home.observations().iter().map(|seen| seen.took_s).collect();
            times.sort_by(f64::total_cmp);
            let (in_trials, usual): (f64, f64) = (times.iter().sum(), times[times.len() / 2]);
            let rates = rates(&home);
            let [a, b] = systems.map(|system| {
                *rates.get(system).unwrap_or_else(|| panic!("{system} was not measured; is it installed?"))
            });
            said.push(format!(
                "{workload}, {name}: {} {a:.0}/s, {} {b:.0}/s, ratio {:.2}; a trial took {usual:.2} s, and {:.1} s went by around them",
                systems[0],
                systems[1],
                a / b,
                took.as_secs_f64() - in_trials
            ));
        }
        said.iter().for_each(|line| say(line));
        // The last two runs are those of one generator and of three, which are unlike.
        say(&home.run(["compare", "previous", "last", "--force"]).code(0).stdout);
        assert!(until(|| agents() == 0), "no agent is left");
    }
}

/// A small generator of numbers, so that a sequence of kills can be had again.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Processes whose command line contains this.
fn processes(words: &[u8]) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = all.filter(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.windows(words.len()).any(|part| part == words)
    });
    found.filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

/// Kills an agent, an ssh or the run itself, or drops a link for longer than silence is borne. Returns what it did, or nothing if
/// there was nothing to kill.
fn harm(numbers: &mut Numbers, run: &Guarded) -> Option<String> {
    let choice = numbers.below(6);
    if choice == 0 {
        let link = ["to-sut", "to-gen1", "to-gen2", "to-gen3"][numbers.below(4) as usize];
        command(&["ip", "link", "set", link, "down"]).code(0);
        std::thread::sleep(Duration::from_secs(7));
        command(&["ip", "link", "set", link, "up"]).code(0);
        return Some(format!("dropped {link}"));
    }
    let (what, found) = match choice {
        1 => ("an ssh", processes(b"ssh\0-T\0")),
        2 => ("narrows", vec![run.pid()]),
        _ => ("an agent", processes(b"narrows\0agent\0")),
    };
    let pid = *found.get(numbers.below(found.len().max(1) as u64) as usize)?;
    // SAFETY: a plain system call. In these machines all such processes belong to this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    Some(format!("killed {what}"))
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn i_kills_at_random_moments_cost_no_finished_trial() {
    let kills: u64 = std::env::var("NARROWS_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let mut numbers = Numbers(0x5eed);
    let (mut harms, mut resumed, mut runs, mut trials) = (BTreeMap::<String, u32>::new(), 0, 0, 0);
    let mut done = 0;
    // Where machines are reached slowly, harm may come before the first trial each time. The last run is then left alone.
    while done < kills || trials == 0 {
        let home = Home::new();
        home.twin("twin");
        home.timed_experiment("requests", "[\"twin\"]", 12, 0.3, "[[grid]]\nconnections = 6\n");
        let began = ["run", "e", "--rounds", "file", "--sut", "ssh://sut", "--gen", GENERATORS];
        let mut run = Guarded::spawn(&mut home.narrows(began));
        runs += 1;
        loop {
            std::thread::sleep(Duration::from_millis(500 + numbers.below(4000)));
            if !run.running() {
                break;
            }
            if done < kills
                && let Some(what) = harm(&mut numbers, &run)
            {
                *harms.entry(what).or_default() += 1;
                done += 1;
            }
        }
        let mut code = run.end().status.code();
        let mut finished = home.observations();
        while code != Some(0) {
            assert!(matches!(code, Some(130 | 1) | None), "{code:?}");
            resumed += 1;
            assert!(resumed < 2 * kills + 5, "it does not get done");
            if !home.has_run() {
                break; // It ended before it was saved.
            }
            code = home.run(["run", "--resume", "last"]).status.code();
            let now = home.observations();
            assert!(finished.iter().all(|seen| now.contains(seen)), "a finished trial is lost or changed");
            finished = now;
        }
        let seen = home.observations();
        let mut indices: Vec<u32> = seen.iter().map(|seen| seen.trial.index).collect();
        indices.sort_unstable();
        indices.dedup();
        assert_eq!(indices.len(), seen.len(), "no trial is there twice");
        for seen in &seen {
            let Outcome::Measured(m) = &seen.outcome else { panic!("{seen:#?}") };
            assert_eq!(m.attempts, m.successes + m.errors.values().sum::<u64>() + m.in_flight, "{m:#?}");
            assert_eq!(m.together.as_ref().map(|together| together.generators.len()), Some(3), "{m:#?}");
        }
        if code == Some(0) {
            assert_eq!(seen.len(), home.planned());
            trials += seen.len();
        }
        assert!(until(|| agents() == 0), "no agent is left");
        assert!(until(|| processes(b"narrows\0serve\0").is_empty()), "no system is left");
    }
    say(&format!(
        "{done} times harm was done in {runs} runs of {trials} trials, which were resumed {resumed} times: {harms:?}"
    ));
}
