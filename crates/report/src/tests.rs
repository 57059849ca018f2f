//! Tests of each format with fixed findings and expected strings.

use lab::experiment::grid::Excluded;
use lab::experiment::{Figure, Figures, Form, Subject};
use lab::findings::{Beside, BestOf, FigureTable, Note, Presence, Shape, ShapeFigures, TableKind};
use lab::findings::{
    Cell, Claim, Code, Column, ExperimentFindings, FailedTrials, FigureFindings, Findings, Interaction,
    Ratio, Row, Shared, Snippet, Table, Unit, Warning, WithoutFigure,
};
use lab::plan::Setup;
use measurement::doubt::Evidence;

use super::*;

fn column(name: &str, unit: Option<Unit>) -> Column {
    Column { name: name.to_owned(), unit }
}

fn row(system: &str, buffer: Option<f64>, ms: f64, share: f64, block: bool) -> Row {
    let buffer = buffer.map_or(Cell::Empty, Cell::Number);
    Row { cells: vec![Cell::Text(system.to_owned()), buffer, Cell::Number(ms), Cell::Number(share)], block }
}

fn failed() -> FailedTrials {
    FailedTrials {
        scenario: "node".to_owned(),
        stage: "start".to_owned(),
        reason: "it ended".to_owned(),
        output: "\x1b[2Jno such | file\n<b>".to_owned(),
        trials: 3,
    }
}

fn buffers() -> FigureTable {
    let table = Table {
        columns: vec![
            column("system", None),
            column("buffer", Some(Unit::Size)),
            column("time", Some(Unit::Milliseconds)),
            column("of ref", Some(Unit::Share)),
        ],
        keys: 2,
        rows: vec![
            row("cowboy2", Some(1460.0), 5605.0, 0.012, false),
            row("cowboy2", Some(262_144.0), 823.25, 0.41, false),
            row("reference", None, 66.0, 1.0, true),
        ],
    };
    FigureTable { kind: TableKind::List, table, notes: vec![Note::NothingFailed] }
}

fn beside() -> Beside {
    let void = ShapeFigures::Void { system: "libuv".to_owned(), today: Presence::NotRun };
    let shape = Shape { agrees: None, at_limit: false, figures: void };
    Beside {
        published: "old-buffers".to_owned(),
        source: "a document".to_owned(),
        table: Table {
            columns: vec![column("buffer", None), column("then", Some(Unit::Times))],
            keys: 1,
            rows: vec![Row { cells: vec![Cell::Text("1460".to_owned()), Cell::Number(6.5)], block: false }],
        },
        best: BestOf::Rows,
        shapes: vec![shape],
        differences: Vec::new(),
    }
}

/// A claim that refers to no estimate.
fn depends(knob: &str, on: &str) -> Claim {
    let interaction = Interaction {
        knob: on.to_owned(),
        value: "256K".to_owned(),
        against: "1460".to_owned(),
        most: ("a".to_owned(), 6.8),
        least: ("b".to_owned(), 1.1),
        ratio: Ratio { estimate: 6.2, low: 6.0, high: 6.4 },
    };
    Claim::DependsOn { knob: knob.to_owned(), interaction }
}

fn subject() -> Subject {
    Subject {
        name: "upload-buffers".to_owned(),
        title: "Buffers".to_owned(),
        about: "Does it matter?".to_owned(),
        workload: serde_json::from_str("\"upload\"").unwrap(),
        figures: Figures { first: Figure::MsPerUpload, others: Vec::new() },
        asks: None,
        objective: None,
        published: Vec::new(),
        threshold: 0.05,
    }
}

fn fixed() -> Findings {
    let table = buffers();
    let subject = subject();
    let setup = Setup {
        subject,
        form: Form::Quick,
        rounds: 3,
        timing: lab::observation::Timing { warmup_s: 0.1, measure_s: 1.0, timeout_s: 30.0 },
        axes: Vec::new(),
        excluded: vec![Excluded {
            system: "cowboy1".to_owned(),
            reason: "not packaged".to_owned(),
            partly: false,
        }],
        base: None,
        repeats: None,
        ask: None,
        defaults: Default::default(),
        alike: Default::default(),
        duet: false,
        from_file: false,
    };
    let shared = Shared {
        tuned: None,
        setup,
        design: stats::Design::ONCE,
        builds: None,
        cpu: Vec::new(),
        waiting: Vec::new(),
        duets: None,
        trials_planned: 9,
        trials_done: 9,
        failures: vec![failed()],
        generators: None,
        versions: [("cowboy2".to_owned(), "2.8.0".to_owned())].into(),
    };
    let figure = FigureFindings {
        figure: Figure::MsPerUpload,
        noise_floor: None,
        comparisons: Vec::new(),
        effects: Vec::new(),
        outliers: Vec::new(),
        claims: vec![depends("buffer", "length"), depends("length", "buffer")],
        tables: vec![table],
        estimates: Vec::new(),
        beside: vec![beside()],
        warnings: vec![Warning {
            code: Code::CountsDisagree,
            count: 1,
            of: 3,
            seen: None,
            scenarios: vec!["cowboy2 buffer=1460".to_owned()],
        }],
        snippets: Vec::new(),
        without_figure: vec![WithoutFigure {
            system: "node".to_owned(),
            evidence: Evidence::NothingEnded { attempts: 4, window_s: 2.0 },
        }],
    };
    let e = ExperimentFindings { shared, figures: vec![figure] };
    Findings { experiments: vec![e], gates: Vec::new() }
}

#[test]
fn text_is_aligned() {
    let expected = "\
upload-buffers: Buffers
Does it matter?

  what `buffer` does depends on `length`: 256K against 1460 is 6.80x as fast at a, and 1.10x at b
  what `length` does depends on `buffer`: 256K against 1460 is 6.80x as fast at a, and 1.10x at b

Means over 3 rounds of each trial's mean time of an upload, with the 95 % interval of this machine
and hour.
system     buffer     time  of ref
cowboy2      1460   5.61 s   1.2 %
cowboy2      256K   823 ms    41 %

reference       -  66.0 ms   100 %
  no trial failed, no operation failed
";
    let shown = text(&fixed(), 100, false);
    assert!(shown.starts_with(expected), "{shown}");
    let rest =
        "  warning: the client's and the server's counts contradict each other in 1 of 3 scenarios: cowboy2
    buffer=1460. Remedy: do not use these rows; docs/contracts.md says what a driver must count.
  failed: node (3 trials) at start: it ended
    |  [2Jno such | file
    | <b>

Beside the published table old-buffers (a document): how many times longer than the best of these
rows, then and today.
buffer   then
1460    6.50x
  open: libuv had no figure that counts then; it was not run today
  not run: cowboy1: not packaged
  note: node: a trial has no figure: none of 4 operations ended in 2.00 s
  versions: cowboy2 2.8.0
";
    assert!(shown.ends_with(rest), "{shown}");
}

#[test]
fn tables_are_folded_for_a_narrow_terminal_without_losing_cells() {
    let shown = text(&fixed(), 40, false);
    let tables: Vec<&str> = shown.lines().filter(|line| line.starts_with("system")).collect();
    assert_eq!(tables, ["system     buffer     time  of ref"]);
    let mut wide = fixed();
    for i in 0..6 {
        wide.experiments[0].figures[0].tables[0]
            .table
            .columns
            .push(column(&format!("more {i}"), Some(Unit::Count)));
        for row in &mut wide.experiments[0].figures[0].tables[0].table.rows {
            row.cells.push(Cell::Number(f64::from(i) * 1000.0));
        }
    }
    let shown = text(&wide, 40, false);
    let heads: Vec<&str> = shown.lines().filter(|l| l.contains("more") || l.starts_with("system")).collect();
    assert_eq!(
        heads,
        [
            "                               of  more",
            "system     buffer     time    ref     0",
            "                   more  more  more",
            "system     buffer     1     2     3",
            "                   more  more",
            "system     buffer     4     5",
        ]
    );
    assert!(shown.lines().filter(|l| !l.contains('|')).all(|line| line.chars().count() <= 40), "{shown}");
}

#[test]
fn colour_adds_only_escape_sequences() {
    let (plain, coloured) = (text(&fixed(), 80, false), text(&fixed(), 80, true));
    let mut stripped = coloured.clone();
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
    assert!(coloured.contains("\x1b[1mupload-buffers") && !plain.contains('\x1b'));
}

#[test]
fn markdown_has_a_section_for_each_experiment() {
    let expected = "\
## upload-buffers: Buffers

Does it matter?

- **what `buffer` does depends on `length`: 256K against 1460 is 6.80x as fast at a, and 1.10x at b**
- what `length` does depends on `buffer`: 256K against 1460 is 6.80x as fast at a, and 1.10x at b

Means over 3 rounds of each trial's mean time of an upload, with the 95 % interval of this machine and hour.

| system | buffer | time | of ref |
| --- | ---: | ---: | ---: |
| cowboy2 | 1460 | 5.61 s | 1.2 % |
| cowboy2 | 256K | 823 ms | 41 % |
| reference | - | 66.0 ms | 100 % |

no trial failed, no operation failed

Warnings:

- the client's and the server's counts contradict each other in 1 of 3 scenarios: do not use these rows; docs/contracts.md says what a driver must count (cowboy2 buffer=1460)

Failed trials:

- node: 3 of its trials, at start: it ended; output:  [2Jno such | file &lt;b>

Beside the published table old-buffers (a document): how many times longer than the best of these rows, then and today.

| buffer | then |
| --- | ---: |
| 1460 | 6.50x |

open: libuv had no figure that counts then; it was not run today

Not run here:

- cowboy1: not packaged

Notes:

- node: a trial has no figure: none of 4 operations ended in 2.00 s

Versions:

- cowboy2: 2.8.0
";
    assert_eq!(markdown(&fixed()), expected);
}

#[test]
fn every_format_has_the_same_order() {
    let mut found = fixed();
    found.experiments[0].figures[0].snippets.push(Snippet {
        system: "cowboy2".to_owned(),
        point: systems::Point::new(),
        text: "set it so".to_owned(),
    });
    let run = Run {
        id: 7,
        started_unix_s: 0.0,
        command: "run upload-buffers",
        seed: 5,
        environment: &serde_json::json!({ "kernel": "of a test" }),
        profiles: &[],
    };
    let section = [
        "is 6.80x as fast",
        "Means over 3 rounds",
        "counts contradict each other",
        "Beside the published table",
    ];
    let page = ["of a test", "narrows run upload-buffers --seed 5", "set it so"];
    for (form, words) in [
        (text(&found, 200, false), section.to_vec()),
        (markdown(&found), section.to_vec()),
        (html(&found, &run), [&section[..], &page].concat()),
    ] {
        let places: Vec<Option<usize>> = words.iter().map(|word| form.find(word)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{words:?} at {places:?}: {form}");
    }
}

#[test]
fn csv_has_raw_numbers() {
    let mut findings = fixed();
    findings.experiments[0].figures[0].tables[0].table.rows[2].cells[0] = Cell::Text("a \"b\", c".to_owned());
    assert_eq!(
        csv(&findings),
        "experiment,system,buffer (bytes),time (ms),of ref (share of 1)\r\n\
         upload-buffers,cowboy2,1460,5605,0.012\r\n\
         upload-buffers,cowboy2,262144,823.25,0.41\r\n\
         upload-buffers,\"a \"\"b\"\", c\",,66,1\r\n\r\n\
         experiment,buffer,then\r\n\
         upload-buffers,1460,6.5\r\n"
    );
}

#[test]
fn json_has_a_schema_version_and_raw_numbers() {
    let value: serde_json::Value = serde_json::from_str(&json(&fixed(), &serde_json::Value::Null)).unwrap();
    assert_eq!(value["schema"], SCHEMA);
    let table = &value["experiments"][0]["figures"][0]["tables"][0];
    assert_eq!(table["columns"][2], serde_json::json!({"name": "time", "unit": "milliseconds"}));
    assert_eq!(table["rows"][1]["cells"], serde_json::json!(["cowboy2", 262_144.0, 823.25, 0.41]));
    assert_eq!(table["rows"][2]["cells"][1], serde_json::Value::Null);
    let back: Vec<ExperimentFindings> = serde_json::from_value(value["experiments"].clone()).unwrap();
    assert_eq!(Findings { experiments: back, gates: Vec::new() }, fixed());
}
