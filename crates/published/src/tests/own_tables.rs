//! Tests of other tables than the built-in ones: sound tables are not doubted, and mistakes are shown with their
//! position.

use super::*;

fn head(workload: &str, setting: &str, columns: &[(&str, &str)]) -> String {
    let mut text =
        format!("name = \"t\"\ntitle = \"T\"\nsource = \"S\"\nworkload = \"{workload}\"\nruns = 5\n");
    text.push_str(&format!("[setting]\n{setting}\n[systems]\na = \"a\"\nb = \"b\"\n"));
    for (name, knob) in columns {
        let knob = if knob.is_empty() { String::new() } else { format!("knob = \"{knob}\"\n") };
        text.push_str(&format!("[[columns]]\nname = \"{name}\"\nheading = \"{name}\"\nabout = \"\"\n{knob}"));
    }
    text
}

fn read(head: &str, rows: &str) -> Result<PublishedTable, InputError> {
    read::table(&Source::new("t.toml", head), &Source::new("t.csv", rows))
}

fn audit_of(head: &str, rows: &str) -> Audit {
    audit(&read(head, rows).unwrap(), &[])
}

fn pools(setting: &str) -> String {
    let columns = [
        ("system", ""),
        ("pools", "integer"),
        ("pool_size", "integer"),
        ("concurrency", "integer"),
        ("requests_per_s", ""),
        ("error_percent", ""),
    ];
    head("clients", setting, &columns)
}

const POOLS: &str = "system,pools,pool_size,concurrency,requests_per_s,error_percent\n";

fn frames() -> String {
    let columns = [
        ("system", ""),
        ("frame_size", "integer"),
        ("framing", "choice"),
        ("active", "any"),
        ("messages", ""),
    ];
    head("frames", "", &columns)
}

const FRAMES: &str = "system,frame_size,framing,active,messages\n";

#[test]
fn sound_clients_raise_no_doubt() {
    let setting = "attempts = 500000\ndelay_ms = 10\ntimeout_ms = 1000";
    let audit = audit_of(&pools(setting), &format!("{POOLS}a,1,32,64,3000,0\nb,1,32,64,2900,0.9\n"));
    assert_eq!(codes(&audit), [], "{:?}", audit.warnings);
    assert_eq!(audit.found.len(), 0);
    // Failures that took the whole timeout are errors and nothing else.
    let audit = audit_of(&pools(setting), &format!("{POOLS}a,1,32,8192,48,99.4\n"));
    assert_eq!(codes(&audit), [ERRORS]);
}

#[test]
fn checks_without_the_necessary_data_are_skipped() {
    let rows = format!("{POOLS}a,1,32,2048,9000,99.4\na,1,64,2048,9000,0\n");
    assert_eq!(codes(&audit_of(&pools(""), &rows)), [ERRORS]);
    // A row without a success has no duration. More callers than attempts make no attempt.
    let rows = format!("{POOLS}a,1,32,2048,1,100\nb,1,32,999999999,10,0\n");
    let audit = audit_of(&pools("attempts = 500000\ndelay_ms = 10\ntimeout_ms = 1000"), &rows);
    assert_eq!(codes(&audit), [ERRORS]);
}

#[test]
fn a_sound_run_of_wrk_raises_no_doubt() {
    let names = Rows::required(Workload::Requests);
    let columns: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
    let head = head("requests", "connections = 100\nthreads = 2", &columns);
    let rows = format!("{}\na,100000,10,10000,9.5,30,5050,300,15,0,0,0,0\n", names.join(","));
    assert_eq!(codes(&audit_of(&head, &rows)), []);
    // The same with a queue that the latency does not show.
    let rows = rows.replace(",9.5,", ",2.5,");
    assert_eq!(codes(&audit_of(&head, &rows)), [lab_doubt(Doubt::HiddenQueueing)]);
}

#[test]
fn sound_frames_and_uploads_raise_no_doubt() {
    let rows = format!("{FRAMES}a,10,4,once,900 - 910\na,100,4,once,700 - 710\na,1000,4,once,300 - 310\n");
    assert_eq!(codes(&audit_of(&frames(), &rows)), []);
    let columns = [("system", ""), ("size", "size"), ("mean_ms", "")];
    let audit = audit_of(&head("upload", "", &columns), "system,size,mean_ms\na,1M,10\na,10M,90\n");
    assert_eq!(codes(&audit), [Flaw::MeanWithoutSpread], "a mean is all that such a table has");
}

#[test]
fn mistakes_are_shown_with_their_position() {
    let good = pools("");
    let row = "a,1,32,64,3000,0\n";
    assert!(read(&good, &format!("{POOLS}{row}")).is_ok());
    for (rows, place, words) in [
        ("a,1,32,64,3000\n".to_owned(), "t.csv:2:1", "5 fields where the heading has 6"),
        (format!("{row}\na,1,32,64,fast,0\n"), "t.csv:4:11", "`requests_per_s` is \"fast\""),
        ("a,1,32,64,NaN,0\n".to_owned(), "t.csv:2:11", "not a number"),
        ("a,1,32,64,-1,0\n".to_owned(), "t.csv:2:11", "not a number from 0 up"),
        ("a,1,32,64,0,0\n".to_owned(), "t.csv:2:11", "above 0"),
        ("a,1,32,64,1,101\n".to_owned(), "t.csv:2:13", "`error_percent` is \"101\": more than 100"),
        ("a,0,32,64,1,0\n".to_owned(), "t.csv:2:3", "`pools` is \"0\""),
        ("a,1,32,6.5,1,0\n".to_owned(), "t.csv:2:8", "`concurrency` is \"6.5\""),
        ("a,1,99999999999999999999,64,1,0\n".to_owned(), "t.csv:2:5", "`pool_size`"),
        ("c,1,32,64,1,0\n".to_owned(), "t.csv:2:1", "a system that [systems] does not name"),
        ("\"a,1,32,64,1,0\n".to_owned(), "t.csv:2:1", "a quote that is not closed"),
        ("\"a\"b,1,32,64,1,0\n".to_owned(), "t.csv:2:4", "text behind a closing quote"),
        ("\u{fe0f}é\"\"\",1\n".to_owned(), "t.csv:2:1", "2 fields"),
        (String::new(), "t.csv:1:1", "no rows"),
        (row.repeat(2001), "t.csv:2002:1", "more than 2000 rows"),
    ] {
        let error = read(&good, &format!("{POOLS}{rows}")).unwrap_err().one_line();
        assert!(error.starts_with(place) && error.contains(words), "{place} {words}: {error}");
    }
    let error = read(&good, &POOLS.replace("pool_size", "poolsize")).unwrap_err().one_line();
    assert_says(&error, &["t.csv:1:", "no rows"]);
    let error =
        read(&good, &format!("{}{row}", POOLS.replace("pool_size", "poolsize"))).unwrap_err().one_line();
    assert_says(&error, &["t.csv:1:14", "`poolsize` is not the next column", "`pool_size` comes here"]);
    let error = read(&good, &format!("{}{row}", POOLS.replace(",error_percent", ""))).unwrap_err().one_line();
    assert_says(&error, &["t.csv:1:", "the column `error_percent` is missing"]);
}

#[test]
fn mistakes_in_the_description_of_a_table_are_shown_with_their_position() {
    let good = pools("");
    let rows = format!("{POOLS}a,1,32,64,3000,0\n");
    for (from, to, words) in [
        ("name = \"t\"", "name = \"u\"", &["t.toml:1:8", "the name is `u`"][..]),
        ("runs = 5", "runs = 0", &["t.toml:5:8", "no runs"]),
        ("title", "titel", &["t.toml:2:1", "did you mean `title`?"]),
        ("\"clients\"", "\"client\"", &["t.toml:4:", "did you mean `clients`?"]),
        ("\"error_percent\"", "\"errors\"", &["t.toml:", "needs a column `error_percent`"]),
        ("[setting]", "[setting]\nattempt = 5", &["t.toml:7:", "did you mean `attempts`?"]),
    ] {
        let error = read(&good.replacen(from, to, 1), &rows).unwrap_err().one_line();
        assert_says(&error, words);
    }
}

#[test]
fn cells_of_two_runs_are_read_as_printed() {
    let table = |cell: &str| read(&frames(), &format!("{FRAMES}a,10,4,once,{cell}\n"));
    for (cell, runs, flawed) in [
        ("\"1,000 - 2,000\"", [1000.0, 2000.0], false),
        ("5 - 5", [5.0, 5.0], false),
        ("5 - 6 -", [5.0, 6.0], true),
        ("6 - 5", [6.0, 5.0], true),
    ] {
        let Rows::Frames(rows) = table(cell).unwrap().rows else { panic!() };
        assert_eq!((rows[0].measured.runs, rows[0].measured.misprint.is_some()), (runs, flawed), "{cell}");
    }
    for cell in ["5", "5 - 6 - 7", "a - b", "", "0 - 0", "5 - x"] {
        let error = table(cell).unwrap_err().one_line();
        assert_says(&error, &["t.csv:2:", "`messages`", "write them as `A - B`"]);
    }
}

#[test]
fn an_unknown_name_is_an_error_that_suggests_the_nearest() {
    let error = load("iodsh").unwrap_err().one_line();
    assert_says(&error, &["there is no table `iodsh`", "did you mean `iodash`?", "cowboy-buffers"]);
}

/// Each size of a frame goes with one way to receive.
#[test]
fn tables_whose_knobs_change_together_take_as_long_as_they_are_long() {
    cost::is_near_linear(500, |count| {
        let rows: String = (1..=count).map(|at| format!("a,{at},4,{at},1000 - 1001\n")).collect();
        let (head, rows) = (frames(), format!("{FRAMES}{rows}"));
        move || {
            let audit = audit_of(&head, &rows);
            assert_eq!((audit.table.rows.len(), audit.table.columns.len()), (count, 5));
            assert_eq!(audit.shortened().left_out, count - FIRST_ROWS);
        }
    });
}
