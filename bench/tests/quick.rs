//! The quick comparison writes both files. The test does not check the figures.

mod common;

use std::fs;

use common::bench;

#[test]
fn a_quick_comparison_has_a_row_for_each_peer_and_a_line_for_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let last = std::thread::available_parallelism().unwrap().get() - 1;
    let core = last.to_string();
    let args = ["compare", "--quick", "--pairs", "2", "--seconds", "0.2", "--server-core", &core];
    bench(&[&args[..], &["--peers", "floor-epoll,send-loop"]].concat(), folder.path());

    let text = fs::read_to_string(folder.path().join("RESULTS.md")).unwrap();
    for heading in
        ["keepalive-100", "oneshot-100", "upload-256M", "frames-1000", "memory", "curve", "threads"]
    {
        assert!(text.contains(&format!("## {heading}\n")), "no {heading} in:\n{text}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("| floor-epoll | ")).count(), 4, "{text}");
    assert!(!text.contains("did not finish"), "{text}");
    assert!(text.contains("confidence 50.0 %"), "{text}");

    let csv = fs::read_to_string(folder.path().join("results.csv")).unwrap();
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() >= columns), "{csv}");
    let runs = |scenario| csv.lines().filter(|line| line.split(',').nth(1) == Some(scenario)).count();
    let found = ["keepalive-100", "oneshot-100", "upload-256M", "frames-1000", "threads", "curve"].map(runs);
    // Two pairs are four runs. The curve has two points of two tools.
    assert_eq!(found, [4, 4, 4, 4, 4, 4], "{csv}");
}
