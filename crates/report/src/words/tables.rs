//! The words above and below the tables of an experiment.

use lab::ask::{Ask, Demand, ProxyProtocol};
use lab::experiment::Figure;
use lab::experiment::grid::Axis;
use lab::findings::{Effort, FigureTable, FigureView, Note, RANKED_ERRORS, TableKind};
use lab::meter::Meter;
use lab::observation::Timing;
use stats::LEVEL;

use super::caption::{Caption, Captioned};
use super::tuned;
use super::verdicts::{comparisons, effects};
use crate::number::{chosen_percent, seconds, several};

/// All tables of an experiment: those of the figures, the published shape first, then effects and comparisons.
pub(crate) fn tables(e: &FigureView<'_>) -> Vec<Captioned> {
    let of_search = e.tuned.iter().flat_map(|found| tuned::tables(e, found));
    let figures = e.tables.iter().map(|of| Captioned { caption: caption(e, of), table: of.table.clone() });
    of_search.chain(figures).chain(effects(e)).chain(comparisons(e)).collect()
}

/// The words of a table of figures.
pub(crate) fn caption(e: &FigureView<'_>, table: &FigureTable) -> Caption {
    let (title, about) = match table.kind {
        TableKind::List if e.tuned.is_some() => {
            ("What was measured".to_owned(), format!("{}{}", fixed(e), means(e)))
        }
        TableKind::List | TableKind::Ranking => (e.title.clone(), format!("{}{}", fixed(e), means(e))),
        TableKind::Pivot => (e.title.clone(), format!("{}{}{}", fixed(e), means(e), columns(e))),
        TableKind::Counts => (format!("{}: the reason", e.title), counts(e)),
    };
    Caption { title, about, notes: table.notes.iter().map(note).collect() }
}

/// What is the same in every row: `Everywhere: size 64M, concurrency 1. `
pub(crate) fn fixed(e: &FigureView<'_>) -> String {
    let has = |axis: &Axis| {
        let mut own = e.estimates.iter().filter(|estimate| !estimate.is_reference());
        own.all(|estimate| estimate.scenario.point.contains_key(&axis.knob))
    };
    let fixed = e.axes.iter().filter(|axis| axis.values.len() == 1);
    let (everywhere, somewhere): (Vec<&Axis>, Vec<&Axis>) = fixed.partition(|axis| has(axis));
    let said = |(place, axes): (&str, Vec<&Axis>)| {
        let words: Vec<String> =
            axes.into_iter().map(|axis| format!("{} {}", axis.knob, axis.show(&axis.values[0]))).collect();
        if words.is_empty() { String::new() } else { format!("{place}: {}. ", words.join(", ")) }
    };
    let fixed = [("Everywhere", everywhere), ("Where there is such a knob", somewhere)].map(said).concat();
    match meter_of(e) {
        Some(meter) => format!("{fixed}{}", measured_by(e, meter)),
        None => format!("{fixed}{}{}", timing(e), what_was_asked(e)),
    }
}

/// What was sent, and what both had to answer; without an own request, what the workload checks. Another program that measured
/// verifies nothing that we know of.
pub(crate) fn equal_work(e: &FigureView<'_>) -> String {
    if let Some(meter) = meter_of(e) {
        return format!("measured by {}; answers not verified", meter.name);
    }
    match what_was_asked(e).trim() {
        "" => "every operation was verified as the workload demands".to_owned(),
        asked => asked.trim_end_matches('.').to_owned(),
    }
}

fn what_was_asked(e: &FigureView<'_>) -> String {
    let streams = e.estimates.iter().any(|estimate| estimate.events_per_read.is_some());
    e.ask.as_deref().map_or_else(String::new, |ask| asked(ask, streams))
}

/// The other program that measured, if Narrows did not.
fn meter_of<'a>(e: &'a FigureView<'_>) -> Option<&'a Meter> {
    e.ask.as_ref()?.meter.as_ref()
}

/// Who measured, how, and what that means.
fn measured_by(e: &FigureView<'_>, meter: &Meter) -> String {
    let Timing { warmup_s, measure_s, .. } = e.timing;
    let warmup =
        if warmup_s > 0.0 { format!("Each trial warms up for {warmup_s} s. ") } else { String::new() };
    let drive = if meter.is_timed() { format!("Each drive lasts {measure_s} s. ") } else { String::new() };
    let command: Vec<&str> = meter.command.iter().map(String::as_str).collect();
    let command = crate::printable(&command.join(" "));
    format!("Measured by {}; answers not verified: `{command}`. {warmup}{drive}", meter.name)
}

/// The times of a trial of commands, where they are not the usual ones: those depend on what a first look shows.
fn timing(e: &FigureView<'_>) -> String {
    let Timing { warmup_s, measure_s, .. } = e.timing;
    let window = if measure_s == 1.0 { String::new() } else { format!("Each window lasts {measure_s} s. ") };
    let warmup = match warmup_s {
        _ if e.base.is_none() => return String::new(),
        0.0 => "Cold: each window begins with the first requests. ".to_owned(),
        0.5 => String::new(),
        _ => format!("Each trial warms up for {warmup_s} s. "),
    };
    warmup + &window
}

/// What was sent, and what was demanded of each answer.
fn asked(ask: &Ask, streams: bool) -> String {
    let status = ask.status.map_or("2xx".to_owned(), |status| status.to_string());
    let decoded = if ask.compressed { ", decoded" } else { "" };
    let body = match &ask.answer {
        Demand::Any if ask.expect.is_empty() => " with any content".to_owned(),
        Demand::Any => String::new(),
        Demand::Events(events) => format!(", a stream of {}", several(*events, "event")),
        Demand::Length(length) => format!(" with {} of any content{decoded}", several(*length, "byte")),
        Demand::Content(bytes) => {
            let a_stream = if streams { ", a stream" } else { "" };
            format!("{a_stream} with the same {}{decoded}", several(bytes.0.len() as u64, "byte"))
        }
    };
    let after = ask.first.as_ref().map_or_else(String::new, |first| {
        format!(", after one {} {}", first.method, crate::printable(&first.path))
    });
    let header = match ask.proxy_protocol {
        None => "",
        Some(ProxyProtocol::One) => "Connections began with the PROXY protocol, version 1. ",
        Some(ProxyProtocol::Two) => "Connections began with the PROXY protocol, version 2. ",
    };
    let checks: String = ask.expect.iter().map(|check| format!(" and met `{check}`")).collect();
    if let Some(list) = &ask.list {
        let (requests, file) = (several(list.requests, "request"), crate::printable(&list.file));
        return format!(
            "The {requests} of {file}{after}: every answer was {status}, or as its request expects{checks}. {header}"
        );
    }
    format!("{} {}{after}: every answer was {status}{body}{checks}. {header}", ask.method, ask.path)
}

/// What the numbers are.
fn means(e: &FigureView<'_>) -> String {
    let objective = e.objective.as_ref().map_or_else(String::new, ToString::to_string);
    let of_objective = format!("of the highest rate of requests at which {objective} held");
    let by = meter_of(e).map(|meter| meter.name.as_str());
    let of_meter = |what: &str| by.map_or_else(String::new, |by| format!("of {what}, as {by} says"));
    let (rate, p50, p99) = (
        of_meter("requests a second"),
        of_meter("each trial's median latency"),
        of_meter("each trial's 99th percentile"),
    );
    let what = match e.figure {
        Figure::RequestsPerS if by.is_some() => rate.as_str(),
        Figure::P50Us if by.is_some() => p50.as_str(),
        Figure::P99Us if by.is_some() => p99.as_str(),
        Figure::MaxRate => of_objective.as_str(),
        Figure::MsPerUpload => "of each trial's mean time of an upload",
        Figure::BytesPerS => "of verified payload bytes a second",
        Figure::FramesPerS => "of frames a second, verified by the receiver's count",
        Figure::RequestsPerS => "of verified answers a second",
        Figure::FirstByteUs => {
            "of each trial's median time to the first byte of an answer that came in parts"
        }
        Figure::FirstEventUs => {
            "of each trial's median time to the first event of a stream that is not empty"
        }
        Figure::FirstEventP99Us => {
            "of each trial's 99th percentile of the time to the first event of a stream"
        }
        Figure::GapUs => "of each trial's median gap between two reads with events of a stream",
        Figure::GapP99Us => {
            "of each trial's 99th percentile of the gaps between two reads with events of a stream"
        }
        Figure::LongestGapUs => "of each trial's median of the longest gap of each stream",
        Figure::WholeUs => "of each trial's median time of a whole answer",
        Figure::EventsPerRead => "of the events of streams for each read that brought any",
        Figure::EventsPerS => "of the events of streams a second",
        Figure::GoodPerS => "of the answers a second that met all limits of their times",
        Figure::CpuPerUnit => "of the system's CPU time for each unit of work",
        Figure::CallsPerUnit => "of the system's calls of the kernel for each unit of work",
        Figure::InstructionsPerUnit => "of the system's instructions for each unit of work",
        Figure::MemoryBytes => "of the largest proportional set size in each trial",
        Figure::StartMs => "of the time from the start of the program to its first right answer",
        Figure::FirstRequestUs => "of the time of the first request to a new process",
        Figure::IdleMemoryBytes => "of the proportional set size when it was ready, before any load",
        Figure::IdleCpu => "of the CPU time in a second without load",
        Figure::P50Us => return percentiles(e, "median"),
        Figure::P99Us => return percentiles(e, "99th percentile"),
    };
    let comma = if e.tuned.is_some() { "," } else { "" };
    format!("Means over {}{comma} {what}, {}.", rounds(e), with_interval())
}

fn rounds(e: &FigureView<'_>) -> String {
    match &e.tuned {
        Some(_) => "the rounds of each setting".to_owned(),
        None => several(e.rounds.into(), "round"),
    }
}

fn with_interval() -> String {
    format!("with the {} interval of this machine and hour", chosen_percent(1.0 - LEVEL))
}

/// What the numbers are if they are percentiles, and what the windows are too short to show.
fn percentiles(e: &FigureView<'_>, which: &str) -> String {
    /// Of what comes this many times in a given time on average, one in twenty such times sees nothing.
    const ON_AVERAGE: f64 = 3.0;
    let fewest = e.estimates.iter().map(|e| e.trials).filter(|trials| *trials > 0).min();
    let unseen = fewest.filter(|_| e.tuned.is_none()).map(|trials| {
        let seen_s = f64::from(trials) * e.timing.measure_s;
        format!(
            " The windows of a row last {} together. A stall that comes less often than every {} may be missed.",
            seconds(seen_s),
            seconds(seen_s / ON_AVERAGE)
        )
    });
    let unseen = unseen.unwrap_or_default();
    format!(
        "The {which} of the response times of all answers in {}, from when a request was due, {}.{unseen}",
        rounds(e),
        with_interval()
    )
}

/// What the columns of a pivot are.
fn columns(e: &FigureView<'_>) -> String {
    let varied = e.axes.iter().filter(|axis| axis.values.len() > 1 && axis.knob != "frame_size");
    let knobs: Vec<&str> = varied.map(|axis| axis.knob.as_str()).collect();
    if knobs.is_empty() { String::new() } else { format!(" Columns are {}.", knobs.join("/")) }
}

fn counts(e: &FigureView<'_>) -> String {
    let any = |of: fn(&Effort) -> bool| e.estimates.iter().any(|estimate| of(&estimate.work));
    let (called, traced) = (any(|work| work.calls_per_unit.is_some()), any(|work| work.traced));
    let tcp = any(|work| work.tcp_in.is_some() || work.tcp_out.is_some());
    let apart = match (called && !traced, tcp) {
        (true, true) => "System calls, reads and what TCP did are",
        (true, false) => "System calls and reads are",
        (false, true) => "What TCP did is",
        (false, false) => "",
    };
    let mut words = vec!["Why: what the kernel did for the system in the windows.".to_owned()];
    if !apart.is_empty() {
        words.push(format!("{apart} counted in a short drive of its own after the first round."));
    }
    if traced {
        let tracing = "System calls and reads are counted by tracing the system (ptrace), in a short drive after the first round. \
                       Tracing slows it, and a slow system may do its work in fewer calls or in more.";
        words.push(tracing.to_owned());
    }
    if called {
        words.push("A system that reads through io_uring has no calls for it.".to_owned());
    }
    words.join(" ")
}

fn note(note: &Note) -> String {
    match note {
        Note::NothingFailed => "no trial failed, no operation failed".to_owned(),
        Note::Errors { system, classes } => {
            let mut classes: Vec<(&String, &u64)> = classes.iter().collect();
            classes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let classes: Vec<String> =
                classes.into_iter().map(|(class, count)| format!("{count} {class}")).collect();
            format!("errors of {system}: {}", classes.join(", "))
        }
        Note::Unranked => format!(
            "rows without a rank have more than {} errors, no figure, fewer than 3 trials, counts that contradict the server's, or \
             a warning that disqualifies them (more connections than the pool may have, a generator at its limit or behind its \
             schedule, failures quicker than successes)",
            chosen_percent(RANKED_ERRORS)
        ),
        Note::Explained { scenarios } => format!(
            "ranked with more than {} errors, because the server announced each close, and no more requests were lost than it closed \
             connections: {}",
            chosen_percent(RANKED_ERRORS),
            scenarios.join("; ")
        ),
        Note::Tied => "rows of equal rank are tied: what separates them may be chance".to_owned(),
        Note::CountsAgree => "the clients' counts agree with the server's in every trial".to_owned(),
        Note::NotComparable { scenarios } => {
            format!("not comparable (errors, or the generator was the limit): {}", scenarios.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use lab::findings::{Effort, Note, Sent, TableKind};

    use super::{caption, counts, note};
    use crate::made_up::{found, rule, view};

    #[test]
    fn what_is_held_fixed_says_where() {
        let rules = [rule("a", &[], 1.0), rule("b", &[], 1.0)];
        let mut e =
            found(&["a", "b"], &[("pools", &[1]), ("pool_size", &[8]), ("concurrency", &[64])], &rules);
        let table = e.figures[0].tables[0].clone();
        assert_eq!(table.kind, TableKind::Ranking);
        let about = caption(&view(&e), &table).about;
        let begins =
            "Everywhere: pools 1, pool_size 8, concurrency 64. Means over 4 rounds of verified answers";
        assert!(about.starts_with(begins), "{about}");
        let b = e.figures[0].estimates.iter_mut().find(|estimate| estimate.scenario.system == "b").unwrap();
        b.scenario.point.remove("pool_size");
        let about = caption(&view(&e), &table).about;
        let begins = "Everywhere: pools 1, concurrency 64. Where there is such a knob: pool_size 8. Means";
        assert!(about.starts_with(begins), "{about}");
    }

    #[test]
    fn what_is_counted_apart_is_said() {
        let rules = [rule("a", &[], 1.0), rule("b", &[], 1.0)];
        let mut e = found(&["a", "b"], &[("pools", &[1])], &rules);
        let mut said = |counted: &[fn(&mut Effort)]| {
            e.figures[0].estimates[0].work = Effort::default();
            counted.iter().for_each(|set| set(&mut e.figures[0].estimates[0].work));
            counts(&view(&e))
        };
        let calls: fn(&mut Effort) = |work| work.calls_per_unit = Some(1.0);
        let tcp: fn(&mut Effort) = |work| work.tcp_in = Some(Sent::default());
        let windows = "Why: what the kernel did for the system in the windows.";
        assert_eq!(said(&[]), windows);
        let uring = "A system that reads through io_uring has no calls for it.";
        let drive = "counted in a short drive of its own after the first round.";
        assert_eq!(said(&[calls]), format!("{windows} System calls and reads are {drive} {uring}"));
        assert_eq!(said(&[tcp]), format!("{windows} What TCP did is {drive}"));
        let traced = said(&[tcp, calls, |work| work.traced = true]);
        let begins =
            format!("{windows} What TCP did is {drive} System calls and reads are counted by tracing");
        assert!(traced.starts_with(&begins) && traced.ends_with(uring), "{traced}");
    }

    #[test]
    fn notes_say_what_is_not_in_the_cells() {
        let scenarios = ["a x=1", "a x=2"].map(str::to_owned).to_vec();
        let classes = [("busy", 3), ("pool_wait", 3), ("timeout", 1200)];
        let classes = classes.map(|(class, count)| (class.to_owned(), count)).into();
        for (of, said) in [
            (
                Note::Errors { system: "a".to_owned(), classes },
                "errors of a: 1200 timeout, 3 busy, 3 pool_wait",
            ),
            (
                Note::NotComparable { scenarios },
                "not comparable (errors, or the generator was the limit): a x=1; a x=2",
            ),
        ] {
            assert_eq!(note(&of), said);
        }
        assert!(
            note(&Note::Unranked).starts_with("rows without a rank have more than 1 % errors, no figure")
        );
    }
}
