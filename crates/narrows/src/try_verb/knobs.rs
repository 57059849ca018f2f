//! The knobs of `narrows try` as they are typed: lists and ranges of values.

use std::ops::Range;

use systems::knob::{Kind, Knob};
use systems::{InputError, Source, Value, Workload};

use super::Args;

/// The most values of a range, and so the most points of one knob.
pub const MOST_VALUES: usize = 1000;

/// A knob as it was typed.
pub struct TypedKnob {
    /// The name of the option's text in messages.
    pub source: Source,
    pub name: String,
    pub values: Vec<Value>,
}

/// All knobs of the command line.
pub fn knobs(args: &Args, workload: Workload) -> anyhow::Result<Vec<TypedKnob>> {
    let typed = args.knobs.iter().map(|text| ("--knob", text.clone()));
    // hyperfine's form has the name and the values as two words.
    let listed = args.parameter_lists.chunks(2).filter(|pair| pair.len() == 2);
    let listed = listed.map(|pair| ("-L", format!("{}={}", pair[0], pair[1])));
    let mut knobs: Vec<TypedKnob> = Vec::new();
    for (option, text) in typed.chain(listed) {
        let knob = TypedKnob::parse(option, &text)?.normalised(workload)?;
        if knobs.iter().any(|known| known.name == knob.name) {
            let help = "write all its values in one option";
            let message = format!("`{}` is given twice", knob.name);
            return Err(knob.source.error(0..knob.name.len(), message, help).into());
        }
        knobs.push(knob);
    }
    Ok(knobs)
}

impl TypedKnob {
    /// The values as a knob of the workload or of all systems takes them, such as 64M for a size.
    fn normalised(self, workload: Workload) -> Result<Self, InputError> {
        let known = workload.knob(&self.name).or_else(|| systems::allotment::knob(&self.name));
        let Some(knob) = known else { return Ok(self) };
        let read = |value: &Value| knob.parse(&value.to_string());
        let values = self.values.iter().map(read).collect::<Result<_, _>>().map_err(|why| {
            let span = self.name.len() + 1..self.source.text.len();
            self.source.error(span, why, format!("it is: {}", knob.about))
        })?;
        Ok(Self { values, ..self })
    }

    fn parse(option: &str, text: &str) -> Result<Self, InputError> {
        let source = Source::new(option, text);
        let Some((name, list)) =
            text.split_once('=').filter(|(name, list)| !name.is_empty() && !list.is_empty())
        else {
            let help = "write NAME=1,2,4 or NAME=1..64*2 or NAME=1..16+1";
            return Err(source.error(0..text.len(), "not a knob with its values", help));
        };
        let values = values(list).map_err(|why| {
            let span: Range<usize> = name.len() + 1..text.len();
            source.error(span, why, "write 1,2,4 or 1..64*2 or 1..16+1")
        })?;
        Ok(Self { name: name.to_owned(), values, source })
    }

    /// A knob of numbers, or of the words that were typed. Its first value is its default.
    pub fn definition(&self) -> Knob {
        let numbers = self.values.iter().all(|value| matches!(value, Value::Integer(_)));
        Knob {
            kind: if numbers { Kind::Integer } else { Kind::Choice },
            default: self.values[0].clone(),
            values: self.values.clone(),
            min: None,
            max: None,
            about: format!("values given with {}", self.source.path.display()),
            workloads: Vec::new(),
            effect: None,
            amount: false,
        }
    }
}

/// The values of a list or of a range.
fn values(text: &str) -> Result<Vec<Value>, String> {
    if let Some(values) = range(text) {
        return values;
    }
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if let Some(twice) = words.iter().enumerate().find(|(index, word)| words[..*index].contains(word)) {
        return Err(format!("{} is there twice", twice.1));
    }
    if words.contains(&"") {
        return Err("an empty value".to_owned());
    }
    // A number that would change by being read, such as 007, stays a word.
    let numbers: Option<Vec<Value>> = words
        .iter()
        .map(|word| word.parse::<i64>().ok().filter(|n| n.to_string() == *word).map(Value::Integer))
        .collect();
    Ok(numbers.unwrap_or_else(|| words.into_iter().map(|word| Value::Text(word.to_owned())).collect()))
}

/// The values of `FROM..TO`, `FROM..TO+STEP` or `FROM..TO*FACTOR`. None if it is no range.
fn range(text: &str) -> Option<Result<Vec<Value>, String>> {
    let (from, rest) = text.split_once("..")?;
    let from: i64 = from.trim().parse().ok()?;
    let split = rest.find(['+', '*']).unwrap_or(rest.len());
    let (to, step) = rest.split_at(split);
    let to: i64 = to.trim().parse().ok()?;
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let next: Box<dyn Fn(i64) -> Option<i64>> =
        match (step.chars().next(), number(step.get(1..).unwrap_or(""))) {
            (None, _) => Box::new(|n| n.checked_add(1)),
            (Some('+'), Some(step)) if step > 0 => Box::new(move |n| n.checked_add(step)),
            (Some('*'), Some(factor)) if factor > 1 && from > 0 => Box::new(move |n| n.checked_mul(factor)),
            _ => {
                return Some(Err(format!(
                    "`{step}` is not a step: write +1 or more, or *2 or more from 1 on"
                )));
            }
        };
    if from > to {
        return Some(Err(format!("{from} is above {to}")));
    }
    let all = std::iter::successors(Some(from), |n| next(*n)).take_while(|n| *n <= to).take(MOST_VALUES + 1);
    let all: Vec<Value> = all.map(Value::Integer).collect();
    Some(if all.len() > MOST_VALUES { Err(format!("more than {MOST_VALUES} values")) } else { Ok(all) })
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
}
