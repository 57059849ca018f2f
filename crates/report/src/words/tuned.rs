//! What a search found, in sentences: the answer, and what stands below it. Only the fresh rounds of its proof are called
//! certain. What the race shows is called estimated, because the race chose what it tried again.

mod tables;
#[cfg(test)]
mod tests;

use lab::findings::{
    Advice, Because, Contribution, Failing, Favourite, FigureView, Keeps, Kept, KnobEffect, Ratio, Tuned,
    Unit, Unmeasured, Withheld,
};
use lab::search::{Bounded, Limit, MOST_PROOFS};
use stats::Verdict;
use systems::{Point, Value};

pub(super) use tables::tables;

use super::claims::{list, longer_warmup, quantity};
use super::missing;
use super::options::Asked;
use super::verdicts::FAR;
use crate::number::{
    bytes, chosen_percent, count, interval_in_hundredths, interval_in_tenths, micros, percent, several,
    short, times,
};

/// How an unfinished run is continued.
const RESUME: &str = "`narrows run --resume`";

/// A number of settings beyond this is rounded.
const EXACT: usize = 100_000;

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Its fresh rounds decide what to set, or that nothing is worth setting.
    Decided,
    /// More trials may change the answer.
    Open,
    /// There is no answer, because nothing can be compared.
    Failed,
}

/// How far the search has come.
pub(crate) fn progress(e: &FigureView<'_>, t: &Tuned) -> Progress {
    let wording = Wording { e, t };
    match &t.advice {
        Some(advice) if advice.is_decided() => Progress::Decided,
        Some(_) => Progress::Open,
        None if wording.is_open() => Progress::Open,
        None => Progress::Failed,
    }
}

/// What to set and what it gains, in one sentence.
pub(crate) fn answer(e: &FigureView<'_>, t: &Tuned) -> String {
    let wording = Wording { e, t };
    match &t.advice {
        Some(advice) => wording.advised(advice),
        None => wording.unproven(),
    }
}

/// What stands below the answer: what each knob contributes, the limits, what does not work, and what the search did.
pub(crate) fn below(e: &FigureView<'_>, t: &Tuned) -> Vec<String> {
    let wording = Wording { e, t };
    let mut lines = Vec::new();
    if let Some(advice) = &t.advice {
        lines.extend(wording.contributions(advice));
        lines.extend(wording.winner(advice));
        lines.extend(wording.flat(advice));
        lines.extend(advice.keeps.iter().map(|keeps| kept_by_both(keeps, wording.base())));
    }
    lines.extend(wording.failing());
    lines.extend(wording.effort());
    lines.extend(wording.left_open());
    lines
}

/// The knobs of a setting that are not at their default.
pub(crate) fn setting(e: &FigureView<'_>, point: &Point) -> String {
    let mut words = Vec::new();
    for axis in &e.axes {
        let default = default_of(e, &axis.knob);
        if let Some(value) = point.get(&axis.knob).filter(|value| default != Some(value)) {
            words.push(format!("{}={}", axis.knob, crate::printable(&axis.show(value))));
        }
    }
    if words.is_empty() { defaults(e)[0].to_owned() } else { words.join(" ") }
}

/// A knob's value in the setting with which all others are compared.
pub(crate) fn default_of<'a>(e: &'a FigureView<'a>, knob: &str) -> Option<&'a Value> {
    e.base.as_ref()?.scenario.point.get(knob)
}

/// Whether a search found that a value never works.
pub(crate) fn never_works(t: &Tuned, knob: &str, value: &Value) -> bool {
    t.failing.iter().any(|failing| failing.knob == knob && failing.value == *value)
}

/// Of a knob with more values than these, only those that ran are shown.
const MANY: usize = 24;

/// Whether this value of a knob is shown.
pub(crate) fn is_shown(e: &FigureView<'_>, t: &Tuned, knob: &str, value: &Value) -> bool {
    let few = e.axes.iter().any(|axis| axis.knob == knob && axis.values.len() <= MANY);
    few || t.tried.iter().any(|tried| tried.point.get(knob) == Some(value))
}

/// The knobs with a choice: at least two of their values may work.
pub(crate) fn knobs(t: &Tuned) -> impl Iterator<Item = &KnobEffect> {
    let has_choice = |effect: &&KnobEffect| {
        let works = |(value, _): &&(Value, f64)| !never_works(t, &effect.knob, value);
        effect.values.iter().filter(works).count() > 1
    };
    t.knobs.iter().filter(has_choice)
}

/// What the setting is called with which all others are compared, and the value of a knob in it. Knobs of a command have no
/// defaults: its user named their values.
pub(crate) fn defaults(e: &FigureView<'_>) -> [&'static str; 2] {
    match e.ask {
        None => ["the defaults", "its default"],
        Some(_) => ["the first values", "its first value"],
    }
}

/// What the value of a knob is called in the setting with which all others are compared: `default` or `first value`.
pub(crate) fn first(e: &FigureView<'_>) -> &'static str {
    defaults(e)[1].trim_start_matches("its ")
}

/// The lines that set the advised values, for those who paste them. None if the experiment is no search.
pub(crate) fn lines_to_paste<'a>(e: &'a FigureView<'_>) -> impl Iterator<Item = &'a str> {
    let snippets = e.tuned.iter().flat_map(|_| e.snippets);
    snippets.flat_map(|snippet| snippet.text.lines())
}

/// A search and its findings.
struct Wording<'a> {
    e: &'a FigureView<'a>,
    t: &'a Tuned,
}

impl Wording<'_> {
    /// What the setting is called with which all others are compared.
    fn base(&self) -> &'static str {
        defaults(self.e)[0]
    }

    fn advised(&self, a: &Advice) -> String {
        let advised = setting(self.e, &a.point);
        match a.because {
            Because::Better => {
                let kept =
                    all_of(&a.keeps, |keeps| Some(format!("keeps {}", with_value(keeps, keeps.setting))));
                let kept = kept.map_or_else(String::new, |kept| format!(", and {kept}"));
                format!("set {advised}: {}{kept}", self.gain(a, &format!(" as {}", self.base())))
            }
            Because::KeepsLimits => {
                let broken = a.keeps.iter().filter(|keeps| keeps.default.certainly == Some(false));
                let words = broken.map(|keeps| {
                    let (base, value) = (self.base(), value(&keeps.limit, keeps.default));
                    format!("{}, which {base} do not ({value})", with_value(keeps, keeps.setting))
                });
                let kept = list(&words.collect::<Vec<_>>());
                format!("set {advised}: it keeps {kept}, and is {}", self.gain(a, ""))
            }
            Because::NotBetter => self.not_better(a),
            Because::BreaksLimits => self.breaks_limits(a),
            Because::Fails => {
                let (winner, fresh) =
                    (setting(self.e, &a.winner), several(self.t.proof.0.into(), "fresh trial"));
                format!(
                    "keep {}: the best other setting that was found, {winner}, is {}, but {} of its {fresh} failed",
                    self.base(),
                    self.gain(a, ""),
                    a.failed
                )
            }
        }
    }

    /// How good a setting is: `1.31x [1.24, 1.39] as good as the defaults in requests a second`.
    fn gain(&self, a: &Advice, than: &str) -> String {
        let least = if a.at_least { "at least " } else { "" };
        match a.gain {
            None => format!("not compared in {}", self.figure()),
            Some(ratio) => format!("{least}{} as good{than} in {}", sure(ratio), self.figure()),
        }
    }

    /// What decides: `requests a second`, or the highest rate with its objective.
    fn figure(&self) -> String {
        match &self.e.objective {
            Some(objective) => format!("the highest rate at which {objective} holds"),
            None => quantity(self.e.figure).to_owned(),
        }
    }

    fn not_better(&self, a: &Advice) -> String {
        let (winner, gain) = (setting(self.e, &a.winner), self.gain(a, ""));
        let base = self.base();
        let none = format!("keep {base}: no other setting is certainly better");
        match a.verdict {
            _ if a.gain.is_none() => {
                let which = match &a.unmeasured {
                    Some(Unmeasured { default: true, .. }) => format!("{base} have"),
                    _ => format!("the best that the race found, {winner}, has"),
                };
                let why = a.unmeasured.as_ref().map(|of| missing::reason(&of.why, Asked::of(self.e)));
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                format!("{none}; {which} no figure in the fresh rounds{why}")
            }
            Verdict::NoDifference => {
                format!("{none}; the best that was found, {winner}, is {gain}: no difference worth having")
            }
            Verdict::Slower => format!("{none}; the best other that was found, {winner}, is {gain}: worse"),
            Verdict::Faster | Verdict::Undecided { .. } => {
                format!("keep {base} for now; {winner} is {gain}, which does not decide; {}", self.help(a))
            }
        }
    }

    fn breaks_limits(&self, a: &Advice) -> String {
        let (base, winner) = (self.base(), setting(self.e, &a.winner));
        let breaks = all_of(&a.keeps, |keeps| broken(keeps, keeps.setting)).unwrap_or_default();
        let open = if a.is_decided() { String::new() } else { format!("; {}", self.help(a)) };
        let defaults = |keeps: &Keeps| {
            let certainly = keeps.default.certainly == Some(false);
            certainly.then(|| format!("break {}", with_value(keeps, keeps.default)))
        };
        match all_of(&a.keeps, defaults) {
            Some(defaults) => format!(
                "no setting is shown to keep the limits: {base} {defaults}, and the best that was found, {winner}, {breaks}{open}"
            ),
            None => format!(
                "keep {base}: the best other setting that was found, {winner}, is {}, but {breaks}{open}",
                self.gain(a, "")
            ),
        }
    }

    /// What would help to decide.
    fn help(&self, a: &Advice) -> String {
        if let Some(why) = a.withheld {
            return self.withheld(why);
        }
        let machine = "longer trials (--duration) or a quieter machine may decide it";
        match a.verdict {
            _ if self.t.proof.0 as usize >= MOST_PROOFS => machine.to_owned(),
            Verdict::Undecided { more_rounds: Some(more) } if more <= FAR => {
                let more = several(more.into(), "more round");
                format!("a longer --budget may decide it: {more} of the proof may be enough")
            }
            Verdict::Undecided { .. } => machine.to_owned(),
            _ => "a longer --budget may decide it".to_owned(),
        }
    }

    /// Why the fresh rounds have no verdict that more of them would give, and what gives one.
    fn withheld(&self, why: Withheld) -> String {
        let remedy = match why {
            Withheld::Drift | Withheld::Compiling => longer_warmup(self.e),
            Withheld::ShortWindow => Asked::of(self.e).either("a longer -d", "a longer measure_s").to_owned(),
            Withheld::Overdriven => "a lower --rate".to_owned(),
            // Whoever wants to know more needs another generator, or has no builds to compare.
            Withheld::LowerBound | Withheld::OtherBuild => return super::verdicts::withheld(why).to_owned(),
        };
        format!("{}: use {remedy}", super::verdicts::withheld(why))
    }

    /// Whether trials are missing that may lead to an answer.
    fn is_open(&self) -> bool {
        let missing = self.e.trials_done < self.e.trials_planned;
        missing || (self.t.favourite.is_some() && self.default_has_a_figure())
    }

    fn default_has_a_figure(&self) -> bool {
        let of_default = self.t.tried.iter().find(|tried| self.is_default(&tried.point));
        of_default.is_some_and(|tried| tried.ratios.first().is_some_and(Option::is_some))
    }

    fn is_default(&self, point: &Point) -> bool {
        point.iter().all(|(knob, value)| default_of(self.e, knob) == Some(value))
    }

    /// The state of a search without an answer.
    fn unproven(&self) -> String {
        if self.is_open() {
            return match &self.t.favourite {
                Some(favourite) => {
                    format!("{}: {}; {RESUME} goes on", self.not_yet(), self.favourite(favourite))
                }
                None => format!(
                    "{}: no other setting than {} has a figure; {RESUME} goes on",
                    self.not_yet(),
                    self.base()
                ),
            };
        }
        if self.default_has_a_figure() {
            let others = self.t.tried.len().saturating_sub(1) as u64;
            return format!(
                "keep {}: nothing else works ({} failed)",
                self.base(),
                several(others, "other setting")
            );
        }
        let base = self.e.base.as_ref().map(|base| self.e.label(&base.scenario)).unwrap_or_default();
        let failure = self.e.failures.iter().find(|failure| failure.scenario == base);
        let base = self.e.base.as_ref().map(|base| &base.scenario);
        let estimate = self.e.estimates.iter().find(|estimate| Some(&estimate.scenario) == base);
        let why = estimate.and_then(|estimate| estimate.missing(self.e, self.e.figure));
        let why = match failure {
            Some(failure) => format!(": they failed at {}: {}", failure.stage, failure.reason),
            None => why.map_or_else(String::new, |why| format!(": {}", missing::reason(&why, Asked::Typed))),
        };
        format!("nothing can be advised, because {} have no figure{why}", self.base())
    }

    fn not_yet(&self) -> String {
        match self.t.proof {
            (0, _) => {
                let trials = several(self.e.trials_done.into(), "trial");
                format!("not proven yet (the race goes on; {trials} so far)")
            }
            (rounds, complete) => format!("not proven yet ({complete} of {rounds} rounds of the proof)"),
        }
    }

    /// What the race sees in the most promising setting.
    fn favourite(&self, favourite: &Favourite) -> String {
        let ratio = match favourite.interval {
            Some((low, high)) => interval_in_tenths(Ratio { estimate: favourite.ratio, low, high }),
            None => format!("{} (from single trials)", times(favourite.ratio)),
        };
        format!(
            "in the race, {} is about {ratio} as good as {} in {}, which flatters it, because the race chose it",
            setting(self.e, &favourite.point),
            self.base(),
            self.figure()
        )
    }

    /// A line for each knob in which the winner differs, if there is more than one.
    fn contributions(&self, a: &Advice) -> Vec<String> {
        let changed = a.winner.iter().filter(|(knob, value)| default_of(self.e, knob) != Some(value)).count();
        match &a.contributions[..] {
            [] if changed > 1 && a.changes() => {
                vec![
                    "there was no time to show what each knob contributes: a longer --budget has it"
                        .to_owned(),
                ]
            }
            [] | [_] => Vec::new(),
            several => several.iter().map(|one| self.contribution(a, one)).collect(),
        }
    }

    fn contribution(&self, a: &Advice, one: &Contribution) -> String {
        let point = Point::from([(one.knob.clone(), one.value.clone())]);
        let ratio = one.ratio.map_or_else(|| "not compared".to_owned(), interval_in_hundredths);
        let [_, own] = defaults(self.e);
        let verdict = match one.verdict {
            Verdict::Faster => format!("better than at {own}"),
            Verdict::Slower => format!("worse than at {own}"),
            Verdict::NoDifference => "no difference worth having".to_owned(),
            Verdict::Undecided { .. } => "undecided".to_owned(),
        };
        let back = match (a.taken_back.contains(&one.knob), one.verdict == Verdict::Faster) {
            (true, false) => format!(", so it stays at {own}"),
            // What would be left of the winner was not shown to be better than the defaults.
            (true, true) => format!(", but no better part of the winner has it: it stays at {own}"),
            (false, _) => String::new(),
        };
        format!("{}: {ratio}, {verdict}{back}", setting(self.e, &point))
    }

    /// The setting that won the race, if only a part of it is advised.
    fn winner(&self, a: &Advice) -> Option<String> {
        let gain = a.winner_gain.filter(|_| a.changes() && !a.taken_back.is_empty())?;
        let winner = setting(self.e, &a.winner);
        Some(format!("{winner}, which won the race, is {} as good as {}", sure(gain), self.base()))
    }

    /// The knobs that hardly matter, as far as the advice leaves them at their default.
    fn flat(&self, a: &Advice) -> Option<String> {
        let unchanged = |knob: &str| default_of(self.e, knob) == a.winner.get(knob);
        let flat = knobs(self.t).filter(|one| one.flat && unchanged(&one.knob));
        let flat: Vec<&str> = flat.map(|one| one.knob.as_str()).collect();
        (!flat.is_empty())
            .then(|| format!("hardly mattered in what was tried (estimated): {}", flat.join(", ")))
    }

    fn failing(&self) -> Vec<String> {
        let line = |failing: &Failing| {
            let point = Point::from([(failing.knob.clone(), failing.value.clone())]);
            let why = match failing.reason.as_str() {
                "" => "too many errors",
                reason => reason,
            };
            let all = match failing.settings {
                1 => "every trial failed".to_owned(),
                settings => format!("all {settings} settings that were tried with it failed"),
            };
            format!("{} never worked: {all}: {why}", setting(self.e, &point))
        };
        self.t.failing.iter().map(line).collect()
    }

    /// What the search tried, and how many rounds decided.
    fn effort(&self) -> Option<String> {
        let Tuned { settings, tried, raced, proof, advice, .. } = self.t;
        let all = match *settings {
            usize::MAX => "countless".to_owned(),
            many if many > EXACT => format!("about {}", count(many as f64)),
            few => few.to_string(),
        };
        let decided = match advice {
            Some(advice) => {
                let verb = if advice.is_decided() { "decided" } else { "did not decide" };
                format!("; {} {verb}", several(proof.0.into(), "fresh round"))
            }
            None => String::new(),
        };
        let raced = several((*raced).into(), "trial");
        (!tried.is_empty()).then(|| format!("tried {} of {all} settings in {raced}{decided}", tried.len()))
    }

    /// How much better another setting may be.
    fn left_open(&self) -> Option<String> {
        let open = self.t.left_open.as_ref().filter(|_| self.t.advice.is_some())?;
        let of_examined =
            open.examined.map_or_else(String::new, |some| format!(" of the {some} that were examined"));
        Some(match open.settings {
            0 => {
                let threshold = chosen_percent(self.e.threshold);
                format!("no other setting{of_examined} is more than {threshold} better (95 %)")
            }
            _ => format!(
                "another setting{of_examined} may be up to {} better (95 %); a longer --budget tries more",
                times(open.up_to)
            ),
        })
    }
}

/// A ratio with its interval. If it is hardly measured, only the ends of this are known.
fn sure(ratio: Ratio) -> String {
    match ratio.is_hardly_measured() {
        true if ratio.low > 1.0 => format!("at least {}", times(ratio.low)),
        true => format!("{} to {}", times(ratio.low), times(ratio.high)),
        false => interval_in_hundredths(ratio),
    }
}

/// The words for each limit that has some, as a list. None if none has.
fn all_of(keeps: &[Keeps], words: impl Fn(&Keeps) -> Option<String>) -> Option<String> {
    let words: Vec<String> = keeps.iter().filter_map(words).collect();
    (!words.is_empty()).then(|| list(&words))
}

/// What a setting does with a limit that it does not certainly keep. None if it keeps it.
fn broken(keeps: &Keeps, kept: Kept) -> Option<String> {
    let what = with_value(keeps, kept);
    match kept.certainly {
        Some(true) => None,
        Some(false) => Some(format!("breaks {what}")),
        None => Some(format!("does not certainly keep {what}")),
    }
}

/// A limit with what the setting has and what the defaults have.
fn kept_by_both(keeps: &Keeps, base: &str) -> String {
    let has = |kept: Kept| {
        let doubt = match kept.certainly {
            Some(true) => "",
            Some(false) => ", which breaks it",
            None => ", which is not certain",
        };
        format!("{}{doubt}", value(&keeps.limit, kept))
    };
    let (setting, default) = (has(keeps.setting), has(keeps.default));
    format!("{}: the setting has {setting}; {base} have {default}", limit(&keeps.limit))
}

/// A limit with a setting's value: `p99 < 20 ms (18.2 ms)`.
fn with_value(keeps: &Keeps, kept: Kept) -> String {
    format!("{} ({})", limit(&keeps.limit), value(&keeps.limit, kept))
}

/// A limit: `p99 < 20 ms`.
pub(crate) fn limit(limit: &Limit) -> String {
    match limit.of {
        Bounded::Percentile(p) => format!("p{p} < {}", short(limit.below, Unit::Microseconds)),
        Bounded::Errors => format!("errors < {}", chosen_percent(limit.below)),
        Bounded::Memory if limit.below % 1024.0 == 0.0 => {
            format!("memory < {}", systems::knob::show_size(limit.below as i64))
        }
        Bounded::Memory => format!("memory < {}", bytes(limit.below)),
    }
}

fn value(limit: &Limit, kept: Kept) -> String {
    match (kept.value, limit.of) {
        (None, _) => "unknown".to_owned(),
        (Some(value), Bounded::Percentile(_)) => micros(value),
        (Some(value), Bounded::Errors) => percent(value),
        (Some(value), Bounded::Memory) => bytes(value),
    }
}
