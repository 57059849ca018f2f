//! Tests of the store: observations survive, and a file that is not a store is named in an error.

use std::process::{Command, Stdio};

use super::*;
use crate::experiment::{Figure, Figures, Form, Subject};
use crate::observation::{Failure, Outcome, Scenario, Timing, Trial};
use crate::plan::{Planned, Setup};

/// The path of the store for the process that a test starts and kills.
const VICTIM: &str = "NARROWS_TEST_STORE_VICTIM";

fn header(trials: u32) -> RunHeader {
    let timing = Timing { warmup_s: 0.1, measure_s: 1.0, timeout_s: 30.0 };
    let workload = systems::Workload::Requests;
    let subject = Subject {
        name: "e".to_owned(),
        title: String::new(),
        about: String::new(),
        workload,
        figures: Figures { first: Figure::RequestsPerS, others: Vec::new() },
        asks: None,
        objective: None,
        published: Vec::new(),
        threshold: 0.05,
    };
    let setup = Setup {
        subject,
        form: Form::Quick,
        rounds: trials,
        timing,
        axes: Vec::new(),
        excluded: Vec::new(),
        base: None,
        repeats: None,
        ask: None,
        defaults: Default::default(),
        alike: Default::default(),
        duet: false,
        from_file: false,
    };
    let planned =
        Planned { setup, scenarios: Vec::new(), apply: Default::default(), search: None, is_test: false };
    let scenario = Scenario::new("e", "s", workload, Default::default()).unwrap();
    let trial = |index| Trial { index, round: index, ..Trial::alone(scenario.clone(), timing) };
    let trials = (0..trials).map(trial).collect();
    RunHeader {
        started_unix_s: 1.5,
        command: "narrows run e".to_owned(),
        question: Some(serde_json::json!({"run": {"experiments": ["e"]}})),
        plan: Plan { trials, ..Plan::new(u64::MAX, vec![planned]) },
        environment: serde_json::json!({"kernel": "6.1"}),
    }
}

fn observation(header: &RunHeader, trial: usize) -> Observation {
    let failure =
        Failure { stage: crate::observation::Stage::Start, reason: "why".to_owned(), output: String::new() };
    Observation {
        trial: header.plan.trials[trial].clone(),
        began_unix_s: 2.5,
        took_s: 1.5,
        duet: None,
        outcome: Outcome::Failed(failure),
    }
}

/// The trials of a saved run that are to be carried out.
fn missing(store: &Store, run: RunId) -> Vec<u32> {
    store.header(run).unwrap().plan.missing(&store.observations(run).unwrap())
}

#[test]
fn headers_and_observations_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("narrows.db");
    let header = header(3);
    let run = Store::open(&path).unwrap().begin(&header).unwrap();
    let store = Store::open(&path).unwrap();
    store.append(run, &[observation(&header, 2)]).unwrap();
    store.append(run, &[observation(&header, 0)]).unwrap();
    assert_eq!(store.header(run).unwrap(), header);
    assert_eq!(store.observations(run).unwrap(), [observation(&header, 0), observation(&header, 2)]);
    assert_eq!(missing(&store, run), [1]);
    assert!(store.has_observations(run).unwrap() && !store.is_finished(run).unwrap());
    let summary = store.runs().unwrap()[0].as_ref().unwrap().clone();
    assert_eq!((summary.done, summary.planned, summary.finished), (2, 3, false));
    store.append(run, &[observation(&header, 1)]).unwrap();
    store.finish(run).unwrap();
    assert!(missing(&store, run).is_empty() && store.runs().unwrap()[0].as_ref().unwrap().finished);
    assert!(store.is_finished(run).unwrap() && !store.has_observations(run + 1).unwrap());
    assert!(matches!(store.is_finished(run + 1), Err(StoreError::NoRun { .. })));
}

#[test]
fn every_digit_of_a_time_survives() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db")).unwrap();
    let header = header(500);
    let run = store.begin(&header).unwrap();
    // Times of a clock in nanoseconds have all the digits that a number can have.
    let at = |trial: usize| 1_700_000_000.1 + trial as f64 * 0.987_654_321;
    for trial in 0..500 {
        let took_s = (trial as f64 + 1.0).ln();
        let seen = Observation { began_unix_s: at(trial), took_s, ..observation(&header, trial) };
        store.append(run, &[seen]).unwrap();
    }
    for (trial, seen) in store.observations(run).unwrap().iter().enumerate() {
        assert_eq!((seen.began_unix_s, seen.took_s), (at(trial), (trial as f64 + 1.0).ln()), "{trial}");
    }
}

/// Makes the store one of an earlier version, whose rows need no checksums.
fn may_lack_checksums(store: &Store) {
    store.connection.pragma_update(None, "writable_schema", "ON").unwrap();
    let sql = "UPDATE sqlite_master SET sql = replace(replace(sql, ' NOT NULL DEFAULT ''''', ''), 'sum TEXT NOT NULL', 'sum TEXT')";
    assert!(store.connection.execute(sql, []).unwrap() > 0);
    store.connection.pragma_update(None, "writable_schema", "RESET").unwrap();
}

/// Replaces a text in a column of all rows, and removes their checksums, so that only what reads the text can notice.
fn damage(store: &Store, table: &str, column: &str, old: &str, new: &str) {
    may_lack_checksums(store);
    let sql = format!("UPDATE {table} SET {column} = replace({column}, ?, ?), sum = NULL");
    assert!(store.connection.execute(&sql, [old, new]).unwrap() > 0);
}

#[test]
fn a_damaged_time_of_a_trial_is_an_error() {
    for wrong in ["-1.0", "1e300", "86401.0"] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("s.db")).unwrap();
        let run = store.begin(&header(1)).unwrap();
        damage(&store, "runs", "plan", "\"measure_s\":1.0", &format!("\"measure_s\":{wrong}"));
        let refused = store.header(run).unwrap_err().to_string();
        assert!(refused.contains("the plan of run 1") && refused.contains("`measure_s` is"), "{refused}");
    }
}

#[test]
fn a_damaged_count_that_cannot_be_added_to_others_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db")).unwrap();
    let header = header(1);
    let run = store.begin(&header).unwrap();
    let measured = Outcome::Measured(Box::default());
    store.append(run, &[Observation { outcome: measured, ..observation(&header, 0) }]).unwrap();
    assert_eq!(store.observations(run).unwrap().len(), 1);
    damage(&store, "observations", "observation", "\"attempts\":0", &format!("\"attempts\":{}", u64::MAX));
    let refused = store.observations(run).unwrap_err().to_string();
    assert!(refused.contains("trial 0 of run 1") && refused.contains("`attempts`"), "{refused}");
}

/// A store with a finished run of two trials.
fn finished(path: &Path) -> Store {
    let (store, header) = (Store::open(path).unwrap(), header(2));
    let run = store.begin(&header).unwrap();
    (0..2).for_each(|trial| store.append(run, &[observation(&header, trial)]).unwrap());
    store.finish(run).unwrap();
    store
}

#[test]
fn a_row_that_does_not_match_its_checksum_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let of_runs = ["started_unix_s = 1.25", "command = 'run f'", "seed = '1'", "plan = plan || ' '"];
    let of_runs = [&of_runs[..], &["environment = '{}'", "finished = 0", "id = 2", "sum = 'none'"]].concat();
    let json = "observation = replace(observation, '\"took_s\":1.5', '\"took_s\":1.25')";
    let of_trials = [json, "trial = 7", "sum = (SELECT sum FROM observations WHERE trial = 0)"];
    let of_trials = of_trials.map(|edit| format!("UPDATE observations SET {edit} WHERE trial = 1"));
    let edits = of_runs.iter().map(|edit| ("run", format!("UPDATE runs SET {edit}")));
    let edits = edits.chain(of_trials.into_iter().map(|edit| ("trial", edit)));
    for (number, (what, edit)) in edits.enumerate() {
        let store = finished(&folder.path().join(format!("{number}.db")));
        store.connection.pragma_update(None, "foreign_keys", false).unwrap();
        assert_eq!(store.connection.execute(&edit, []).unwrap(), 1, "{edit}");
        let run = store.resolve("last").unwrap();
        let mut refused = vec![store.observations(run).unwrap_err()];
        if what == "run" {
            refused.extend([store.header(run).unwrap_err(), store.runs().unwrap().remove(0).unwrap_err()]);
            refused.extend([store.finish(run).unwrap_err(), store.replan(run, &header(3).plan).unwrap_err()]);
        }
        for refused in refused {
            let said = refused.to_string();
            assert!(matches!(refused, StoreError::Damaged { .. }), "{edit}: {said}");
            assert!(said.contains(".db cannot be read (it does not match its checksum)"), "{edit}: {said}");
            assert!(said.starts_with(what) && said.contains(&format!("run {run}")), "{edit}: {said}");
            assert!(said.contains("use an older copy"), "{edit}: {said}");
        }
    }
}

#[test]
fn a_row_of_a_new_store_without_a_checksum_is_damaged_and_the_list_has_the_other_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = finished(&folder.path().join("s.db"));
    store.begin(&header(1)).unwrap();
    let edit = "UPDATE runs SET sum = NULL, seed = '9' WHERE id = 1";
    assert!(store.connection.execute(edit, []).is_err(), "the schema does not allow it");
    may_lack_checksums(&store);
    assert_eq!(store.connection.execute(edit, []).unwrap(), 1);
    assert!(store.header(1).is_ok(), "a store of an earlier version may have such rows");
    store.connection.pragma_update(None, "writable_schema", "ON").unwrap();
    let require = "UPDATE sqlite_master SET sql = replace(sql, 'sum TEXT', 'sum TEXT NOT NULL')";
    store.connection.execute(require, []).unwrap();
    store.connection.pragma_update(None, "writable_schema", "RESET").unwrap();
    let said = store.header(1).unwrap_err().to_string();
    assert!(said.contains("run 1") && said.contains("does not match its checksum"), "{said}");
    let runs = store.runs().unwrap();
    assert!(runs[0].as_ref().is_err_and(|why| why.to_string() == said), "{runs:?}");
    assert!(runs[1].as_ref().is_ok_and(|run| run.id == 2), "{runs:?}");
}

#[test]
fn a_bit_that_makes_a_text_or_a_number_something_else_is_named_too() {
    let folder = tempfile::tempdir().unwrap();
    let loose = "PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(replace(replace(sql, 'STRICT, ', ''), 'STRICT', ''), 'NOT NULL', '');
        PRAGMA writable_schema = RESET;";
    for (number, (edit, what)) in [
        ("UPDATE runs SET plan = CAST(x'7bff' AS TEXT)", "run 1"),
        ("UPDATE runs SET started_unix_s = NULL", "run 1"),
        ("UPDATE observations SET observation = CAST(x'7bff' AS TEXT) WHERE trial = 1", "trial 1 of run 1"),
        ("UPDATE observations SET observation = 7 WHERE trial = 1", "trial 1 of run 1"),
        ("UPDATE observations SET trial = -1 WHERE trial = 1", "the number of a trial of run 1"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{number}.db"));
        drop(finished(&path));
        let raw = Connection::open(&path).unwrap();
        raw.execute_batch(loose).unwrap();
        assert_eq!(raw.execute(edit, []).unwrap(), 1, "{edit}");
        drop(raw);
        let refused = Store::read(&path).unwrap().observations(1).unwrap_err();
        let said = refused.to_string();
        assert!(matches!(refused, StoreError::Damaged { .. }) && said.starts_with(what), "{edit}: {said}");
    }
}

#[test]
fn a_finished_run_without_one_of_its_trials_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = finished(&folder.path().join("s.db"));
    store.connection.execute("DELETE FROM observations WHERE trial = 1", []).unwrap();
    let says = [store.observations(1).unwrap_err(), store.runs().unwrap().remove(0).unwrap_err()]
        .map(|refused| refused.to_string());
    assert!(says.iter().all(|says| says.contains("it is finished, but has 1 of 2 trials")), "{says:?}");
    // A run that is to go on lacks trials.
    let store = finished(&folder.path().join("t.db"));
    store.replan(1, &header(3).plan).unwrap();
    assert_eq!((missing(&store, 1), store.runs().unwrap()[0].as_ref().unwrap().finished), (vec![2], false));
}

#[test]
fn a_store_of_schema_1_is_read_as_it_is_and_gets_checksums_when_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let raw = finished(&path).connection;
    let version = |raw: &Connection| raw.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    raw.execute_batch(
        "ALTER TABLE runs DROP COLUMN question; ALTER TABLE runs DROP COLUMN sum;
         ALTER TABLE observations DROP COLUMN sum; PRAGMA user_version = 1",
    )
    .unwrap();
    let old = Store::read(&path).unwrap();
    let both = [observation(&header(2), 0), observation(&header(2), 1)];
    let unasked = RunHeader { question: None, ..header(2) };
    assert_eq!((old.header(1).unwrap(), old.observations(1).unwrap()), (unasked, both.to_vec()));
    assert!(old.runs().unwrap()[0].as_ref().unwrap().finished && version(&raw).unwrap() == 1);
    // Two processes may find the old store at once.
    let store = Store::open(&path).unwrap();
    store.prepare().unwrap();
    assert_eq!((version(&raw).unwrap(), store.observations(1).unwrap()), (SCHEMA, both.to_vec()));
    assert_eq!(old.observations(1).unwrap(), both, "it was open during the change");
    // Old rows are not checked, but new ones are, and a run that grows is.
    raw.execute("UPDATE runs SET seed = '1'", []).unwrap();
    store.header(1).unwrap();
    store.replan(1, &header(3).plan).unwrap();
    store.append(1, &[observation(&header(3), 2)]).unwrap();
    let sums = "SELECT count(sum) FROM observations UNION ALL SELECT count(sum) FROM runs";
    let mut statement = raw.prepare(sums).unwrap();
    let sums: Vec<i64> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(sums, [1, 1]);
}

#[test]
fn a_store_of_schema_2_is_read_as_it_is_and_keeps_its_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let unasked = |trials| RunHeader { question: None, ..header(trials) };
    let store = Store::open(&path).unwrap();
    store.begin(&unasked(2)).unwrap();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("ALTER TABLE runs DROP COLUMN question; PRAGMA user_version = 2").unwrap();
    assert_eq!(Store::read(&path).unwrap().header(1).unwrap(), unasked(2));
    let store = Store::open(&path).unwrap();
    store.replan(1, &header(3).plan).unwrap();
    assert_eq!((store.begin(&header(1)).unwrap(), store.header(2).unwrap()), (2, header(1)));
    assert_eq!((store.header(1).unwrap(), store.runs().unwrap().len()), (unasked(3), 2));
    // The question is part of the checksum.
    raw.execute("UPDATE runs SET question = '{}'", []).unwrap();
    for run in [1, 2] {
        let refused = store.header(run).unwrap_err().to_string();
        assert!(refused.contains(&format!("run {run}")) && refused.contains("checksum"), "{refused}");
    }
}

#[test]
fn a_trial_is_stored_only_once_and_only_in_an_existing_run() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db")).unwrap();
    let header = header(1);
    let run = store.begin(&header).unwrap();
    store.append(run, &[observation(&header, 0)]).unwrap();
    for run in [run, run + 1] {
        let refused = store.append(run, &[observation(&header, 0)]).unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    }
}

#[test]
fn runs_are_found_by_number_and_by_word() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db")).unwrap();
    let says = |word: &str| store.resolve(word).unwrap_err().to_string();
    assert!(says("last").contains("no runs yet"), "{}", says("last"));
    let first = store.begin(&header(1)).unwrap();
    assert!(says("previous").contains("the only run is 1"), "{}", says("previous"));
    let second = store.begin(&header(1)).unwrap();
    for (word, run) in [("last", second), ("previous", first), ("1", first), ("2", second)] {
        assert_eq!(store.resolve(word).unwrap(), run);
    }
    for word in ["3", "0", "lats", ""] {
        assert!(says(word).contains("there are 2 runs, 1 to 2"), "{}", says(word));
    }
}

#[test]
fn a_file_that_is_not_a_store_is_an_error_that_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(
        file("text"),
        "a text that is long enough to be read as a header of a database ".repeat(20),
    )
    .unwrap();
    Connection::open(file("other")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    drop(Store::open(&file("newer")).unwrap());
    Connection::open(file("newer")).unwrap().pragma_update(None, "user_version", SCHEMA + 1).unwrap();
    std::fs::write(file("empty"), "").unwrap();
    for (name, says) in [
        ("text", "not a database"),
        ("other", "not a store of Narrows"),
        ("newer", "use a newer Narrows"),
        ("none/s.db", "does its folder exist"),
    ] {
        let refused = Store::open(&file(name)).unwrap_err().to_string();
        assert!(refused.contains(says) && refused.contains(name), "{refused}");
    }
    let pipe = file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()));
    for path in [pipe.as_path(), Path::new("/dev/zero")] {
        let refused = [Store::open(path), Store::read(path)].map(|store| store.unwrap_err().to_string());
        let says = format!("{} is no regular file", path.display());
        assert!(refused.iter().all(|refused| refused.starts_with(&says)), "{refused:?}");
    }
    for name in ["empty", "none"] {
        assert!(matches!(Store::read(&file(name)), Err(StoreError::Missing { .. })));
    }
    assert!(Store::open(&file("empty")).is_ok());
}

#[test]
fn a_store_opened_for_reading_refuses_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    drop(Store::open(&path).unwrap());
    let refused = Store::read(&path).unwrap().begin(&header(1)).unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
}

#[test]
fn a_store_that_was_read_leaves_no_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    drop(Store::open(&path).unwrap());
    let store = Store::read(&path).unwrap();
    assert!(store.runs().is_ok());
    drop(store);
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["s.db"]);
}

/// Makes a store with one trial whose shared-memory file SQLite cannot open, because its name is a link to itself.
fn unshareable(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let (store, header) = (Store::open(&path).unwrap(), header(1));
    let run = store.begin(&header).unwrap();
    store.append(run, &[observation(&header, 0)]).unwrap();
    drop(store);
    let shared_memory = folder.join(format!("{name}-shm"));
    std::os::unix::fs::symlink(&shared_memory, &shared_memory).unwrap();
    path
}

#[test]
fn a_closed_store_can_be_read_on_a_read_only_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = unshareable(folder.path(), "100 % & what else?#.db");
    assert!(Connection::open(&path).unwrap().execute_batch("SELECT * FROM runs").is_err());
    let store = Store::read(&path).unwrap();
    let run = store.resolve("last").unwrap();
    assert_eq!(store.observations(run).unwrap(), [observation(&header(1), 0)]);
    let refused = store.finish(run).unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
    // Trials that are still in the WAL must not be missed.
    std::fs::write(folder.path().join("100 % & what else?#.db-wal"), "trials").unwrap();
    let refused = Store::read(&path).unwrap_err().to_string();
    assert!(refused.contains("#.db-wal to another folder"), "{refused}");
}

#[test]
fn a_full_disk_loses_only_the_trial_that_did_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (store, header) = (Store::open(&path).unwrap(), header(1000));
    let run = store.begin(&header).unwrap();
    let pages: u32 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.connection.pragma_update(None, "max_page_count", pages + 2).unwrap();
    let mut kept = 0;
    let refused = loop {
        match store.append(run, &[observation(&header, kept)]) {
            Ok(()) => kept += 1,
            Err(refused) => break refused,
        }
    };
    let said = refused.to_string();
    assert!(matches!(refused, StoreError::Full { .. }) && said.contains("s.db is full: make room"), "{said}");
    assert!(std::error::Error::source(&refused).is_none(), "the message must not be repeated");
    assert!(kept > 0 && store.observations(run).unwrap().len() == kept, "{kept}");
}

#[test]
fn several_processes_that_make_a_store_at_once_all_open_it() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..100 {
        let path = folder.path().join(format!("{round}.db"));
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..4).map(|_| scope.spawn(|| Store::open(&path).map(drop))).collect();
            opened.into_iter().for_each(|one| one.join().unwrap().unwrap());
        });
    }
}

#[test]
fn a_store_can_be_read_while_a_run_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (writer, header) = (Store::open(&path).unwrap(), header(2));
    let run = writer.begin(&header).unwrap();
    writer.append(run, &[observation(&header, 0)]).unwrap();
    writer.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reader = Store::read(&path).unwrap();
    assert_eq!(reader.observations(run).unwrap().len(), 1);
    writer.connection.execute_batch("COMMIT").unwrap();
    writer.append(run, &[observation(&header, 1)]).unwrap();
    assert_eq!(reader.observations(run).unwrap().len(), 2);
}

#[test]
fn a_damaged_observation_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db")).unwrap();
    let run = store.begin(&header(1)).unwrap();
    may_lack_checksums(&store);
    let sql = "INSERT INTO observations (run, trial, observation) VALUES (?, 7, '{}')";
    store.connection.execute(sql, [run]).unwrap();
    let says = store.observations(run).unwrap_err().to_string();
    assert!(says.contains("trial 7 of run 1") && says.contains("damaged"), "{says}");
}

/// Not a test by itself. Writes trials and never ends, if [`appended_observations_survive_kill_9`] starts it.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else { return };
    let store = Store::open(Path::new(&path)).unwrap();
    let header = header(1000);
    let run = store.begin(&header).unwrap();
    for trial in 0..5 {
        store.append(run, &[observation(&header, trial)]).unwrap();
    }
    std::fs::write(Path::new(&path).with_extension("ready"), "").unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn appended_observations_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::victim"])
        .env(VICTIM, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let patience = std::time::Instant::now();
    while !path.with_extension("ready").exists() && patience.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    let store = Store::open(&path).unwrap();
    let run = store.resolve("last").unwrap();
    let header = header(1000);
    assert_eq!(store.observations(run).unwrap().len(), 5);
    assert_eq!(missing(&store, run), (5..1000).collect::<Vec<u32>>());
    store.append(run, &[observation(&header, 5)]).unwrap();
    assert_eq!(missing(&store, run).first(), Some(&6));
}
