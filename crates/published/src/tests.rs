//! Tests of audits: each weakness is found in the committed tables, and not in tables without it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use lab::doubt::{Doubt, Evidence};
use lab::findings::{self, Cell};

fn audited(name: &str) -> Audit {
    audit(&load(name).unwrap(), &tables().unwrap())
}

const fn lab_doubt(doubt: Doubt) -> Flaw {
    Flaw::Lab(findings::Code::Trial(doubt))
}

const ERRORS: Flaw = Flaw::Lab(findings::Code::Errors);
const FEW: Flaw = Flaw::Lab(findings::Code::TooFewTrials);

fn codes(audit: &Audit) -> Vec<Flaw> {
    audit.warnings.iter().map(|warning| warning.code).collect()
}

fn warning(audit: &Audit, code: Flaw) -> &AuditWarning {
    let found = audit.warnings.iter().find(|warning| warning.code == code);
    found.unwrap_or_else(|| panic!("no {code:?} in {:?}", audit.warnings))
}

/// How many rows of each client a warning names.
fn clients(warning: &AuditWarning) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for row in &warning.rows {
        *counts.entry(row.split(' ').next().unwrap()).or_default() += 1;
    }
    counts
}

fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

fn assert_found(audit: &Audit, sentence: &str) {
    assert!(audit.found.iter().any(|found| found.starts_with(sentence)), "{sentence:?}: {:#?}", audit.found);
}

#[test]
fn every_row_of_the_documents_is_there() {
    let rows: Vec<(String, usize)> =
        tables().unwrap().into_iter().map(|table| (table.name, table.printed.len())).collect();
    let expected = [
        ("cowboy-sizes", 2 * 8),
        ("cowboy-modes", 2 * 12),
        ("cowboy-buffers", 2 * 8),
        ("erlang-packet", 10 + 10 + 4 + 4),
        ("iodash", 4),
        ("pools-2019", 335),
        ("pools-original", 203),
    ];
    assert_eq!(rows, expected.map(|(name, rows)| (name.to_owned(), rows)));
    assert_eq!(rows[5].1 + rows[6].1, 538);
}

#[test]
fn every_file_of_the_folder_is_part_of_the_program() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../published"));
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: BTreeSet<String> =
        files.map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let expected = names().flat_map(|name| ["toml", "csv"].map(|end| format!("{name}.{end}")));
    assert_eq!(found, expected.collect());
}

#[test]
fn the_tables_of_clients_are_complete_grids_without_duplicates() {
    for table in tables().unwrap() {
        let Rows::Clients(rows) = &table.rows else { continue };
        let mut grids: BTreeMap<&str, BTreeSet<&Point>> = BTreeMap::new();
        for row in rows {
            assert!(grids.entry(&row.system).or_default().insert(&row.point), "{row:?} twice");
        }
        for (client, points) in grids {
            let values = |knob: &str| points.iter().map(|point| &point[knob]).collect::<BTreeSet<_>>().len();
            let grid = values("pools") * values("pool_size") * values("concurrency");
            assert_eq!(points.len(), grid, "{}: {client}", table.name);
        }
        let rates: Vec<f64> = rows.iter().map(|row| row.measured.requests_per_s).collect();
        assert!(rates.is_sorted_by(|a, b| a >= b), "{} is in the document's order", table.name);
    }
}

#[test]
fn the_figures_of_wrk_agree_with_each_other() {
    let table = load("iodash").unwrap();
    let Rows::Requests(rows) = &table.rows else { panic!() };
    for PublishedRow { system, measured: m, .. } in rows {
        let rate = m.requests as f64 / m.elapsed_s;
        assert!((rate / m.requests_per_s - 1.0).abs() < 1e-3, "{system}: {rate}");
        // All four programs answered with the same 162 bytes; libuv's were not counted.
        let bytes = m.read_mb * 1024.0 * 1024.0 / m.requests as f64;
        assert!(system == "libuv" || (bytes - 162.0).abs() < 0.5, "{system}: {bytes}");
    }
}

#[test]
fn the_row_of_libuv_is_void() {
    let audit = audited("iodash");
    let found = warning(&audit, ERRORS);
    assert_eq!(found.rows, ["IODash", "libuv"]);
    assert_says(&found.message, &["libuv is void", "60663 requests, 60663 read errors, 0 MB read"]);
    assert_found(
        &audit,
        "order by verified requests: IODash 42807/s > Boost 34882/s > Node.js 5904/s; without a",
    );
}

#[test]
fn missing_latencies_are_found() {
    let audit = audited("iodash");
    let found = warning(&audit, Flaw::CensoredLatency);
    assert_eq!(found.rows, ["Boost", "Node.js"]);
    assert_says(&found.message, &["Boost: 1065 answers", "maximum of 1980 ms", "Node.js: 1251 answers"]);
}

#[test]
fn all_rows_of_wrk_hide_a_queue() {
    let audit = audited("iodash");
    let found = warning(&audit, lab_doubt(Doubt::HiddenQueueing));
    assert!(found.rows.is_empty(), "all rows: {:?}", found.rows);
    let seen = found.evidence.iter().map(|(row, seen)| match seen {
        Evidence::Queueing { under_way: 10_000, cycle_us, shown_us, .. } => {
            (row.as_str(), (cycle_us / 1e3).round(), (shown_us / 1e3).round())
        }
        other => panic!("{other:?}"),
    });
    let seen: Vec<(&str, f64, f64)> = seen.collect();
    assert_eq!(seen[0], ("IODash", 234.0, 45.0));
    assert_eq!(seen[1..].iter().map(|(_, cycle, _)| *cycle).collect::<Vec<_>>(), [287.0, 1694.0, 1794.0]);
    assert_eq!((found.message.as_str(), found.places.as_str()), ("", "in all 4 rows"));
}

#[test]
fn the_unsteady_run_of_node_is_found() {
    let audit = audited("iodash");
    let found = warning(&audit, lab_doubt(Doubt::UnsteadyWindow));
    // libuv's samples do not scatter more than their mean, but wrk takes none in seconds without an answer.
    assert_eq!(found.rows, ["Node.js", "libuv"]);
    assert_says(
        &found.message,
        &["Node.js: a thread's rate scatters by 1.1 times its mean", "11240/s", "5904/s"],
    );
    assert_eq!(
        codes(&audit),
        [
            ERRORS,
            Flaw::CensoredLatency,
            lab_doubt(Doubt::HiddenQueueing),
            lab_doubt(Doubt::UnsteadyWindow),
            FEW
        ]
    );
}

#[test]
fn clients_that_fail_immediately_are_found() {
    for (name, rows) in [("pools-2019", 30), ("pools-original", 20)] {
        let audit = audited(name);
        let found = warning(&audit, lab_doubt(Doubt::FailFast));
        assert_eq!(clients(found), [("Buoy", rows), ("Dlhttpc", rows)].into(), "{name}");
        assert_says(&found.message, &["% failed", "where the timeout is 1000 ms"]);
    }
}

#[test]
fn buoys_errors_follow_a_law_in_all_fifty_rows() {
    for (name, rows, deviation) in [("pools-2019", 30, "0.43"), ("pools-original", 20, "0.20")] {
        let audit = audited(name);
        let law = format!(
            "Buoy: Error % is 100 x (1 - 100 x connections / attempts) in all {rows} rows, within {deviation} points"
        );
        assert_found(&audit, &law);
        // No other client follows a law. A law that fits everything would say nothing.
        assert_eq!(audit.found.len(), 1, "{:?}", audit.found);
        assert_eq!(clients(warning(&audit, lab_doubt(Doubt::ErrorsOnSchedule))), [("Buoy", rows)].into());
    }
}

#[test]
fn rows_shorter_than_two_seconds_are_found() {
    let [now, before] = ["pools-2019", "pools-original"].map(audited);
    let short = |audit: &Audit| warning(audit, lab_doubt(Doubt::TooShort)).rows.len();
    assert_eq!((short(&now), short(&before)), (54, 39));
    assert_eq!(clients(warning(&now, lab_doubt(Doubt::TooShort))), [("Buoy", 30), ("Dlhttpc", 24)].into());
    assert_eq!(clients(warning(&before, lab_doubt(Doubt::TooShort))), [("Buoy", 20), ("Dlhttpc", 19)].into());
    assert_says(&warning(&now, lab_doubt(Doubt::TooShort)).message, &["Buoy 1x32@2048", "0.24 s", "296 s"]);
}

#[test]
fn rows_above_the_pools_ceiling_are_found() {
    let audit = audited("pools-2019");
    let found = warning(&audit, Flaw::AboveCeiling);
    assert_eq!(clients(found), [("Buoy", 24), ("Httpc", 5), ("Ibrowse", 15), ("Mojito", 5)].into());
    let table = load("pools-2019").unwrap();
    let Rows::Clients(rows) = &table.rows else { panic!() };
    for (row, label) in rows.iter().zip(table.labels()).filter(|(row, _)| row.system == "Mojito") {
        let m = &row.measured;
        assert!(!found.rows.contains(&label) || m.error_percent > 6.0, "{label}: Mojito's came with errors");
    }
    assert_eq!(clients(warning(&audited("pools-original"), Flaw::AboveCeiling)), [("Httpc", 4)].into());
}

#[test]
fn a_timeout_without_effect_is_found() {
    let audit = audited("pools-original");
    let found = warning(&audit, lab_doubt(Doubt::HiddenQueueing));
    assert_eq!(clients(found), [("Hackney", 7), ("Httpc", 10), ("Ibrowse", 1)].into());
    assert_says(&found.message, &["Hackney 1x32@16384", "5.7 s each", "0 % failed"]);
}

#[test]
fn the_ranking_without_errors_is_shown_with_the_published_one() {
    let best = |audit: &Audit, column: usize| -> Vec<String> {
        let rows = &audit.ranking.as_ref().unwrap().rows;
        let cells = rows.iter().filter_map(|row| match &row.cells[column] {
            Cell::Text(label) => Some(label.split(' ').next().unwrap().to_owned()),
            _ => None,
        });
        cells.collect()
    };
    let now = audited("pools-2019");
    let published = ["Buoy", "MachineGun", "Mojito", "Ibrowse", "Dlhttpc", "Hackney", "Httpc", "Mint"];
    assert_eq!(best(&now, 1), published);
    assert_eq!(best(&now, 4), ["MachineGun", "Mojito", "Ibrowse", "Hackney", "Httpc", "Mint"]);
    let ranking = now.ranking.as_ref().unwrap();
    let rates: Vec<&Cell> = ranking.rows.iter().take(6).map(|row| &row.cells[5]).collect();
    assert_eq!(rates, [72950.0, 62068.0, 27589.0, 22316.0, 5742.0, 1658.0].map(Cell::Number).each_ref());
    assert_says(&ranking.notes[0], &["1 % errors or fewer: Buoy, Dlhttpc"]);
    let before = audited("pools-original");
    assert_eq!(best(&before, 4), ["Mojito", "Hackney", "Ibrowse", "Httpc"]);
    assert_says(&before.ranking.unwrap().notes[0], &["Buoy, Dlhttpc, Mint"]);
}

#[test]
fn the_packet_tables_sender_is_found_at_its_limit() {
    let audit = audited("erlang-packet");
    let found = warning(&audit, lab_doubt(Doubt::GeneratorBound));
    let size = |row: &str| row.split(['=', ' ']).nth(1).unwrap().to_owned();
    let sizes: Vec<String> = found.rows.iter().map(|row| size(row)).collect();
    assert_eq!(sizes, ["10", "10", "1000", "1000", "1400", "1400", "1500"]);
    assert!(found.rows.iter().all(|row| row.ends_with("active=once")), "{:?}", found.rows);
    assert_says(&found.message, &["{packet,0} once: messages of 10 and of 1500 bytes", "1.28x of that"]);
}

#[test]
fn the_packet_tables_inverted_row_is_found() {
    let audit = audited("erlang-packet");
    let found = warning(&audit, Flaw::Contradiction);
    assert_says(
        &found.message,
        &["at 1400 bytes", "once > true > 40", "at 3 other sizes once is the slowest"],
    );
    assert_eq!(found.rows.len(), 3);
    assert!(found.rows.iter().all(|row| row.starts_with("frame_size=1400 framing=4")), "{:?}", found.rows);
}

#[test]
fn the_packet_tables_cells_and_its_cliff_are_found() {
    let audit = audited("erlang-packet");
    let flaws = warning(&audit, Flaw::MalformedCell);
    assert_eq!(flaws.rows.len(), 2);
    assert_says(&flaws.message, &["\"8,950,000 - 9,100,000 -\" has a dash too many"]);
    assert_says(&flaws.message, &["\"9,470,000 - 9,260,000\" has the larger figure first"]);
    assert_found(&audit, "{packet,4} once: a cliff, 5.6x fewer messages of 1500 than of 1400 bytes");
    assert_found(
        &audit,
        "{packet,4} once by {packet,0} once, messages: 1.02 at 10, 0.96 at 1000, 0.97 at 1400, 0.18",
    );
    let few = warning(&audit, lab_doubt(Doubt::TooShort));
    assert_eq!(few.rows, ["frame_size=1000000000 framing=0 active=once"]);
    assert_eq!(audit.table.columns.len(), 5, "the document's shape: a size and four ways to receive");
    assert_eq!(audit.table.rows.len(), 10);
}

#[test]
fn means_without_spread_are_found_in_cowboys_table() {
    for name in ["cowboy-sizes", "cowboy-modes", "cowboy-buffers"] {
        let audit = audited(name);
        assert!(warning(&audit, Flaw::MeanWithoutSpread).rows.is_empty(), "in all rows of {name}");
        assert!(warning(&audit, FEW).rows.is_empty());
        let times =
            "(active_n 100, buffer 1460, length 8000000, size 1G) stands 3 times in the document's tables";
        assert_found(&audit, &format!("otp21: one configuration {times}: 7490, 7503, 7588 ms, 1.3 % apart"));
        assert_found(
            &audit,
            &format!("otp26-jit: one configuration {times}: 5605, 5615, 5685 ms, 1.4 % apart"),
        );
    }
}

#[test]
fn differences_within_and_beyond_the_noise_are_named() {
    let modes = audited("cowboy-modes");
    let noise = warning(&modes, Flaw::WithinNoise);
    assert_says(
        &noise.message,
        &["`length` 80000000 instead of 8000000", "`length` 800000000 instead of 80000000"],
    );
    assert_says(&noise.message, &["`active_n` 1000 instead of 100", "`active_n` 10000 instead of 1000"]);
    assert_found(&modes, "`active_n` 100 instead of 10: 1.05x to 1.13x less time in all 6 comparisons");
    assert_eq!(modes.found.len(), 3, "{:?}", modes.found);
    let buffers = audited("cowboy-buffers");
    assert!(
        !codes(&buffers).contains(&Flaw::WithinNoise),
        "each step of the buffer is larger than the noise"
    );
    assert_found(&buffers, "`buffer` 8192 instead of 1460: 3.2x to 3.6x less time in both comparisons");
    assert_found(&buffers, "`buffer` 524288 instead of 262144: 1.11x to 1.29x more time in both comparisons");
}

#[test]
fn rows_with_ten_times_the_work_in_less_time_are_found() {
    let audit = audited("cowboy-sizes");
    let found = warning(&audit, Flaw::Contradiction);
    assert_eq!(found.rows, ["cowboy1.1.2 otp21 size=1M", "cowboy1.1.2 otp21 size=10M"]);
    assert_says(&found.message, &["1M took 18.766 ms and 10M 17.877 ms"]);
    assert_found(
        &audit,
        "cowboy2.10.0 by cowboy1.1.2 at 1M: 0.73 with otp21, 2.33 with otp26-jit: which of them",
    );
    assert_found(&audit, "cowboy2.10.0 by cowboy1.1.2 at 1G: 10.68 with otp21, 7.55 with otp26-jit");
}

#[test]
fn a_shortened_table_says_how_many_rows_it_leaves_out() {
    let audit = audited("pools-2019").shortened();
    assert_eq!(audit.table.rows.len(), 8 * 3);
    assert_says(&audit.table.notes[0], &[&format!("{} more", 335 - 8 * 3)]);
    let few = audited("cowboy-modes");
    assert_eq!(few.clone().shortened(), few, "a table of few rows is shown whole");
}

mod own_tables;
