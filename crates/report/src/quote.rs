//! A claim in a Markdown file: a block between two markers that Narrows writes, and reads again to say whether it is still true.
//!
//! Knows lines, fences and markers. What is quoted are findings, and `words::quoted` has the sentences. A block carries the claim as
//! JSON in a comment. Anyone may have edited the file, so what is read from it is bounded and checked.

use std::fmt;

use lab::findings::FigureView;
use lab::quoted::Quoted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::html::Run;
use crate::words::quoted::{decided, lines};

/// The version of the JSON in a block.
const SCHEMA: u32 = 1;

/// The most bytes of the JSON in a block. A command may be long.
const LONGEST: usize = 64 << 10;

/// What a block says, for a later check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quote {
    /// The version of this form.
    schema: u32,
    /// When the run began, in seconds since the Unix epoch.
    pub started_unix_s: f64,
    /// The command line that started it, without the program's name.
    pub command: String,
    /// Its machine, as far as figures of another one are not comparable.
    pub machine: Value,
    /// Its claim.
    pub claim: Quoted,
}

/// What is wrong with the blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, and what to do.
    pub why: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Damaged {}

/// The two lines between which a block of this name stands.
pub fn markers(name: &str) -> [String; 2] {
    [format!("<!-- narrows:begin {name} -->"), format!("<!-- narrows:end {name} -->")]
}

/// Whether a block may have this name: letters, digits, `.`, `_` and `-`.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.chars().all(allowed)
}

/// The lines of a block about the first claim of a figure. The same run always gives the same ones. `of_commits` says whether the
/// versions of its systems are commits.
///
/// # Errors
/// Why there is nothing to quote, in words that follow the name of the run.
pub fn block(e: &FigureView<'_>, run: &Run<'_>, of_commits: bool) -> Result<String, String> {
    let claim = decided(e)?;
    let shown = lines(e, &claim, run, of_commits);
    let part = |name: &str| Some((name.to_owned(), run.environment.get(name)?.clone()));
    let quote = Quote {
        schema: SCHEMA,
        started_unix_s: run.started_unix_s,
        command: run.command.to_owned(),
        machine: ["cpu", "cores", "generators"].into_iter().filter_map(part).collect(),
        claim,
    };
    // Only a map with keys that are not strings could fail, and there is none. The end of a comment cannot be in it.
    let json = serde_json::to_string(&quote).unwrap_or_default().replace('>', "\\u003e");
    match json.len() > LONGEST {
        true => Err(format!("its command is too long to be quoted: more than {LONGEST} bytes")),
        false => Ok(format!("{shown}\n<!-- narrows:claim {json} -->\n")),
    }
}

/// The file with another text in the block of this name. None if it has no such block. Lines end as the line of the first marker.
///
/// # Errors
/// Markers that do not belong together.
pub fn replaced(file: &str, name: &str, block: &str) -> Result<Option<String>, Damaged> {
    let Some(place) = places(file)?.into_iter().find(|place| place.name == name) else { return Ok(None) };
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let (before, after) = (lines.get(..=place.begin), lines.get(place.end..));
    let (before, after) = (before.unwrap_or_default().concat(), after.unwrap_or_default().concat());
    let block = if before.ends_with("\r\n") { block.replace('\n', "\r\n") } else { block.to_owned() };
    Ok(Some(format!("{before}{block}{after}")))
}

/// What the blocks of a file say, with their names, in the order of the file.
///
/// # Errors
/// Markers that do not belong together, or a block whose claim is missing or damaged.
pub fn quotes(file: &str) -> Result<Vec<(String, Quote)>, Damaged> {
    let lines: Vec<&str> = file.lines().collect();
    let read = |place: Place| {
        let inside = lines.get(place.begin + 1..place.end).unwrap_or_default();
        let damaged = |at: usize, what: &str| Damaged {
            line: place.begin + 1 + at,
            why: format!(
                "the claim of the block `{}` {what}: `narrows report RUN --readme FILE` writes it again",
                place.name
            ),
        };
        let claim = inside.iter().enumerate().find_map(|(at, line)| Some((at + 1, claimed(line)?)));
        let (at, json) = claim.ok_or_else(|| damaged(0, "is missing"))?;
        let quote = read_quote(json).map_err(|why| damaged(at, &why))?;
        Ok((place.name, quote))
    };
    places(file)?.into_iter().map(read).collect()
}

/// The JSON of the line of a block that has its claim.
fn claimed(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!-- narrows:claim ")?.strip_suffix(" -->")
}

fn read_quote(json: &str) -> Result<Quote, String> {
    if json.len() > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes"));
    }
    let quote: Quote = serde_json::from_str(json).map_err(|error| format!("is damaged ({error})"))?;
    match quote.schema == SCHEMA && quote.claim.is_possible() && quote.started_unix_s.is_finite() {
        true => Ok(quote),
        false if quote.schema != SCHEMA => {
            Err(format!("has schema {}, but this Narrows reads schema {SCHEMA}", quote.schema))
        }
        false => Err("is damaged (its numbers are impossible)".to_owned()),
    }
}

/// Where a block stands: the lines of its markers, from 0.
struct Place {
    name: String,
    begin: usize,
    end: usize,
}

/// A marker of a block, with its name.
enum Marker<'a> {
    Begin(&'a str),
    End(&'a str),
}

impl<'a> Marker<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let inside = line.trim().strip_prefix("<!-- narrows:")?.strip_suffix(" -->")?;
        match inside.split_once(' ')? {
            ("begin", name) if is_name(name) => Some(Self::Begin(name)),
            ("end", name) if is_name(name) => Some(Self::End(name)),
            _ => None,
        }
    }
}

/// The blocks of a file. A marker in fenced code is no marker, so a document can show some.
fn places(file: &str) -> Result<Vec<Place>, Damaged> {
    let mut places: Vec<Place> = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut fence: Option<&str> = None;
    for (at, line) in file.lines().enumerate() {
        let wrong = |why: String| Err(Damaged { line: at + 1, why });
        if let Some(opened) = fence {
            fence = Some(opened).filter(|opened| !closes(line, opened));
            continue;
        }
        fence = fence_of(line);
        match (Marker::of(line), open) {
            (Some(Marker::Begin(name)), None) => match places.iter().find(|place| place.name == name) {
                Some(first) => {
                    return wrong(format!(
                        "the block `{name}` is there twice, first in line {}: remove one, or give it another name",
                        first.begin + 1
                    ));
                }
                None => open = Some((name, at)),
            },
            (Some(Marker::End(name)), Some((begun, begin))) if name == begun => {
                places.push(Place { name: name.to_owned(), begin, end: at });
                open = None;
            }
            (Some(_), Some((begun, begin))) => {
                let [_, end] = markers(begun);
                return wrong(format!(
                    "the block `{begun}` of line {} does not end before this marker: put `{end}` above it",
                    begin + 1
                ));
            }
            (Some(Marker::End(name)), None) => {
                let [begin, _] = markers(name);
                return wrong(format!(
                    "the block `{name}` ends, but does not begin: put `{begin}` above this line, or remove it"
                ));
            }
            (None, _) => {}
        }
    }
    match open {
        None => Ok(places),
        Some((name, begin)) => {
            let [_, end] = markers(name);
            let why = format!("the block `{name}` does not end: put `{end}` below it");
            Err(Damaged { line: begin + 1, why })
        }
    }
}

/// The fence that a line opens: three or more backticks or tildes.
fn fence_of(line: &str) -> Option<&str> {
    let begun = line.trim_start_matches(' ');
    let mark = begun.chars().next().filter(|c| "`~".contains(*c))?;
    let rest = begun.trim_start_matches(mark);
    let fence = begun.strip_suffix(rest)?;
    let is_code = mark == '`' && rest.contains('`');
    (line.len() - begun.len() <= 3 && fence.len() >= 3 && !is_code).then_some(fence)
}

/// Whether a line closes this fence.
fn closes(line: &str, opened: &str) -> bool {
    let closed = line.trim();
    closed.starts_with(opened) && opened.chars().next().is_some_and(|mark| closed.chars().all(|c| c == mark))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "# A\n\n<!-- narrows:begin a -->\nold\n<!-- narrows:end a -->\n\nthe rest";

    #[test]
    fn a_block_is_replaced_and_nothing_else() {
        let new = replaced(FILE, "a", "new\nlines\n").expect("markers").expect("a block");
        assert_eq!(new, FILE.replace("old\n", "new\nlines\n"));
        assert_eq!(replaced(&new, "a", "new\nlines\n"), Ok(Some(new.clone())));
        assert_eq!(replaced(FILE, "b", "new\n"), Ok(None));
        let windows = FILE.replace('\n', "\r\n");
        let new = replaced(&windows, "a", "new\n").expect("markers").expect("a block");
        assert_eq!(new, windows.replace("old", "new"));
    }

    #[test]
    fn a_marker_in_code_is_none() {
        for fenced in ["```sh\n", "~~~~\n", "  ```\n"] {
            let end = fenced.trim().trim_end_matches("sh");
            let file = format!("{fenced}<!-- narrows:begin a -->\n{end}\n");
            assert_eq!(replaced(&file, "a", "new\n"), Ok(None), "{file}");
            assert_eq!(replaced(&format!("{file}{FILE}"), "b", "new\n"), Ok(None), "{file}");
        }
    }

    #[test]
    fn markers_that_do_not_belong_together_are_named_with_their_line() {
        for (file, line, said) in [
            ("\n<!-- narrows:begin a -->\n", 2, "does not end: put `<!-- narrows:end a -->` below it"),
            ("\n\n<!-- narrows:end a -->", 3, "ends, but does not begin"),
            ("<!-- narrows:begin a -->\n<!-- narrows:begin b -->\n", 2, "`a` of line 1 does not end"),
            ("<!-- narrows:begin a -->\n<!-- narrows:end b -->\n", 2, "`a` of line 1 does not end"),
            (&format!("{FILE}\n{FILE}"), 10, "is there twice, first in line 3"),
        ] {
            let damaged = replaced(file, "a", "new\n").expect_err("damaged");
            assert_eq!(damaged.line, line, "{damaged}");
            assert!(damaged.to_string().contains(said), "{damaged}");
        }
    }

    #[test]
    fn a_claim_that_is_missing_or_damaged_is_named_with_its_line() {
        let long = format!("<!-- narrows:claim {} -->", "x".repeat(LONGEST + 1));
        for (inside, line, said) in [
            ("old", 3, "is missing"),
            ("old\n<!-- narrows:claim {} -->", 5, "is damaged (missing field"),
            ("<!-- narrows:claim {\"schema\": 1 -->", 4, "is damaged"),
            (&long, 4, "is longer than 65536 bytes"),
        ] {
            let damaged = quotes(&FILE.replace("old", inside)).expect_err("damaged");
            assert_eq!(damaged.line, line, "{damaged}");
            assert!(damaged.to_string().contains(said), "{damaged}");
        }
        assert_eq!(quotes("# A\n"), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(parts in proptest::collection::vec(
            prop_oneof![
                Just("<!-- narrows:begin a -->"), Just("<!-- narrows:end a -->"), Just("<!-- narrows:claim {} -->"),
                Just("\n"), Just("\r\n"), Just("```"), Just("~~~"), Just("é"), Just(" "),
            ],
            0..20,
        )) {
            let file = parts.concat();
            let _ = quotes(&file);
            if let Ok(Some(new)) = replaced(&file, "a", "new\n") {
                prop_assert_eq!(replaced(&new, "a", "new\n"), Ok(Some(new.clone())));
            }
        }
    }
}
