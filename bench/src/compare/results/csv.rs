//! Every run, one a line.

use super::Report;
use crate::compare::measure::Run;

const HEAD: &str = "date,scenario,against,pair,tool,version,connections,threads,operations,seconds,cpu_s,\
                    cpu_us_per_operation,instructions_per_operation,operations_per_s,peak_kib,fault,errors,command\n";

/// The file.
pub fn text(report: &Report) -> String {
    let mut out = HEAD.to_owned();
    let compared = report.comparisons.iter().chain(&report.threads);
    for found in compared {
        for (pair, (ours, theirs)) in found.runs.iter().enumerate() {
            for run in [ours, theirs] {
                let place = [found.scenario.clone(), found.peer.to_owned(), (pair + 1).to_string()];
                out += &line(report, place, (found.task.connections, found.task.threads), run);
            }
        }
    }
    for point in &report.curve {
        for (round, run) in point.cells.iter().flat_map(|(_, runs)| runs.iter().enumerate()) {
            let place = ["curve".to_owned(), String::new(), (round + 1).to_string()];
            out += &line(report, place, (point.connections, 1), run);
        }
    }
    out
}

fn line(report: &Report, place: [String; 3], size: (usize, usize), run: &Run) -> String {
    let version = report.tools.iter().find(|tool| tool.name == run.tool).map_or("", |tool| &tool.version);
    let mut cells = vec![report.date.clone()];
    cells.extend(place);
    cells.extend([run.tool.to_owned(), version.to_owned(), size.0.to_string(), size.1.to_string()]);
    let cost = run.cpu_per_operation() * 1e6;
    let figures = [run.operations, run.seconds, run.cpu, cost, run.instructions_per_operation(), run.rate()];
    cells.extend(figures.map(|x| if x.is_finite() { format!("{x:.6}") } else { String::new() }));
    let said = [&run.fault, &run.complaint].map(|text| text.clone().unwrap_or_default());
    cells.push(run.peak_kib.to_string());
    cells.extend(said);
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
