//! What became of each suspected cause, in words.

use lab::findings::{Estimate, FigureView, Findings};
use lab::mediation::{Ends, Mediated, Tested, cost_of_event, cpu_s};
use lab::observation::{Observation, Scenario};

use super::suspect::{HALF, ONCE, Suspect, TWICE};

/// A suspect with the scenarios that were given its doses.
pub struct Dosed {
    /// The suspect.
    pub suspect: Suspect,
    /// The doses, with their scenarios.
    pub arms: Vec<(f64, Scenario)>,
}

impl Dosed {
    /// The scenario with a dose.
    fn arm(&self, dose: f64) -> Option<&Scenario> {
        self.arms.iter().find(|(of, _)| *of == dose).map(|(_, arm)| arm)
    }
}

/// The arms of a test.
pub struct Arms {
    /// The faster one, with the library and without a cause.
    pub faster: Scenario,
    /// What it is given.
    pub dosed: Vec<Dosed>,
    /// The slower one.
    pub slower: Scenario,
}

/// What became of each suspected cause, a line for each.
pub fn verdicts(arms: &Arms, found: &Findings, observations: &[Observation]) -> String {
    let seen = found.views().next().and_then(|e| Seen::of(arms, e, observations));
    let said = |dosed: &Dosed| {
        let words = dosed.suspect.words();
        match seen.as_ref().and_then(|seen| seen.verdict(arms, dosed)) {
            Some(verdict) => format!("{verdict}\n"),
            None => format!("not tested: {words}. An arm was not measured; `narrows report` says why\n"),
        }
    };
    arms.dosed.iter().map(said).collect()
}

/// What a test has seen.
struct Seen<'a> {
    e: FigureView<'a>,
    observations: &'a [Observation],
    ends: Ends,
}

impl<'a> Seen<'a> {
    /// None if one of the two ends has no figure.
    fn of(arms: &Arms, e: FigureView<'a>, observations: &'a [Observation]) -> Option<Self> {
        let figures = [row(&e, &arms.faster)?, row(&e, &arms.slower)?].map(|row| row.by_round.clone());
        let times = [&arms.faster, &arms.slower].map(|arm| cpu_s(observations, arm));
        Some(Self { e, observations, ends: Ends::new(e.figure, figures, times) })
    }

    /// The share of the difference that an arm has.
    fn share(&self, arm: &Estimate) -> Option<Mediated> {
        match self.ends.is_by_cpu() {
            true => self.ends.mediated(&cpu_s(self.observations, &arm.scenario)),
            false => self.ends.mediated(&arm.by_round),
        }
    }

    /// What became of a suspected cause. None if its arm has no figure.
    fn verdict(&self, arms: &Arms, dosed: &Dosed) -> Option<String> {
        let injected = row(&self.e, dosed.arm(ONCE)?)?;
        let suspect = &dosed.suspect;
        let words = suspect.words();
        match suspect.has_taken(ONCE, injected) {
            None => {
                return Some(format!(
                    "not tested: {words}. Narrows could not count them in this run; see `narrows doctor`"
                ));
            }
            Some(false) => {
                let why = suspect.why_not_taken();
                return Some(format!(
                    "cannot be tested here: {words}. What was injected did not take effect: {why}"
                ));
            }
            Some(true) => {}
        }
        let [of, open] = match self.ends.is_by_cpu() {
            true => ["the difference in CPU time", "does not certainly need more CPU time"],
            false => ["the difference", "is not certainly slower"],
        };
        let Some(found) = self.share(injected) else {
            return Some(format!(
                "not tested: {words}. In this run the slower one {open}; give more time with --budget, or test fewer causes with --cause"
            ));
        };
        let other = |dose: f64| {
            let arm = row(&self.e, dosed.arm(dose)?)?;
            let taken = suspect.has_taken(dose, arm)?;
            self.share(arm).filter(|_| taken).map(|share| percent(share.share))
        };
        let doses = match (other(HALF), other(TWICE)) {
            (Some(half), Some(twice)) => {
                format!("; half as much makes {half}, and twice as much {twice}")
            }
            _ => String::new(),
        };
        let costs = each_costs(arms, dosed, self.observations);
        Some(format!("{}{doses}{costs}", said(&found, of, suspect.no_proof(), &words)))
    }
}

/// The row of an arm that was measured.
fn row<'a>(e: &FigureView<'a>, arm: &Scenario) -> Option<&'a Estimate> {
    e.estimates.iter().find(|row| row.scenario == *arm && row.trials > 0)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn said(share: &Mediated, of: &str, no_proof: Option<&str>, words: &str) -> String {
    let interval = format!(
        "{} [{}, {}] of {of} ({} rounds)",
        percent(share.share),
        percent(share.low),
        percent(share.high),
        share.rounds
    );
    match (share.tested, no_proof) {
        (Tested::Excluded, _) => format!("excluded: {words}. This alone makes {interval}"),
        (_, Some(why)) => format!("goes with it: {words}. This alone makes {interval}; {why}"),
        (Tested::Proven, None) => format!("proven: {words}. This alone makes {interval}"),
        (Tested::GoesWith, None) => {
            format!("goes with it: {words}. This alone makes {interval}; more rounds may decide it")
        }
    }
}

/// What each event costs on this machine, from the arm with the largest dose.
fn each_costs(arms: &Arms, dosed: &Dosed, observations: &[Observation]) -> String {
    let of = |arm: &Scenario| cpu_s(observations, arm);
    let largest = dosed.arms.iter().max_by(|(a, _), (b, _)| a.total_cmp(b));
    let cost = largest.and_then(|(dose, arm)| {
        let (events, what) = dosed.suspect.events(*dose)?;
        Some((cost_of_event(&of(&arms.faster), &of(arm), events)?, what))
    });
    match cost {
        Some(([cost, low, high], what)) if low > 0.0 => {
            let [cost, low, high] = [cost, low, high].map(|seconds| seconds * 1e6);
            format!(". Each further {what} costs {cost:.2} us of CPU [{low:.2}, {high:.2}] on this machine")
        }
        _ => String::new(),
    }
}
