//! How much of the machine a system gets: knobs that every system has, and that need no placeholder.

use std::sync::LazyLock;

use crate::knob::{Kind, Knob, Point, Value};
use crate::machine::{MostFiles, Placement, available_cores};
use crate::workload::Workload;

/// The knob of the number of cores. Its default is all cores of systems.
pub const CORES: &str = "cores";

/// The knob of the limit on memory, in bytes. Its default, 0, is no limit.
pub const MEMORY: &str = "memory";

/// The knob of the limit on open files of each process. Its default, [`AS_IT_IS`], is the machine's hard limit.
pub const FILES: &str = "files";

/// The value of [`FILES`] that leaves the limit as it is.
pub const AS_IT_IS: &str = "as-it-is";

/// The names of these knobs.
pub const NAMES: [&str; 3] = [CORES, MEMORY, FILES];

/// The definition of such a knob.
pub fn knob(name: &str) -> Option<&'static Knob> {
    static KNOBS: LazyLock<[Knob; NAMES.len()]> =
        LazyLock::new(|| [cores_knob(), memory_knob(), files_knob(&MostFiles::read())]);
    let index = NAMES.iter().position(|known| *known == name)?;
    KNOBS.get(index)
}

fn cores_knob() -> Knob {
    let available = available_cores().len();
    let all = Placement::decide(&available_cores()).system.len() as i64;
    let counts = std::iter::successors(Some(1), |n: &i64| n.checked_mul(2)).take_while(|n| *n < all);
    let values = counts.chain([all]).map(Value::Integer).collect();
    Knob {
        max: Some(all),
        max_here: Some(format!(
            "those that Narrows may use, {available}, less those of its generator; it takes a machine with more"
        )),
        ..shared(Kind::Integer, Value::Integer(all), values, 1, "cores that the system is pinned to")
    }
}

fn memory_knob() -> Knob {
    let values = [0, 64 << 20, 256 << 20, 1 << 30].map(Value::Integer).to_vec();
    let about = "the most memory that the system gets, with a control group; 0: no limit";
    shared(Kind::Size, Value::Integer(0), values, 0, about)
}

fn files_knob(most: &MostFiles) -> Knob {
    let max = i64::try_from(most.files).unwrap_or(i64::MAX);
    let as_it_is = Value::Text(AS_IT_IS.to_owned());
    let counts = [1024, 65536, 1 << 20].into_iter().filter(|files| *files <= max).map(Value::Integer);
    let values = std::iter::once(as_it_is.clone()).chain(counts).collect();
    let about = "the limit on open files of each of the system's processes (`ulimit -n`)";
    Knob { max: Some(max), max_here: Some(most.why.clone()), ..shared(Kind::Any, as_it_is, values, 1, about) }
}

fn shared(kind: Kind, default: Value, values: Vec<Value>, min: i64, about: &str) -> Knob {
    Knob {
        kind,
        default,
        values,
        min: Some(min),
        max: None,
        max_here: None,
        about: about.to_owned(),
        workloads: Workload::ALL.to_vec(),
        effect: None,
        amount: false,
        alike: None,
    }
}

/// The limit on a system's memory at this point, in bytes.
pub(crate) fn memory(point: &Point) -> Option<u64> {
    number(point, MEMORY).filter(|bytes| *bytes > 0)
}

/// The limit on open files of each of a system's processes at this point. None if it stays as it is.
pub fn files(point: &Point) -> Option<u64> {
    number(point, FILES)
}

fn number(point: &Point, knob: &str) -> Option<u64> {
    match point.get(knob) {
        Some(Value::Integer(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The cores of a system at this point.
pub fn cores<'a>(all: &'a [usize], point: &Point) -> &'a [usize] {
    match point.get(CORES) {
        Some(Value::Integer(count)) => {
            usize::try_from(*count).ok().and_then(|count| all.get(..count)).unwrap_or(all)
        }
        _ => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_may_give_a_system_fewer_cores() {
        let point = |count: i64| Point::from([(CORES.to_owned(), Value::Integer(count))]);
        assert_eq!(cores(&[4, 5, 6], &Point::new()), [4, 5, 6]);
        assert_eq!(cores(&[4, 5, 6], &point(2)), [4, 5]);
        assert_eq!(cores(&[4, 5, 6], &point(9)), [4, 5, 6]);
        assert!(knob("cores").is_some_and(|knob| knob.check(&knob.default).is_ok()));
        assert!(knob("workers").is_none());
        let limited = |bytes: i64| Point::from([(MEMORY.to_owned(), Value::Integer(bytes))]);
        assert_eq!(
            (memory(&limited(1 << 20)), memory(&limited(0)), memory(&Point::new())),
            (Some(1 << 20), None, None)
        );
        assert_eq!(knob("memory").map(|knob| knob.parse("64M")), Some(Ok(Value::Integer(64 << 20))));
        let opening = |value: Value| Point::from([(FILES.to_owned(), value)]);
        assert_eq!(files(&opening(Value::Integer(1024))), Some(1024));
        assert_eq!((files(&opening(Value::Text(AS_IT_IS.to_owned()))), files(&Point::new())), (None, None));
    }

    #[test]
    fn a_limit_on_files_is_a_number_that_the_machine_allows() {
        let knob = files_knob(&MostFiles { files: 20_000, why: "ask root".to_owned() });
        assert_eq!(knob.values, [knob.default.clone(), Value::Integer(1024)]);
        for (text, value) in [("as-it-is", knob.default.clone()), ("20000", Value::Integer(20_000))] {
            assert_eq!(knob.parse(text), Ok(value.clone()));
            assert_eq!(knob.show(&value), text);
        }
        for (text, why) in [
            ("20001", "20001 is more than this machine allows, 20000 (ask root)"),
            ("0", "`0` is not allowed: use one of `as-it-is` or an integer from 1 to 20000"),
            ("as_it_is", "did you mean `as-it-is`?"),
        ] {
            assert!(knob.parse(text).is_err_and(|said| said.contains(why)), "{text}: {:?}", knob.parse(text));
        }
    }
}
