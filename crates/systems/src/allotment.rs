//! How much of the machine a system gets: knobs that every system has, and that need no placeholder.

use std::sync::LazyLock;

use crate::knob::{Kind, Knob, Point, Value};
use crate::machine::{Placement, available_cores};
use crate::workload::Workload;

/// The knob of the number of cores. Its default is all cores of systems.
pub const CORES: &str = "cores";

/// The definition of such a knob.
pub fn knob(name: &str) -> Option<&'static Knob> {
    static CORES_KNOB: LazyLock<Knob> = LazyLock::new(|| {
        let all = Placement::decide(&available_cores()).system.len() as i64;
        let counts = std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < all);
        Knob {
            kind: Kind::Integer,
            default: Value::Integer(all),
            values: counts.chain([all]).map(Value::Integer).collect(),
            min: Some(1),
            max: Some(all),
            about: "cores that the system is pinned to".to_owned(),
            workloads: Workload::ALL.to_vec(),
            effect: None,
        }
    });
    (name == CORES).then(|| &*CORES_KNOB)
}

/// The cores of a system at this point.
pub fn cores<'a>(all: &'a [usize], point: &Point) -> &'a [usize] {
    match point.get(CORES) {
        Some(Value::Integer(count)) => &all[..all.len().min(usize::try_from(*count).unwrap_or(all.len()))],
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
    }
}
