//! In which functions one scenario takes more CPU time than another, in words.

use lab::findings::functions::{FEW_SAMPLES, Function, FunctionChange, Functions};
use lab::findings::{CpuDifference, Waiting};
use systems::work::WorkUnit;

use super::claims::list;
use crate::number::seconds;

/// So many functions are named at most, if none carries the difference alone.
const MOST: usize = 3;
/// Functions that make up less than this share of the difference are not named.
const WORTH: f64 = 0.1;
/// From this share on, a function carries all of it.
const ALL: f64 = 0.95;

/// Where the CPU time is that makes the difference: `38.0 us of the 45.0 us more CPU a request are in check_token (auth.c:42)`.
pub(super) fn functions(cpu: &CpuDifference, unit: &WorkUnit) -> String {
    let time = |wholes: f64| seconds(wholes * cpu.less_s);
    let whole = cpu.ratio.estimate - 1.0;
    let (more, found) = (time(whole), cpu.functions.as_ref());
    if let Some((carrier, name)) = found.and_then(carrier) {
        let change = carrier.change.change();
        return match change >= ALL * whole {
            true => format!("the {more} more CPU a {} are in {name}", unit.name),
            false => format!("{} of the {more} more CPU a {} are in {name}", time(change), unit.name),
        };
    }
    let grown = found.into_iter().flat_map(|found| &found.parts);
    // The rare ones together are no function.
    let grown = grown.filter(|part| part.function.name != FEW_SAMPLES);
    let grown = grown.filter(|part| part.change.has_grown() && part.change.change() >= WORTH * whole);
    let named: Vec<String> =
        grown.take(MOST).map(|part| format!("{} in {}", time(part.change.change()), named(part))).collect();
    if named.is_empty() {
        return format!("{more} more CPU a {}, which no function certainly takes by itself", unit.name);
    }
    format!("of the {more} more CPU a {}, {}", unit.name, list(&named))
}

/// The function that carries a difference, and how it is called: `check_token` (auth.c:42), which `handle` calls.
fn carrier(found: &Functions) -> Option<(&FunctionChange, String)> {
    let carrier = found.carrier.as_ref()?;
    let caller =
        found.caller.as_ref().map_or_else(String::new, |caller| format!(", which `{}` calls", caller.name));
    Some((carrier, format!("{}{caller}", named(carrier))))
}

/// The one function that certainly differs between two arms.
pub(super) struct OneFunction {
    /// Whether the arm takes more in it that seems to take more in all.
    pub grown: bool,
    /// By how much it differs, with the interval.
    pub by: String,
    /// Its name, where it is, and what calls it.
    pub named: String,
}

/// The function that certainly differs although the whole may not. `less_s` is the CPU time of the first arm for a unit of work.
pub(super) fn one_function(found: &Functions, less_s: f64) -> Option<OneFunction> {
    let (carrier, named) = carrier(found)?;
    let change = &carrier.change;
    let grown = change.change() > 0.0;
    let (low, high) = if grown { (change.low, change.high) } else { (-change.high, -change.low) };
    let [by, low, high] = [change.change().abs(), low, high].map(|wholes| seconds(wholes * less_s));
    Some(OneFunction { grown, by: format!("{by} [{low}, {high}]"), named })
}

/// What the slower one waits for: `over all its threads it waits 20.1 ms a request for the disk, in save, against 0 s`.
pub(super) fn waits(of: &Waiting, unit: &WorkUnit) -> String {
    let what = match of.wait.as_str() {
        "lock" => "for another thread (a lock, a condition or a queue)".to_owned(),
        "disk" => "for the disk".to_owned(),
        "timer" => "for time to pass (it sleeps)".to_owned(),
        "receive" => "for data from a socket".to_owned(),
        "send" => "for room to send".to_owned(),
        "pipe" => "for the other end of a pipe".to_owned(),
        "child" => "for a process that it started".to_owned(),
        call => format!("in {call}"),
    };
    let by = of.by.as_ref().map_or_else(String::new, |by| format!(", in `{by}`"));
    let against = of.less_s.map_or_else(String::new, |less_s| format!(", against {}", seconds(less_s)));
    format!("over all its threads it waits {} a {} {what}{by}{against}", seconds(of.more_s), unit.name)
}

/// A function, with the place of its source if that is known.
pub(crate) fn named(of: &FunctionChange) -> String {
    let Function { name, kernel } = &of.function;
    let name = if *kernel { format!("the kernel's {name}") } else { format!("`{name}`") };
    match &of.at {
        Some(at) => format!("{name} ({at})"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use lab::findings::Ratio;
    use lab::findings::functions::Functions;
    use stats::PartChange;
    use systems::Workload;

    use super::*;

    fn change(name: &str, kernel: bool, change: f64, certain: bool) -> FunctionChange {
        let (low, high) = if certain { (change / 2.0, change * 2.0) } else { (-change, change * 2.0) };
        let at = (name == "check_token").then(|| "auth.c:42".to_owned());
        let function = Function { name: name.to_owned(), kernel };
        FunctionChange { function, change: PartChange { first: 0.1, second: 0.1 + change, low, high }, at }
    }

    fn said(carrier: Option<FunctionChange>, parts: Vec<FunctionChange>) -> String {
        let ratio = Ratio { estimate: 1.45, low: 1.4, high: 1.5 };
        let functions = Some(Functions { parts, carrier, caller: None });
        let cpu = CpuDifference { less: 0, more: 1, less_s: 100e-6, ratio, open: false, functions };
        functions_of(&cpu)
    }

    fn functions_of(cpu: &CpuDifference) -> String {
        functions(cpu, &Workload::Requests.about().unit)
    }

    #[test]
    fn what_carries_the_difference_is_named() {
        assert_eq!(
            said(Some(change("check_token", false, 0.38, true)), Vec::new()),
            "38.0 us of the 45.0 us more CPU a request are in `check_token` (auth.c:42)"
        );
        assert_eq!(
            said(Some(change("hash", false, 0.46, true)), Vec::new()),
            "the 45.0 us more CPU a request are in `hash`"
        );
    }

    #[test]
    fn one_function_is_named_with_its_interval_where_the_whole_may_not_differ() {
        for (more, grown) in [(0.2, true), (-0.2, false)] {
            let mut carrier = change("check_token", false, more, true);
            (carrier.change.low, carrier.change.high) =
                (carrier.change.low.min(carrier.change.high), carrier.change.low.max(carrier.change.high));
            let caller = Some(Function { name: "handle".to_owned(), kernel: false });
            let found = Functions { parts: Vec::new(), carrier: Some(carrier), caller };
            let of = one_function(&found, 100e-6).unwrap();
            assert_eq!(
                (of.grown, of.by.as_str(), of.named.as_str()),
                (grown, "20.0 us [10.0 us, 40.0 us]", "`check_token` (auth.c:42), which `handle` calls")
            );
        }
    }

    #[test]
    fn without_a_carrier_the_parts_are_named_that_certainly_grew() {
        let parts = vec![
            change("recvfrom", true, 0.2, true),
            change("guess", false, 0.1, false),
            change("malloc", false, 0.09, true),
            change("tiny", false, 0.01, true),
            change(FEW_SAMPLES, false, 0.15, true),
        ];
        assert_eq!(
            said(None, parts),
            "of the 45.0 us more CPU a request, 20.0 us in the kernel's recvfrom and 9.00 us in `malloc`"
        );
        assert_eq!(
            said(None, Vec::new()),
            "45.0 us more CPU a request, which no function certainly takes by itself"
        );
    }
}
