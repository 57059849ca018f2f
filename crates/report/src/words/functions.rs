//! The table of the functions in which the CPU time of two arms differs. Adds up rows, and computes nothing
//! else.

use lab::findings::functions::{FEW_SAMPLES, FunctionChange, Functions};
use lab::findings::{Cell, Column, Row, Table, Unit};
use stats::PartChange;

use super::{Caption, Captioned};
use crate::number::{percent, seconds, signed_seconds};

/// No shares are shown of a difference that is at most this share of the first arm's time.
const LEAST_DIFFERENCE: f64 = 0.001;

/// What the changes of functions are changes of.
#[derive(Debug, Clone, Copy)]
pub struct ComparedFunctions<'a> {
    /// Where the difference is.
    pub functions: &'a Functions,
    /// The names of the first and the second arm.
    pub arms: [&'a str; 2],
    /// The word for a unit of work, such as `request`.
    pub unit: &'a str,
    /// The CPU time of the first arm for a unit of work, in seconds, as it was measured.
    pub first_cpu_s: f64,
    /// Whether the arms certainly differ in all they take, and not only in one function.
    pub certain: bool,
    /// The most functions that get a row.
    pub rows: usize,
}

/// The functions with the largest changes, then the sum of all others, then the sum of all.
pub(crate) fn functions(compared: &ComparedFunctions<'_>) -> Captioned {
    let (few, told): (Vec<_>, Vec<_>) =
        compared.functions.parts.iter().partition(|part| part.function.name == FEW_SAMPLES);
    let (shown, others) = told.split_at(compared.rows.min(told.len()));
    let others: Vec<&FunctionChange> = others.iter().copied().chain(few).collect();
    let [named, rest] = [shown, &others[..]].map(sum);
    let all = Sum { first: named.first + rest.first, second: named.second + rest.second };
    let row = |name: String, place: Cell, sum: Sum, interval: Option<String>, block| {
        let [first, second] = [sum.first, sum.second].map(|share| Cell::Number(share * compared.first_cpu_s));
        let change = Cell::Text(compared.change(sum.change()));
        let interval = interval.map_or(Cell::Empty, Cell::Text);
        let share = all.share(sum).map_or(Cell::Empty, Cell::Number);
        Row { cells: vec![Cell::Text(name), place, first, second, change, interval, share], block }
    };
    let mut rows: Vec<Row> = Vec::new();
    for part in shown {
        let place = if part.function.kernel { "kernel" } else { "program" };
        let (name, interval) = (part.function.name.clone(), compared.interval(&part.change));
        rows.push(row(name, Cell::Text(place.to_owned()), Sum::of(&part.change), interval, false));
    }
    if !others.is_empty() {
        rows.push(row("others".to_owned(), Cell::Empty, rest, None, false));
    }
    rows.push(row("sum".to_owned(), Cell::Empty, all, None, true));
    let table = Table { columns: compared.columns(), keys: 1, rows };
    Captioned { caption: compared.caption(all, named), table }
}

/// The times of some parts in both arms, as shares of the first arm's time.
#[derive(Debug, Clone, Copy)]
struct Sum {
    first: f64,
    second: f64,
}

impl Sum {
    fn of(change: &PartChange) -> Self {
        Self { first: change.first, second: change.second }
    }

    fn change(self) -> f64 {
        self.second - self.first
    }

    /// The share of a part of the whole in the whole's change. None if the whole has hardly changed.
    fn share(self, part: Self) -> Option<f64> {
        (self.change().abs() > LEAST_DIFFERENCE).then(|| part.change() / self.change())
    }
}

fn sum(parts: &[&FunctionChange]) -> Sum {
    let of = |share: fn(&PartChange) -> f64| parts.iter().map(|part| share(&part.change)).sum();
    Sum { first: of(|change| change.first), second: of(|change| change.second) }
}

impl ComparedFunctions<'_> {
    fn columns(&self) -> Vec<Column> {
        let time = Some(Unit::SecondsPerOperation);
        let columns = [
            ("function", None),
            ("in", None),
            (self.arms[0], time),
            (self.arms[1], time),
            ("change", time),
            ("interval", time),
            ("share", Some(Unit::Share)),
        ];
        columns.map(|(name, unit)| Column { name: name.to_owned(), unit }).into()
    }

    fn change(&self, share: f64) -> String {
        signed_seconds(share * self.first_cpu_s)
    }

    /// None if an end is not known.
    fn interval(&self, change: &PartChange) -> Option<String> {
        let is_known = change.low.is_finite() && change.high.is_finite();
        is_known.then(|| format!("{} to {}", self.change(change.low), self.change(change.high)))
    }

    fn caption(&self, all: Sum, named: Sum) -> Caption {
        let ([first, second], unit) = (self.arms, self.unit);
        let about = format!(
            "CPU time for each {unit} in {first} and in {second}, by the function that ran, and in the kernel \
             by the system call. All 95 % intervals hold together. The share is that of the whole difference."
        );
        let mut notes = vec![match all.share(named) {
            Some(share) => format!(
                "the named rows make up {} of the difference of {}, and others make up {}",
                percent(share),
                self.change(all.change()),
                percent(1.0 - share)
            ),
            None => format!("{first} and {second} take the same time in all, so no row has a share"),
        }];
        if all.first < 1.0 - LEAST_DIFFERENCE {
            let whole = seconds(self.first_cpu_s);
            notes.push(format!("not attributed: {} of the {whole} of {first}", percent(1.0 - all.first)));
        }
        if let Some(FunctionChange { function, change, .. }) = &self.functions.carrier {
            let more = self.change(change.change());
            let interval =
                self.interval(change).map_or_else(String::new, |interval| format!(" ({interval})"));
            let name = &function.name;
            notes.push(match self.certain {
                true => format!("{name} carries the difference: {more} with all that it calls{interval}"),
                false => format!("{name} certainly differs: {more} with all that it calls{interval}; the whole may not differ"),
            });
        }
        Caption { title: "Functions".to_owned(), about, notes }
    }
}

#[cfg(test)]
mod tests {
    use lab::findings::functions::Function;

    use super::*;

    fn part(name: &str, [first, second]: [f64; 2], half: f64) -> FunctionChange {
        let (name, kernel) = (name.to_owned(), name.starts_with("send"));
        let (low, high) = (second - first - half, second - first + half);
        FunctionChange {
            function: Function { name, kernel },
            change: PartChange { first, second, low, high },
            at: None,
        }
    }

    fn found() -> Functions {
        Functions {
            parts: vec![
                part("hash", [0.1, 0.28], 0.02),
                part(FEW_SAMPLES, [0.1, 0.15], 0.05),
                part("sendto", [0.4, 0.36], f64::INFINITY),
                part("format", [0.3, 0.31], 0.02),
                part("parse", [0.1, 0.1], 0.01),
            ],
            carrier: Some(part("check_token", [0.15, 0.34], 0.02)),
            caller: None,
        }
    }

    fn shown(functions: &Functions, rows: usize) -> String {
        crate::text::functions_table(&compared(functions, rows), 100, false)
    }

    fn compared(functions: &Functions, rows: usize) -> ComparedFunctions<'_> {
        let arms = ["old", "new"];
        ComparedFunctions { functions, arms, unit: "request", first_cpu_s: 50e-6, certain: true, rows }
    }

    #[test]
    fn a_function_that_differs_alone_carries_nothing() {
        let found = found();
        let table = crate::text::functions_table(
            &ComparedFunctions { certain: false, ..compared(&found, 2) },
            150,
            false,
        );
        let note = "  check_token certainly differs: +9.50 us with all that it calls (+8.50 us to +10.5 us); the whole may not differ\n";
        assert!(table.ends_with(note), "{table}");
    }

    #[test]
    fn the_rows_add_up_and_name_most_of_the_difference() {
        let expected = "\
CPU time for each request in old and in new, by the function that ran, and in the kernel by the
system call. All 95 % intervals hold together. The share is that of the whole difference.
function  in           old      new    change              interval  share
hash      program  5.00 us  14.0 us  +9.00 us  +8.00 us to +10.0 us   90 %
sendto    kernel   20.0 us  18.0 us  -2.00 us                     -  -20 %
others    -        25.0 us  28.0 us  +3.00 us                     -   30 %

sum       -        50.0 us  60.0 us  +10.0 us                     -  100 %
  the named rows make up 70 % of the difference of +10.0 us, and others make up 30 %
  check_token carries the difference: +9.50 us with all that it calls (+8.50 us to +10.5 us)
";
        assert_eq!(shown(&found(), 2), expected);
    }

    #[test]
    fn rare_functions_are_never_named() {
        let table = shown(&found(), 100);
        assert!(table.contains("\nothers    -        5.00 us  7.50 us  +2.50 us "), "{table}");
        assert!(table.contains("\nparse ") && !table.contains(FEW_SAMPLES), "{table}");
    }

    #[test]
    fn a_difference_of_nothing_has_no_shares() {
        let parts = vec![part("f", [0.5, 0.6], 0.02), part("g", [0.4, 0.3], 0.02)];
        let table = shown(&Functions { parts, carrier: None, caller: None }, 5);
        let ends: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(ends[3..6], ["-", "-", "-"], "{table}");
        assert!(
            table.contains("  old and new take the same time in all, so no row has a share\n"),
            "{table}"
        );
        assert!(table.contains("  not attributed: 10 % of the 50.0 us of old\n"), "{table}");
    }

    #[test]
    fn what_a_profile_names_is_printable() {
        let parts = vec![part("\u{1b}[2J\u{202e}f|", [0.5, 1.0], 0.0)];
        let table = shown(&Functions { parts, carrier: None, caller: None }, 5);
        assert!(table.contains("\n [2J f|   program"), "{table}");
        let nothing = shown(&Functions { parts: Vec::new(), carrier: None, caller: None }, 5);
        assert!(nothing.contains("\nsum "), "{nothing}");
    }
}
