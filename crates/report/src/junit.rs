//! JUnit's XML, which most systems of continuous integration read: each case is a test.

use std::collections::BTreeMap;

use printable::printable_lines;

use crate::svg::escape;
use crate::words::{Case, Grade, Judgement};

/// A report with a suite for each experiment and figure. A case that is worse is a failure, one that cannot be judged is an
/// error, and one that is inconclusive or not decided was skipped. Warnings are in the standard error of the first suite.
pub fn junit(judged: &Judgement) -> String {
    let (mut suites, mut places): (Vec<Vec<&Case>>, BTreeMap<&str, usize>) = Default::default();
    for case in &judged.cases {
        let at = *places.entry(&case.suite).or_insert_with(|| {
            suites.push(Vec::new());
            suites.len() - 1
        });
        suites[at].push(case);
    }
    let [tests, failures, errors, _] = counts(judged.cases.iter());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"narrows\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n"
    );
    let mut warnings = Some(allowed(&judged.warnings.join("\n"))).filter(|text| !text.is_empty());
    for cases in suites {
        let [tests, failures, errors, skipped] = counts(cases.iter().copied());
        let name = cases.first().map_or_else(String::new, |case| allowed(&case.suite));
        out += &format!(
            "    <testsuite name=\"{name}\" tests=\"{tests}\" disabled=\"{skipped}\" errors=\"{errors}\" failures=\"{failures}\">\n"
        );
        out.extend(cases.iter().map(|case| test(case, &name)));
        out.extend(warnings.take().map(|text| format!("        <system-err>{text}</system-err>\n")));
        out += "    </testsuite>\n";
    }
    out + "</testsuites>\n"
}

/// How many tests there are, and how many of them are failures, errors and skipped.
fn counts<'a>(cases: impl Iterator<Item = &'a Case>) -> [usize; 4] {
    let mut counts = [0; 4];
    for case in cases {
        counts[0] += 1;
        match case.grade {
            Grade::Worse => counts[1] += 1,
            Grade::Unjudged => counts[2] += 1,
            Grade::Inconclusive | Grade::Open => counts[3] += 1,
            Grade::Fine => {}
        }
    }
    counts
}

fn test(case: &Case, suite: &str) -> String {
    let (name, words) = (allowed(&case.name), allowed(&case.words));
    let said = match case.grade {
        Grade::Worse => format!("<failure message=\"{words}\"/>"),
        Grade::Unjudged => format!("<error message=\"{words}\"/>"),
        Grade::Inconclusive | Grade::Open => format!("<skipped message=\"{words}\"/>"),
        Grade::Fine => format!("<system-out>{words}</system-out>"),
    };
    format!(
        "        <testcase name=\"{name}\" classname=\"{suite}\">\n            {said}\n        </testcase>\n"
    )
}

/// Text as it may be shown in XML, without the two other characters that it forbids.
fn allowed(text: &str) -> String {
    escape(&printable_lines(text).replace(['\u{fffe}', '\u{ffff}'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_characters_that_xml_forbids_are_left_out() {
        let case = |grade, suite: &str| Case {
            suite: suite.to_owned(),
            name: "a<b>&\"c\"\u{1b}[2J\u{0}\u{ffff}\u{202e}".to_owned(),
            grade,
            words: "]]> & <x>\u{8}".to_owned(),
        };
        let judged = Judgement {
            cases: vec![
                case(Grade::Worse, "s<&\u{1}>"),
                case(Grade::Fine, "s<&\u{1}>"),
                case(Grade::Open, "t"),
            ],
            warnings: vec!["<w>".to_owned()],
        };
        let text = junit(&judged);
        assert!(
            text.contains(
                "<testsuite name=\"s&lt;&amp; &gt;\" tests=\"2\" disabled=\"0\" errors=\"0\" failures=\"1\">"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "<testcase name=\"a&lt;b&gt;&amp;&quot;c&quot; [2J  \" classname=\"s&lt;&amp; &gt;\">"
            ),
            "{text}"
        );
        assert!(text.contains("<failure message=\"]]&gt; &amp; &lt;x&gt; \"/>"), "{text}");
        assert!(text.contains("<system-out>]]&gt; &amp; &lt;x&gt; </system-out>"), "{text}");
        assert!(text.contains("<system-err>&lt;w&gt;</system-err>"), "{text}");
        assert!(
            !text.contains(|c: char| (printable::is_hidden(c) && c != '\n') || c == '\u{ffff}'),
            "{text}"
        );
    }
}
