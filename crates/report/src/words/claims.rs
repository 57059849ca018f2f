//! Claims as sentences, with the counts that explain them; where there is no claim, why.

use lab::experiment::Figure;
use lab::experiment::grid::Axis;
use lab::findings::{
    Behind, By, Claim, Comparison, Estimate, ExperimentFindings, FailedTrials, Interaction, Ratio, Silence,
    Unit, Withheld, is_hardly_measured,
};
use stats::Verdict;
use systems::said;
use systems::work::Purpose;

use super::missing::{missing, of_all};
use super::options::Asked;
use super::reasons::counts;
use super::tuned;
use super::verdicts::FAR;
use crate::number::{chosen_percent, interval, interval_in_hundredths, several, show, times};

/// A longer window is worth trying below this length, seconds.
const SHORT_S: f64 = 1.0;

/// A sentence for each claim with its reason, in the findings' order. The first is the headline. Of a search, its answer and
/// what stands below it.
pub fn headlines(e: &ExperimentFindings) -> Vec<String> {
    if let Some(found) = &e.tuned {
        return std::iter::once(tuned::answer(e, found)).chain(tuned::below(e, found)).collect();
    }
    let wording = Wording { e };
    let claims = e.claims.iter().map(|claim| with_reason(wording.sentence(claim), wording.reason(claim)));
    failing(e).into_iter().chain(claims).collect()
}

/// The scenarios of which every trial failed while others were measured, with the first reason.
fn failing(e: &ExperimentFindings) -> Option<String> {
    let systems = || e.estimates.iter().filter(|estimate| !estimate.is_reference());
    let failing: Vec<String> = systems()
        .filter(|estimate| estimate.trials == 0 && estimate.failed > 0)
        .map(|estimate| e.label(&estimate.scenario))
        .collect();
    let first = e.failures.iter().find(|failure| failing.first() == Some(&failure.scenario))?;
    systems().any(|estimate| estimate.trials > 0).then(|| {
        let fails = if failing.len() == 1 { "fails" } else { "fail" };
        format!("{} {fails} in every trial: {}", list(&failing), first_line(first))
    })
}

/// Why trials failed, and the line of the system's output that tells it.
pub(crate) fn first_line(failure: &FailedTrials) -> String {
    let said = said(&failure.output).map_or_else(String::new, |line| format!("; it said: {line}"));
    format!("{}{said}", failure.reason)
}

/// The headline, or why there is none.
pub fn answer(e: &ExperimentFindings) -> String {
    let (sentence, reason) = answer_and_reason(e);
    with_reason(sentence, reason)
}

/// The headline without its reason, or why there is none; and the reason.
pub(crate) fn answer_and_reason(e: &ExperimentFindings) -> (String, Option<String>) {
    if let Some(found) = &e.tuned {
        return (tuned::answer(e, found), None);
    }
    let wording = Wording { e };
    let (sentence, reason) = match e.claims.first() {
        Some(claim) => (wording.sentence(claim), wording.reason(claim)),
        None => match (e.silence(), &e.base) {
            (Some(Silence::OneScenario), Some(base)) => (wording.alone(&base.scenario.system), None),
            (Some(Silence::NoRatio), _) => (format!("nothing can be compared: {}", of_all(e)), None),
            (Some(why), _) => (silence(why).to_owned(), None),
            (None, _) => (String::new(), None),
        },
    };
    match failing(e) {
        Some(failing) => (format!("{failing}. {sentence}"), reason),
        None => (sentence, reason),
    }
}

fn with_reason(sentence: String, reason: Option<String>) -> String {
    match reason {
        Some(reason) => format!("{sentence}: {reason}"),
        None => sentence,
    }
}

/// Why there is no claim.
fn silence(why: Silence) -> &'static str {
    match why {
        Silence::NotYet => "nothing to compare yet",
        Silence::NoSystem => "there is nothing to compare: no system ran but the reference",
        Silence::NothingMeasured => "nothing was measured: every trial of every system failed",
        Silence::OneScenario => "there is nothing to compare: one system at one point",
        Silence::NothingCounted => {
            "nothing was counted: the kernel gives no such counts here; see `narrows doctor`"
        }
        Silence::UnequalWork => "nothing is compared: the systems answer differently",
        Silence::NothingComparable => "there is nothing to compare: no two rows differ in one thing only",
        Silence::TooFewRounds => "too few rounds: a comparison takes three",
        Silence::NoRatio => "nothing can be compared",
        Silence::NothingStandsOut => "nothing stands out",
    }
}

/// A figure in words, with the operation or the time that it is for.
pub(crate) fn quantity(figure: Figure) -> &'static str {
    match figure {
        Figure::MsPerUpload => "time per upload",
        Figure::BytesPerS => "payload bytes a second",
        Figure::FramesPerS => "frames a second",
        Figure::RequestsPerS => "requests a second",
        Figure::MaxRate => "highest rate under the objective",
        Figure::P50Us => "median response time",
        Figure::P99Us => "p99 response time",
        Figure::CpuPerUnit => "CPU time for each unit of work",
        Figure::CallsPerUnit => "system calls for each unit of work",
        Figure::InstructionsPerUnit => "instructions for each unit of work",
        Figure::MemoryBytes => "memory",
    }
}

/// What is compared, if it is no rate and no time of an operation.
fn figure_in_words(e: &ExperimentFindings) -> Option<String> {
    let unit = e.workload.about().unit.name;
    match e.figure {
        Figure::MsPerUpload | Figure::BytesPerS | Figure::FramesPerS | Figure::RequestsPerS => None,
        Figure::MaxRate => Some("highest rate".to_owned()),
        Figure::P50Us => Some("p50".to_owned()),
        Figure::P99Us => Some("p99".to_owned()),
        Figure::CpuPerUnit => Some(format!("CPU a {unit}")),
        Figure::CallsPerUnit => Some(format!("system calls a {unit}")),
        Figure::InstructionsPerUnit => Some(format!("instructions a {unit}")),
        Figure::MemoryBytes => Some("memory".to_owned()),
    }
}

/// An experiment, whose estimates the claims refer to.
struct Wording<'a> {
    e: &'a ExperimentFindings,
}

impl Wording<'_> {
    fn sentence(&self, claim: &Claim) -> String {
        match claim {
            Claim::Knob { comparison, narrow, default, ties, .. } => {
                self.knob(comparison, *narrow, *default, ties)
            }
            Claim::Cliff { comparison, .. } => {
                format!(
                    "{} has a cliff: {} is {} slower than {} ({})",
                    quoted(&comparison.by),
                    self.name(&comparison.by, comparison.scenario),
                    upwards(comparison),
                    self.name(&comparison.by, comparison.against),
                    self.context(comparison)
                )
            }
            Claim::Systems { comparison, ties, rest, unequal, .. } => {
                self.systems(comparison, ties, rest, *unequal)
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

    /// The figure and the cost of a system that runs alone.
    fn alone(&self, system: &str) -> String {
        let Some(e) = self.e.estimates.iter().find(|e| e.scenario.system == system) else {
            return String::new();
        };
        let unit = Unit::of(self.e.figure);
        let shown = |value: f64| show(value, unit);
        let mut words = match (e.figure, e.interval) {
            (Some(_), Some((low, high))) if is_hardly_measured(low, high) => {
                let rounds = several(self.e.rounds.into(), "round");
                return format!(
                    "{system} is hardly measured: its trials differ too much among themselves ({rounds})"
                );
            }
            (Some(figure), Some((low, high))) => {
                vec![format!("{} [{}, {}]", shown(figure), shown(low), shown(high))]
            }
            (Some(figure), None) => vec![shown(figure)],
            (None, _) => {
                let why = e.missing(&self.e.setup);
                return why.map_or_else(|| format!("{system}: no figure"), |why| missing(self.e, e, &why));
            }
        };
        let work = &self.e.workload.about().unit;
        if let Some(cost) = e.cpu_s_per_unit {
            words.push(format!("{} of CPU a {}", show(cost, Unit::cost_of(work)), work.name));
        }
        words.extend(e.peak_memory_bytes.map(|bytes| show(bytes as f64, Unit::Bytes)));
        let rounds = several(self.e.rounds.into(), "round");
        format!("{system}: {}{} ({rounds})", words.join(", "), self.of_what(", "))
    }

    /// The figure, where it is not the one that a workload is usually judged by.
    fn of_what(&self, before: &str) -> String {
        figure_in_words(self.e).map_or_else(String::new, |what| format!("{before}{what}"))
    }

    /// The words for better, worse and as good.
    fn words(&self) -> [&'static str; 3] {
        match self.e.figure.is_cost() {
            true => ["better", "worse", "good"],
            false => ["faster", "slower", "fast"],
        }
    }

    /// What to set a knob to, and what that brings.
    fn knob(&self, c: &Comparison, narrow: bool, default: bool, ties: &[usize]) -> String {
        let knob = quoted(&c.by);
        let (name, baseline) = (self.name(&c.by, c.scenario), self.baseline(&c.by, c.against, default));
        let (ratio, context) = (upwards(c), self.context(c));
        let place = if narrow { " is the narrow place" } else { "" };
        let [faster, slower, _] = self.words();
        if let Some(what) = self.cost() {
            let (ties, comma) = (self.as_good(&c.by, ties, "good"), if default { "," } else { "" });
            return match c.verdict {
                Verdict::Faster => format!(
                    "{knob}{place}: set it to {name}; {baseline}{comma} needs {ratio} {what}{ties} ({context})"
                ),
                _ => format!("{knob}: leave it at {baseline}; {name} needs {ratio} {what} ({context})"),
            };
        }
        match c.verdict {
            Verdict::Faster => {
                let ties = self.as_good(&c.by, ties, "good");
                format!(
                    "{knob}{place}: set it to {name}, which is {ratio} {faster} than {baseline}{ties} ({context})"
                )
            }
            _ => format!("{knob}: leave it at {baseline}; {name} is {ratio} {slower} ({context})"),
        }
    }

    /// Which system leads, by how much, and who follows.
    fn systems(&self, c: &Comparison, ties: &[usize], rest: &[Behind], unequal: bool) -> String {
        let name = |index: usize| self.name(&By::System, index);
        let work = if unequal { ", whose work is not the same" } else { "" };
        let [faster, _, fast] = self.words();
        let ties = self.as_good(&By::System, ties, fast);
        if let Some(what) = self.cost() {
            let mut needs = vec![format!("{} needs {} {what}{work}", name(c.against), upwards(c))];
            needs.extend(rest.iter().map(|other| match other.ratio.filter(|ratio| ratio.low > 1.0) {
                Some(ratio) => format!("{} {}", name(other.scenario), sure(ratio)),
                None => format!("{} more", name(other.scenario)),
            }));
            return format!("{} leads: {}{ties} ({})", name(c.scenario), list(&needs), self.context(c));
        }
        let mut behind = vec![format!("{} {faster} than {}{work}", upwards(c), name(c.against))];
        behind.extend(rest.iter().map(|other| match other.ratio.filter(|ratio| ratio.low > 1.0) {
            Some(ratio) => format!("{} than {}", sure(ratio), name(other.scenario)),
            None => format!("ahead of {}", name(other.scenario)),
        }));
        format!("{} leads: it is {}{ties} ({})", name(c.scenario), list(&behind), self.context(c))
    }

    /// The values or systems that may be as good as the one that is claimed to be the best.
    fn as_good(&self, by: &By, ties: &[usize], good: &str) -> String {
        let names: Vec<String> = ties.iter().map(|index| self.name(by, *index)).collect();
        if names.is_empty() { String::new() } else { format!("; {} may be as {good}", list(&names)) }
    }

    fn undecided(&self, c: &Comparison, default: bool, equal: usize, of: usize) -> String {
        let Some(ratio) = c.ratio else { return String::new() };
        let hardly = ratio.is_hardly_measured();
        let state = if hardly { "hardly measured" } else { "undecided" };
        let open = match (&c.by, equal) {
            (By::System, 0) => format!("the systems are {state}"),
            (By::System, _) => {
                format!(
                    "the systems make no difference in {equal} of {of} comparisons, and the others are {state}"
                )
            }
            (knob, 0) => format!("{} is {state}", quoted(knob)),
            (knob, _) => format!(
                "{} makes no difference in {equal} of {of} comparisons, and the others are {state}",
                quoted(knob)
            ),
        };
        let (name, baseline) = (self.name(&c.by, c.scenario), self.baseline(&c.by, c.against, default));
        let seen = match hardly {
            true => format!("trials of {name} and of {baseline} differ too much among themselves"),
            false => self.beside(&name, &baseline, ratio),
        };
        format!("{open}: {seen} ({}; {})", self.context(c), self.help(c))
    }

    /// How good one is beside another; or how much more one of them needs.
    fn beside(&self, name: &str, baseline: &str, ratio: Ratio) -> String {
        let Some(what) = self.cost() else {
            return format!(
                "{name} is {} as {} as {baseline}",
                interval_in_hundredths(ratio),
                self.words()[2]
            );
        };
        let (more, less, ratio) = match ratio.estimate < 1.0 {
            true => (name, baseline, ratio.inverse()),
            false => (baseline, name, ratio),
        };
        format!("{more} needs {} {what} of {less}", interval_in_hundredths(ratio))
    }

    /// What a system needs, if the figure is a cost.
    fn cost(&self) -> Option<String> {
        let what = figure_in_words(self.e).filter(|_| self.e.figure.is_cost())?;
        Some(format!("the {what}"))
    }

    /// What would help most to decide a comparison.
    fn help(&self, c: &Comparison) -> String {
        if let Some(why) = c.withheld {
            return self.withheld(c, why);
        }
        match c.verdict {
            Verdict::Undecided { more_rounds: Some(more) } if more <= FAR => {
                format!("{} may decide it", several(more.into(), "more round"))
            }
            _ if self.e.timing.measure_s < SHORT_S => Asked::of(self.e)
                .either("a longer window (-d) would help most", "a longer measure_s would help most")
                .to_owned(),
            _ => "a quieter machine would help most: see `narrows doctor`".to_owned(),
        }
    }

    /// Why a comparison has no verdict, and what gives it one.
    fn withheld(&self, c: &Comparison, why: Withheld) -> String {
        let names = |concerned: fn(&Estimate) -> bool| {
            let both = [c.scenario, c.against].into_iter();
            let both = both.filter(|at| self.estimate(*at).is_some_and(concerned));
            list(&both.map(|at| self.name(&c.by, at)).collect::<Vec<_>>())
        };
        match why {
            Withheld::LowerBound => {
                let names = names(Estimate::is_lower_bound);
                format!("the generator was at its limit, so the figure of {names} is a lower bound")
            }
            Withheld::OtherBuild => {
                "another build of the same commits does not show it: the layout of the code may be why, or too few rounds"
                    .to_owned()
            }
            Withheld::ShortWindow => {
                "the windows have too few answers on each connection: measure for longer with -d (measure_s)".to_owned()
            }
            Withheld::Drift => {
                let warmup_s = (4.0 * self.e.timing.warmup_s).clamp(5.0, 60.0).ceil();
                let names = names(|estimate| estimate.drift.is_some());
                format!("the speed of {names} still changed in the windows: use --warmup {warmup_s}s (warmup_s)")
            }
            Withheld::Overdriven => {
                "the rate is too near what the slower one reaches: use a lower --rate".to_owned()
            }
        }
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
        let what = match (default, &self.e.base) {
            (false, _) => "",
            (true, Some(_)) => ", the base",
            (true, None) => ", the default",
        };
        format!("{}{what}", self.name(by, at))
    }

    /// The counts that explain a claim. None if there are none.
    fn reason(&self, claim: &Claim) -> Option<String> {
        let (Claim::Knob { reasons, .. } | Claim::Cliff { reasons, .. } | Claim::Systems { reasons, .. }) =
            claim
        else {
            return None;
        };
        let unit = &self.e.workload.about().unit;
        let words: Vec<String> = reasons.iter().map(|reason| counts(reason, unit)).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// What stood still, as far as it differs between rows, and how many rounds there were.
    fn context(&self, c: &Comparison) -> String {
        let own = c.by.knob();
        let mut words = Vec::new();
        // What a system needs is in the sentence.
        words.extend(figure_in_words(self.e).filter(|_| self.cost().is_none()));
        let against = self.estimate(c.against).map(|estimate| &estimate.scenario.point);
        if let Some(Estimate { scenario: of, .. }) = self.estimate(c.scenario) {
            if own.is_some() {
                words.push(of.system.clone());
            }
            let varied = self.e.axes.iter().filter(|a| a.values.len() > 1 && Some(a.knob.as_str()) != own);
            // Between systems only the workload's own knobs are equal, or say how the systems are spoken to.
            for axis in varied.filter(|axis| own.is_some() || axis.workload) {
                let Some(value) = of.point.get(&axis.knob) else { continue };
                let of_systems = self.e.workload.purpose(&axis.knob) == Purpose::Tls;
                let other = against.filter(|_| of_systems).and_then(|point| point.get(&axis.knob));
                let other = other.filter(|other| *other != value);
                let other = other.map_or_else(String::new, |other| format!(" against {}", axis.show(other)));
                words.push(format!("{} {}{other}", axis.knob, axis.show(value)));
            }
        }
        let rounds = format!("{} rounds", c.rounds);
        if words.is_empty() { rounds } else { format!("{}; {rounds}", words.join(", ")) }
    }
}

fn quoted(by: &By) -> String {
    by.knob().map_or_else(String::new, |knob| format!("`{knob}`"))
}

/// The ratio of the better to the worse. If the generator held the better one back, it is at least that.
fn upwards(c: &Comparison) -> String {
    let least = if c.at_least { "at least " } else { "" };
    let ratio = c.ratio.as_ref().map(Ratio::upwards);
    ratio.map_or_else(String::new, |ratio| {
        if ratio.is_hardly_measured() { sure(ratio) } else { format!("{least}{}", sure(ratio)) }
    })
}

/// A ratio above 1 with its interval. If it is hardly measured, only its lower end is known.
fn sure(ratio: Ratio) -> String {
    if ratio.is_hardly_measured() { format!("at least {}", times(ratio.low)) } else { interval(ratio) }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// On what a knob's effect depends most.
fn depends_on(knob: &str, on: &Interaction) -> String {
    let (most, least) = ((times(on.most.1), &on.most.0), (times(on.least.1), &on.least.0));
    format!(
        "what `{knob}` does depends on `{}`: {} against {} is {} as fast at {}, and {} at {}",
        on.knob, on.value, on.against, most.0, most.1, least.0, least.1
    )
}
