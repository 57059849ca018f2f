//! Tests of audits: each weakness is found in the committed tables, and not in tables without it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use lab::findings::{self, Cell};
use measurement::doubt::{Doubt, Evidence};

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

/// Whether both numbers are equal in the digits that people read.
fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.01
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
    let void = VoidRow { row: "libuv".to_owned(), requests: 60_663, read_errors: 60_663, read_bytes: 0.0 };
    assert_eq!(found.seen, Seen::Errors { void: vec![void] });
    let [Found::Order { verified, void }] = &audit.found[..] else { panic!("{:?}", audit.found) };
    let servers: Vec<&str> = verified.iter().map(|(server, _)| server.as_str()).collect();
    assert_eq!((servers, &void[..]), (vec!["IODash", "Boost", "Node.js"], &["libuv".to_owned()][..]));
}

#[test]
fn missing_latencies_are_found() {
    let audit = audited("iodash");
    let found = warning(&audit, Flaw::CensoredLatency);
    assert_eq!(found.rows, ["Boost", "Node.js"]);
    let Seen::Censored(rows) = &found.seen else { panic!("{found:?}") };
    let answers: Vec<(&str, u64)> = rows.iter().map(|row| (row.row.as_str(), row.answers)).collect();
    assert_eq!(answers, [("Boost", 1065), ("Node.js", 1251)]);
    let cap = rows[0].cap.unwrap();
    assert_eq!((cap.cap_ms, cap.mean_ms, cap.max_ms), (2000.0, 33.99, 1980.0));
    assert!(near(cap.least_mean_ms, 39.9), "{cap:?}");
}

#[test]
fn all_rows_of_wrk_hide_a_queue() {
    let audit = audited("iodash");
    let found = warning(&audit, lab_doubt(Doubt::HiddenQueueing));
    assert!(found.rows.is_empty(), "all rows: {:?}", found.rows);
    let Seen::Evidence(seen) = &found.seen else { panic!("{found:?}") };
    let seen = seen.iter().map(|(row, seen)| match seen {
        Evidence::Queueing { under_way: 10_000, cycle_us, shown_us, .. } => {
            (row.as_str(), (cycle_us / 1e3).round(), (shown_us / 1e3).round())
        }
        other => panic!("{other:?}"),
    });
    let seen: Vec<(&str, f64, f64)> = seen.collect();
    assert_eq!(seen[0], ("IODash", 234.0, 45.0));
    assert_eq!(seen[1..].iter().map(|(_, cycle, _)| *cycle).collect::<Vec<_>>(), [287.0, 1694.0, 1794.0]);
    assert_eq!((found.count, found.of), (4, 4));
}

#[test]
fn the_unsteady_run_of_node_is_found() {
    let audit = audited("iodash");
    let found = warning(&audit, lab_doubt(Doubt::UnsteadyWindow));
    // libuv's samples do not scatter more than their mean, but wrk takes none in seconds without an answer.
    assert_eq!(found.rows, ["Node.js", "libuv"]);
    let Seen::Unsteady(rows) = &found.seen else { panic!("{found:?}") };
    let (node, libuv) = (&rows[0], &rows[1]);
    let rates = node.threads.unwrap();
    assert!(near(node.scatter.unwrap(), 1.085) && near(rates.together_per_s, 11_240.0), "{node:?}");
    assert_eq!((rates.threads, libuv.scatter, libuv.threads.is_some()), (2, None, true));
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
        let Seen::FailFast { failed, mean_ms, timeout_ms, .. } = found.seen else { panic!("{found:?}") };
        assert!(failed > 0.5 && mean_ms < 100.0 && timeout_ms == 1000.0, "{found:?}");
    }
}

#[test]
fn buoys_errors_follow_a_law_in_all_fifty_rows() {
    for (name, rows, deviation) in [("pools-2019", 30, 0.43), ("pools-original", 20, 0.20)] {
        let audit = audited(name);
        // No other client follows a law. A law that fits everything would say nothing.
        let [Found::Law { client, limit, rows: of, within, .. }] = &audit.found[..] else {
            panic!("{audit:?}")
        };
        assert_eq!((client.as_str(), *limit, *of), ("Buoy", 100.0, rows));
        assert!((within - deviation).abs() < 0.005, "{within}");
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
    let seen = &warning(&now, lab_doubt(Doubt::TooShort)).seen;
    let Seen::TooShort { row, lasted_s, longest_s, limit_s: 2.0 } = seen else { panic!("{seen:?}") };
    assert_eq!(row, "Buoy 1x32@2048");
    assert!((lasted_s - 0.24).abs() < 0.005 && near(*longest_s, 296.0), "{seen:?}");
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
    let Seen::Unbound { row, each_s, timeout_s, failed, .. } = &found.seen else { panic!("{found:?}") };
    assert_eq!((row.as_str(), *timeout_s, *failed), ("Hackney 1x32@16384", 1.0, 0.0));
    assert!(near(*each_s, 5.68), "{each_s}");
}

#[test]
fn the_ranking_without_errors_is_shown_with_the_published_one() {
    let best = |audit: &Audit, column: usize| -> Vec<String> {
        let rows = &audit.ranking.as_ref().unwrap().table.rows;
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
    let rates: Vec<&Cell> = ranking.table.rows.iter().take(6).map(|row| &row.cells[5]).collect();
    assert_eq!(rates, [72950.0, 62068.0, 27589.0, 22316.0, 5742.0, 1658.0].map(Cell::Number).each_ref());
    assert_eq!(ranking.unranked, ["Buoy", "Dlhttpc"]);
    assert_eq!(ranking.above_ceiling, ["Ibrowse 1x32@1024", "Httpc 1x32@1024"]);
    let before = audited("pools-original");
    assert_eq!(best(&before, 4), ["Mojito", "Hackney", "Ibrowse", "Httpc"]);
    assert_eq!(before.ranking.unwrap().unranked, ["Buoy", "Dlhttpc", "Mint"]);
}

#[test]
fn the_packet_tables_sender_is_found_at_its_limit() {
    let audit = audited("erlang-packet");
    let found = warning(&audit, lab_doubt(Doubt::GeneratorBound));
    let size = |row: &str| row.split(['=', ' ']).nth(1).unwrap().to_owned();
    let sizes: Vec<String> = found.rows.iter().map(|row| size(row)).collect();
    assert_eq!(sizes, ["10", "10", "1000", "1000", "1400", "1400", "1500"]);
    assert!(found.rows.iter().all(|row| row.ends_with("active=once")), "{:?}", found.rows);
    let Seen::SendersRate { ways, faster } = &found.seen else { panic!("{found:?}") };
    assert_eq!((ways[0].way.as_str(), ways[0].from, ways[0].to), ("{packet,0} once", 10.0, 1500.0));
    assert!(faster[0].0 == "{packet,4} 40" && near(faster[0].1, 1.28), "{faster:?}");
}

#[test]
fn the_packet_tables_inverted_row_is_found() {
    let audit = audited("erlang-packet");
    let found = warning(&audit, Flaw::Contradiction);
    let order = ["once", "true", "40"].map(str::to_owned).to_vec();
    let inverted = Inverted { size: 1400, framing: "4".to_owned(), order, others: 3 };
    assert_eq!(found.seen, Seen::Inverted(vec![inverted]));
    assert_eq!(found.rows.len(), 3);
    assert!(found.rows.iter().all(|row| row.starts_with("frame_size=1400 framing=4")), "{:?}", found.rows);
}

#[test]
fn the_packet_tables_cells_and_its_cliff_are_found() {
    let audit = audited("erlang-packet");
    let flaws = warning(&audit, Flaw::MalformedCell);
    assert_eq!(flaws.rows.len(), 2);
    let misprint = |printed: &str, kind| Misprint { printed: printed.to_owned(), kind };
    assert_eq!(
        flaws.seen,
        Seen::Misprints(vec![
            misprint("8,950,000 - 9,100,000 -", MisprintKind::ExtraDash),
            misprint("9,470,000 - 9,260,000", MisprintKind::LargerFirst)
        ])
    );
    let [Found::Cliff { way, from, to, fewer }, .., Found::Ways { of, against, sizes }] = &audit.found[..]
    else {
        panic!("{:?}", audit.found)
    };
    assert_eq!((way.as_str(), *from, *to), ("{packet,4} once", 1400.0, 1500.0));
    assert_eq!((of.as_str(), against.as_str()), ("{packet,4} once", "{packet,0} once"));
    assert!(near(*fewer, 5.63) && sizes[0].0 == 10.0 && near(sizes[0].1, 1.02), "{:?}", audit.found);
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
        let repeated = audit.found.iter().filter_map(|found| match found {
            Found::Repeated { runtime, knobs, times_ms } => {
                assert_eq!(knobs.len(), 4, "{knobs:?}");
                Some((runtime.as_str(), times_ms.iter().map(|ms| ms.round()).collect()))
            }
            _ => None,
        });
        let expected = [("otp21", vec![7490.0, 7503.0, 7588.0]), ("otp26-jit", vec![5605.0, 5615.0, 5685.0])];
        assert_eq!(repeated.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn differences_within_and_beyond_the_noise_are_named() {
    let steps = |steps: &[&Step]| -> Vec<(String, String, String)> {
        steps.iter().map(|s| (s.knob.clone(), s.to.to_string(), s.from.to_string())).collect()
    };
    let clear = |audit: &Audit| -> Vec<Step> {
        let step = |found: &Found| if let Found::Step(step) = found { Some(step.clone()) } else { None };
        audit.found.iter().filter_map(step).collect()
    };
    let named = |all: &[[&str; 3]]| -> Vec<(String, String, String)> {
        all.iter().map(|[knob, to, from]| (knob.to_string(), to.to_string(), from.to_string())).collect()
    };
    let modes = audited("cowboy-modes");
    let Seen::Noise(noise) = &warning(&modes, Flaw::WithinNoise).seen else { panic!() };
    let unclear = [
        ["active_n", "1000", "100"],
        ["active_n", "10000", "1000"],
        ["length", "80000000", "8000000"],
        ["length", "800000000", "80000000"],
    ];
    assert_eq!(steps(&noise.iter().collect::<Vec<_>>()), named(&unclear));
    let [ten] = &clear(&modes)[..] else { panic!("{:?}", modes.found) };
    assert_eq!((steps(&[ten]), ten.ratios.len()), (named(&[["active_n", "100", "10"]]), 6));
    assert!(ten.ratios.iter().all(|ratio| (1.0 / 1.14..1.0 / 1.04).contains(ratio)), "{ten:?}");
    let buffers = audited("cowboy-buffers");
    assert!(
        !codes(&buffers).contains(&Flaw::WithinNoise),
        "each step of the buffer is larger than the noise"
    );
    let all = clear(&buffers);
    let slower: Vec<bool> = all.iter().map(|step| step.ratios.iter().all(|ratio| *ratio > 1.0)).collect();
    assert_eq!(slower, [false, false, false, false, false, false, true], "{all:?}");
}

#[test]
fn rows_with_ten_times_the_work_in_less_time_are_found() {
    let audit = audited("cowboy-sizes");
    let found = warning(&audit, Flaw::Contradiction);
    assert_eq!(found.rows, ["cowboy1.1.2 otp21 size=1M", "cowboy1.1.2 otp21 size=10M"]);
    let Seen::LessTime(uploads) = &found.seen else { panic!("{found:?}") };
    let [upload] = &uploads[..] else { panic!("{uploads:?}") };
    assert_eq!((upload.small, upload.small_ms), (1 << 20, 18.766));
    assert_eq!((upload.large, upload.large_ms), (10 << 20, 17.877));
    let ratios = |bytes: i64| {
        let found = audit.found.iter().find_map(|found| match found {
            Found::Systems { size, ratios, .. } if *size == bytes => Some(ratios),
            _ => None,
        });
        ["otp21", "otp26-jit"].map(|runtime| (found.unwrap()[runtime] * 100.0).round() / 100.0)
    };
    assert_eq!((ratios(1 << 20), ratios(1 << 30)), ([0.73, 2.33], [10.68, 7.55]));
}

#[test]
fn a_shortened_table_says_how_many_rows_it_leaves_out() {
    let audit = audited("pools-2019").shortened();
    assert_eq!(audit.table.rows.len(), 8 * 3);
    assert_eq!(audit.left_out, 335 - 8 * 3);
    let few = audited("cowboy-modes");
    assert_eq!(few.clone().shortened(), few, "a table of few rows is shown whole");
}

mod own_tables;
