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
    let experiments =
        list(&[systems::Home::named(home)]).into_iter().map(|(name, experiment)| (name, experiment.unwrap()));
    for (name, experiment, published) in experiments
        .flat_map(|(name, e)| e.published.clone().into_iter().map(move |p| (name.clone(), e.clone(), p)))
    {
        let table = super::super::super::load(&published).unwrap();
        assert_eq!(table.workload, experiment.workload, "{name}: {published}");
        named.insert((name, published.clone()));
        // A misspelled knob would match nothing.
        let columns = table.columns.iter().filter(|c| c.knob.is_some()).map(|c| &c.name);
        for knob in columns.chain(table.fixed.keys()) {
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

fn ready_made(name: &str) -> (Experiment, Catalog) {
    let home = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let experiment =
        list(&[systems::Home::named(home)]).into_iter().find(|(known, _)| known == name).unwrap().1.unwrap();
    (experiment, Catalog::load(home))
}

/// The points of the workload that all systems of a quick form have.
fn common_points(name: &str) -> BTreeSet<Point> {
    let (experiment, catalog) = ready_made(name);
    let workload = experiment.workload;
    let request = Request { experiment, form: Form::Quick, overrides: Overrides::default() };
    let scenarios = plan(&[request], &catalog, &BTreeMap::new(), 1).unwrap().experiments.remove(0).scenarios;
    let mut systems: BTreeMap<&str, BTreeSet<Point>> = BTreeMap::new();
    for scenario in scenarios.iter().filter(|scenario| !is_reference(&scenario.system)) {
        systems.entry(&scenario.system).or_default().insert(projection(workload, &scenario.point));
    }
    systems.into_values().reduce(|all, own| &all & &own).unwrap()
}

#[test]
fn the_quick_forms_hold_the_points_that_the_documents_need() {
    let as_published = |point: &Point| {
        let with = |knob: &str, number: i64| point.get(knob) == Some(&Value::Integer(number));
        with("max_keepalive", 100) && with("pool_size", 128)
    };
    let points = common_points("pools");
    assert!(points.iter().any(as_published), "the clients have no point in common: {points:?}");
    let table = super::super::super::load("cowboy-sizes").unwrap();
    let published: BTreeSet<&Value> =
        table.rows.keys().into_iter().filter_map(|(.., p)| p.get("size")).collect();
    let points = common_points("upload-sizes");
    let shared = points.iter().filter(|point| published.contains(&point["size"])).count();
    assert_eq!((shared, points.len()), (2, 2), "one size has no shape");
}

#[test]
fn what_an_experiment_says_of_its_table_is_in_it() {
    let tables = super::super::super::tables().unwrap();
    let modes = tables.iter().find(|table| table.name == "cowboy-modes").unwrap();
    let steps = crate::audit(modes, &tables).found.into_iter().filter_map(|found| match found {
        crate::Found::Step(step) if step.knob == "active_n" && step.from == Value::Integer(10) => {
            Some(step.ratios)
        }
        _ => None,
    });
    let costs: Vec<f64> = steps.flatten().map(|longer| (1.0 / longer - 1.0) * 100.0).collect();
    let [low, high] =
        [costs.iter().copied().fold(f64::INFINITY, f64::min), costs.iter().copied().fold(0.0, f64::max)];
    let said = format!("active_n 10 costs {low:.0} to {high:.0} %");
    let about = &ready_made("upload-modes").0.about;
    assert!(about.contains(&said), "{said}: {about}");
}
