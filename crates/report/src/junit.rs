//! JUnit's XML, which most systems of continuous integration read: each case is a test.

use std::collections::BTreeMap;

use printable::printable_lines;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite, XmlString};

use crate::words::{Case, Grade, Judgement};

/// A report with a suite for each experiment and figure. A case that is worse is a failure, one that cannot be judged is an
/// error, and one that is inconclusive or not decided was skipped. Warnings are in the standard error of the first suite.
pub fn junit(judged: &Judgement) -> String {
    let (mut suites, mut places): (Vec<TestSuite>, BTreeMap<XmlString, usize>) = Default::default();
    for case in &judged.cases {
        let name = XmlString::new(allowed(&case.suite));
        let at = *places.entry(name.clone()).or_insert_with(|| {
            suites.push(TestSuite::new(name));
            suites.len() - 1
        });
        suites[at].add_test_case(test(case));
    }
    if let Some(suite) = suites.first_mut().filter(|_| !judged.warnings.is_empty()) {
        suite.set_system_err(allowed(&judged.warnings.join("\n")));
    }
    let mut report = Report::new("narrows");
    report.add_test_suites(suites);
    // Only a writer could fail, and a string does not.
    report.to_string().unwrap_or_default()
}

fn test(case: &Case) -> TestCase {
    let mut status = match case.grade {
        Grade::Worse => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Grade::Unjudged => TestCaseStatus::non_success(NonSuccessKind::Error),
        Grade::Inconclusive | Grade::Open => TestCaseStatus::skipped(),
        Grade::Fine => TestCaseStatus::success(),
    };
    if case.grade != Grade::Fine {
        status.set_message(allowed(&case.words));
    }
    let mut test = TestCase::new(allowed(&case.name), status);
    test.set_classname(allowed(&case.suite));
    if case.grade == Grade::Fine {
        test.set_system_out(allowed(&case.words));
    }
    test
}

/// Text as it may be shown, without the two other characters that XML forbids and that `quick_junit` lets pass.
fn allowed(text: &str) -> String {
    printable_lines(text).replace(['\u{fffe}', '\u{ffff}'], "")
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
