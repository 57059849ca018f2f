//! Checks that each knob has an effect: its values reach the program, the system does equal work at both ends of its
//! range, and there is a difference between the ends, or the manifest says why none can be seen.
//!
//! Runs four short trials at each end, in turn. A difference counts if the figures of the two ends do not overlap (by
//! chance, this happens to 1 in 35 equal figures) and the medians differ by 30 %. This is evidence for a quick check,
//! not a finding. Speed is ignored, because it varies most on a busy machine. If the usual small work shows no
//! difference, other work is tried.

use std::fmt;

use measurement::Measurement;
use systems::knob::Kind;
use systems::work::KnobValue;
use systems::{Knob, Listening, Manifest, Point, Value, Workload};

use super::{CheckVerdict, Checks, trial};
use crate::experiment::grid::show_size;
use crate::observation::{Outcome, Stage};
use crate::session::bench::Bench;
use crate::session::trial_error::TrialError;
use crate::session::{Executor, Interrupted};

/// The number of trials at each end.
const TRIALS: usize = 4;
/// Medians whose ratio is smaller count as equal.
const APART: f64 = 1.3;

pub(super) fn check(bench: &mut Bench, manifest: &Manifest, checks: &mut Checks) -> Result<(), Interrupted> {
    for (name, knob) in &manifest.knobs {
        let title = format!("knob {name}");
        let Some((low, high)) = ends(knob) else {
            checks.add(
                &title,
                CheckVerdict::Broken,
                "it has only one value",
                "give it several values, or remove it",
            );
            continue;
        };
        if let Err(TrialError::Failed(failure)) = reaches(bench, manifest, name, [&low, &high]) {
            checks.add(
                &title,
                CheckVerdict::Broken,
                failure.reason,
                "put {KNOB} into start.command or start.env",
            );
            continue;
        }
        let mut seen = Vec::new();
        let mut wrong = None;
        for workload in &knob.workloads {
            let work = SmallWork { workload: *workload, changes: &[] };
            // Words have no order, so the ends say nothing about the words between them.
            let words =
                knob.values.iter().filter(|v| matches!(v, Value::Text(_)) && ![&low, &high].contains(v));
            for word in words {
                wrong = wrong.or(once(bench, manifest, work, name, word)?.err());
            }
            match at_both(bench, manifest, work, name, [&low, &high])? {
                Ok(differences) => seen.extend(differences),
                Err(why) => wrong = wrong.or(Some(why)),
            }
        }
        let other_work = knob.workloads.iter().flat_map(|workload| other_work(*workload));
        for work in other_work {
            if wrong.is_some() || !seen.is_empty() {
                break;
            }
            // A failure here is not the knob's fault: the system may not do such work at all, or not in so short a
            // time.
            seen.extend(at_both(bench, manifest, work, name, [&low, &high])?.unwrap_or_default());
        }
        let span = format!("{} and {}", shown(knob, &low), shown(knob, &high));
        judge(&title, knob, &span, wrong, &seen, checks);
    }
    Ok(())
}

/// Adds the check of one knob.
fn judge(title: &str, knob: &Knob, span: &str, wrong: Option<String>, seen: &[String], checks: &mut Checks) {
    match (wrong, seen.is_empty(), &knob.effect) {
        (Some(why), _, _) => {
            let remedy = "limit min, max and values to what the system can do";
            checks.add(title, CheckVerdict::Broken, why, remedy);
        }
        (None, false, _) => {
            checks.add(title, CheckVerdict::Kept, format!("between {span}: {}", seen.join("; ")), "");
        }
        (None, true, Some(effect)) => {
            checks.excuse(title, format!("it reaches the program, which works at {span}; {effect}"));
        }
        (None, true, None) => checks.add(
            title,
            CheckVerdict::Broken,
            format!("it reaches the program, which works at {span}, but no difference was seen"),
            "say in knobs.NAME.effect where it shows, or why it cannot be seen here",
        ),
    }
}

fn shown(knob: &Knob, value: &Value) -> String {
    match value {
        Value::Integer(bytes) if knob.kind == Kind::Size => show_size(*bytes),
        other => knob.show(other),
    }
}

/// The smallest and the largest of the knob's values and its default, or its bounds if there is only one value. None if
/// all are equal.
fn ends(knob: &Knob) -> Option<(Value, Value)> {
    let mut all = knob.values.clone();
    if knob.default != Value::Boolean(false) && knob.default != Value::Boolean(true) {
        if !all.contains(&knob.default) {
            all.push(knob.default.clone());
        }
    } else {
        all = vec![Value::Boolean(false), Value::Boolean(true)];
    }
    if all.len() < 2 {
        all.extend([knob.min, knob.max].into_iter().flatten().map(Value::Integer));
    }
    all.sort();
    all.dedup();
    Some((all.first()?.clone(), all.last()?.clone())).filter(|(low, high)| low != high)
}

/// Checks that two values lead to different commands or environments.
fn reaches(bench: &mut Bench, manifest: &Manifest, name: &str, ends: [&Value; 2]) -> Result<(), TrialError> {
    let mut commands = Vec::new();
    for value in ends {
        let point = Point::from([(name.to_owned(), value.clone())]);
        let trial = trial(manifest, manifest.workloads[0], point)?;
        commands.push(bench.with_place(&trial, |place| {
            // Use the same port, so that only the knob differs.
            let listening = place.launch.listening.map(|listening| match listening {
                Listening::Port(_) | Listening::Address(_) => Listening::Port(1),
                Listening::Socket(_) => Listening::Socket("a.socket".into()),
            });
            let listening = listening.as_ref();
            let launch = systems::Launch { listening, ..place.launch };
            Ok(launch.words()?)
        })?);
    }
    if commands[0] == commands[1] {
        return Err(TrialError::failed(Stage::Start, "its values lead to the same command and environment"));
    }
    Ok(())
}

/// Runs trials at both ends in turn. Returns the differences in words, or how a trial failed.
fn at_both(
    bench: &mut Bench,
    manifest: &Manifest,
    work: SmallWork,
    name: &str,
    ends: [&Value; 2],
) -> Result<Result<Vec<String>, String>, Interrupted> {
    let mut seen: [Vec<Measurement>; 2] = Default::default();
    for _ in 0..TRIALS {
        for (value, seen) in ends.iter().zip(&mut seen) {
            match once(bench, manifest, work, name, value)? {
                Ok(measured) => seen.push(measured),
                Err(why) => return Ok(Err(why)),
            }
        }
    }
    let differences = QUANTITIES.iter().filter_map(|(what, quantity)| {
        let [low, high] = [0, 1].map(|end| seen[end].iter().map(quantity).collect::<Vec<f64>>());
        Some(format!("{work}: {what} {}", apart(&low, &high)?))
    });
    Ok(Ok(differences.collect()))
}

/// Runs one trial at a value. The inner error says how it failed.
fn once(
    bench: &mut Bench,
    manifest: &Manifest,
    work: SmallWork,
    name: &str,
    value: &Value,
) -> Result<Result<Measurement, String>, Interrupted> {
    let mut point = work.point();
    point.insert(name.to_owned(), value.clone());
    let outcome = match trial(manifest, work.workload, point) {
        Ok(trial) => bench.execute(&trial)?,
        Err(TrialError::Failed(failure)) => Outcome::Failed(failure),
        Err(TrialError::Interrupted) => return Err(Interrupted),
    };
    Ok(match outcome {
        Outcome::Measured(m) => Ok(*m),
        Outcome::Failed(failure) => {
            let why = super::with_output(&failure.reason, &failure.output);
            Err(format!("at {value}, {work}: {}: {why}", failure.stage))
        }
    })
}

/// SmallWork work in which a knob has something to do: the workload's usual small work, with some knobs changed.
#[derive(Clone, Copy)]
struct SmallWork {
    workload: Workload,
    changes: &'static [KnobValue],
}

impl SmallWork {
    fn point(self) -> Point {
        let usual = self.workload.about().small;
        usual.iter().chain(self.changes).map(|(knob, value)| ((*knob).to_owned(), value.clone())).collect()
    }
}

impl fmt::Display for SmallWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.workload)?;
        self.changes.iter().try_for_each(|(knob, value)| write!(f, " {knob}={value}"))
    }
}

/// Other small work of a workload, for knobs whose effect the usual one does not show.
fn other_work(workload: Workload) -> impl Iterator<Item = SmallWork> {
    workload.about().others.iter().map(move |changes| SmallWork { workload, changes })
}

/// A quantity that a knob may change, by name.
type Quantity = (&'static str, fn(&Measurement) -> f64);

const QUANTITIES: [Quantity; 8] = [
    ("CPU time per operation", |m| m.system.cpu_s / m.units as f64),
    ("system calls per operation", |m| {
        let calls = m.counted.and_then(|counted| counted.calls());
        calls.map_or(f64::NAN, |calls| calls.count as f64 / calls.operations as f64)
    }),
    ("context switches per operation", |m| m.system.context_switches as f64 / m.units as f64),
    ("memory", |m| m.system.peak_pss_bytes as f64),
    ("most connections at once", |m| m.server.as_ref().map_or(0.0, |s| s.peak_connections as f64)),
    ("connections per request", |m| {
        m.server.as_ref().map_or(0.0, |s| s.connections as f64 / s.requests as f64)
    }),
    ("share of errors", |m| m.errors.values().sum::<u64>() as f64 / m.attempts as f64),
    ("share of successes", |m| m.successes as f64 / m.attempts as f64),
];

/// The ratio of the medians, `high` by `low`, if the figures do not overlap and the medians differ enough.
fn apart(low: &[f64], high: &[f64]) -> Option<String> {
    let (mut a, mut b) = (low.to_vec(), high.to_vec());
    if a.iter().chain(&b).any(|figure| !figure.is_finite()) {
        return None;
    }
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (first, second) = (*a.get(a.len() / 2)?, *b.get(b.len() / 2)?);
    let disjoint = a.last()? < b.first()? || b.last()? < a.first()?;
    let ratio = second / first;
    let different = first == 0.0 || !(1.0 / APART..APART).contains(&ratio);
    (disjoint && different)
        .then(|| if first == 0.0 { format!("{second:.3} instead of none") } else { format!("x{ratio:.2}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_exists_only_if_no_trial_contradicts_it() {
        for (low, high, expected) in [
            ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], Some("x2.50")),
            ([4.0, 5.0, 6.0], [1.0, 2.0, 3.0], Some("x0.40")),
            ([1.0, 2.0, 9.0], [4.0, 5.0, 6.0], None),
            ([1.00, 1.01, 1.02], [1.03, 1.04, 1.05], None),
            ([1.00, 1.01, 1.02], [0.90, 0.91, 0.92], None),
            ([0.0, 0.0, 0.0], [0.5, 0.5, 0.5], Some("0.500 instead of none")),
            ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], None),
            ([f64::NAN, 1.0, 1.0], [5.0, 5.0, 5.0], None),
        ] {
            assert_eq!(apart(&low, &high).as_deref(), expected, "{low:?} {high:?}");
        }
    }

    fn knob(lines: &str) -> Knob {
        let text = format!(
            "name='x'\nrole='server'\nworkloads=['requests']\nlanguage=''\nabout=''\n\
             [start]\ncommand=['x','{{port}}','{{k}}']\n[knobs.k]\nabout=''\n{lines}"
        );
        let source = systems::Source::new("system.toml", text);
        let mut all = Manifest::parse(&source, std::path::Path::new("/systems/x")).unwrap();
        all.remove(0).knobs.remove("k").unwrap()
    }

    #[test]
    fn a_knob_has_an_effect_or_says_why_not() {
        let plain = knob("type='boolean'\ndefault=false");
        let excused = knob("type='boolean'\ndefault=false\neffect='shows under TLS only'");
        for (knob, wrong, seen, expected) in [
            (&plain, None, vec!["memory x2.00".to_owned()], CheckVerdict::Kept),
            (&plain, None, vec![], CheckVerdict::Broken),
            (&excused, None, vec![], CheckVerdict::Excused),
            (&excused, Some("it died".to_owned()), vec!["memory x2.00".to_owned()], CheckVerdict::Broken),
        ] {
            let mut checks = Checks::default();
            judge("knob k", knob, "false and true", wrong, &seen, &mut checks);
            assert_eq!(checks.0[0].verdict, expected, "{checks:?}");
        }
    }

    #[test]
    fn the_ends_of_a_knob_are_its_smallest_and_largest_values() {
        let ends = |lines: &str| ends(&knob(lines)).map(|(low, high)| format!("{low} {high}"));
        for (lines, expected) in [
            ("type='integer'\ndefault=5\nvalues=[10, 2, 7]", Some("2 10")),
            ("type='integer'\ndefault=50\nvalues=[10, 2, 7]", Some("2 50")),
            ("type='integer'\ndefault=5\nmin=1\nmax=9", Some("1 9")),
            ("type='integer'\ndefault=5", None),
            ("type='boolean'\ndefault=true", Some("false true")),
            ("type='choice'\ndefault='b'\nvalues=['a', 'b', 'c']", Some("a c")),
        ] {
            assert_eq!(ends(lines).as_deref(), expected, "{lines}");
        }
    }
}
