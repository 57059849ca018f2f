//! results.csv: one line per run.

use super::Report;
use crate::compare::measure::Run;

const HEAD: &str = "date,scenario,against,pair,tool,version,connections,threads,operations,seconds,cpu_s,\
                    cpu_us_per_operation,instructions_per_operation,operations_per_s,peak_kib,fault,errors,command\n";

/// The contents of the file.
pub fn text(report: &Report) -> String {
    let mut out = HEAD.to_owned();
    let compared = report.comparisons.iter().chain(&report.threads);
    for found in compared {
        for (pair, (ours, theirs)) in found.runs.iter().enumerate() {
            for run in [ours, theirs] {
                let place = Place {
                    scenario: &found.scenario,
                    against: found.peer,
                    pair: pair + 1,
                    connections: found.task.connections,
                    threads: found.task.threads,
                };
                out += &line(report, &place, run);
            }
        }
    }
    for point in &report.curve {
        for (round, run) in point.cells.iter().flat_map(|(_, runs)| runs.iter().enumerate()) {
            let connections = point.connections;
            let place = Place { scenario: "curve", against: "", pair: round + 1, connections, threads: 1 };
            out += &line(report, &place, run);
        }
    }
    out
}

/// Where a run belongs.
struct Place<'a> {
    scenario: &'a str,
    against: &'a str,
    /// Number of the pair or round, from 1.
    pair: usize,
    connections: usize,
    threads: usize,
}

fn line(report: &Report, place: &Place<'_>, run: &Run) -> String {
    let version = report.tools.iter().find(|tool| tool.name == run.tool).map_or("", |tool| &tool.version);
    let mut cells = vec![report.date.clone()];
    cells.extend([place.scenario.to_owned(), place.against.to_owned(), place.pair.to_string()]);
    cells.extend([run.tool.to_owned(), version.to_owned()]);
    cells.extend([place.connections, place.threads].map(|count| count.to_string()));
    let cost = run.cpu_per_operation() * 1e6;
    let figures = [run.operations, run.seconds, run.cpu, cost, run.instructions_per_operation(), run.rate()];
    cells.extend(figures.map(|x| if x.is_finite() { format!("{x:.6}") } else { String::new() }));
    let errors = [&run.fault, &run.complaint].map(|text| text.clone().unwrap_or_default());
    cells.push(run.peak_kib.to_string());
    cells.extend(errors);
    cells.push(run.command.clone());
    let quoted = cells.iter().map(|cell| quote(cell)).collect::<Vec<_>>();
    quoted.join(",") + "\n"
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
