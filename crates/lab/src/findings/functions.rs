//! Why, in functions: which functions carry the difference in CPU time between two scenarios.
//!
//! Every round has a profile of each arm. What an arm needs for a unit of work is divided among *parts* in the ratio of their
//! samples: functions by their own time, and the kernel's time by the system call in which it passed. The parts do not overlap, so
//! their changes add up to the difference. Each has an interval, and all intervals hold together ([`stats::part_changes`]).
//!
//! What people look for is often no part: a function that got slower because of what it calls. So functions are also looked at
//! with all that they call, and one of them may *carry* the difference: it has certainly grown, by most of the difference, and
//! its own time has grown more than the whole has. Otherwise every caller up to `main` would carry it.

use std::collections::{BTreeMap, BTreeSet};

use profile::{Frame, Kind, Profile};
use serde::{Deserialize, Serialize};
use stats::{Counted, LEVEL, Location, PartChange, part_changes};

/// A function that carries the difference makes up at least this share of it.
const MOST: f64 = 2.0 / 3.0;

/// By how many times the share of its time that is new exceeds that of the whole.
const MORE_THAN_WHOLE: f64 = 1.5;

/// Functions whose new shares are this close to each other are equally likely.
const ALIKE: f64 = 0.1;

/// Of these the innermost one is named that has at least this share of the largest change: what calls it adds nothing of its own.
const NEARLY_ALL: f64 = 0.9;

/// Parts with fewer samples than this in all rounds together are not told apart.
const FEWEST_SAMPLES: u64 = 5;

/// The name of the part that all rare functions are together.
pub const FEW_SAMPLES: &str = "[functions with few samples]";

/// A function, or a system call of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Function {
    /// Its name; of what has no name, the module in brackets.
    pub name: String,
    /// Whether it is the kernel's time in this system call.
    pub kernel: bool,
}

impl Function {
    /// The function of a frame. Functions are the same in both arms if they have the same name. What has none
    /// is known by its module, if it has one. The kernel's functions are not told from others.
    pub fn of(frame: &Frame) -> Self {
        let module = frame.module.rsplit('/').next().unwrap_or_default().trim_matches(['[', ']']);
        let name = match frame.name.starts_with('[') && !module.is_empty() {
            true => format!("[{module}]"),
            false if frame.kind == Kind::Runtime => made(&frame.name).0,
            false => compiled(&frame.name).to_owned(),
        };
        Self { name, kernel: false }
    }
}

/// A compiled function without what a compiler adds to the name of a part or of a copy of it, which differs between builds.
fn compiled(name: &str) -> &str {
    let added = [".constprop", ".part", ".isra", ".cold", ".lto_priv"];
    // In other languages a dot is part of a name: `main.coldStart`.
    let own = |added: &&str| {
        let (own, rest) = name.split_once(*added)?;
        (rest.is_empty() || rest.starts_with('.')).then_some(own)
    };
    added.iter().filter_map(own).min_by_key(|own| own.len()).unwrap_or(name)
}

/// The method of a Java class, without its types: HotSpot says `int Server.check(java.lang.String, int)`.
fn java(name: &str) -> Option<&str> {
    let (before, types) = name.split_once('(')?;
    let (_, method) = before.rsplit_once(' ')?;
    (types.ends_with(')') && method.contains('.')).then_some(method)
}

/// A function that a runtime made, as it is in any folder and at any line, and its place as `file:line` if the runtime says it. V8 says
/// `JS:*name /folder/file.js:line:column`, with a mark of how it was compiled, and Python `py::name:/folder/file.py`.
fn made(name: &str) -> (String, Option<String>) {
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    if let Some((name, path)) = name.strip_prefix("py::").and_then(|name| name.split_once(':')) {
        return (format!("{name} {}", file(path)), None);
    }
    if let Some(name) = java(name) {
        return (name.to_owned(), None);
    }
    let Some((own, place)) = name.strip_prefix("JS:").and_then(|name| name.rsplit_once(' ')) else {
        return (name.strip_prefix('$').unwrap_or(name).to_owned(), None);
    };
    let own = own.trim_start_matches(['*', '~', '^', '+']);
    let own = if own.is_empty() { "(anonymous)" } else { own };
    let place = file(place);
    let mut parts = place.rsplitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(line), Some(file)) => (format!("{own} {file}"), Some(format!("{file}:{line}"))),
        _ => (format!("{own} {place}"), None),
    }
}

/// A function's time for a unit of work in both arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionChange {
    /// The function.
    pub function: Function,
    /// What it takes in each arm and how that has changed, as shares of what the first arm takes in all.
    pub change: PartChange,
    /// Where its source is, as `file:line`: the line that was seen most. None without debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Where the difference in CPU time between two arms is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Functions {
    /// The parts, with the largest changes first. Their changes add up to that of the whole.
    pub parts: Vec<FunctionChange>,
    /// The function that carries the difference, with all that it calls. None if no function certainly does. Where the whole may not
    /// differ, it is the function that certainly does.
    pub carrier: Option<FunctionChange>,
    /// What calls it, if that carries as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Function>,
}

/// Divides the difference between two arms. `ratio` is the location of ln(second arm / first arm) of the CPU time for a unit of
/// work; the profiles are those of the rounds of each arm.
///
/// None if an arm has fewer than two profiles with samples.
pub fn functions(ratio: &Location, profiles: [&[&Profile]; 2]) -> Option<Functions> {
    divided(ratio, profiles, LEVEL, carriers)
}

/// The same for two arms whose whole may not differ, with intervals of which any misses the truth with this probability.
///
/// None also if no function certainly differs. One that hardly occurs in the other arm does so however little is known of the whole.
pub(super) fn of_open(ratio: &Location, profiles: [&[&Profile]; 2], level: f64) -> Option<Functions> {
    divided(ratio, profiles, level, |_, inclusive| changed(inclusive)).filter(|found| found.carrier.is_some())
}

/// Divides the difference. `candidates` chooses the functions of which one may be named.
fn divided(
    ratio: &Location,
    profiles: [&[&Profile]; 2],
    level: f64,
    candidates: impl Fn(&Location, Vec<FunctionChange>) -> Vec<FunctionChange>,
) -> Option<Functions> {
    let by_part = changes(ratio, profiles, level, own)?;
    let mut inclusive = changes(ratio, profiles, level, inclusive)?;
    inclusive.retain(|f| f.function.name != FEW_SAMPLES);
    let stands = |candidates: &[Function]| depths(candidates, profiles.into_iter().flatten().copied());
    let (mut carrier, caller) = innermost(candidates(ratio, inclusive), stands).unzip();
    let mut parts = by_part;
    parts.sort_by(|a, b| b.change.change().abs().total_cmp(&a.change.change().abs()));
    let lines = lines(profiles.into_iter().flatten().copied());
    for shown in parts.iter_mut().chain(&mut carrier) {
        shown.at = lines.get(&shown.function).and_then(|seen| {
            let (line, _) = seen.iter().max_by_key(|(_, samples)| **samples)?;
            Some(line.clone())
        });
    }
    Some(Functions { parts, carrier, caller: caller.flatten() })
}

/// How often each line of each function was seen, as `file:line` with the name of the file alone.
fn lines<'p>(profiles: impl Iterator<Item = &'p Profile>) -> BTreeMap<Function, BTreeMap<String, u64>> {
    let mut lines: BTreeMap<Function, BTreeMap<String, u64>> = BTreeMap::new();
    let stacks = profiles.flat_map(|profile| profile.stacks.iter().map(move |stack| (profile, stack)));
    for (profile, stack) in stacks {
        for frame in profile.frames_of(stack).filter(|frame| frame.kind != Kind::Kernel) {
            let said = frame.file.as_ref().zip(frame.line);
            let said = said.map(|(file, line)| format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)));
            let of_runtime = || made(&frame.name).1.filter(|_| frame.kind == Kind::Runtime);
            let Some(place) = said.or_else(of_runtime) else { continue };
            *lines.entry(Function::of(frame)).or_default().entry(place).or_default() += stack.count;
        }
    }
    lines
}

/// Samples of functions in a profile.
type Samples = BTreeMap<Function, u64>;

fn changes(
    ratio: &Location,
    profiles: [&[&Profile]; 2],
    level: f64,
    of: fn(&Profile) -> Samples,
) -> Option<Vec<FunctionChange>> {
    let rounds =
        profiles.map(|arm| arm.iter().map(|profile| (profile.samples, of(profile))).collect::<Vec<_>>());
    let mut all = Samples::new();
    for (function, samples) in rounds.iter().flatten().flat_map(|(_, samples)| samples) {
        *all.entry(function.clone()).or_default() += samples;
    }
    // Rare parts are one part together, so that the sum stays whole and few intervals must hold together.
    let (told, rare): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, samples)| *samples >= FEWEST_SAMPLES);
    let told: Vec<Function> = told.into_iter().map(|(function, _)| function).collect();
    let counted = |(total, samples): &(u64, Samples)| {
        let of = |function: &Function| samples.get(function).copied().unwrap_or(0);
        let others = rare.iter().map(|(function, _)| of(function)).sum();
        Counted { total: *total, parts: told.iter().map(of).chain([others]).collect() }
    };
    let [first, second] = rounds.each_ref().map(|arm| arm.iter().map(counted).collect::<Vec<_>>());
    let changes = part_changes(ratio, [&first, &second], level)?;
    let others = Function { name: FEW_SAMPLES.to_owned(), kernel: false };
    let functions = told.into_iter().chain([others]);
    Some(
        functions
            .zip(changes)
            .map(|(function, change)| FunctionChange { function, change, at: None })
            .collect(),
    )
}

/// The functions that carry the difference: they have certainly grown if the second arm takes more, and certainly shrunk if it takes
/// less.
fn carriers(ratio: &Location, mut inclusive: Vec<FunctionChange>) -> Vec<FunctionChange> {
    let (low, high) = ratio.interval(LEVEL);
    if low <= 0.0 && high >= 0.0 {
        return Vec::new();
    }
    let sign = ratio.estimate.signum();
    let whole = ratio.estimate.exp() - 1.0;
    let whole_new = whole.abs() / (1.0 + whole.max(0.0));
    inclusive.retain(|f| {
        is_certain(&f.change, sign)
            && f.change.change() * sign >= MOST * whole.abs()
            && new(&f.change) >= (MORE_THAN_WHOLE * whole_new).min(1.0 - ALIKE)
    });
    inclusive
}

/// The functions that certainly differ, in the direction of the one that differs most.
fn changed(mut inclusive: Vec<FunctionChange>) -> Vec<FunctionChange> {
    inclusive.retain(|f| is_certain(&f.change, 1.0) || is_certain(&f.change, -1.0));
    let most = inclusive.iter().map(|f| f.change.change()).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let sign = most.unwrap_or(0.0).signum();
    inclusive.retain(|f| is_certain(&f.change, sign));
    inclusive
}

/// Whether it has certainly grown, or certainly shrunk if the sign is negative.
fn is_certain(change: &PartChange, sign: f64) -> bool {
    if sign > 0.0 { change.has_grown() } else { change.high < 0.0 }
}

/// The share of the larger time that the other arm does not have.
fn new(change: &PartChange) -> f64 {
    (change.change() / change.first.max(change.second)).abs()
}

/// Of functions that have all changed in one direction, the innermost one of those of which most is new; and what calls it, if that is
/// as likely.
fn innermost(
    candidates: Vec<FunctionChange>,
    depths: impl Fn(&[Function]) -> Vec<usize>,
) -> Option<(FunctionChange, Option<Function>)> {
    let newest = candidates.iter().map(|f| new(&f.change)).fold(0.0, f64::max);
    let alike: Vec<FunctionChange> =
        candidates.into_iter().filter(|f| new(&f.change) >= newest - ALIKE).collect();
    let size = |f: &FunctionChange| f.change.change().abs();
    let most = alike.iter().map(size).fold(0.0, f64::max);
    let whole: Vec<FunctionChange> = alike.into_iter().filter(|f| size(f) >= NEARLY_ALL * most).collect();
    let functions: Vec<Function> = whole.iter().map(|f| f.function.clone()).collect();
    let mut whole: Vec<(usize, FunctionChange)> = depths(&functions).into_iter().zip(whole).collect();
    whole.sort_by_key(|(depth, _)| *depth);
    let (depth, carrier) = whole.pop()?;
    let caller = whole.pop().filter(|(of, _)| *of < depth);
    Some((carrier, caller.map(|(_, caller)| caller.function)))
}

/// In how many of the others each of these functions stands. One stands in another if it does in most samples that have both: some
/// stacks are cut, and either may be called from elsewhere, too.
fn depths<'p>(functions: &[Function], profiles: impl Iterator<Item = &'p Profile>) -> Vec<usize> {
    let numbers: BTreeMap<&Function, usize> = functions.iter().zip(0..).collect();
    // For each two, the samples in which the first stands in the second, less those the other way.
    let mut inside: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    for profile in profiles {
        let known: Vec<Option<usize>> =
            profile.frames.iter().map(|frame| numbers.get(&Function::of(frame)).copied()).collect();
        for stack in &profile.stacks {
            let count = i64::try_from(stack.count).unwrap_or(i64::MAX);
            let mut above: Vec<usize> = Vec::new();
            let frames = stack.frames.iter().filter_map(|frame| *known.get(*frame as usize)?);
            for function in frames {
                if above.contains(&function) {
                    continue;
                }
                for outer in &above {
                    let both = inside.entry((function, *outer)).or_default();
                    *both = both.saturating_add(count);
                    let both = inside.entry((*outer, function)).or_default();
                    *both = both.saturating_sub(count);
                }
                above.push(function);
            }
        }
    }
    let depth =
        |of: usize| inside.iter().filter(|((inner, _), samples)| *inner == of && **samples > 0).count();
    (0..functions.len()).map(depth).collect()
}

/// The samples of each part: functions by their own time, and the kernel's time by its system call.
fn own(profile: &Profile) -> Samples {
    let mut samples = Samples::new();
    for stack in &profile.stacks {
        // A function that the compiler put into another is part of that one: what is inlined differs between builds.
        let leaf = profile.frames_of(stack).rev().find(|frame| !frame.inlined);
        if let Some(function) = leaf.filter(|frame| frame.kind != Kind::Kernel).map(Function::of) {
            *samples.entry(function).or_default() += stack.count;
        }
    }
    for time in profile.by_system_call() {
        *samples.entry(Function { name: time.entry, kernel: true }).or_default() += time.samples;
    }
    samples
}

/// Whether it is no function, but where the first function of a process returns to: the BEAM calls that place after what lies there.
fn is_bottom(frame: &Frame) -> bool {
    frame.kind == Kind::Runtime && frame.name.ends_with("-CodeInfoPrologue")
}

/// The samples of each function of user space with all that it called.
fn inclusive(profile: &Profile) -> Samples {
    let mut samples = Samples::new();
    for stack in &profile.stacks {
        let frames = profile.frames_of(stack).filter(|frame| frame.kind != Kind::Kernel);
        let frames = frames.filter(|frame| !is_bottom(frame));
        let functions: BTreeSet<Function> = frames.map(Function::of).collect();
        for function in functions {
            *samples.entry(function).or_default() += stack.count;
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use profile::Stack;

    use super::*;

    /// A profile of these stacks. Names that begin with `__x64_sys_` are the kernel's.
    fn profile(stacks: &[(&[&str], u64)]) -> Profile {
        let mut made = Profile { kernel: true, period_ns: 1_000_000, ..Profile::default() };
        for (names, count) in stacks {
            let frames = names.iter().map(|name| {
                let kind = if name.starts_with("__x64") { Kind::Kernel } else { Kind::User };
                let module = "/srv/server".to_owned();
                made.frames.push(Frame {
                    name: (*name).to_owned(),
                    module,
                    kind,
                    inlined: false,
                    file: None,
                    line: None,
                });
                (made.frames.len() - 1) as u32
            });
            let frames = frames.collect();
            made.stacks.push(Stack { frames, count: *count });
            made.samples += count;
        }
        made
    }

    /// A server whose handler calls what checks a token, with this many samples in it, of some 300.
    fn serving(check: u64, jitter: u64) -> Profile {
        profile(&[
            (&["main", "run", "handle", "check_token", "hash"], check),
            (&["main", "run", "handle", "format"], 60 + jitter),
            (&["main", "run", "read_request", "__x64_sys_recvfrom"], 90 - jitter),
            (&["main", "run", "write_answer", "__x64_sys_sendto"], 120),
            (&["main", "run"], 30 + jitter),
        ])
    }

    fn rounds(check: u64) -> Vec<Profile> {
        (0..5).map(|round| serving(check, round % 3)).collect()
    }

    /// The location of a ratio that five rounds show.
    fn ratio(truth: f64, error: f64) -> Location {
        Location { estimate: truth.ln(), error, df: 4.0, n: 5, bound: 0.0 }
    }

    fn found(ratio: &Location, first: &[Profile], second: &[Profile]) -> Functions {
        let [first, second] = [first, second].map(|arm| arm.iter().collect::<Vec<_>>());
        functions(ratio, [&first, &second]).unwrap()
    }

    #[test]
    fn the_function_that_got_slower_is_named_and_not_its_callers() {
        // 300 samples and 60 more: a fifth.
        let found = found(&ratio(1.2, 0.005), &rounds(3), &rounds(63));
        let carrier = found.carrier.clone().unwrap();
        // All of `check_token` is in `hash`.
        assert_eq!(
            (carrier.function.name.as_str(), found.caller.as_ref().unwrap().name.as_str()),
            ("hash", "check_token")
        );
        assert!((carrier.change.change() - 0.2).abs() < 0.02, "{carrier:?}");
        let [first, ..] = &found.parts[..] else { panic!("{found:?}") };
        assert_eq!((first.function.name.as_str(), first.change.has_grown()), ("hash", true));
        let sum: f64 = found.parts.iter().map(|part| part.change.change()).sum();
        assert!((sum - 0.2).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn the_inner_one_of_two_is_named_although_some_stacks_are_cut() {
        let whole =
            |check| profile(&[(&["run", "tell", "check"], check), (&["run", "check"], 8), (&["run"], 200)]);
        let rounds = |check| (0..4).map(|_| whole(check)).collect::<Vec<_>>();
        let found = found(&ratio(1.4, 0.005), &rounds(0), &rounds(100));
        let names = (found.carrier.unwrap().function.name, found.caller.unwrap().name);
        assert_eq!(names, ("check".to_owned(), "tell".to_owned()));
    }

    #[test]
    fn a_function_that_got_faster_is_named_too() {
        let found = found(&ratio(1.0 / 1.2, 0.005), &rounds(63), &rounds(3));
        assert_eq!(found.carrier.map(|carrier| carrier.function.name).as_deref(), Some("hash"));
    }

    #[test]
    fn nothing_is_named_where_the_whole_may_not_have_changed() {
        assert_eq!(found(&ratio(1.02, 0.02), &rounds(3), &rounds(9)).carrier, None);
        assert_eq!(found(&ratio(1.0, 0.005), &rounds(3), &rounds(3)).carrier, None);
    }

    #[test]
    fn one_that_certainly_differs_is_named_although_the_whole_may_not() {
        let [plain, slow] = [rounds(3), rounds(63)];
        for (first, second, grown) in [(&plain, &slow, true), (&slow, &plain, false)] {
            // The whole takes between 0.7 and 1.6 times as much.
            let arms = [first, second].map(|arm| arm.iter().collect::<Vec<_>>());
            let named = of_open(&ratio(1.05, 0.12), [&arms[0], &arms[1]], 0.01).unwrap();
            let carrier = named.carrier.unwrap();
            assert_eq!((carrier.function.name.as_str(), carrier.change.has_grown()), ("hash", grown));
        }
        let arm: Vec<&Profile> = plain.iter().collect();
        assert_eq!(of_open(&ratio(1.05, 0.12), [&arm, &arm], 0.01), None);
    }

    #[test]
    fn what_is_slower_everywhere_is_carried_by_no_function() {
        // The same shares, and a slower machine.
        let found = found(&ratio(1.3, 0.005), &rounds(30), &rounds(30));
        assert_eq!(found.carrier, None);
        let sum: f64 = found.parts.iter().map(|part| part.change.change()).sum();
        assert!((sum - 0.3).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn functions_of_two_builds_have_one_name() {
        let table = [
            (Kind::User, "check_token.constprop.0", "check_token", None),
            (Kind::User, "main.(*Server).Serve", "main.(*Server).Serve", None),
            (Kind::User, "main.coldStart", "main.coldStart", None),
            (Kind::User, "parse.isra.0.cold", "parse", None),
            (Kind::Runtime, "JS:*check /tmp/a/srv.js:3:19", "check srv.js", Some("srv.js:3")),
            (Kind::Runtime, "JS:~ /tmp/b/srv.js:4:19", "(anonymous) srv.js", Some("srv.js:4")),
            (Kind::Runtime, "JS:^emit node:events:471:44", "emit node:events", Some("node:events:471")),
            (Kind::Runtime, "py::check:/tmp/a/app.py", "check app.py", None),
            (Kind::Runtime, "int app.Server.check(java.lang.String, int)", "app.Server.check", None),
            (Kind::Runtime, "Interpreter", "Interpreter", None),
            (Kind::Runtime, "$srv:check/2", "srv:check/2", None),
        ];
        for (kind, name, known, place) in table {
            let (name, module) = (name.to_owned(), "/srv".to_owned());
            let frame = Frame { name, module, kind, inlined: false, file: None, line: None };
            assert_eq!(Function::of(&frame).name, known);
            assert_eq!(made(&frame.name).1.as_deref().filter(|_| kind == Kind::Runtime), place);
        }
    }

    #[test]
    fn what_has_no_name_is_known_by_its_module() {
        for (name, module, shown) in [
            ("read", "/lib/libc.so.6", "read"),
            ("[unknown]", "/lib/libc.so.6", "[libc.so.6]"),
            ("[unknown]", "[vdso]", "[vdso]"),
            ("[ended]", "", "[ended]"),
        ] {
            let (name, module) = (name.to_owned(), module.to_owned());
            let frame = Frame { name, module, kind: Kind::Unknown, inlined: false, file: None, line: None };
            assert_eq!(Function::of(&frame).name, shown);
        }
    }

    #[test]
    fn the_kernels_time_is_that_of_its_system_call() {
        let slow = |reads| {
            let one =
                |_| profile(&[(&["main", "read", "__x64_sys_recvfrom"], reads), (&["main", "work"], 200)]);
            (0..4).map(one).collect::<Vec<_>>()
        };
        let found = found(&ratio(1.33, 0.005), &slow(100), &slow(200));
        let [first, ..] = &found.parts[..] else { panic!("{found:?}") };
        assert_eq!(first.function, Function { name: "recvfrom".to_owned(), kernel: true });
        assert!(first.change.has_grown());
        assert_eq!(found.carrier.map(|carrier| carrier.function.name).as_deref(), Some("read"));
    }
}
