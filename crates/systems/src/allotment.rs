//! How much of the machine a system gets: knobs that every system has, and that need no placeholder.

use std::sync::LazyLock;

use crate::knob::{Kind, Knob, Point, Value};
use crate::machine::{Placement, available_cores};
use crate::workload::Workload;

/// The knob of the number of cores. Its default is all cores of systems.
pub const CORES: &str = "cores";

/// The knob of the limit on memory, in bytes. Its default, 0, is no limit.
pub const MEMORY: &str = "memory";

/// The names of these knobs.
pub const NAMES: [&str; 2] = [CORES, MEMORY];

/// The definition of such a knob.
pub fn knob(name: &str) -> Option<&'static Knob> {
    static KNOBS: LazyLock<[Knob; 2]> = LazyLock::new(|| [cores_knob(), memory_knob()]);
    let index = NAMES.iter().position(|known| *known == name)?;
    KNOBS.get(index)
}

fn cores_knob() -> Knob {
    let all = Placement::decide(&available_cores()).system.len() as i64;
    let counts = std::iter::successors(Some(1), |n: &i64| n.checked_mul(2)).take_while(|n| *n < all);
    let values = counts.chain([all]).map(Value::Integer).collect();
    Knob {
        max: Some(all),
        ..shared(Kind::Integer, Value::Integer(all), values, 1, "cores that the system is pinned to")
    }
}

fn memory_knob() -> Knob {
    let values = [0, 64 << 20, 256 << 20, 1 << 30].map(Value::Integer).to_vec();
    let about = "the most memory that the system gets, with a control group; 0: no limit";
    shared(Kind::Size, Value::Integer(0), values, 0, about)
}

fn shared(kind: Kind, default: Value, values: Vec<Value>, min: i64, about: &str) -> Knob {
    Knob {
        kind,
        default,
        values,
        min: Some(min),
        max: None,
        about: about.to_owned(),
        workloads: Workload::ALL.to_vec(),
        effect: None,
        amount: false,
        alike: None,
    }
}

/// The limit on a system's memory at this point, in bytes.
pub(crate) fn memory(point: &Point) -> Option<u64> {
    match point.get(MEMORY) {
        Some(Value::Integer(bytes)) => u64::try_from(*bytes).ok().filter(|bytes| *bytes > 0),
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
    }
}
