//! Workflow commands of GitHub Actions, which it shows as annotations beside the job and the pull request.

use printable::printable_lines;

use crate::words::{Grade, Judgement};

/// A command in a line for each case and each warning. Errors come first, because GitHub shows ten of a kind for each step.
pub fn github(judged: &Judgement) -> String {
    let of = |grade: Grade, command: &str| {
        let cases = judged.cases.iter().filter(move |case| case.grade == grade);
        cases
            .map(|case| line(command, &format!("{}: {}", case.suite, case.name), &case.words))
            .collect::<String>()
    };
    let warnings: String = judged.warnings.iter().map(|words| line("warning", "narrows", words)).collect();
    let errors = of(Grade::Worse, "error") + &of(Grade::Unjudged, "error");
    errors
        + &of(Grade::Inconclusive, "warning")
        + &warnings
        + &of(Grade::Open, "notice")
        + &of(Grade::Fine, "notice")
}

fn line(command: &str, title: &str, message: &str) -> String {
    format!("::{command} title={}::{}\n", property(title), data(message))
}

/// The text behind a command. Another line would be another command.
fn data(text: &str) -> String {
    printable_lines(text).replace('%', "%25").replace('\n', "%0A")
}

/// The value of a property, which a comma or a colon would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Case;

    #[test]
    fn a_name_cannot_end_its_command() {
        let case = |grade, name: &str| Case {
            suite: "e rate".to_owned(),
            name: name.to_owned(),
            grade,
            words: "100 %: a\r\n::error::b\u{1b}[31m\u{202e}".to_owned(),
        };
        let judged = Judgement {
            cases: vec![case(Grade::Fine, "a"), case(Grade::Worse, "x=1,2::stop\n")],
            warnings: vec!["w".to_owned()],
        };
        assert_eq!(
            github(&judged),
            "::error title=e rate%3A x=1%2C2%3A%3Astop%0A::100 %25: a %0A::error::b [31m \n\
             ::warning title=narrows::w\n\
             ::notice title=e rate%3A a::100 %25: a %0A::error::b [31m \n"
        );
    }
}
