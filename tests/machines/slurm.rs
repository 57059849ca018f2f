//! Generators that Slurm is asked for: slurmctld here, and slurmd on three machines.

use std::time::Duration;

use lab::observation::Outcome;

use crate::support::home::Home;
use crate::support::{Guarded, until};
use crate::{agents, command, load, loaded, on, say, serve};

/// Kills all of Slurm on a machine and what it started, as when the machine loses its power.
const POWER_CUT: &str = "kill -KILL $(pgrep -x narrows) $(pgrep -x slurmstepd) $(pgrep -x slurmd)";

/// Runs a command of Slurm, and returns what it prints.
fn ask(words: &[&str]) -> String {
    command(words).code(0).stdout
}

/// The jobs that wait or run.
fn jobs() -> usize {
    ask(&["squeue", "-h", "-t", "PENDING,RUNNING"]).lines().count()
}

fn nodes(state: &str) -> usize {
    ask(&["sinfo", "-h", "-N", "-t", state]).lines().count()
}

/// Whether the machines have Slurm.
fn has_slurm() -> bool {
    let there = std::path::Path::new(crate::STATE).join("slurm").exists();
    if !there {
        crate::skip("slurm:N", "the machines were made without --slurm");
    }
    there
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn h_slurm_gives_three_nodes_and_gets_them_back() {
    if !has_slurm() {
        return;
    }
    let server = serve();
    let json = loaded(&server.http, "slurm:3", &["-n", "3000", "-c", "6"]);
    let names: Vec<&str> = json["generators"]
        .as_array()
        .expect("them")
        .iter()
        .filter_map(|generator| generator["machine"].as_str())
        .collect();
    assert_eq!(names, ["slurm:3 (node gen1)", "slurm:3 (node gen2)", "slurm:3 (node gen3)"]);
    assert_eq!((json["completed"].as_u64(), server.counts()[0]), (Some(3000), 3000), "{json}");
    assert_eq!(jobs(), 0, "the allocation is given back");
    say("slurm:3: 3000 requests of three nodes; the server counted as many, and no job is left");
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn i_a_drained_node_is_left_out_or_waited_for() {
    if !has_slurm() {
        return;
    }
    let server = serve();
    assert!(until(|| nodes("idle") == 3));
    ask(&["scontrol", "update", "NodeName=gen1", "State=DRAIN", "Reason=test"]);
    let json = loaded(&server.http, "slurm:2", &["-n", "200", "-c", "2"]);
    let of = |n: usize| json["generators"][n]["machine"].as_str().map(str::to_owned);
    assert_eq!((of(0), of(1)), (Some("slurm:2 (node gen2)".into()), Some("slurm:2 (node gen3)".into())));
    let waits = Guarded::spawn(&mut load(&server.http, "slurm:3", &["-n", "300", "-c", "3"]));
    assert!(until(|| jobs() == 1), "it waits");
    std::thread::sleep(Duration::from_secs(3));
    waits.signal(libc::SIGINT);
    waits
        .end()
        .code(130)
        .says(&["slurm:3: waits for the allocation", "interrupted while it waited for Slurm"]);
    assert!(until(|| jobs() == 0), "the job that waited is withdrawn");
    ask(&["scontrol", "update", "NodeName=gen1", "State=RESUME"]);
    assert!(until(|| nodes("idle") == 3));
    say("gen1 drained: slurm:2 took gen2 and gen3; slurm:3 waited, said so, and Ctrl-C withdrew the job");
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn j_an_allocation_ends_with_its_narrows() {
    if !has_slurm() {
        return;
    }
    let server = serve();
    assert!(until(|| nodes("idle") == 3));
    let drive = Guarded::spawn(&mut load(&server.http, "slurm:3", &["-d", "60s", "-c", "6"]));
    assert!(until(|| agents() == 3), "three agents run");
    drive.signal(libc::SIGKILL);
    assert!(!drive.end().status.success());
    assert!(until(|| jobs() == 0 && agents() == 0), "the allocation is given back, and no agent is left");
    say("narrows killed by SIGKILL: the allocation was given back, and no agent was left");
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn k_a_node_that_is_killed_is_named() {
    if !has_slurm() {
        return;
    }
    let server = serve();
    assert!(until(|| nodes("idle") == 3));
    let drive = Guarded::spawn(&mut load(&server.http, "slurm:3", &["-d", "60s", "-c", "6"]));
    assert!(until(|| agents() == 3), "three agents run");
    std::thread::sleep(Duration::from_secs(2));
    on("gen2", POWER_CUT);
    let ended = drive.end().code(1).says(&["(node gen2)"]);
    assert_eq!(ended.stdout, "", "there is no figure");
    assert!(until(|| jobs() == 0 && agents() == 0), "nothing is left");
    on("gen2", "slurmd").code(0);
    say(ended.stderr.lines().find(|line| line.contains("(node gen2)")).unwrap_or_default());
}

/// The machines of the generators of all trials, which must be the same in each.
fn generators(home: &Home) -> Vec<String> {
    let seen = home.observations();
    assert_eq!(seen.len(), home.planned());
    let of = |outcome: &Outcome| {
        let Outcome::Measured(m) = outcome else { panic!("{outcome:#?}") };
        assert_eq!(m.attempts, m.successes + m.errors.values().sum::<u64>() + m.in_flight, "{m:#?}");
        let together = m.together.as_ref().expect("several generators");
        together.generators.iter().map(|generator| generator.machine.clone()).collect::<Vec<_>>()
    };
    let mut all: Vec<Vec<String>> = seen.iter().map(|seen| of(&seen.outcome)).collect();
    all.dedup();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn n_a_run_goes_on_when_a_node_is_drained_or_killed() {
    if !has_slurm() {
        return;
    }
    let home = Home::new();
    home.twin("twin");
    home.timed_experiment("requests", "[\"twin\"]", 6, 0.3, "[[grid]]\nconnections = 6\n");
    let words = |nodes| ["run", "e", "--rounds", "file", "--sut", "ssh://sut", "--gen", nodes];
    assert!(until(|| nodes("idle") == 3));
    ask(&["scontrol", "update", "NodeName=gen1", "State=DRAIN", "Reason=test"]);
    home.run(words("slurm:2")).code(0);
    assert_eq!(generators(&home), ["slurm:2 (node gen2)", "slurm:2 (node gen3)"]);
    ask(&["scontrol", "update", "NodeName=gen1", "State=RESUME"]);
    assert!(until(|| nodes("idle") == 3));
    let first = home.observations().len();
    let mut run = home.spawn(&words("slurm:3"));
    // The second run has begun, and some of its trials are done.
    assert!(until(|| !run.running() || agents() == 4 && (1..first).contains(&home.observations().len())));
    on("gen2", POWER_CUT);
    std::thread::sleep(Duration::from_secs(8));
    on("gen2", "slurmd").code(0);
    run.end().code(0).says(&["(node gen2)", "the trial is done again", "waits for the allocation"]);
    assert_eq!(generators(&home).len(), 3);
    assert!(until(|| jobs() == 0 && agents() == 0), "nothing is left");
    say(
        "a run with slurm:2 left a drained node out; one with slurm:3 waited for a node that was killed, and lost no trial",
    );
}
