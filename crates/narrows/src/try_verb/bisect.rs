//! `--bisect`: the first commit from A to B that is slower than A by the threshold.
//!
//! Each step is a run of its own, in which A and one commit are compared in the same rounds.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::bail;
use lab::findings::{By, Findings, Ratio};
use machines::MachineError;
use report::number::interval_in_hundredths;
use revisions::{Bisect, Repository, Revision, Step, Trouble};
use stats::LEVEL;

use super::Question;
use super::commits::{Clones, Commits};
use crate::common::{self, End, INTERRUPTED, Usage};
use crate::run_verb::Screen;

/// The exit codes, which are those of `git bisect run`.
const SLOWER: u8 = 1;
pub const UNTOLD: u8 = 125;

/// What a run says about a commit beside another.
enum Judged {
    Good(Ratio),
    Slower(Ratio),
    /// It cannot be told, for this reason.
    Unclear(String),
    Interrupted,
}

/// The two commits, if one can search between them.
pub fn check<'a>(
    repository: &Repository,
    revisions: &'a [Revision],
) -> anyhow::Result<(&'a Revision, &'a Revision)> {
    let [good, worse] = revisions else {
        bail!(Usage("--bisect searches between two commits: write --git A..B".to_owned()));
    };
    if revisions.iter().any(|revision| revision.name == "dirty") {
        bail!(Usage("--bisect searches among commits, and `dirty` is none".to_owned()));
    }
    if !repository.is_ancestor(good, worse)? {
        let (good, worse) = (&good.name, &worse.name);
        bail!(Usage(format!(
            "--bisect: {good} is not in the history of {worse}: write {good}...{worse} to begin where they parted"
        )));
    }
    Ok((good, worse))
}

/// Searches between two commits, and prints the commit.
pub fn search(
    question: &Question<'_>,
    repository: &Repository,
    (good, worse): (&Revision, &Revision),
    clones: Clones<'_>,
) -> End {
    let search = Search { question, repository, good, clones: RefCell::new(clones) };
    search.run(worse)
}

struct Search<'a> {
    question: &'a Question<'a>,
    repository: &'a Repository,
    good: &'a Revision,
    clones: RefCell<Clones<'a>>,
}

impl Search<'_> {
    fn run(&self, worse: &Revision) -> End {
        let whole = match self.judge(self.good, worse, Screen::Step, 0.0)? {
            Judged::Slower(ratio) => ratio,
            Judged::Good(_) => {
                let percent = report::number::chosen_percent(self.question.args.threshold);
                say(format_args!("{} is not worse than {} by {percent}", worse.name, self.good.name))?;
                return Ok(ExitCode::SUCCESS);
            }
            Judged::Unclear(why) => {
                say(format_args!("cannot search: {} {why}", worse.name))?;
                return Ok(ExitCode::from(UNTOLD));
            }
            Judged::Interrupted => return Ok(ExitCode::from(INTERRUPTED)),
        };
        let mut steps = Bisect::new(&self.good.commit, &worse.commit);
        loop {
            let (commit, left) = match steps.next(self.repository)? {
                Step::Try { commit, left } => (self.short(&commit)?, left),
                Step::Found(commit) => return self.found(&self.short(&commit)?),
                Step::Unclear(commits) => return self.not_found(&commits),
            };
            let (name, subject) = (&commit.name, &commit.subject);
            common::say(format_args!("bisect: one of {left} commits; next is {name} {subject:?}"));
            match self.judge_next(self.good, &commit, Screen::Step, whole.estimate.sqrt())? {
                Judged::Good(ratio) => {
                    common::say(format_args!(
                        "bisect: {name} is not worse: {} as good",
                        interval_in_hundredths(ratio)
                    ));
                    steps.good(&commit.commit);
                }
                Judged::Slower(ratio) => {
                    common::say(format_args!(
                        "bisect: {name} is worse: {} as good",
                        interval_in_hundredths(ratio)
                    ));
                    steps.worse(&commit.commit);
                }
                Judged::Unclear(why) => {
                    common::say(format_args!("bisect: {name} is passed over: it {why}"));
                    steps.skip(&commit.commit);
                }
                Judged::Interrupted => return Ok(ExitCode::from(INTERRUPTED)),
            }
        }
    }

    /// Names the commits that are left.
    fn not_found(&self, commits: &[String]) -> End {
        let shown = commits.iter().map(|commit| Ok(self.short(commit)?.name));
        let shown = shown.collect::<anyhow::Result<Vec<String>>>()?.join(", ");
        say(format_args!("the first commit that is worse than {} is one of {shown}", self.good.name))?;
        Ok(ExitCode::from(UNTOLD))
    }

    /// Sets the commit beside its parent: what was found in several runs is seen in one.
    fn found(&self, first: &Revision) -> End {
        let (name, subject) = (&first.name, &first.subject);
        let parent = self.repository.revision(&format!("{}^", first.commit));
        let beside = match parent {
            Ok(parent) => {
                let parent = Revision { name: parent.short().to_owned(), ..parent };
                match self.judge_next(&parent, first, Screen::Tables, 0.0)? {
                    Judged::Slower(ratio) => {
                        format!(
                            "; it is {} as good as its parent {}",
                            interval_in_hundredths(ratio),
                            parent.name
                        )
                    }
                    Judged::Interrupted => return Ok(ExitCode::from(INTERRUPTED)),
                    Judged::Good(_) => {
                        let parent = &parent.name;
                        format!(
                            "; beside its parent {parent} it is not: several commits together make the difference"
                        )
                    }
                    Judged::Unclear(why) => format!("; beside its parent it {why}"),
                }
            }
            Err(_) => String::new(),
        };
        let good = &self.good.name;
        say(format_args!("the first commit that is worse than {good} is {name} {subject:?}{beside}"))?;
        Ok(ExitCode::from(SLOWER))
    }

    fn short(&self, commit: &str) -> anyhow::Result<Revision> {
        let revision = self.repository.revision(commit)?;
        Ok(Revision { name: revision.short().to_owned(), ..revision })
    }

    /// Compares a commit with another in a run of its own. For `far` see [`decided`].
    fn judge(&self, base: &Revision, commit: &Revision, screen: Screen, far: f64) -> anyhow::Result<Judged> {
        let question = self.question;
        let pair = [base.clone(), commit.clone()];
        let commits = Commits::prepare(question.args, &mut self.clones.borrow_mut(), &pair)?;
        let answer = question.answer(Some(&commits), screen)?;
        if answer.code == ExitCode::from(INTERRUPTED) {
            return Ok(Judged::Interrupted);
        }
        let Some(found) = answer.found else {
            return Ok(Judged::Unclear("was not measured".to_owned()));
        };
        Ok(judged(&found, question.args.threshold, far))
    }

    /// The same, for a commit whose base is known to work: if it cannot be built or started, it is passed over.
    fn judge_next(
        &self,
        base: &Revision,
        commit: &Revision,
        screen: Screen,
        far: f64,
    ) -> anyhow::Result<Judged> {
        self.judge(base, commit, screen, far).or_else(|error| {
            let interrupted = matches!(error.downcast_ref(), Some(Trouble::Interrupted));
            // Another commit needs the machine, too.
            let machine_gone = error.downcast_ref::<MachineError>().is_some_and(|error| error.gone);
            match interrupted || machine_gone {
                true => Err(error),
                false => Ok(Judged::Unclear(format!("cannot be measured: {error:#}"))),
            }
        })
    }
}

/// What the first figure says of the second system beside the base.
fn judged(found: &Findings, threshold: f64, far: f64) -> Judged {
    let seen = found.experiments.first().and_then(|e| {
        let c = e.comparisons.iter().find(|c| c.by == By::System)?;
        let ratio = c.known()?;
        Some((if e.is_beside_base(c) { ratio } else { ratio.inverse() }, c.p))
    });
    match seen {
        Some((ratio, p)) => decided(ratio, p, threshold, far),
        None => Judged::Unclear("cannot be compared".to_owned()),
    }
}

/// What a ratio to the base says: slower if it certainly differs and is beyond the threshold, good if it certainly is not beyond.
/// It is good, too, if it does not look beyond and is certainly better than `far`: then it is not what the search is for.
fn decided(ratio: Ratio, p: Option<f64>, threshold: f64, far: f64) -> Judged {
    let bound = 1.0 / (1.0 + threshold);
    let differs = ratio.high < 1.0 && p.is_some_and(|p| p <= LEVEL);
    let not_it = far > 0.0 && ratio.estimate > bound && ratio.low > far;
    if ratio.low > bound || not_it {
        Judged::Good(ratio)
    } else if differs && ratio.estimate <= bound {
        Judged::Slower(ratio)
    } else {
        let seen = interval_in_hundredths(ratio);
        Judged::Unclear(format!("is {seen} as good, which is undecided: more rounds help (--budget)"))
    }
}

/// A line of the answer.
fn say(line: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    common::print(&format!("{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_judged_only_if_the_interval_says_it() {
        let decide = |low, estimate, high, p, threshold| match decided(
            Ratio { estimate, low, high },
            Some(p),
            threshold,
            0.6,
        ) {
            Judged::Slower(_) => "slower",
            Judged::Good(_) => "good",
            Judged::Unclear(_) => "unclear",
            Judged::Interrupted => "interrupted",
        };
        assert_eq!(decide(0.80, 0.85, 0.90, 0.01, 0.05), "slower");
        assert_eq!(decide(0.80, 0.85, 0.90, 0.20, 0.05), "unclear");
        assert_eq!(decide(0.80, 0.85, 0.90, 0.01, 0.30), "good");
        assert_eq!(decide(0.98, 1.00, 1.02, 0.90, 0.05), "good");
        assert_eq!(decide(0.70, 0.90, 1.10, 0.30, 0.05), "unclear");
        // It may be slower by the threshold, but it does not look so, and it is far from what is searched for.
        assert_eq!(decide(0.70, 0.99, 1.30, 0.30, 0.05), "good");
        assert_eq!(decide(0.50, 0.99, 1.90, 0.30, 0.05), "unclear");
        // It differs, but it looks as if by less than what matters.
        assert_eq!(decide(0.94, 0.96, 0.98, 0.01, 0.05), "good");
    }
}
