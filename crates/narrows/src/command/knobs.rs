//! Knobs as they are typed: lists and ranges of values, and the word `all`.

use std::collections::BTreeSet;
use std::ops::Range;

use systems::knob::{Kind, Knob, MOST_VALUES, parse_size};
use systems::{InputError, Source, Value};

use super::CommandArgs;

/// The word that stands for all values in a knob's definition.
const ALL: &str = "all";

/// A knob as it was typed.
pub struct TypedKnob {
    /// The name of the option's text in messages.
    pub source: Source,
    pub name: String,
    /// Different values.
    pub values: Vec<Value>,
}

/// All knobs of the command line. Those that `known` finds take the values of its definition, such as 64M for a size, and may be
/// given without values or with `all`.
///
/// # Errors
/// The first that is wrong, with its place.
pub fn typed<'k>(
    args: &CommandArgs,
    known: impl Fn(&str) -> Option<&'k Knob>,
) -> Result<Vec<TypedKnob>, InputError> {
    let typed = args.knobs.iter().map(|text| ("--knob", text.clone()));
    // hyperfine's form has the name and the values as two words.
    let listed = args.parameter_lists.chunks(2).filter_map(|pair| match pair {
        [name, values] => Some(("-L", format!("{name}={values}"))),
        _ => None,
    });
    let mut knobs: Vec<TypedKnob> = Vec::new();
    for (option, text) in typed.chain(listed) {
        let knob = TypedKnob::parse(option, &text, &known)?;
        if knobs.iter().any(|known| known.name == knob.name) {
            let help = "write all its values in one option";
            let message = format!("`{}` is given twice", knob.name);
            return Err(knob.source.error(0..knob.name.len(), message, help));
        }
        knobs.push(knob);
    }
    Ok(knobs)
}

impl TypedKnob {
    fn parse<'k>(
        option: &str,
        text: &str,
        known: impl Fn(&str) -> Option<&'k Knob>,
    ) -> Result<Self, InputError> {
        let source = Source::new(option, text);
        let split = text.split_once('=').map(|(name, list)| (name.trim_end(), list));
        let alone = || known(text.trim()).map(|_| (text.trim(), ALL));
        let filled = split.or_else(alone).filter(|(name, list)| !name.is_empty() && !list.is_empty());
        let Some((name, list)) = filled else {
            let help = "write NAME=1,2,4 or NAME=1..64*2 or NAME=1..16+1";
            return Err(source.error(0..text.len(), "not a knob with its values", help));
        };
        let span: Range<usize> = (text.len() - list.len().min(text.len()))..text.len();
        let values = match known(name) {
            Some(knob) => values_of(knob, list)
                .map_err(|why| source.error(span, why, format!("it is: {}", knob.about)))?,
            None => {
                values(list).map_err(|why| source.error(span, why, "write 1,2,4 or 1..64*2 or 1..16+1"))?
            }
        };
        Ok(Self { name: name.to_owned(), values, source })
    }

    /// A knob of numbers, or of the words that were typed. Its first value is its default.
    #[expect(
        clippy::indexing_slicing,
        reason = "a knob without a definition was typed with a value at least"
    )]
    pub fn definition(&self) -> Knob {
        let numbers = self.values.iter().all(|value| matches!(value, Value::Integer(_)));
        Knob {
            about: format!("values given with {}", self.source.path.display()),
            ..Knob::new(
                if numbers { Kind::Integer } else { Kind::Choice },
                self.values[0].clone(),
                self.values.clone(),
            )
        }
    }
}

/// The values of a list, of a range or of `all`, as a knob takes them.
fn values_of(knob: &Knob, text: &str) -> Result<Vec<Value>, String> {
    // A knob may have `all` among its words.
    if text.trim() == ALL && knob.parse(ALL).is_err() {
        return Ok(knob.values.clone());
    }
    let number = |text: &str| match knob.kind {
        Kind::Size => parse_size(text).ok(),
        _ => text.parse().ok(),
    };
    let values: Result<Vec<Value>, String> = match range(text, number) {
        Some(numbers) => numbers?.iter().map(|value| knob.check(value)).collect(),
        None => words(text)?.into_iter().map(|word| knob.parse(word)).collect(),
    };
    different(values?)
}

/// The values of a list or of a range, of a knob without a definition.
fn values(text: &str) -> Result<Vec<Value>, String> {
    if let Some(values) = range(text, |text| text.parse().ok()) {
        return values;
    }
    let words = words(text)?;
    // A number that would change by being read, such as 007, stays a word.
    let numbers: Option<Vec<Value>> = words
        .iter()
        .map(|word| word.parse::<i64>().ok().filter(|n| n.to_string() == *word).map(Value::Integer))
        .collect();
    different(numbers.unwrap_or_else(|| words.into_iter().map(|word| Value::Text(word.to_owned())).collect()))
}

fn words(text: &str) -> Result<Vec<&str>, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.contains(&"") {
        return Err("an empty value".to_owned());
    }
    if words.len() > MOST_VALUES { Err(too_many(words.len() as u64)) } else { Ok(words) }
}

fn different(values: Vec<Value>) -> Result<Vec<Value>, String> {
    let mut known = BTreeSet::new();
    match values.iter().find(|value| !known.insert(*value)) {
        Some(twice) => Err(format!("{twice} is there twice")),
        None => Ok(values),
    }
}

fn too_many(count: u64) -> String {
    format!("{count} values, and a knob may have {MOST_VALUES}: give fewer, or a range with a larger step")
}

/// The values of `FROM..TO`, `FROM..TO+STEP` or `FROM..TO*FACTOR`. None if it is no range of what `number` reads.
fn range(text: &str, number: impl Fn(&str) -> Option<i64>) -> Option<Result<Vec<Value>, String>> {
    let (from, rest) = text.split_once("..")?;
    let from = number(from.trim())?;
    let split = rest.find(['+', '*']).unwrap_or(rest.len());
    let (to, step) = rest.split_at(split);
    let to = number(to.trim())?;
    let sign = step.chars().next();
    // A factor has no unit.
    let by = step.get(1..).unwrap_or("").trim();
    let by = if sign == Some('*') { by.parse().ok() } else { number(by) };
    let next: Box<dyn Fn(i64) -> Option<i64>> = match (sign, by) {
        (None, _) => Box::new(|n| n.checked_add(1)),
        (Some('+'), Some(step)) if step > 0 => Box::new(move |n| n.checked_add(step)),
        (Some('*'), Some(factor)) if factor > 1 && from > 0 => Box::new(move |n| n.checked_mul(factor)),
        _ => {
            return Some(Err(format!("`{step}` is not a step: write +1 or more, or *2 or more from 1 on")));
        }
    };
    if from > to {
        return Some(Err(format!("{from} is above {to}")));
    }
    // Factors give no more values than a number has bits.
    if sign != Some('*') {
        let step = by.filter(|_| sign.is_some()).map_or(1, i64::unsigned_abs);
        let count = (to.abs_diff(from) / step.max(1)).saturating_add(1);
        if count > MOST_VALUES as u64 {
            return Some(Err(too_many(count)));
        }
    }
    let all = std::iter::successors(Some(from), |n| next(*n)).take_while(|n| *n <= to);
    Some(Ok(all.map(Value::Integer).collect()))
}

/// The names by which people call a number of workers.
const WORKERS: [&str; 9] = [
    "w",
    "worker",
    "workers",
    "threads",
    "procs",
    "processes",
    "processors",
    "worker_processes",
    "gomaxprocs",
];

/// The first knob with more workers than systems have cores, and that number.
pub fn more_than_cores(knobs: &[(String, Vec<Value>)], cores: usize) -> Option<(&str, i64)> {
    let workers = knobs.iter().filter(|(name, _)| WORKERS.contains(&name.to_lowercase().as_str()));
    workers
        .filter_map(|(name, values)| {
            let most = values.iter().filter_map(|value| match value {
                Value::Integer(number) => Some(*number),
                _ => None,
            });
            most.max()
                .filter(|most| usize::try_from(*most).is_ok_and(|most| most > cores))
                .map(|most| (name.as_str(), most))
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(numbers: &[i64]) -> Vec<Value> {
        numbers.iter().copied().map(Value::Integer).collect()
    }

    #[test]
    fn lists_and_ranges_of_values() {
        for (text, expected) in [
            ("1,2,4", integers(&[1, 2, 4])),
            ("1..4", integers(&[1, 2, 3, 4])),
            ("1..64*4", integers(&[1, 4, 16, 64])),
            ("1..60*4", integers(&[1, 4, 16])),
            ("1..10+4", integers(&[1, 5, 9])),
            ("-2..0", integers(&[-2, -1, 0])),
            ("7", integers(&[7])),
        ] {
            assert_eq!(values(text), Ok(expected), "{text}");
        }
        let words = |list: &[&str]| list.iter().map(|word| Value::Text((*word).to_owned())).collect();
        assert_eq!(values("sync,gthread"), Ok(words(&["sync", "gthread"])));
        assert_eq!(values("007,8"), Ok(words(&["007", "8"])));
        assert_eq!(values("a..b"), Ok(words(&["a..b"])));
        for wrong in ["4..1", "1..9*1", "0..9*2", "1..9+0", "1,,2", "1,1", "1..100000", "1..9+x"] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_knob_has_bounds_which_an_error_names() {
        let words = |count: usize| (0..count).map(|at| format!("w{at}")).collect::<Vec<_>>().join(",");
        for (most, more, said) in [
            ("1..5000".to_owned(), "1..5001".to_owned(), "5001 values, and a knob may have 5000: give fewer"),
            ("1..9999+2".to_owned(), "1..10001+2".to_owned(), "5001 values, and"),
            (words(5000), words(5001), "5001 values, and"),
        ] {
            assert_eq!(values(&most).map(|values| values.len()), Ok(5000));
            let why = values(&more).expect_err("too many");
            assert!(why.starts_with(said), "{why}");
        }
        let all = format!("{}..{}", i64::MIN, i64::MAX);
        assert!(values(&all).is_err_and(|why| why.starts_with(&u64::MAX.to_string())));
        assert_eq!(values(&format!("1..{}*2", i64::MAX)).map(|values| values.len()), Ok(63));
    }

    #[test]
    fn lists_of_values_take_as_long_as_they_are() {
        for word in ["", "w"] {
            cost::is_near_linear(1000, |count| {
                let list = (0..count).map(|at| format!("{word}{at}")).collect::<Vec<_>>().join(",");
                move || assert_eq!(values(&list).expect("values").len(), count)
            });
        }
    }

    #[test]
    fn a_known_knob_takes_its_own_values() {
        let knob = |kind, values: Vec<Value>| Knob {
            min: Some(0),
            max: Some(1 << 20),
            about: "a knob".to_owned(),
            ..Knob::new(kind, values[0].clone(), values)
        };
        let size = knob(Kind::Size, integers(&[1460, 8192]));
        for (text, expected) in [
            ("1460,64K", vec![1460, 65536]),
            ("1K..8K*2", vec![1024, 2048, 4096, 8192]),
            ("0..2K+1K", vec![0, 1024, 2048]),
            ("all", vec![1460, 8192]),
        ] {
            assert_eq!(values_of(&size, text), Ok(integers(&expected)), "{text}");
        }
        for wrong in ["1K,1024", "1M..4M*2", "much", "1K,", "8K..1K", "1K..8K*2K"] {
            assert!(values_of(&size, wrong).is_err(), "{wrong}");
        }
        let flag = knob(Kind::Boolean, vec![Value::Boolean(true), Value::Boolean(false)]);
        assert_eq!(values_of(&flag, "false,true").map(|values| values.len()), Ok(2));
        assert!(values_of(&flag, "0..1").is_err());
        let word = knob(Kind::Choice, vec![Value::Text("all".to_owned()), Value::Text("none".to_owned())]);
        assert_eq!(values_of(&word, "all"), Ok(vec![Value::Text("all".to_owned())]));
    }
}
