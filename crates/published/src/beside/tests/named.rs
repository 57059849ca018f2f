//! Experiments and published tables name each other.

use super::*;

#[test]
fn an_experiment_with_an_unknown_table_is_refused() {
    let text = experiment(
        "upload",
        "ms_per_upload",
        "published = \"cowboy-bufers\"",
        "\"cowboy2\"",
        "[[grid]]\nsize = 1\n",
    );
    let error = Experiment::parse(&Source::new("experiments/e.toml", text)).unwrap_err().one_line();
    assert!(error.contains("e.toml:6:13: there is no published table `cowboy-bufers`"), "{error}");
    assert!(error.contains("did you mean `cowboy-buffers`?"), "{error}");
}

#[test]
fn the_ready_made_experiments_and_the_tables_name_each_other() {
    let home = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let catalog = Catalog::load(home);
    let mut named = BTreeSet::new();
    let experiments = list(home).into_iter().map(|(name, experiment)| (name, experiment.unwrap()));
    for (name, experiment, published) in experiments
        .flat_map(|(name, e)| e.published.clone().into_iter().map(move |p| (name.clone(), e.clone(), p)))
    {
        let table = super::super::super::load(&published).unwrap();
        assert_eq!(table.workload, experiment.workload, "{name}: {published}");
        named.insert((name, published.clone()));
        // A misspelled knob would match nothing.
        let columns = table.columns.iter().filter(|c| c.knob.is_some()).map(|c| &c.name);
        for knob in columns.chain(table.fixed.keys()).chain(table.defaults.keys()) {
            let has =
                |system: &String| catalog.get(system).is_ok_and(|m| m.knobs.iter().any(|(k, _)| k == knob));
            let known = experiment.workload.knob(knob).is_some() || table.systems.values().flatten().any(has);
            assert!(known, "{published}: nobody has a knob `{knob}`");
        }
    }
    for table in super::super::super::tables().unwrap() {
        assert!(TABLES.contains(&table.name.as_str()), "an experiment cannot name {}", table.name);
        let experiment = table.experiment.clone().unwrap();
        assert!(named.contains(&(experiment, table.name.clone())), "{} beside no run", table.name);
        // A variant that no system has would match nothing.
        for variant in table.runtimes.values().flatten() {
            let mut systems = table.systems.values().flatten();
            assert!(systems.any(|name| catalog.get(&format!("{name}@{variant}")).is_ok()), "{variant}");
        }
        let printed: BTreeSet<&str> = table.rows.keys().into_iter().map(|(_, runtime, _)| runtime).collect();
        assert!(table.runtimes.keys().all(|runtime| printed.contains(runtime.as_str())), "{}", table.name);
    }
}
