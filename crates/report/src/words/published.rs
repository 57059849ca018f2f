//! What an audit finds in a published table, and what makes its rows doubtful.

use lab::experiment::grid::show_size;
use lab::findings::{Code, FEWEST_TRIALS, RANKED_ERRORS, Unit};
use published::{
    Audit, AuditWarning, Carried, Censored, FIRST_ROWS, Flaw, Found, Inverted, LessTime, Misprint,
    MisprintKind, Ranking, Seen, SendersRate, Step, UnsteadyRow, VoidRow,
};
use systems::{Point, Value, Workload};

use super::caption::{Caption, Captioned};
use super::doubts::evidence;
use super::options::Asked;
use super::warnings::{self, Advice};
use crate::number::{
    chosen_percent, exact_rate, factor, factors, millis, percent, seconds, several, show, tenths, times,
};

/// Up to this many rows are named. More are counted by system.
const NAMED: usize = 4;

/// What the figures show, one sentence for each finding.
pub(crate) fn findings(audit: &Audit) -> Vec<String> {
    audit.found.iter().map(found).collect()
}

pub(super) fn found(of: &Found) -> String {
    match of {
        Found::Order { verified, void } => {
            let each: Vec<String> =
                verified.iter().map(|(server, per_s)| format!("{server} {}", exact_rate(*per_s))).collect();
            let without = if void.is_empty() {
                String::new()
            } else {
                format!("; without a figure: {}", void.join(", "))
            };
            format!("order by verified requests: {}{without}", each.join(" > "))
        }
        Found::Law { client, limit, carried, rows, within } => format!(
            "{client}: Error % is 100 x (1 - {limit} x connections / attempts) in all {rows} rows, within {} points; each connection \
             carried {} requests on average, which fits a server that closes it after {limit} and a pool that then fails at once",
            show(*within, Unit::Count),
            tenths(*carried)
        ),
        Found::Cliff { way, from, to, fewer } => {
            format!(
                "{way} has a cliff: there are {} fewer messages of {to} than of {from} bytes",
                factor(*fewer)
            )
        }
        Found::Ways { of, against, sizes } => {
            let each: Vec<String> =
                sizes.iter().map(|(size, ratio)| format!("{} at {size}", times(*ratio))).collect();
            format!("messages of {of} against {against}: {}", each.join(", "))
        }
        Found::Repeated { runtime, knobs, times_ms } => repeated(runtime, knobs, times_ms),
        Found::Systems { of, against, size, ratios } => {
            let with = |(runtime, ratio): (&String, &f64)| {
                let with = if runtime.is_empty() { String::new() } else { format!(" with {runtime}") };
                format!("{}{with}", times(*ratio))
            };
            let each: Vec<String> = ratios.iter().map(with).collect();
            let turns = ratios.values().any(|r| *r < 1.0) && ratios.values().any(|r| *r > 1.0);
            let turns = if turns {
                "; which of them is faster depends on the runtime, or on a single upload"
            } else {
                ""
            };
            format!("time of {of} against {against} at {}: {}{turns}", show_size(*size), each.join(", "))
        }
        Found::Step(of) => clear_step(of),
    }
}

fn clear_step(of: &Step) -> String {
    let (low, high) = range(of);
    let how = if high < 1.0 {
        format!("{} less", factors(1.0 / high, 1.0 / low))
    } else {
        format!("{} more", factors(low, high))
    };
    let comparisons = match of.ratios.len() {
        1 => "the one comparison".to_owned(),
        2 => "both comparisons".to_owned(),
        n => format!("all {n} comparisons"),
    };
    format!("{}: {how} time in {comparisons}", step(of))
}

fn repeated(runtime: &str, knobs: &Point, times_ms: &[f64]) -> String {
    let knob = |(knob, value): (&String, &Value)| match value {
        Value::Integer(bytes) if knob == "size" => format!("{knob} {}", show_size(*bytes)),
        value => format!("{knob} {value}"),
    };
    let knobs: Vec<String> = knobs.iter().map(knob).collect();
    let each: Vec<String> = times_ms.iter().map(|ms| millis(*ms)).collect();
    let apart = times_ms.last().zip(times_ms.first()).map_or(0.0, |(most, least)| most / least - 1.0);
    format!(
        "{runtime}: one configuration ({}) stands {} times in the document's tables: {}, {} apart",
        knobs.join(", "),
        times_ms.len(),
        each.join(", "),
        percent(apart)
    )
}

fn step(of: &Step) -> String {
    format!("`{}` {} instead of {}", of.knob, of.to, of.from)
}

/// The smallest and the largest ratio of a step.
fn range(of: &Step) -> (f64, f64) {
    let low = of.ratios.iter().copied().fold(f64::INFINITY, f64::min);
    (low, of.ratios.iter().copied().fold(0.0, f64::max))
}

/// The table as published, and the ranking where there is one.
pub(crate) fn tables(audit: &Audit) -> Vec<Captioned> {
    let more = audit.left_out;
    let left_out = (more > 0).then(|| format!("the first {FIRST_ROWS} rows of each; {more} more with --all"));
    let messages = audit.columns.iter().find(|column| column.name == "messages");
    let about = match messages.filter(|_| audit.workload == Workload::Frames) {
        Some(messages) => {
            let heading = &messages.heading;
            format!("As published, {} cells: {heading}, of one run and of the other.", audit.rows)
        }
        None => format!("As published, {} rows.", audit.rows),
    };
    let caption = Caption { title: audit.title.clone(), about, notes: left_out.into_iter().collect() };
    let ranking = audit.ranking.as_ref().map(ranking);
    std::iter::once(Captioned { caption, table: audit.table.clone() }).chain(ranking).collect()
}

fn ranking(ranking: &Ranking) -> Captioned {
    let few = chosen_percent(RANKED_ERRORS);
    let notes = [
        (format!("no row with {few} errors or fewer"), &ranking.unranked),
        ("above what the pool can carry one request at a time".to_owned(), &ranking.above_ceiling),
    ];
    let notes = notes.into_iter().filter(|(_, rows)| !rows.is_empty());
    let caption = Caption {
        title: "Ranking".to_owned(),
        about: format!(
            "Each client's best row: as published, and among the rows with {few} errors or fewer."
        ),
        notes: notes.map(|(note, rows)| format!("{note}: {}", rows.join(", "))).collect(),
    };
    Captioned { caption, table: ranking.table.clone() }
}

/// A doubt, with what to do about it.
pub(crate) fn advice(warning: &AuditWarning) -> Advice {
    let message = seen(&warning.seen);
    let places = places(warning, &message);
    Advice { message: format!("{message} ({places})"), remedy: remedy(warning.code) }
}

/// In how many rows, and of which systems; or which rows, if they are few and not named yet.
fn places(warning: &AuditWarning, message: &str) -> String {
    let AuditWarning { count, of, rows, systems, .. } = warning;
    if count == of {
        return format!("in all {of} rows");
    }
    let place = format!("in {count} of {of} rows");
    let named = if rows.len() <= NAMED {
        let known = rows.iter().all(|row| message.contains(row.as_str()));
        rows.iter().filter(|_| !known).cloned().collect::<Vec<_>>()
    } else {
        systems.iter().map(|(system, count)| format!("{system} {count}")).collect()
    };
    if named.is_empty() { place } else { format!("{place}: {}", named.join(", ")) }
}

fn remedy(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::CensoredLatency => "a load generator that keeps every sample; read the maximum as a cap",
        Flaw::MeanWithoutSpread => "medians over rounds, with their spread: one slow operation moves a mean",
        Flaw::WithinNoise => "do not read these as differences; more rounds, side by side, might show one",
        Flaw::AboveCeiling => {
            "count the connections at the server, and check that each answer belongs to its request"
        }
        Flaw::Contradiction => "measure it again before it is quoted",
        Flaw::MalformedCell => "look the figure up where it was taken",
        Flaw::Lab(Code::Errors) => "rows above 1 % of errors are not ranked; the classes say what to change",
        Flaw::Lab(code) => warnings::remedy(code, Asked::File),
    }
}

fn each<T>(rows: &[T], said: impl Fn(&T) -> String) -> String {
    rows.iter().map(said).collect::<Vec<_>>().join("; ")
}

pub(super) fn seen(of: &Seen) -> String {
    match of {
        Seen::Evidence(rows) => each(rows, |(row, seen)| format!("{row}: {}", evidence(seen))),
        Seen::FewTrials { each } => {
            format!("each row has only {}, fewer than {FEWEST_TRIALS}", several((*each).into(), "trial"))
        }
        Seen::Errors { void } => {
            format!("operations failed{}", void.iter().map(void_row).collect::<String>())
        }
        Seen::ManyErrors { above } => {
            format!("more than {} of the operations failed", chosen_percent(*above))
        }
        Seen::Censored(rows) => each(rows, censored),
        Seen::Unsteady(rows) => each(rows, unsteady),
        Seen::OnSchedule(clients) => each(clients, carried),
        Seen::FewOperations { rows, window_s } => each(rows, |(row, ended)| {
            let window = window_s.map_or_else(String::new, |window_s| format!(" in {}", seconds(window_s)));
            format!("{row}: only {} ended{window}", several(*ended as u64, "operation"))
        }),
        Seen::SendersRate { ways, faster } => {
            format!("{}{}", each(ways, senders_rate), faster.iter().map(more_than_that).collect::<String>())
        }
        Seen::Inverted(sizes) => each(sizes, inverted),
        Seen::Misprints(cells) => each(cells, misprint),
        Seen::LessTime(uploads) => each(uploads, less_time),
        Seen::Noise(steps) => format!(
            "steps point both ways, or are no larger than the differences between rows of one configuration: {}",
            each(steps, noise)
        ),
        Seen::Mean { operations } => {
            let of = operations.map_or_else(String::new, |n| format!(" of {}", several(n, "upload")));
            format!("each figure is a mean{of}, with neither spread nor median")
        }
        Seen::FailFast { row, failed, mean_ms, timeout_ms } => format!(
            "{row}: {} failed, in {} on average at most, where the timeout is {}: requests were refused, and the row ended sooner",
            percent(*failed),
            millis(*mean_ms),
            millis(*timeout_ms)
        ),
        Seen::TooShort { row, lasted_s, longest_s, limit_s } => {
            let [lasted, longest, limit] = [lasted_s, longest_s, limit_s].map(|s| seconds(*s));
            format!(
                "{row}: all attempts were over after {lasted}, while the longest row lasted {longest}; shorter than {limit}"
            )
        }
        Seen::AboveCeiling { row, per_s, connections, ceiling_per_s } => format!(
            "{row}: {}, where {connections} connections carry {} one request at a time: there was pipelining, there were more \
             connections, or answers belonged to other requests",
            exact_rate(*per_s),
            exact_rate(*ceiling_per_s)
        ),
        Seen::Unbound { row, under_way, per_s, each_s, timeout_s, failed } => format!(
            "{row}: {under_way} under way at {} take {} each, although the timeout is {} and {} failed; no latency is shown",
            exact_rate(*per_s),
            seconds(*each_s),
            seconds(*timeout_s),
            percent(*failed)
        ),
    }
}

fn void_row(of: &VoidRow) -> String {
    format!(
        "; the row of {} is void: {} requests, {} read errors, {} read, and nothing verified",
        of.row,
        of.requests,
        of.read_errors,
        show(of.read_bytes, Unit::Bytes)
    )
}

fn carried(of: &Carried) -> String {
    let Carried { client, limit, carried } = of;
    let carried = tenths(*carried);
    format!("{client}: each connection carried {limit} requests ({carried} on average), and no more")
}

fn senders_rate(of: &SendersRate) -> String {
    format!(
        "{}: messages of {} and of {} bytes come at rates {} apart, although the bytes are {} times as many",
        of.way,
        of.from,
        of.to,
        percent(of.apart),
        show((of.to / of.from).round(), Unit::Count)
    )
}

fn more_than_that((way, ratio): &(String, f64)) -> String {
    format!("; with {way} the same sender reaches {} of that", times(*ratio))
}

fn inverted(of: &Inverted) -> String {
    let Inverted { size, framing, order, others } = of;
    let first = order.first().map_or("", String::as_str);
    let order = order.join(" > ");
    format!(
        "at {size} bytes {{packet,{framing}}} has the order {order}, and at {others} other sizes {first} is the slowest"
    )
}

fn less_time(of: &LessTime) -> String {
    let (small, large) = (show_size(of.small), show_size(of.large));
    let (slow, quick) = (millis(of.small_ms), millis(of.large_ms));
    let who = format!("{} {}", of.system, of.runtime);
    format!("more work took less time: {} took {slow} for {small} and {quick} for {large}", who.trim())
}

fn noise(of: &Step) -> String {
    let (low, high) = range(of);
    format!("{}: {} the time", step(of), factors(low, high))
}

fn censored(of: &Censored) -> String {
    let cap = of.cap.map_or_else(String::new, |cap| {
        format!(
            "; they took {} or more, so the mean is at least {} instead of {}, and the maximum of {} is only the cap",
            millis(cap.cap_ms),
            millis(cap.least_mean_ms),
            millis(cap.mean_ms),
            millis(cap.max_ms)
        )
    });
    format!("{}: {} answers were counted, and their latency was left out{cap}", of.row, of.answers)
}

fn unsteady(of: &UnsteadyRow) -> String {
    let scatter =
        of.scatter.map(|scatter| format!("a thread's rate scatters by {} times its mean", tenths(scatter)));
    let threads = of.threads.map(|rates| {
        let (together, done) = (exact_rate(rates.together_per_s), exact_rate(rates.done_per_s));
        format!("{} threads at their mean make {together} where {done} was done", rates.threads)
    });
    let why: Vec<String> = scatter.into_iter().chain(threads).collect();
    format!("{}: {}", of.row, why.join(", and "))
}

fn misprint(cell: &Misprint) -> String {
    let what = match cell.kind {
        MisprintKind::ExtraDash => "a dash too many",
        MisprintKind::LargerFirst => "the larger figure first",
    };
    format!("\"{}\" has {what}", cell.printed)
}
