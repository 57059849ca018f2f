//! Claims as sentences, with the counts that explain them; where there is no claim, why.

use lab::experiment::Figure;
use lab::experiment::grid::Axis;
use lab::findings::{
    By, Claim, Comparison, Counted, Estimate, ExperimentFindings, Interaction, Ratio, Reason, Silence,
};
use stats::Verdict;

use super::verdicts::FAR;
use crate::number::{chosen_percent, count, interval, interval_in_hundredths, times};

/// A sentence for each claim, in the findings' order: the first is the headline.
pub fn headlines(e: &ExperimentFindings) -> Vec<String> {
    let page = Page { e };
    e.claims.iter().map(|claim| page.sentence(claim)).collect()
}

/// The headline; where there is none, why.
pub fn answer(e: &ExperimentFindings) -> String {
    let said = e.claims.first().map(|claim| Page { e }.sentence(claim));
    said.or_else(|| e.silence().map(|why| silence(why).to_owned())).unwrap_or_default()
}

/// Why there is no claim.
fn silence(why: Silence) -> &'static str {
    match why {
        Silence::NotYet => "nothing to compare yet",
        Silence::NoSystem => "there is nothing to compare: no system ran but the reference",
        Silence::NothingMeasured => "nothing was measured: every trial of every system failed",
        Silence::OneScenario => "there is nothing to compare: one system at one point",
        Silence::NothingComparable => "there is nothing to compare: no two rows differ in one thing only",
        Silence::TooFewRounds => "too few rounds: a comparison takes three",
        Silence::NoRatio => "nothing can be compared: errors or no figure",
        Silence::NothingStandsOut => "nothing stands out",
    }
}

/// An experiment, whose estimates the claims refer to.
struct Page<'a> {
    e: &'a ExperimentFindings,
}

impl Page<'_> {
    fn sentence(&self, claim: &Claim) -> String {
        match claim {
            Claim::Knob { comparison, narrow, default, ties, reasons } => {
                let ties = self.ties(&comparison.by, ties);
                let sentence = format!(
                    "{}{}: {} is {} {} than {} ({}{ties})",
                    quoted(&comparison.by),
                    if *narrow { " is the narrow place" } else { "" },
                    self.name(&comparison.by, comparison.scenario),
                    upwards(comparison),
                    if comparison.verdict == Verdict::Faster { "faster" } else { "slower" },
                    self.baseline(&comparison.by, comparison.against, *default),
                    self.context(comparison)
                );
                self.explained(sentence, reasons)
            }
            Claim::Cliff { comparison, reasons } => {
                let sentence = format!(
                    "{} has a cliff: {} is {} slower than {} ({})",
                    quoted(&comparison.by),
                    self.name(&comparison.by, comparison.scenario),
                    upwards(comparison),
                    self.name(&comparison.by, comparison.against),
                    self.context(comparison)
                );
                self.explained(sentence, reasons)
            }
            Claim::Systems { comparison, unequal, reasons } => {
                let names = [comparison.scenario, comparison.against].map(|at| self.name(&comparison.by, at));
                let [faster, slower] = match (names, comparison.verdict) {
                    (names, Verdict::Faster) => names,
                    ([a, b], _) => [b, a],
                };
                let work = if *unequal { ", whose work is not the same" } else { "" };
                let ratio = upwards(comparison);
                let context = self.context(comparison);
                self.explained(format!("{faster} is {ratio} faster than {slower}{work} ({context})"), reasons)
            }
            Claim::NoDifference { by, threshold, against, default } => {
                let within = chosen_percent(*threshold);
                match by {
                    By::System => {
                        format!(
                            "the systems make no difference worth having: they are within {within} of each other"
                        )
                    }
                    knob => format!(
                        "{} makes no difference worth having: all values are within {within} of {}",
                        quoted(knob),
                        self.baseline(knob, *against, *default)
                    ),
                }
            }
            Claim::Undecided { comparison, default, equal, of } => {
                self.undecided(comparison, *default, *equal, *of)
            }
            Claim::DependsOn { knob, interaction } => depends_on(knob, interaction),
        }
    }

    fn undecided(&self, c: &Comparison, default: bool, equal: usize, of: usize) -> String {
        let Some(ratio) = c.ratio else { return String::new() };
        let open = match (&c.by, equal) {
            (By::System, 0) => "the systems are undecided".to_owned(),
            (By::System, _) => {
                format!(
                    "the systems make no difference in {equal} of {of} comparisons, and the others are undecided"
                )
            }
            (knob, 0) => format!("{} is undecided", quoted(knob)),
            (knob, _) => format!(
                "{} makes no difference in {equal} of {of} comparisons, and the others are undecided",
                quoted(knob)
            ),
        };
        let more = match c.verdict {
            Verdict::Undecided { more_rounds: Some(more) } if more > FAR => {
                format!("; over {FAR} more may decide it")
            }
            Verdict::Undecided { more_rounds: Some(more) } => format!("; {more} more may decide it"),
            _ => String::new(),
        };
        format!(
            "{open}: {} is {} as fast as {} ({}{more})",
            self.name(&c.by, c.scenario),
            interval_in_hundredths(ratio),
            self.baseline(&c.by, c.against, default),
            self.context(c)
        )
    }

    fn estimate(&self, at: usize) -> Option<&Estimate> {
        self.e.estimates.get(at)
    }

    fn axis(&self, knob: &str) -> Option<&Axis> {
        self.e.axes.iter().find(|axis| axis.knob == knob)
    }

    /// What a comparison calls a scenario: its system, or its value of the knob.
    fn name(&self, by: &By, at: usize) -> String {
        let Some(estimate) = self.estimate(at) else { return String::new() };
        match by.knob() {
            None => estimate.scenario.system.clone(),
            Some(knob) => {
                let value = estimate.scenario.point.get(knob);
                value.zip(self.axis(knob)).map_or_else(String::new, |(value, axis)| axis.show(value))
            }
        }
    }

    fn baseline(&self, by: &By, at: usize, default: bool) -> String {
        format!("{}{}", self.name(by, at), if default { ", the default" } else { "" })
    }

    fn ties(&self, by: &By, ties: &[usize]) -> String {
        let names: Vec<String> = ties.iter().map(|at| self.name(by, *at)).collect();
        if names.is_empty() {
            String::new()
        } else {
            format!("; {} cannot be told from it", names.join(", "))
        }
    }

    /// With the counts that explain it.
    fn explained(&self, sentence: String, reasons: &[Reason]) -> String {
        let words: Vec<String> = reasons.iter().map(|reason| self.reason(reason)).collect();
        if words.is_empty() { sentence } else { format!("{sentence}: {}", words.join("; ")) }
    }

    fn reason(&self, reason: &Reason) -> String {
        let unit = &self.e.workload.about().unit;
        let Reason { counted, faster, slower } = *reason;
        let what = match counted {
            Counted::BytesPerRead => {
                let reads = |each: f64| count(1e9 / each);
                return format!(
                    "a read takes {} bytes against {}: {} reads a GB against {}",
                    count(faster),
                    count(slower),
                    reads(faster),
                    reads(slower)
                );
            }
            Counted::SystemCalls => "system calls",
            Counted::ContextSwitches => "context switches",
            Counted::Instructions => "instructions",
        };
        let each = |of: f64| count(of * unit.size);
        format!("{} {what} a {} against {}", each(faster), unit.name, each(slower))
    }

    /// What stood still, as far as it differs between rows, and how many rounds there were.
    fn context(&self, c: &Comparison) -> String {
        let own = c.by.knob();
        let mut words = Vec::new();
        if self.e.figure == Figure::P99Us {
            words.push("p99".to_owned());
        }
        if let Some(Estimate { scenario: of, .. }) = self.estimate(c.scenario) {
            if own.is_some() {
                words.push(of.system.clone());
            }
            let varied = self.e.axes.iter().filter(|a| a.values.len() > 1 && Some(a.knob.as_str()) != own);
            // Between systems only the workload's own knobs are equal.
            for axis in varied.filter(|axis| own.is_some() || axis.workload) {
                if let Some(value) = of.point.get(&axis.knob) {
                    words.push(format!("{} {}", axis.knob, axis.show(value)));
                }
            }
        }
        let rounds = format!("{} rounds", c.rounds);
        if words.is_empty() { rounds } else { format!("{}; {rounds}", words.join(", ")) }
    }
}

fn quoted(by: &By) -> String {
    by.knob().map_or_else(String::new, |knob| format!("`{knob}`"))
}

/// The better to the worse, with its interval; at least so, where the generator held the better one back.
fn upwards(c: &Comparison) -> String {
    let least = if c.at_least { "at least " } else { "" };
    let ratio = c.ratio.as_ref().map(Ratio::upwards);
    ratio.map_or_else(String::new, |ratio| format!("{least}{}", interval(ratio)))
}

/// On what a knob's effect depends most.
fn depends_on(knob: &str, on: &Interaction) -> String {
    let (most, least) = ((times(on.most.1), &on.most.0), (times(on.least.1), &on.least.0));
    format!(
        "what `{knob}` does depends on `{}`: {} against {} is {} as fast at {}, and {} at {}",
        on.knob, on.value, on.against, most.0, most.1, least.0, least.1
    )
}
