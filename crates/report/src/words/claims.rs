//! Each claim as a sentence, and the counts that explain it.

use lab::experiment::Figure;
use lab::experiment::grid::Axis;
use lab::findings::{
    Behind, By, Claim, Comparison, Counted, CpuDifference, Estimate, FigureView, Interaction, Ratio, Reason,
    Unit, Withheld, is_hardly_measured,
};
use stats::Verdict;
use systems::work::Purpose;

use super::missing::{missing, unanswered};
use super::more_cpu::{OneFunction, functions, one_function, waits};
use super::options::Asked;
use super::reasons::counts;
use super::verdicts::FAR;
use crate::number::{chosen_percent, interval, interval_in_hundredths, several, show, times};

/// A longer window is worth trying below this length, seconds.
const SHORT_S: f64 = 1.0;

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
        Figure::FirstByteUs => "time to the first byte",
        Figure::FirstEventUs => "time to the first event",
        Figure::FirstEventP99Us => "p99 of the time to the first event",
        Figure::GapUs => "gap between reads of a stream",
        Figure::GapP99Us => "p99 of the gaps between reads of a stream",
        Figure::LongestGapUs => "longest gap of a stream",
        Figure::WholeUs => "time of a whole answer",
        Figure::EventsPerRead => "events in a read",
        Figure::EventsPerS => "events a second",
        Figure::GoodPerS => "answers a second that meet their limits",
        Figure::CpuPerUnit => "CPU time for each unit of work",
        Figure::CallsPerUnit => "system calls for each unit of work",
        Figure::InstructionsPerUnit => "instructions for each unit of work",
        Figure::MemoryBytes => "memory",
        Figure::StartMs => "time to start",
        Figure::FirstRequestUs => "time of the first request",
        Figure::IdleMemoryBytes => "memory without load",
        Figure::IdleCpu => "CPU time without load",
    }
}

/// What is compared, if it is no rate and no time of an operation.
fn figure_in_words(e: &FigureView<'_>) -> Option<String> {
    let unit = e.workload.about().unit.name;
    match e.figure {
        Figure::MsPerUpload | Figure::BytesPerS | Figure::FramesPerS | Figure::RequestsPerS => None,
        Figure::MaxRate => Some("highest rate".to_owned()),
        Figure::P50Us => Some("p50".to_owned()),
        Figure::P99Us => Some("p99".to_owned()),
        Figure::FirstByteUs => Some("first byte".to_owned()),
        Figure::FirstEventUs => Some("first event".to_owned()),
        Figure::FirstEventP99Us => Some("p99 of the first event".to_owned()),
        Figure::GapUs => Some("gap".to_owned()),
        Figure::GapP99Us => Some("p99 of gaps".to_owned()),
        Figure::LongestGapUs => Some("longest gap".to_owned()),
        Figure::WholeUs => Some("whole answer".to_owned()),
        Figure::EventsPerRead => Some("events in a read".to_owned()),
        Figure::EventsPerS => Some("events a second".to_owned()),
        Figure::GoodPerS => Some("goodput".to_owned()),
        Figure::CpuPerUnit => Some(format!("CPU a {unit}")),
        Figure::CallsPerUnit => Some(format!("system calls a {unit}")),
        Figure::InstructionsPerUnit => Some(format!("instructions a {unit}")),
        Figure::MemoryBytes => Some("memory".to_owned()),
        Figure::StartMs => Some("start".to_owned()),
        Figure::FirstRequestUs => Some("first request".to_owned()),
        Figure::IdleMemoryBytes => Some("memory without load".to_owned()),
        Figure::IdleCpu => Some("CPU without load".to_owned()),
    }
}

/// An experiment, whose estimates the claims refer to.
pub(super) struct Wording<'a> {
    pub e: &'a FigureView<'a>,
}

impl Wording<'_> {
    pub fn sentence(&self, claim: &Claim) -> String {
        match claim {
            Claim::Knob { comparison, narrow, default, equal, ties, .. } => {
                self.knob(comparison, *narrow, *default, [equal, ties])
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
            Claim::Systems { comparison, equal, ties, rest, alike, unequal, .. } => {
                let leads = self.systems(comparison, [equal, ties], rest, *unequal);
                if *alike {
                    format!("{}{leads}", self.like_settings(comparison, [equal, ties], rest))
                } else {
                    leads
                }
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
            Claim::Unanswered { asks } => unanswered(self.e, asks),
        }
    }

    /// The settings that make systems work alike, where they are not the defaults: `with ibrowse at pipelining 1, `.
    fn like_settings(&self, c: &Comparison, others: [&[usize]; 2], rest: &[Behind]) -> String {
        let rest = rest.iter().map(|behind| behind.scenario);
        let all =
            [c.scenario, c.against].into_iter().chain(others.into_iter().flatten().copied()).chain(rest);
        let changed = |at: usize| {
            let scenario = &self.estimate(at)?.scenario;
            let (alike, defaults) =
                (self.e.alike.get(&scenario.system)?, self.e.defaults.get(&scenario.system)?);
            let changed = alike.iter().filter(|(knob, value)| defaults.get(*knob) != Some(*value));
            let changed: Vec<String> = changed.map(|(knob, value)| format!("{knob} {value}")).collect();
            (!changed.is_empty()).then(|| format!("{} at {}", scenario.system, list(&changed)))
        };
        let changed: Vec<String> = all.filter_map(changed).collect();
        if changed.is_empty() { "at like settings ".to_owned() } else { format!("with {}, ", list(&changed)) }
    }

    /// The figure and the cost of a system that runs alone.
    pub fn alone(&self, system: &str) -> String {
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
                let why = e.missing(self.e, self.e.figure);
                return why.map_or_else(|| format!("{system}: no figure"), |why| missing(self.e, e, &why));
            }
        };
        let work = &self.e.workload.about().unit;
        // What the figure is stands in the first words.
        if let Some(cost) = e.cpu_s_per_unit.filter(|_| self.e.figure != Figure::CpuPerUnit) {
            words.push(format!("{} of CPU a {}", show(cost, Unit::cost_of(work)), work.name));
        }
        let memory = e.peak_memory_bytes.filter(|_| self.e.figure != Figure::MemoryBytes);
        words.extend(memory.map(|bytes| show(bytes as f64, Unit::Bytes)));
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
    fn knob(&self, c: &Comparison, narrow: bool, default: bool, ties: [&[usize]; 2]) -> String {
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
    fn systems(&self, c: &Comparison, ties: [&[usize]; 2], rest: &[Behind], unequal: bool) -> String {
        let name = |index: usize| self.with_unlike(index);
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

    /// Which other systems lead at other points: `at keep_alive false libuv leads`. None if there are none.
    pub fn elsewhere(&self, claim: &Claim) -> Option<String> {
        let Claim::Systems { elsewhere: leaders, .. } = claim else { return None };
        let mut places: Vec<(String, Vec<usize>)> = Vec::new();
        for at in leaders {
            let name = self.with_unlike(*at);
            match places.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(*at),
                None => places.push((name, vec![*at])),
            }
        }
        let place = |(name, points): &(String, Vec<usize>)| match points[..] {
            [only] => format!("at {} {name}", self.work(only)),
            _ => format!("at {} other points {name}", points.len()),
        };
        let places: Vec<String> = places.iter().map(place).collect();
        let leads = if places.len() == 1 { "leads" } else { "lead" };
        (!places.is_empty()).then(|| format!("{} {leads}", list(&places)))
    }

    /// The point of the work of a scenario, as far as it differs between rows.
    fn work(&self, at: usize) -> String {
        let point = self.estimate(at).map(|estimate| &estimate.scenario.point);
        let varied = self.e.axes.iter().filter(|axis| axis.values.len() > 1 && axis.workload);
        let value = |axis: &Axis| Some(format!("{} {}", axis.knob, axis.show(point?.get(&axis.knob)?)));
        varied.filter_map(value).collect::<Vec<String>>().join(", ")
    }

    /// The values or systems that are shown to be as good as the one that is claimed to be the best, and those that may be.
    fn as_good(&self, by: &By, [equal, ties]: [&[usize]; 2], good: &str) -> String {
        let name = |index: &usize| {
            if by.knob().is_some() { self.name(by, *index) } else { self.with_unlike(*index) }
        };
        let [equal, ties] = [equal, ties].map(|all| all.iter().map(name).collect::<Vec<String>>());
        let is = if equal.len() == 1 { "is" } else { "are" };
        let within = chosen_percent(self.e.threshold);
        let shown =
            [(&equal, format!("{is} as {good} within {within}")), (&ties, format!("may be as {good}"))];
        let shown = shown.into_iter().filter(|(names, _)| !names.is_empty());
        shown.map(|(names, said)| format!("; {} {said}", list(names))).collect()
    }

    /// A system, with the settings that make it work otherwise than systems without such knobs: `ibrowse (pipelining 10)`.
    fn with_unlike(&self, at: usize) -> String {
        let name = self.name(&By::System, at);
        let unlike = self.estimate(at).into_iter().flat_map(|of| self.e.unlike(&of.scenario));
        let unlike: Vec<String> = unlike.map(|(knob, value)| format!("{knob} {value}")).collect();
        if unlike.is_empty() { name } else { format!("{name} ({})", unlike.join(", ")) }
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
        let cpu = self.e.open_cpu(c).map_or_else(String::new, |cpu| self.needs_more(c, cpu));
        format!("{open}: {seen}{cpu} ({}; {})", self.context(c), self.help(c))
    }

    /// That one of two, or one of its functions, certainly needs more CPU time, although nothing is known of the figure.
    fn needs_more(&self, c: &Comparison, cpu: &CpuDifference) -> String {
        let unit = self.e.workload.about().unit.name;
        let [more, less] = [cpu.more, cpu.less].map(|at| self.name(&c.by, at));
        if !cpu.is_certain() {
            let function = cpu.functions.as_ref().and_then(|found| one_function(found, cpu.less_s));
            let named = |of: OneFunction| {
                let who = if of.grown { more } else { less };
                format!("; {who} certainly takes {} more CPU a {unit} in {}", of.by, of.named)
            };
            return function.map_or_else(String::new, named);
        }
        format!("; {more} certainly needs {} the CPU a {unit} of {less}", interval_in_hundredths(cpu.ratio))
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
                let longer = Asked::of(self.e).either("-d", "measure_s");
                format!("the windows have too few answers on each connection: measure for longer ({longer})")
            }
            Withheld::Drift => {
                let names = names(|estimate| estimate.warmth.drift.is_some());
                let warmup = longer_warmup(self.e);
                format!("the speed of {names} still changed in the windows: use {warmup}")
            }
            Withheld::Compiling => {
                let names = names(|estimate| estimate.warmth.compiling);
                let warmup = longer_warmup(self.e);
                format!("compilers of {names} still worked in the windows, so it was cold: use {warmup}")
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

    /// The counts that explain a claim, or the functions in which an undecided one's CPU time is. None if there are none.
    pub fn reason(&self, claim: &Claim) -> Option<String> {
        let unit = &self.e.workload.about().unit;
        let (reasons, c) = match claim {
            Claim::Knob { reasons, comparison, .. }
            | Claim::Cliff { reasons, comparison }
            | Claim::Systems { reasons, comparison, .. } => (reasons, comparison),
            Claim::Undecided { comparison, .. } => {
                let cpu = self.e.open_cpu(comparison);
                let cpu = cpu.filter(|cpu| cpu.is_certain() && cpu.functions.is_some());
                return cpu.map(|cpu| functions(cpu, unit));
            }
            _ => return None,
        };
        let sampled = reasons.iter().find_map(|reason| match reason.counted {
            Counted::Functions => {
                let cpu = self.e.cpu.iter().find(|cpu| cpu.is_between(c.scenario, c.against))?;
                Some(functions(cpu, unit))
            }
            Counted::Waits => {
                Some(waits(self.e.waiting.iter().find(|w| w.is_between(c.scenario, c.against))?, unit))
            }
            _ => None,
        });
        let is_sampled = |reason: &&Reason| matches!(reason.counted, Counted::Functions | Counted::Waits);
        let counted = reasons.iter().filter(|reason| sampled.is_none() || !is_sampled(reason));
        let counted: Vec<String> = counted.map(|reason| counts(reason, unit)).collect();
        let counted = (!counted.is_empty()).then(|| counted.join("; "));
        match (sampled, counted) {
            // A count is no part of the sum.
            (Some(sampled), Some(counted)) => Some(format!("{sampled}. It goes with {counted}")),
            (sampled, counted) => sampled.or(counted),
        }
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
        let rounds = match self.e.builds {
            None => format!("{} rounds", c.rounds),
            Some(2) => {
                format!("{} rounds of each of 2 builds, which is no test at 5 %: use --builds 3", c.rounds)
            }
            Some(builds) => format!("{} rounds of each of {builds} builds", c.rounds),
        };
        if words.is_empty() { rounds } else { format!("{}; {rounds}", words.join(", ")) }
    }
}

/// The option that makes warm-ups longer.
pub(super) fn longer_warmup(e: &FigureView<'_>) -> String {
    let warmup_s = (4.0 * e.timing.warmup_s).clamp(5.0, 60.0).ceil();
    match Asked::of(e) {
        Asked::Typed => format!("--warmup {warmup_s}s"),
        Asked::File => format!("warmup_s = {warmup_s}"),
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
