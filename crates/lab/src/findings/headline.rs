//! The sentences that a reader takes away: what each knob does to the figure while the others stand still, as far as it is
//! decided.

use stats::{FEWEST_ROUNDS, Verdict};
use systems::Value;

use super::asked::CLIFF;
use super::verdicts::{FAR, share};
use super::{By, Comparison, Effect, Estimate, ExperimentFindings, Ratio, reason};
use crate::experiment::Figure;
use crate::experiment::grid::Axis;
use crate::plan::Planned;

/// A sentence, and how much it says.
struct Said {
    /// The logarithm of the ratio; negative where nothing is decided, or there is nothing.
    weight: f64,
    sentence: String,
}

/// One sentence for each knob that varies, and for the systems, the largest effect first; then what is undecided, then what is
/// flat; last, which knob's effect depends on another.
pub(super) fn headlines(
    planned: &Planned,
    estimates: &[Estimate],
    comparisons: &[Comparison],
    effects: &[Effect],
) -> Vec<String> {
    let page = Page { planned, estimates };
    let mut said: Vec<Said> = Vec::new();
    for axis in planned.axes.iter().filter(|axis| axis.values.len() > 1) {
        let own = |by: &By| matches!(by, By::Knob(knob) | By::Step(knob) if *knob == axis.knob);
        let of: Vec<&Comparison> = comparisons.iter().filter(|c| own(&c.by)).collect();
        said.extend(match of.first().map(|c| &c.by) {
            Some(By::Step(_)) => page.cliff(axis, &of),
            Some(_) => page.knob(axis, &of, effects.iter().find(|effect| effect.knob == axis.knob)),
            None => None,
        });
    }
    let of: Vec<&Comparison> = comparisons.iter().filter(|c| c.by == By::System).collect();
    said.extend(page.systems(&of));
    said.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let sentences = said.into_iter().map(|said| said.sentence);
    sentences.chain(effects.iter().filter_map(interaction)).collect()
}

impl ExperimentFindings {
    /// The first sentence; where there is none, why.
    pub fn answer(&self) -> &str {
        self.headlines.first().map_or_else(|| self.silence(), String::as_str)
    }

    fn silence(&self) -> &'static str {
        let few = self.comparisons.iter().all(|c| (c.rounds as usize) < FEWEST_ROUNDS);
        let systems: Vec<&Estimate> = self.estimates.iter().filter(|e| !e.is_reference()).collect();
        if self.trials_done < self.trials_planned {
            "nothing to compare yet"
        } else if systems.is_empty() {
            "there is nothing to compare: no system but the reference"
        } else if systems.iter().all(|e| e.trials == 0) {
            "nothing was measured: every trial of every system failed"
        } else if self.comparisons.is_empty() && systems.len() == 1 {
            "there is nothing to compare: one system at one point"
        } else if self.comparisons.is_empty() {
            "there is nothing to compare: no two rows differ in one thing only"
        } else if few && (self.rounds as usize) < FEWEST_ROUNDS {
            "too few rounds: a comparison takes three"
        } else if self.comparisons.iter().all(|c| c.ratio.is_none()) {
            "nothing can be compared: errors or no figure"
        } else {
            "nothing stands out"
        }
    }
}

/// What was measured, and where.
struct Page<'a> {
    planned: &'a Planned,
    estimates: &'a [Estimate],
}

/// How large a decided difference is.
fn size(c: &Comparison) -> f64 {
    match c.verdict {
        Verdict::Faster | Verdict::Slower => c.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs()),
        _ => 0.0,
    }
}

/// How much of something is open, of which nothing is decided to differ.
fn open(of: &[&Comparison]) -> String {
    match of.iter().filter(|c| c.verdict == Verdict::NoDifference).count() {
        0 => "undecided".to_owned(),
        equal => format!("no difference in {equal} of {} comparisons, the others undecided", of.len()),
    }
}

fn decided<'a>(of: &[&'a Comparison]) -> Option<&'a Comparison> {
    let clear = of.iter().copied().filter(|c| matches!(c.verdict, Verdict::Faster | Verdict::Slower));
    clear.reduce(|a, b| if size(b) > size(a) { b } else { a })
}

/// The largest decided difference where the knob does most, with the ties of what is better. Better is only said of the best
/// value.
fn told<'a>(of: &[&'a Comparison], effect: &'a Effect) -> Option<(&'a Comparison, &'a [usize])> {
    let best = of.iter().find(|c| c.scenario == effect.best && c.verdict == Verdict::Faster);
    let baseline = best.map_or(effect.best, |c| c.against);
    let slower = of.iter().filter(|c| c.against == baseline && c.verdict == Verdict::Slower);
    let c = decided(&best.into_iter().chain(slower).copied().collect::<Vec<_>>())?;
    Some((c, if c.verdict == Verdict::Faster { &effect.ties } else { &[] }))
}

/// An end of an interval; beyond this it says nothing but "unknown".
fn end(of: f64, digits: usize) -> String {
    if of > 9999.0 { ">9999".to_owned() } else { format!("{of:.digits$}") }
}

/// `6.9x [6.5, 7.2]`: the better to the worse.
fn times(ratio: Ratio, at_least: bool) -> String {
    let least = if at_least { "at least " } else { "" };
    let Ratio { estimate, low, high } = ratio.upwards();
    let digits = match estimate {
        r if r < 1.995 => 2,
        r if r < 99.5 => 1,
        _ => 0,
    };
    format!("{least}{estimate:.digits$}x [{}, {}]", end(low, digits), end(high, digits))
}

impl Page<'_> {
    fn value(&self, axis: &Axis, at: usize) -> String {
        self.planned.scenarios[at].point.get(&axis.knob).map_or_else(String::new, |value| axis.show(value))
    }

    /// A value, and whether it is what the system does when nobody says anything.
    fn baseline(&self, axis: &Axis, at: usize) -> String {
        let value: Option<&Value> = self.planned.scenarios[at].point.get(&axis.knob);
        let default =
            value.is_some() && value == self.planned.default_of(&self.planned.scenarios[at].system, axis);
        format!("{}{}", self.value(axis, at), if default { ", the default" } else { "" })
    }

    fn knob(&self, axis: &Axis, of: &[&Comparison], effect: Option<&Effect>) -> Option<Said> {
        let name = &axis.knob;
        if let Some((c, ties)) = effect.and_then(|effect| told(of, effect)) {
            let ratio = c.ratio?;
            let narrow = if ratio.upwards().estimate >= CLIFF { " is the narrow place" } else { "" };
            let how = if c.verdict == Verdict::Faster { "faster" } else { "slower" };
            let ties: Vec<String> = ties.iter().map(|at| self.value(axis, *at)).collect();
            let tied = match &ties[..] {
                [] => String::new(),
                some => format!("; {} cannot be told from it", some.join(", ")),
            };
            let sentence = format!(
                "`{name}`{narrow}: {} is {} {how} than {} ({}{tied})",
                self.value(axis, c.scenario),
                times(ratio, c.at_least),
                self.baseline(axis, c.against),
                self.context(c, Some(name))
            );
            return Some(Said { weight: size(c), sentence: self.explained(sentence, c) });
        }
        if !of.is_empty() && of.iter().all(|c| c.verdict == Verdict::NoDifference) {
            let within = share(self.planned.threshold);
            let than = self.baseline(axis, of[0].against);
            let sentence = format!("`{name}` makes no difference worth having: within {within} of {than}");
            return Some(Said { weight: -2.0, sentence });
        }
        self.undecided(
            of,
            |c| {
                (
                    format!("`{name}`: {}; {}", open(of), self.value(axis, c.scenario)),
                    self.baseline(axis, c.against),
                )
            },
            Some(name),
        )
    }

    /// The same work by different systems.
    fn systems(&self, of: &[&Comparison]) -> Option<Said> {
        let name = |at: usize| self.planned.scenarios[at].system.as_str();
        if let Some(c) = decided(of) {
            let (a, b) = (name(c.scenario), name(c.against));
            let (better, worse) = if c.verdict == Verdict::Faster { (a, b) } else { (b, a) };
            let times = times(c.ratio?, c.at_least);
            let unequal = self.estimates[c.scenario].unequal != self.estimates[c.against].unequal;
            let work = if unequal { ", whose work is not the same" } else { "" };
            let sentence =
                format!("{better} is {times} faster than {worse}{work} ({})", self.context(c, None));
            return Some(Said { weight: size(c), sentence: self.explained(sentence, c) });
        }
        if !of.is_empty() && of.iter().all(|c| c.verdict == Verdict::NoDifference) {
            let within = share(self.planned.threshold);
            let sentence =
                format!("the systems make no difference worth having: within {within} of each other");
            return Some(Said { weight: -2.0, sentence });
        }
        self.undecided(
            of,
            |c| (format!("systems: {}; {}", open(of), name(c.scenario)), name(c.against).to_owned()),
            None,
        )
    }

    /// What is largest of what is not decided.
    fn undecided(
        &self,
        of: &[&Comparison],
        what: impl Fn(&Comparison) -> (String, String),
        knob: Option<&str>,
    ) -> Option<Said> {
        let open = of.iter().filter(|c| !c.verdict.is_decided() && c.ratio.is_some());
        let far = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs());
        let c = open.reduce(|a, b| if far(b) > far(a) { b } else { a })?;
        let Ratio { estimate, low, high } = c.ratio?;
        let more = match c.verdict {
            Verdict::Undecided { more_rounds: Some(more) } if more > FAR => {
                format!("; over {FAR} more may decide it")
            }
            Verdict::Undecided { more_rounds: Some(more) } => format!("; {more} more may decide it"),
            _ => String::new(),
        };
        let (what, than) = what(c);
        let context = self.context(c, knob);
        let sentence = format!(
            "{what} is {estimate:.2}x [{}, {}] as fast as {than} ({context}{more})",
            end(low, 2),
            end(high, 2)
        );
        Some(Said { weight: -1.0, sentence })
    }

    /// The deepest fall between neighbouring values that is deeper than the step from one to the other explains.
    fn cliff(&self, axis: &Axis, of: &[&Comparison]) -> Option<Said> {
        let cliffs = of.iter().copied().filter(|c| c.is_cliff());
        let c = cliffs.reduce(|a, b| if size(b) > size(a) { b } else { a })?;
        let sentence = format!(
            "`{}`: a cliff, {} slower at {} than at {} ({})",
            axis.knob,
            times(c.ratio?, c.at_least),
            self.value(axis, c.scenario),
            self.value(axis, c.against),
            self.context(c, Some(&axis.knob))
        );
        Some(Said { weight: size(c), sentence: self.explained(sentence, c) })
    }

    /// With the counts that explain it.
    fn explained(&self, sentence: String, c: &Comparison) -> String {
        let (a, b) = (&self.estimates[c.scenario], &self.estimates[c.against]);
        let (better, worse) = if c.verdict == Verdict::Faster { (a, b) } else { (b, a) };
        match reason::between(self.planned.workload, better, worse) {
            Some(reason) => format!("{sentence}: {reason}"),
            None => sentence,
        }
    }

    /// What stood still, as far as it differs between rows, and how many rounds there were.
    fn context(&self, c: &Comparison, but: Option<&str>) -> String {
        let mut words = Vec::new();
        if self.planned.figure == Figure::P99Us {
            words.push("p99".to_owned());
        }
        let of = &self.estimates[c.scenario].scenario;
        if but.is_some() {
            words.push(of.system.clone());
        }
        for axis in self.planned.axes.iter().filter(|a| a.values.len() > 1 && Some(a.knob.as_str()) != but) {
            // Between systems only the workload's own knobs are equal.
            if let Some(value) = of.point.get(&axis.knob).filter(|_| but.is_some() || axis.workload) {
                words.push(format!("{} {}", axis.knob, axis.show(value)));
            }
        }
        let rounds = format!("{} rounds", c.rounds);
        if words.is_empty() { rounds } else { format!("{}; {rounds}", words.join(", ")) }
    }
}

/// On what a knob's effect depends most.
fn interaction(effect: &Effect) -> Option<String> {
    let most = effect.depends_on.first()?;
    Some(format!(
        "what `{}` does depends on `{}`: {} against {} is {:.2}x as fast at {}, and {:.2}x at {}",
        effect.knob,
        most.knob,
        most.value,
        most.against,
        most.most.1,
        most.most.0,
        most.least.1,
        most.least.0
    ))
}
