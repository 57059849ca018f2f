//! What each of many connections takes of a system's memory.

use lab::findings::{FigureView, PerConnection, Unit};

use crate::number::show;

/// The knob of the number of connections, which the sentence begins with.
const CONNECTIONS: &str = "connections";

/// The memory for each connection, of each system of which it is known. None if it is known of none.
pub(crate) fn per_connection(e: &FigureView<'_>) -> Option<String> {
    let most = e.most_connected();
    let (first, found) = most.first()?;
    let varied = e.axes.iter().filter(|axis| axis.workload && axis.values.len() > 1);
    let point = &first.scenario.point;
    let held = varied.filter(|axis| axis.knob != CONNECTIONS);
    let held = held.filter_map(|axis| Some(format!(", {} {}", axis.knob, axis.show(point.get(&axis.knob)?))));
    let each = most.iter().map(|(e, found)| format!("{} {}", e.scenario.system, interval(found)));
    Some(format!(
        "memory for each of {} connections{}, at most: {} (the peak less the memory at rest)",
        found.connections,
        held.collect::<String>(),
        each.collect::<Vec<_>>().join(", ")
    ))
}

fn interval(found: &PerConnection) -> String {
    let [bytes, low, high] = [found.bytes, found.interval.0, found.interval.1].map(|b| show(b, Unit::Bytes));
    format!("{bytes} [{low}, {high}]")
}
