//! The common part of the Rust client drivers: it reads and writes the JSON lines, keeps the callers and their counters, and checks
//! every answer. It implements docs/contracts.md, "A client driver". A client only has to provide the trait [`Client`].
//! It does not report when a connection became a request's own, because no client that uses it can tell.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// An answer: the status, the id and the body.
pub type Answer = (u16, Option<String>, Vec<u8>);

/// Why there was no answer.
pub struct Failure {
    /// A class of the contract.
    pub class: &'static str,
    /// The client's error.
    pub reason: String,
}

/// What a client provides.
pub trait Client: Send + Sync + 'static {
    /// Creates a pool of `size` connections. `timeout` is end to end, including the wait for the pool.
    fn start_pool(size: usize, timeout: Duration) -> Self;
    /// Makes one GET of the URL.
    fn get(&self, url: &str, id: &str) -> impl Future<Output = Result<Answer, Failure>> + Send;
}

/// How often each outcome occurred: a class, or `ok`.
type Counts = BTreeMap<&'static str, u64>;

#[derive(Default)]
struct Account {
    inside: Counts,
    total: Counts,
    latency: BTreeMap<u64, u64>,
    failed: BTreeMap<u64, u64>,
    /// The first error of each class: how far into the window, and what was seen.
    firsts: BTreeMap<&'static str, (Duration, String)>,
    /// How long a request that was open when the window closed had taken by then.
    ages: BTreeMap<u64, u64>,
}

struct Plan<C> {
    pools: Vec<C>,
    url: String,
    timeout: Duration,
    window_start: Instant,
    window_end: Instant,
}

/// Carries out one trial.
pub async fn run<C: Client>() {
    let orders = read_line();
    if orders.get("rate").is_some_and(|rate| !rate.is_null()) {
        fail("this driver does not support rate");
    }
    let number = |name: &str| match orders[name].as_u64() {
        Some(number) => number,
        None => fail(&format!("{name} is missing")),
    };
    let timeout = Duration::from_millis(number("timeout_ms"));
    let pools = (0..number("pools")).map(|_| C::start_pool(number("pool_size") as usize, timeout)).collect();
    say(&json!({"event": "ready"}));
    read_line();

    let window_start = Instant::now() + Duration::from_millis(number("warmup_ms"));
    let window = Duration::from_millis(number("duration_ms"));
    let url = orders["url"].as_str().unwrap_or_default().to_owned();
    let plan = Arc::new(Plan { pools, url, timeout, window_start, window_end: window_start + window });
    let callers: Vec<_> = (0..number("concurrency")).map(|n| tokio::spawn(call(plan.clone(), n))).collect();
    let mut sum = Account::default();
    for caller in callers {
        let account = caller.await.unwrap_or_else(|error| fail(&error.to_string()));
        add(&mut sum.inside, account.inside);
        add(&mut sum.total, account.total);
        add(&mut sum.latency, account.latency);
        add(&mut sum.failed, account.failed);
        for (class, first) in account.firsts {
            if sum.firsts.get(class).is_none_or(|known| first < *known) {
                sum.firsts.insert(class, first);
            }
        }
        add(&mut sum.ages, account.ages);
    }
    let in_flight = sum.ages.values().sum::<u64>();
    let attempts = sum.inside.values().sum::<u64>() + in_flight;
    let all = sum.total.values().sum::<u64>();
    say(&json!({
        "event": "done",
        "elapsed_us": window.as_micros() as u64,
        "attempts": attempts,
        "successes": sum.inside.remove("ok").unwrap_or(0),
        "errors": sum.inside,
        "in_flight": in_flight,
        "in_flight_us": sum.ages.iter().collect::<Vec<_>>(),
        "latency_us": sum.latency.iter().collect::<Vec<_>>(),
        "failed_us": sum.failed.iter().collect::<Vec<_>>(),
        "first_errors": sum.firsts.iter().map(|(class, first)| (*class, example(first))).collect::<BTreeMap<_, _>>(),
        "total": {"attempts": all, "successes": sum.total.remove("ok").unwrap_or(0), "errors": sum.total},
    }));
}

/// One caller, which sends request after request. Requests that end inside the window count.
async fn call<C: Client>(plan: Arc<Plan<C>>, number: u64) -> Account {
    let mut account = Account::default();
    for sent in 0_u64.. {
        let begin = Instant::now();
        if begin >= plan.window_end {
            break;
        }
        let id = format!("{number}-{sent}");
        let pool = &plan.pools[RandomState::new().hash_one(&id) as usize % plan.pools.len()];
        let answer = pool.get(&plan.url, &id).await;
        let end = Instant::now();
        let outcome = outcome(&answer, &id, end - begin > plan.timeout);
        *account.total.entry(outcome).or_default() += 1;
        if end >= plan.window_end {
            account.ages.insert(bucket((plan.window_end - begin).as_micros() as u64), 1);
        } else if end >= plan.window_start {
            *account.inside.entry(outcome).or_default() += 1;
            let times = if outcome == "ok" { &mut account.latency } else { &mut account.failed };
            *times.entry(bucket((end - begin).as_micros() as u64)).or_default() += 1;
            if outcome != "ok" {
                let first = || (end - plan.window_start, seen(&answer));
                account.firsts.entry(outcome).or_insert_with(first);
            }
        }
    }
    account
}

/// Describes an error for first_errors. Long reasons are cut.
fn seen(answer: &Result<Answer, Failure>) -> String {
    match answer {
        Ok((status, id, body)) => {
            let (id, first) = (id.as_deref().unwrap_or("none"), &body[..body.len().min(48)]);
            format!("status {status}, id {id}, body \"{}\"", first.escape_ascii())
        }
        Err(Failure { reason, .. }) => reason.chars().take(300).collect(),
    }
}

fn example((into, seen): &(Duration, String)) -> String {
    format!("{seen} ({:.3} s into the window)", into.as_secs_f64())
}

fn outcome(answer: &Result<Answer, Failure>, id: &str, late: bool) -> &'static str {
    match answer {
        Err(Failure { class, reason }) => {
            if *class == "other" {
                report(reason);
            }
            class
        }
        Ok(_) if late => "request_timeout",
        Ok((200, told, body)) if body == b"ok" => {
            if told.as_deref() == Some(id) {
                "ok"
            } else {
                "wrong_id"
            }
        }
        Ok((200, _, body)) => {
            if body.len() == 2 {
                "wrong_content"
            } else {
                "length"
            }
        }
        Ok(_) => "status",
    }
}

/// Reports the first few unknown errors. More of them would only fill the pipe.
fn report(reason: &str) {
    static REPORTED: AtomicU32 = AtomicU32::new(0);
    if REPORTED.fetch_add(1, Ordering::Relaxed) < 20 {
        eprintln!("other: {reason}");
    }
}

/// Keeps the ten highest bits of a time.
fn bucket(v: u64) -> u64 {
    let shift = 54_u32.saturating_sub(v.leading_zeros());
    v >> shift << shift
}

fn add<K: Ord>(sum: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, count) in more {
        *sum.entry(key).or_default() += count;
    }
}

fn read_line() -> Value {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) => exit(1), // Narrows has exited
        Ok(_) => serde_json::from_str(&line).unwrap_or_else(|error| fail(&format!("{error}: {line}"))),
        Err(error) => fail(&error.to_string()),
    }
}

fn say(event: &Value) {
    let mut output = std::io::stdout().lock();
    if writeln!(output, "{event}").and_then(|()| output.flush()).is_err() {
        exit(1);
    }
}

fn fail(message: &str) -> ! {
    say(&json!({"event": "error", "message": message}));
    exit(1)
}
