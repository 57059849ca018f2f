//! The quick comparison writes both files. The test does not check the figures.

mod common;

use std::fs;

use common::bench;

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_quick_comparison_has_a_row_for_each_peer_and_a_line_for_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let last = std::thread::available_parallelism().unwrap().get() - 1;
    let core = last.to_string();
    let args = ["compare", "--quick", "--pairs", "2", "--seconds", "0.2", "--server-core", &core];
    bench(&[&args[..], &["--peers", "floor-epoll,send-loop,send-tls"]].concat(), folder.path());

    let text = fs::read_to_string(folder.path().join("RESULTS.md")).unwrap();
    let pairs = ["keepalive-100", "oneshot-100", "upload-256M", "frames-1000", "tls-upload-256M", "threads"];
    for heading in pairs.iter().chain(&["memory", "tls-memory", "curve"]) {
        assert!(text.contains(&format!("## {heading}\n")), "no {heading} in:\n{text}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("| floor-epoll | ")).count(), 4, "{text}");
    assert!(!text.contains("did not finish"), "{text}");
    assert!(text.contains("confidence 50.0 %"), "{text}");

    let csv = fs::read_to_string(folder.path().join("results.csv")).unwrap();
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() >= columns), "{csv}");
    let runs = |scenario| csv.lines().filter(|line| line.split(',').nth(1) == Some(scenario)).count();
    // Two pairs are four runs. The curve has two points of two tools.
    assert_eq!(pairs.map(runs), [4; 6], "{csv}");
    assert_eq!(runs("curve"), 4, "{csv}");
}
