//! Writes RESULTS.md.

use std::fmt::Write;

use super::{Aim, Comparison, Report, Tool};
use crate::compare::measure::Run;
use crate::compare::options::Args;
use crate::compare::peer::Work;
use crate::compare::ratio::Ratio;
use crate::compare::resident;

/// The contents of the file.
pub fn text(report: &Report) -> String {
    let mut out = String::from(
        "# Narrows against its peers\n\nWritten by `bench compare`. results.csv contains every run.\n\n",
    );
    method(&mut out, report);
    for names in report.comparisons.chunk_by(|a, b| a.scenario == b.scenario) {
        comparisons(&mut out, names);
    }
    for rows in report.resident.chunk_by(|a, b| a.tls == b.tls) {
        resident(&mut out, rows);
    }
    curve(&mut out, report);
    if let Some(threads) = &report.threads {
        comparisons(&mut out, std::slice::from_ref(threads));
        out += &shared(report);
    }
    tools(&mut out, report);
    out
}

fn method(out: &mut String, report: &Report) {
    let (server, generators) = &report.cores;
    let pairs = report
        .comparisons
        .iter()
        .filter_map(|found| found.ratio(Run::cpu_per_operation))
        .map(|r| r.confidence);
    let confidence = pairs.fold(f64::NAN, f64::min);
    let confidence =
        if confidence.is_finite() { format!("{:.1} %", confidence * 100.0) } else { "-".to_owned() };
    let instructions = if report
        .comparisons
        .iter()
        .any(|found| found.median(true, Run::instructions_per_operation).is_some())
    {
        "counted by the processor, user and kernel"
    } else {
        "not supported: this kernel or machine offers no counter for them"
    };
    let _ = write!(
        out,
        "- Date: {}. Machine: {}.\n\
         - Server: the same epoll server for all, on core {server}; generators on core {}.\n\
         - Pairs: {}, in the order A B A B, {} s per run, {} s from 10,000 connections on. A ratio is Narrows to the peer: the median over the pairs, and in\n  \
         brackets a distribution-free interval between order statistics; confidence {confidence}.\n\
         - CPU: user and system time of the generator's whole process. Operations: what the server counted.\n\
         - `events` and `http2`: the server is `narrows serve`. Generators are told how many answers to get, and a run is the difference\n  \
         between many and few, so it has no part of a start.\n\
         - Instructions: {instructions}.\n\
         - System calls come from a separate run, because counting them costs time.\n\
         - The kernel charges its work for arriving packets to whichever process is running: on one machine, mostly to\n  \
         the sender.\n\
         - TLS: 1.3, with a P-256 certificate. Narrows and the floors verify it; wrk and h2load verify nothing.\n\n",
        report.date,
        report.machine,
        generators.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        report.pairs,
        report.seconds,
        report.seconds * Args::MANY,
    );
}

fn comparisons(out: &mut String, found: &[Comparison]) {
    let first = &found[0];
    let (unit, rate) = first.units();
    let _ = write!(
        out,
        "## {}\n\n\
         | against | CPU ratio | instructions ratio | rate ratio | aim | verdict | CPU {unit} | {rate} | system calls per operation | peak MiB |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        first.scenario
    );
    for one in found {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.peer,
            ratio(one.ratio(Run::cpu_per_operation), "-"),
            ratio(one.ratio(Run::instructions_per_operation), "not supported"),
            ratio(one.ratio(Run::rate), "-"),
            aim(one.aim()),
            one.verdict(),
            both(one, |run| run.cpu_per_operation() * if one.streams() { 1.0 } else { 1e6 }),
            both(one, Run::rate),
            format_args!("{} / {}", number(one.calls[0]), number(one.calls[1])),
            both(one, |run| run.peak_kib as f64 / 1024.0),
        );
    }
    if matches!(first.task.work, Work::Handshakes(_)) {
        *out += HANDSHAKES;
    }
    for (one, fault) in found.iter().filter_map(|one| Some((one, one.fault()?))) {
        let _ = writeln!(out, "\n{} did not finish every run: {fault}.", one.peer);
    }
    for (one, complaint) in found.iter().filter_map(|one| Some((one, one.complaint()?))) {
        let _ = writeln!(out, "\nErrors in runs against {}, the first: {complaint}.", one.peer);
    }
    out.push('\n');
}

const HANDSHAKES: &str = "\nBoth figures are of the same handshakes, whose two ends are Narrows and nginx: what the generator pays for one, against \
what nginx pays\nto accept it, each with its connection and one request. None was resumed, by Narrows' count. wrk cannot be compared, because it\nresumes.\n";

fn resident(out: &mut String, rows: &[resident::Row]) {
    let Some(first) = rows.first() else { return };
    let (name, aim) = if first.tls { ("tls-memory", 100) } else { ("memory", 10) };
    let _ = write!(
        out,
        "## {name}\n\nResident MiB with one connection and with {}. Idle: requests are sent but not answered. Aim: a difference of at most {aim}.\n\n\
         | tool | idle: one | many | difference | busy: one | many | difference |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
        first.connections
    );
    let mib = |kib: Option<u64>| kib.map(|kib| kib as f64 / 1024.0);
    for row in rows {
        let _ = write!(out, "| {} |", row.tool);
        for [one, many] in [row.idle, row.busy] {
            let difference = mib(many).zip(mib(one)).map(|(many, one)| many - one);
            let _ = write!(out, " {} | {} | {} |", number(mib(one)), number(mib(many)), number(difference));
        }
        out.push('\n');
    }
    out.push('\n');
}

fn curve(out: &mut String, report: &Report) {
    let Some(first) = report.curve.first() else { return };
    let names: Vec<&str> = first.cells.iter().map(|(name, _)| *name).collect();
    let _ = write!(
        out,
        "## curve\n\nCPU us/request for growing numbers of connections; in brackets thousands of requests/s. All are medians.\n\n\
         | connections | {} |\n| ---{} |\n",
        names.join(" | "),
        " | ---".repeat(names.len())
    );
    for point in &report.curve {
        let _ = write!(out, "| {} |", point.connections);
        for (_, runs) in &point.cells {
            let median = |figure: fn(&Run) -> f64, scale: f64| {
                let figures = runs.iter().map(figure).filter(|figure| figure.is_finite());
                number(stats::median(figures.map(|figure| figure * scale)))
            };
            let _ = write!(out, " {} ({}) |", median(Run::cpu_per_operation, 1e6), median(Run::rate, 1e-3));
        }
        out.push('\n');
    }
    out.push('\n');
}

/// What the comparison of two threads can show on these cores.
fn shared(report: &Report) -> String {
    match report.cores.1.len() {
        1 => "Both threads share the single core of the generators, so only the cost can be compared, not the rate.\n\n".to_owned(),
        _ => String::new(),
    }
}

fn tools(out: &mut String, report: &Report) {
    let shown = |tool: &Tool| {
        let all = report.comparisons.iter().flat_map(|found| &found.runs);
        let mut runs = all.flat_map(|(ours, theirs)| [ours, theirs]);
        runs.find(|run| run.tool == tool.name).map_or_else(String::new, |run| format!("`{}`", run.command))
    };
    *out += "## tools\n\n| tool | version | flags | for example |\n| --- | --- | --- | --- |\n";
    for tool in &report.tools {
        let _ = writeln!(out, "| {} | {} | {} | {} |", tool.name, tool.version, tool.flags, shown(tool));
    }
    if !report.missing.is_empty() {
        *out += "\nNot installed, and how to get it:\n\n";
        for (name, get) in &report.missing {
            let _ = writeln!(out, "- {name}: {get}");
        }
    }
    for (scenario, why) in &report.skipped {
        let _ = writeln!(out, "\nNot measured: {scenario}: {why}.");
    }
}

fn ratio(ratio: Option<Ratio>, none: &str) -> String {
    ratio.map_or_else(|| none.to_owned(), |ratio| ratio.text())
}

fn aim(aim: Option<Aim>) -> String {
    match aim {
        Some(Aim::AtMost(most)) => format!("cost <= {most}"),
        Some(Aim::AtLeast(least)) => format!("rate >= {least}"),
        None => String::new(),
    }
}

/// The medians of Narrows and of the peer.
fn both(found: &Comparison, figure: impl Fn(&Run) -> f64) -> String {
    format!("{} / {}", number(found.median(true, &figure)), number(found.median(false, &figure)))
}

/// A number with three significant digits.
fn number(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(x) if x.abs() >= 100.0 => format!("{x:.0}"),
        Some(x) if x.abs() >= 10.0 => format!("{x:.1}"),
        Some(x) if x.abs() >= 1.0 => format!("{x:.2}"),
        Some(x) => format!("{x:.3}"),
    }
}
