//! `--bisect`: the first commit from A to B that is slower than A by the threshold.
//!
//! Each step is a run of its own, in which A and one commit are compared in the same rounds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use lab::findings::{By, Findings, Ratio};
use machines::MachineError;
use report::number::interval_in_hundredths;
use revisions::{Bisect, Next, Repository, Revision, Trouble};
use stats::LEVEL;

use super::Comparison;
use super::commits::{Clones, Commits};
use crate::common::{self, End, INTERRUPTED, Usage};
use crate::runs::Screen;

/// The exit codes, which are those of `git bisect run`.
const SLOWER: u8 = 1;
pub const UNTOLD: u8 = 125;

/// How many times the rounds of a step a commit gets that is still undecided, one run after the other.
const AGAIN: [u32; 2] = [2, 4];
/// No search makes more of these runs.
const MOST_AGAIN: usize = 6;

/// What a run says about a commit beside another.
enum Judged {
    Good(Ratio),
    Slower(Ratio),
    /// It was compared in so many rounds, which do not decide it.
    Undecided(Ratio, u32),
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
    question: &Comparison<'_>,
    repository: &Repository,
    (good, worse): (&Revision, &Revision),
    clones: Clones<'_>,
) -> End {
    let search = Search { question, repository, good, clones: RefCell::new(clones) };
    search.run(worse)
}

/// A commit that is judged beside another.
struct Pair<'a> {
    base: &'a Revision,
    commit: &'a Revision,
    screen: Screen,
    /// See [`decided`].
    far: f64,
}

struct Search<'a> {
    question: &'a Comparison<'a>,
    repository: &'a Repository,
    good: &'a Revision,
    clones: RefCell<Clones<'a>>,
}

impl Search<'_> {
    /// How good the last commit is, if it is worse; or the exit code.
    fn whole(&self, worse: &Revision) -> anyhow::Result<Result<Ratio, ExitCode>> {
        let pair = Pair { base: self.good, commit: worse, screen: Screen::Step, far: 0.0 };
        Ok(match until_decided(worse, |times| self.judge(times, &pair))? {
            Judged::Slower(ratio) => Ok(ratio),
            Judged::Good(_) => {
                let percent = report::number::chosen_percent(self.question.args.threshold);
                say(format_args!("{} is not worse than {} by {percent}", worse.name, self.good.name))?;
                Err(ExitCode::SUCCESS)
            }
            Judged::Undecided(ratio, rounds) => {
                let why = undecided(ratio, rounds);
                say(format_args!("cannot search: {} {why}: more rounds help (--budget)", worse.name))?;
                Err(ExitCode::from(UNTOLD))
            }
            Judged::Unclear(why) => {
                say(format_args!("cannot search: {} {why}", worse.name))?;
                Err(ExitCode::from(UNTOLD))
            }
            Judged::Interrupted => Err(ExitCode::from(INTERRUPTED)),
        })
    }

    fn run(&self, worse: &Revision) -> End {
        let whole = match self.whole(worse)? {
            Ok(ratio) => ratio,
            Err(code) => return Ok(code),
        };
        let mut open = Open::default();
        let mut steps = Bisect::new(&self.good.commit, &worse.commit);
        loop {
            let (commit, times) = match steps.next(self.repository)? {
                Next::Try { commit, left } => {
                    let commit = self.short(&commit)?;
                    let (name, subject) = (&commit.name, &commit.subject);
                    common::say(format_args!("bisect: one of {left} commits; next is {name} {subject:?}"));
                    (commit, 1)
                }
                Next::Found(commit) => return self.found(&self.short(&commit)?),
                Next::Unclear(commits) => match open.again(&commits) {
                    Some((commit, times)) => {
                        let commit = self.short(&commit)?;
                        say_again(&commit.name, times, open.runs, MOST_AGAIN);
                        (commit, times)
                    }
                    None => return self.not_found(&commits, &open),
                },
            };
            let name = &commit.name;
            let far = whole.estimate.sqrt();
            let pair = Pair { base: self.good, commit: &commit, screen: Screen::Step, far };
            match self.judge_next(times, &pair)? {
                Judged::Good(ratio) => {
                    common::say(format_args!(
                        "bisect: {name} is not worse: {} as good",
                        interval_in_hundredths(ratio)
                    ));
                    steps.good(&commit.commit);
                    open.last_good = Some(name.clone());
                }
                Judged::Slower(ratio) => {
                    common::say(format_args!(
                        "bisect: {name} is worse: {} as good",
                        interval_in_hundredths(ratio)
                    ));
                    steps.worse(&commit.commit);
                }
                Judged::Undecided(ratio, rounds) => {
                    let why = undecided(ratio, rounds);
                    common::say(format_args!("bisect: {name} is passed over for now: it {why}"));
                    open.undecided(&commit.commit, rounds);
                    steps.skip(&commit.commit);
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
    fn not_found(&self, commits: &[String], open: &Open) -> End {
        let shown = commits.iter().map(|commit| Ok(self.short(commit)?.name));
        let shown = shown.collect::<anyhow::Result<Vec<String>>>()?.join(", ");
        let good = &self.good.name;
        let between = open.last_good.as_ref().unwrap_or(good);
        let rounds = commits.iter().filter_map(|commit| open.rounds(commit)).max();
        let rounds = rounds.map_or_else(String::new, |rounds| format!(", undecided after {rounds} rounds"));
        say(format_args!(
            "the first commit that is worse than {good} comes after {between} and is one of {shown}{rounds}"
        ))?;
        Ok(ExitCode::from(UNTOLD))
    }

    /// Sets the commit beside its parent: what was found in several runs is seen in one.
    fn found(&self, first: &Revision) -> End {
        let (name, subject) = (&first.name, &first.subject);
        let parent = self.repository.revision(&format!("{}^", first.commit));
        let beside = match parent {
            Ok(parent) => {
                let parent = Revision { name: parent.short().to_owned(), ..parent };
                let pair = Pair { base: &parent, commit: first, screen: Screen::Tables, far: 0.0 };
                match until_decided(first, |times| self.judge_next(times, &pair))? {
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
                    Judged::Undecided(ratio, rounds) => {
                        format!("; beside its parent it {}", undecided(ratio, rounds))
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

    /// Compares both in a run of its own, of so many times the usual rounds.
    fn judge(&self, times: u32, pair: &Pair<'_>) -> anyhow::Result<Judged> {
        let question = self.question;
        let commits = [pair.base.clone(), pair.commit.clone()];
        let commits = Commits::prepare(question.args, &mut self.clones.borrow_mut(), &commits)?;
        let answer = question.answer_in(times, Some(&commits), pair.screen)?;
        if answer.code == ExitCode::from(INTERRUPTED) {
            return Ok(Judged::Interrupted);
        }
        let Some(found) = answer.found else {
            return Ok(Judged::Unclear("was not measured".to_owned()));
        };
        Ok(judged(&found, question.args.threshold, pair.far))
    }

    /// The same, for a commit whose base is known to work: if it cannot be built or started, it is passed over.
    fn judge_next(&self, times: u32, pair: &Pair<'_>) -> anyhow::Result<Judged> {
        self.judge(times, pair).or_else(|error| {
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
    let seen = found.views().next().and_then(|e| {
        let c = e.comparisons.iter().find(|c| c.by == By::System)?;
        let ratio = c.known()?;
        Some((if e.is_beside_base(c) { ratio } else { ratio.inverse() }, c.p, c.rounds))
    });
    match seen {
        Some((ratio, p, rounds)) => {
            decided(ratio, p, threshold, far).unwrap_or(Judged::Undecided(ratio, rounds))
        }
        None => Judged::Unclear("cannot be compared".to_owned()),
    }
}

/// What a ratio to the base says: slower if it certainly differs and is beyond the threshold, good if it certainly is not beyond.
/// It is good, too, if it does not look beyond and is certainly better than `far`: then it is not what the search is for.
/// None if it is undecided.
fn decided(ratio: Ratio, p: Option<f64>, threshold: f64, far: f64) -> Option<Judged> {
    let bound = 1.0 / (1.0 + threshold);
    let differs = ratio.high < 1.0 && p.is_some_and(|p| p <= LEVEL);
    let not_it = far > 0.0 && ratio.estimate > bound && ratio.low > far;
    if ratio.low > bound || not_it {
        Some(Judged::Good(ratio))
    } else if differs && ratio.estimate <= bound {
        Some(Judged::Slower(ratio))
    } else {
        None
    }
}

fn undecided(ratio: Ratio, rounds: u32) -> String {
    format!("is {} as good, which is undecided after {rounds} rounds", interval_in_hundredths(ratio))
}

/// Judges a commit in so many times the usual rounds: once, and again in more rounds while it is undecided.
fn until_decided(commit: &Revision, judge: impl Fn(u32) -> anyhow::Result<Judged>) -> anyhow::Result<Judged> {
    let mut judged = judge(1)?;
    for (at, times) in AGAIN.into_iter().enumerate() {
        if !matches!(judged, Judged::Undecided(..)) {
            break;
        }
        say_again(&commit.name, times, at + 1, AGAIN.len());
        judged = judge(times)?;
    }
    Ok(judged)
}

/// Says that a commit gets more rounds, and how many such runs there will be at most.
fn say_again(name: &str, times: u32, run: usize, most: usize) {
    common::say(format_args!(
        "bisect: {name} is undecided, and is measured again in {times} times the rounds: run {run} of at most {most}"
    ));
}

/// What a search has left open so far.
#[derive(Debug, Default)]
struct Open {
    /// The commits that were measured and not decided, each with its number of runs and its most rounds.
    commits: BTreeMap<String, (usize, u32)>,
    /// The runs that repeated one.
    runs: usize,
    /// The last commit that was found not to be worse.
    last_good: Option<String>,
}

impl Open {
    fn undecided(&mut self, commit: &str, rounds: u32) {
        let (runs, most) = self.commits.entry(commit.to_owned()).or_default();
        (*runs, *most) = (*runs + 1, rounds.max(*most));
    }

    /// The rounds after which a commit was undecided.
    fn rounds(&self, commit: &str) -> Option<u32> {
        self.commits.get(commit).map(|(_, rounds)| *rounds)
    }

    /// Which of the commits to measure again, and in how many times the rounds: the first with the fewest runs. None if none
    /// may.
    fn again(&mut self, commits: &[String]) -> Option<(String, u32)> {
        let runs = |commit: &&String| self.commits.get(*commit).map_or(usize::MAX, |(runs, _)| *runs);
        let commit = commits.iter().min_by_key(runs)?;
        let times = AGAIN.get(runs(&commit).checked_sub(1)?).filter(|_| self.runs < MOST_AGAIN)?;
        self.runs += 1;
        Some((commit.clone(), *times))
    }
}

/// A line of the answer.
fn say(line: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    common::print(format!("{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undecided_commit_gets_more_rounds_within_a_limit() {
        let commits = ["a", "b", "c"].map(str::to_owned);
        let mut open = Open::default();
        // What could not be built gets no more rounds.
        assert_eq!(open.again(&commits), None);
        open.undecided("b", 10);
        open.undecided("c", 10);
        let mut seen = Vec::new();
        while let Some((commit, times)) = open.again(&commits) {
            open.undecided(&commit, 10 * times);
            seen.push((commit, times));
        }
        let expected = [("b", 2), ("c", 2), ("b", 4), ("c", 4)];
        assert_eq!(seen, expected.map(|(commit, times)| (commit.to_owned(), times)));
        assert_eq!((open.rounds("a"), open.rounds("b")), (None, Some(40)));
        // Many open commits share a limit.
        let many: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let mut open = Open::default();
        many.iter().for_each(|commit| open.undecided(commit, 10));
        let runs = std::iter::from_fn(|| open.again(&many)).take(100).count();
        assert_eq!(runs, MOST_AGAIN);
    }

    #[test]
    fn a_commit_is_judged_only_if_the_interval_says_it() {
        let decide = |low, estimate, high, p, threshold| match decided(
            Ratio { estimate, low, high },
            Some(p),
            threshold,
            0.6,
        ) {
            Some(Judged::Slower(_)) => "slower",
            Some(Judged::Good(_)) => "good",
            _ => "unclear",
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
