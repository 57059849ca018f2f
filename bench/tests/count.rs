//! Counting prints its table. The test does not check the figures.

mod common;
#[path = "../../tests/support/skipped.rs"]
mod skipped;

use common::{bench, narrows};

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_quick_count_has_a_row_for_each_path_with_both_programs_and_a_floor_without() {
    if !skipped::has("valgrind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let before = narrows();
    let args =
        ["count", "--quick", "--server-core", "0", "--paths", "kept-1-epoll,floor-kept-1-epoll", "--before"];
    let output = bench(&[&args[..], &[before.to_str().unwrap()]].concat(), folder.path());

    let text = String::from_utf8_lossy(&output.stdout);
    // Only a whole and exact count replaces the file.
    assert!(!folder.path().join("COUNTS.md").exists());
    let cells = |name: &str| -> Vec<String> {
        let begins = format!("| {name} |");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(&begins)).collect();
        assert_eq!(rows.len(), 1, "{text}");
        rows[0].split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let number = |cell: &String| cell.parse::<f64>().is_ok_and(|number| number > 0.0);
    // The first cell is empty; the second and third say what was counted.
    let (path, floor) = (cells("kept-1-epoll"), cells("floor-kept-1-epoll"));
    assert!(path[3..8].iter().all(number), "{path:?}");
    assert_eq!([&floor[3], &floor[5], &floor[6]], ["", "", ""], "{floor:?}");
    assert!(number(&floor[4]) && number(&floor[7]), "{floor:?}");
}
