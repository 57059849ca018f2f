//! What makes one trial doubtful, as a sentence with its figures; and what to do about it.

use measurement::doubt::{Doubt, Evidence};

use super::options::Asked;
use crate::number::{bytes_per_second, micros, per_second, percent, seconds, several, tenths};

/// What was seen.
pub(crate) fn evidence(seen: &Evidence) -> String {
    match *seen {
        Evidence::GeneratorBusy { share } => {
            format!("the generator's busiest core worked {} of the time", percent(share))
        }
        Evidence::GeneratorsBusy { busy, of, share, more } => generators_busy((busy, of), share, more),
        Evidence::FailedBusy { per_s, share, more } => failed_busy(per_s, share, more),
        Evidence::NoRateFailed { per_s } => no_rate_failed(per_s),
        Evidence::AsTheReference { share, low, high, rounds } => as_the_reference(share, low, high, rounds),
        Evidence::LinkFull { share, bytes_per_s } => link_full(share, bytes_per_s),
        Evidence::Lossy { share, segments } => lossy(share, segments),
        Evidence::RoundTrips { share, way_us, round_trip_us } => round_trips(share, way_us, round_trip_us),
        Evidence::Skewed { share } => {
            format!("the generators' windows were apart by {} of their length", percent(share))
        }
        Evidence::Unequal { ref machine, share } => {
            format!("each connection of {machine} did {} of what the others did on average", percent(share))
        }
        Evidence::Behind { arrivals, late, dropped } => behind(arrivals, late, dropped),
        Evidence::Starved { count, of, oldest_us, longest_us } => starved(count, of, oldest_us, longest_us),
        Evidence::Queueing { under_way, per_s, cycle_us, shown_us } => {
            queueing(under_way, per_s, cycle_us, shown_us)
        }
        Evidence::QuickFailures { share, failing_us, succeeding_us, attempts } => {
            quick_failures(share, failing_us, succeeding_us, attempts)
        }
        Evidence::FailuresEvery { requests, count, of } => failures_every(requests, count, of),
        Evidence::NoContinue { count, of, waited_s } => no_continue(count, of, waited_s),
        Evidence::SessionsRefused { refused, of } => sessions_refused(refused, of),
        Evidence::NoSessions { without, of } => no_sessions(without, of),
        Evidence::FewerStreams { asked, allowed } => fewer_streams(asked, allowed),
        Evidence::OneRead { streams, first_us, whole_us, .. } => one_read(streams, first_us, whole_us),
        Evidence::Bundled { per_read, base_per_read, first_us, base_first_us } => {
            bundled([per_read, base_per_read], [first_us, base_first_us])
        }
        Evidence::NothingEnded { attempts, window_s } => ended(window_s, "none of", attempts),
        Evidence::FewEnded { successes, window_s } => ended(window_s, "only", successes),
        Evidence::FewLatencies { window_s, latencies } => few_latencies(window_s, latencies),
        Evidence::Scatter { times } => {
            format!("tenths of the window scatter by {} times their mean", tenths(times))
        }
        Evidence::Halves { change } => halves(change),
        Evidence::SlowBeginning { share } => {
            format!("the first tenth of the window had {} of the usual operations", percent(share))
        }
        Evidence::TwoPeaks { quick, slow } => two_peaks(quick, slow),
        Evidence::CoresShared => "system and generator had no cores of their own".to_owned(),
        Evidence::Connections { seen, cap } => {
            format!("the server saw {seen} connections at once where the pool may have {cap}")
        }
        Evidence::Ports { connections, of } => {
            format!("{connections} of {of} local ports are in use")
        }
        Evidence::Files { connections, of } => format!("{connections} connections of {of} open files"),
        Evidence::Stolen { share } => of_a_core(share, "went to other machines on the host"),
        Evidence::Throttled { times } => {
            format!("the processor slowed itself down for heat {}", several(times, "time"))
        }
        Evidence::Held { share } => of_a_core(share, "was refused to the system or the generator by a limit"),
        Evidence::Paused { pause_s, share } => paused(pause_s, share),
    }
}

fn ended(window_s: f64, which: &str, operations: u64) -> String {
    format!("{which} {} ended in {}", several(operations, "operation"), seconds(window_s))
}

fn of_a_core(share: f64, what: &str) -> String {
    format!("{} of a core's time {what}", percent(share))
}

fn paused(pause_s: f64, share: f64) -> String {
    format!("the generator stood still for {} at once, {} of the window", seconds(pause_s), percent(share))
}

fn bundled([per_read, base_per_read]: [f64; 2], first_us: [f64; 2]) -> String {
    let [per_read, base_per_read] = [per_read, base_per_read].map(tenths);
    let [first, base_first] = first_us.map(micros);
    format!(
        "buffered: {per_read} events came in a read, {base_per_read} from the base; the first after {first}, {base_first} from the base"
    )
}

fn no_continue(count: u64, of: u64, waited_s: f64) -> String {
    format!("{count} of {} got no 100 Continue within {waited_s} s", several(of, "upload"))
}

fn one_read(streams: u64, first_us: f64, whole_us: f64) -> String {
    let (streams, first, whole) = (several(streams, "stream"), micros(first_us), micros(whole_us));
    format!(
        "buffered: all events of each of {streams} came in one read, {first} after the request, of {whole}"
    )
}

fn sessions_refused(refused: u64, of: u64) -> String {
    format!("the server refused {} of the offered sessions, so these are full handshakes", share(refused, of))
}

fn no_sessions(without: u64, of: u64) -> String {
    format!("{} of the connections had no session to offer, so they made full handshakes", share(without, of))
}

fn fewer_streams(asked: u64, allowed: u64) -> String {
    format!("{} were asked for on each connection, and the server allows {allowed}", several(asked, "stream"))
}

/// The bytes of an exchange matter if they make the way so many times longer.
const MANY_BYTES: f64 = 1.2;

fn link_full(share: f64, bytes_per_s: f64) -> String {
    let (share, whole) = (percent(share), bytes_per_second(bytes_per_s));
    format!("the network carried {share} of the {whole} that it can carry")
}

fn lossy(share: f64, segments: u64) -> String {
    let (share, segments) = (percent(share), several(segments, "segment"));
    format!(
        "the system's machine sent {share} of its TCP segments again ({segments}), because the network lost packets"
    )
}

fn round_trips(share: f64, way_us: f64, round_trip_us: f64) -> String {
    // One connection of Narrows may have been slower than those of the trial.
    let (share, trip) = (percent(share.min(1.0)), micros(round_trip_us));
    if way_us < MANY_BYTES * round_trip_us {
        return format!("{share} of the time to an answer was the way there and back ({trip})");
    }
    let way = micros(way_us);
    format!(
        "{share} of the time to an answer was spent on the network: TCP needs {way} for these bytes, and a round trip takes {trip}"
    )
}

fn share(part: u64, of: u64) -> String {
    percent(part as f64 / of.max(1) as f64)
}

fn generators_busy((busy, of): (u64, u64), share: f64, more: u64) -> String {
    let share = percent(share);
    let limit = match (busy, of) {
        (_, 1) => "the generator was at its limit".to_owned(),
        (busy, of) if busy >= of => format!("all {of} generators were at their limit"),
        (busy, of) => format!("{busy} of {of} generators were at their limit"),
    };
    format!("{limit}: the busiest core worked {share} of the time; {more} more would do for this rate")
}

fn failed_busy(per_s: f64, share: f64, more: Option<u64>) -> String {
    let (rate, share) = (per_second(per_s), percent(share));
    let more = more.map_or_else(String::new, |more| {
        format!("; {} more would do for this rate", several(more, "generator"))
    });
    format!(
        "at {rate}, where the objective failed, the generator's busiest core worked {share} of the time{more}"
    )
}

fn no_rate_failed(per_s: f64) -> String {
    format!("the objective held at every rate that was tried, up to {}", per_second(per_s))
}

fn few_latencies(window_s: f64, latencies: f64) -> String {
    format!("the window of {} is {} mean latencies long", seconds(window_s), tenths(latencies))
}

fn as_the_reference(share: f64, low: f64, high: f64, rounds: u32) -> String {
    let [low, high] = [low, high].map(|end| format!("{:.0}", end * 100.0));
    let rounds = several(rounds.into(), "round");
    format!("the speed was {} [{low}, {high}] of the reference's in {rounds}", percent(share))
}

fn behind(arrivals: u64, late: u64, dropped: u64) -> String {
    let both = share(late + dropped, arrivals);
    format!("of {arrivals} arrivals {late} were sent late and {dropped} not at all ({both})")
}

fn queueing(under_way: u64, per_s: f64, cycle_us: f64, shown_us: f64) -> String {
    let (rate, cycle, shown) = (per_second(per_s), micros(cycle_us), micros(shown_us));
    format!("{under_way} under way at {rate} take {cycle} each, but the latency shown is {shown}")
}

fn starved(count: u64, of: u64, oldest_us: f64, longest_us: f64) -> String {
    let (oldest, longest) = (micros(oldest_us), micros(longest_us));
    format!(
        "{count} of {of} callers had waited up to {oldest} at the end; no answer took longer than {longest}"
    )
}

fn halves(change: f64) -> String {
    let more = if change < 0.0 { "fewer" } else { "more" };
    format!("the second half had {} {more} operations than the first", percent(change.abs()))
}

fn two_peaks(quick: (f64, f64), slow: (f64, f64)) -> String {
    let [quick, slow] = [quick, slow].map(|(share, us)| (percent(share), micros(us)));
    format!("{} of the operations peak near {}, {} near {}", quick.0, quick.1, slow.0, slow.1)
}

fn quick_failures(share: f64, failing_us: f64, succeeding_us: f64, attempts: f64) -> String {
    format!(
        "{} of the operations failed, in {} on average, while successes took {}: {} attempts for each success",
        percent(share),
        micros(failing_us),
        micros(succeeding_us),
        tenths(attempts)
    )
}

fn failures_every(requests: u64, count: u64, of: u64) -> String {
    let which = if count == of { format!("all {of}") } else { format!("{count} of {of}") };
    let next = requests.saturating_mul(2);
    format!("{which} failures on open connections came with request {requests}, {next}, … of one")
}

/// The option, or the field of a file, that changes what these doubts are about.
fn option(doubt: Doubt, asked: Asked) -> &'static str {
    match doubt {
        Doubt::TooShort => asked.either(
            "a longer window (-d), or less work per operation",
            "a longer window (measure_s), or less work per operation",
        ),
        Doubt::FewerStreams => asked.either(
            "fewer --streams and more connections (-c), or a higher limit of the server (SETTINGS_MAX_CONCURRENT_STREAMS)",
            "fewer streams and more connections (the knobs streams and connections), or a higher limit of the server \
             (SETTINGS_MAX_CONCURRENT_STREAMS)",
        ),
        _ => asked.either("a longer --warmup", "a longer warm-up (warmup_s)"),
    }
}

/// What to do about it.
pub(super) fn remedy(doubt: Doubt, asked: Asked) -> &'static str {
    match doubt {
        Doubt::GeneratorBound => {
            "give the generator more cores, threads or machines (--gen), or a quiet machine (`narrows doctor`): the figure is a lower bound"
        }
        Doubt::PathBound => {
            "a faster network, more connections if it is far, or fewer bytes in each exchange: the figure is a lower bound"
        }
        Doubt::WindowsApart => "a longer window, or machines with less other work",
        Doubt::GeneratorsUnequal => {
            "look at that machine and its way to the system (`narrows doctor --sut … --gen …`)"
        }
        Doubt::BehindSchedule => {
            "a lower rate, or more connections; the target or the generator is too slow for this one"
        }
        Doubt::Starved => {
            "percentiles contain only answered requests, so they hide these callers; look at how the system shares its connections among \
             callers, or why it answers nothing more"
        }
        Doubt::HiddenQueueing => {
            "look at the accept queue and at connection times; fewer connections show the true latency"
        }
        Doubt::FailFast => "mend the errors first: with so many of them the rate is meaningless",
        Doubt::ErrorsOnSchedule => {
            "raise the server's limit of requests per connection, or use a client that heeds its close"
        }
        Doubt::NoContinue => {
            "let the server send 100 Continue as soon as it has the head, or do not ask for it (expect = false); no figure is \
             taken from such trials"
        }
        Doubt::NotResumed => {
            "let the server give tickets and accept them in all of its workers, or read these as full handshakes"
        }
        Doubt::Buffered => {
            "send each event by itself (flush it), and let proxies pass on what they have (nginx: proxy_buffering off)"
        }
        Doubt::TooShort | Doubt::FewerStreams | Doubt::WarmUpUnfinished => option(doubt, asked),
        Doubt::UnsteadyWindow => {
            "a longer window, more rounds; stop other work on the machine (`narrows doctor`)"
        }
        Doubt::Bimodal => {
            "read the percentiles on both sides of the gap; look for a cache, a timer or a queue behind the slower peak"
        }
        Doubt::CoresShared => {
            "use a machine with two cores or more (`narrows doctor`); pin a server of your own (`taskset`)"
        }
        Doubt::PoolCapExceeded => {
            "this pool size is no hard limit: compare the client at its true number of connections"
        }
        Doubt::LimitNear => {
            "fewer connections, a wider net.ipv4.ip_local_port_range, or a higher limit of open files"
        }
        Doubt::StolenTime => "a machine of your own, or more rounds",
        Doubt::Throttled => "better cooling, fewer cores at work, or pauses between runs",
        Doubt::Held => "a container or a control group without this limit (cpu.max), or with a higher one",
        Doubt::GeneratorPaused => "--priority, or less other work on the machine (`narrows doctor`)",
    }
}
