//! The outputs are those of the programs of Debian 12, shortened; that of memtier_benchmark has the form of its documentation.

use crate::meter::{Found, Meter, place};

const WRK: &str = "Running 1s test @ http://127.0.0.1:17003/
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    42.26ms    8.25ms  44.27ms   96.15%
    Req/Sec    47.27     10.09    60.00     63.64%
  52 requests in 1.10s, 5.85KB read
Requests/sec:     47.28
Transfer/sec:      5.32KB
";

const WRK_ERRORS: &str = "Running 1s test @ http://127.0.0.1:17003/no
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    42.26ms    7.55ms  44.18ms   95.65%
    Req/Sec    46.00      9.66    60.00     70.00%
  Latency Distribution
     50%   43.98ms
     75%   44.01ms
     90%   44.07ms
     99%    1.02s
  46 requests in 1.00s, 5.62KB read
  Socket errors: connect 0, read 1, write 0, timeout 2
  Non-2xx or 3xx responses: 23
Requests/sec:     46.00
Transfer/sec:      5.62KB
";

const H2LOAD: &str = "starting benchmark...
progress: 100% of clients started
Main benchmark duration is over for thread #0. Stopping all clients.

finished in 1.00s, 45.00 req/s, 5.18KB/s
requests: 45 total, 47 started, 45 done, 45 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 47 2xx, 0 3xx, 0 4xx, 0 5xx
time for request:     2.69ms     48.08ms     43.29ms      9.03ms    95.56%
";

const H2LOAD_REFUSED: &str = "finished in 2.86ms, 0.00 req/s, 0B/s
requests: 200 total, 0 started, 0 done, 0 succeeded, 200 failed, 200 errored, 0 timeout
";

const MEMTIER: &str = "Writing results to stdout
2         Threads
5         Connections per thread
1         Seconds

ALL STATS
============================================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec 
----------------------------------------------------------------------------------------------------------------------------
Sets         1000.50          ---          ---         0.40000         0.30000         0.90000         1.20000        70.00 
Gets        10005.00         0.00     10005.00         0.41000         0.32000         0.95000         1.25000       400.00 
Waits           0.00          ---          ---             ---             ---             ---             ---          --- 
Totals      11005.50         0.00     10005.00         0.40900         0.31900         0.94300         1.24700       470.00 
";

const PGBENCH: &str = "pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: <builtin: select only>
duration: 1 s
number of transactions actually processed: 12803
number of failed transactions: 2 (0.016%)
latency average = 0.155 ms
initial connection time = 9.405 ms
tps = 12923.563928 (without initial connection time)
";

const PGBENCH_COUNT: &str = "number of transactions actually processed: 200/200
number of failed transactions: 0 (0.000%)
tps = 5707.111060 (without initial connection time)
statement latencies in milliseconds and failures:
         0.281           0  SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

const REDIS_CSV: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"GET","42918.46","0.810","0.088","0.719","1.591","3.295","8.983"
"#;

const REDIS_TWO: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","20000.00","1.337","0.096","0.375","3.399","32.831","48.127"
"LPUSH (a, b)","60000.00","0.683","0.080","0.255","1.919","5.191","100.927"
"#;

const REDIS_TEXT: &str = "GET: rps=5992.0 (overall: 60160.0) avg_msec=0.597 (overall: 0.597)
====== GET ======                                                   
  20000 requests completed in 0.41 seconds
  50 parallel clients

Summary:
  throughput summary: 48661.80 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.819     0.088     0.559     2.231     5.503    13.103
";

const REDIS_QUIET: &str = "GET: rps=0.0 (overall: 48225.0) avg_msec=0.880 (overall: 0.880)\r     \rGET: 49140.05 requests per second, p50=0.719 msec\n\n";

fn read(command: &str, reads: &[&str], output: &str) -> Result<Found, String> {
    let reads = reads.iter().map(|read| place(read)).collect::<Result<_, _>>()?;
    Meter::new(command.split(' ').map(str::to_owned).collect(), reads)?.read(output)
}

#[test]
fn the_outputs_of_known_programs_are_read() {
    let found =
        |per_s, requests, p50_us, p99_us| Found { per_s, requests, p50_us, p99_us, ..Found::default() };
    for (command, output, expected) in [
        ("wrk -d1", WRK, found(47.28, Some(52), None, None)),
        ("h2load -D1", H2LOAD, found(45.0, Some(45), None, None)),
        ("memtier_benchmark", MEMTIER, found(11005.5, None, Some(319.0), Some(943.0))),
        ("pgbench -t 100", PGBENCH_COUNT, found(5707.11106, Some(200), None, None)),
        (
            "redis-benchmark -n 20000 --csv",
            REDIS_CSV,
            found(42918.46, Some(20_000), Some(719.0), Some(3295.0)),
        ),
        ("redis-benchmark --csv", REDIS_CSV, found(42918.46, Some(100_000), Some(719.0), Some(3295.0))),
        ("redis-benchmark -n 3000 --csv", REDIS_TWO, found(30_000.0, Some(6000), None, None)),
        ("redis-benchmark -n 20000", REDIS_TEXT, found(48661.8, Some(20_000), Some(559.0), Some(5503.0))),
        ("redis-benchmark -n 20000 -q", REDIS_QUIET, found(49140.05, Some(20_000), Some(719.0), None)),
    ] {
        let rounded = |found: Found| {
            let whole = |micros: f64| (micros * 1e3).round() / 1e3;
            Found {
                p50_us: found.p50_us.map(whole),
                p99_us: found.p99_us.map(whole),
                per_s: whole(found.per_s),
                ..found
            }
        };
        assert_eq!(read(command, &[], output).map(rounded), Ok(rounded(expected)), "{command}");
    }
}

#[test]
fn requests_that_failed_are_counted_and_are_not_part_of_the_rate() {
    let wrk = read("wrk --latency", &[], WRK_ERRORS).expect("an output of wrk");
    assert_eq!((wrk.per_s, wrk.requests, wrk.failed), (23.0, Some(23), 26));
    assert_eq!(wrk.failures, "23 responses that are not 2xx or 3xx, 3 errors of sockets");
    assert_eq!(wrk.p99_us, Some(1.02e6));
    let pgbench = read("pgbench", &[], PGBENCH).expect("an output of pgbench");
    assert_eq!((pgbench.requests, pgbench.failed), (Some(12_803), 2));
    let refused = read("h2load", &[], H2LOAD_REFUSED).expect_err("nothing was answered");
    assert!(refused.contains("none of its requests succeeded, and 200 failed: 200 total"), "{refused}");
}

#[test]
fn figures_are_read_by_a_path_or_a_pattern() {
    let json = "warming up\n{\"rps\": 12.5, \"n\": 25, \"bad\": 3, \"lat\": [{\"p50\": 1.5}, {\"p99\": \"20ms\"}]}\n";
    let reads = [
        "rate=json.rps",
        "requests=json.n",
        "failed=json.bad",
        "p50_ms=json.lat[0].p50",
        "p99=json.lat[1].p99",
    ];
    let found = read("k6 run", &reads, json).expect("figures");
    assert_eq!((found.per_s, found.requests, found.failed), (12.5, Some(25), 3));
    assert_eq!((found.p50_us, found.p99_us), (Some(1500.0), Some(20_000.0)));
    let text = "throughput 1,234.5 req/s; 99th 7us";
    let found = read("x", &["rate=/throughput ([0-9.,]+)/", "p99=/99th (\\S+)/"], text).expect("figures");
    assert_eq!((found.per_s, found.p99_us), (1234.5, Some(7.0)));
    let found =
        read("wrk", &["p99_ms=/Max ([0-9]+)/", "rate=/Requests.sec: +([0-9.]+)/"], &format!("{WRK}Max 3"))
            .expect("wrk");
    assert_eq!((found.per_s, found.requests, found.p99_us), (47.28, Some(52), Some(3000.0)));
}

#[test]
fn what_is_no_figure_is_an_error_that_says_what_was_there() {
    for (command, reads, output, said) in [
        ("wrk", &[][..], "garbage", "its output is not as that of wrk is: it has no rate"),
        ("redis-benchmark", &[], "\"a\",\"b\"", "it has no rate"),
        ("x", &["rate=json.a"], "garbage", "--read rate=json.a: "),
        ("x", &["rate=json.a"], "{\"a\": \"many\"}", "\"many\" is no number"),
        ("x", &["rate=/([a-z]+)/"], "many", "\"many\" is no number"),
        ("x", &["rate=/(-?[0-9]+)/"], "-5", "\"-5\" is no number"),
        ("x", &["rate=/([0-9]+)/"], "0", "its rate is 0"),
        ("x", &["rate=/(.*)/"], "1e400", "is no number"),
        ("x", &["rate=/([0-9]+) /", "p99=/p99 ([0-9]+)/"], "5 p99 7", "\"7\" has no unit: write p99_ms"),
        ("x", &["speed=json.a"], "", "`speed` is none of rate, requests"),
        ("x", &["rate"], "", "write rate=json.a.b"),
        ("x", &["rate=header:a"], "", "write rate=json.a.b"),
        ("x", &["rate=/(/"], "", ""),
    ] {
        let wrong = read(command, reads, output).expect_err(said);
        assert!(wrong.contains(said), "{reads:?}: {wrong}");
    }
}
