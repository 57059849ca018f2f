//! The differential flame graph of two arms: its words, and what its boxes look like.
//!
//! The colour of a box is by how much its path takes more or less in the arm that is drawn, relative to the
//! whole difference of the arms, because the question is where this difference is. So the colour of the root
//! leads to the functions that carry it. Arms that hardly differ would have full colours everywhere, by
//! chance; so the full colour means at least 5 % of the whole.

use std::collections::BTreeMap;

use super::super::figure::Figure;
use crate::flame::{Arm, DEEPEST, Node, Tree};
use crate::number::{percent, seconds, signed_seconds};
use crate::printable;
use crate::svg::{Block, Drawing, Flame};

/// The full colour stands for at least this share of the whole.
const LEAST_FULL: f64 = 0.05;

/// A share of a smaller difference would say nothing.
const LEAST_DIFFERENCE: f64 = 0.001;

/// Times that differ by less than this share are the same.
const ROUNDING: f64 = 1e-9;

/// So many paths that only the other arm has are named.
const NAMED: usize = 5;

/// The most characters of a name in a tooltip, and in the text below.
const LONGEST: usize = 256;
const IN_TEXT: usize = 80;

/// A figure for the page: where the arm that takes more CPU time for a unit of work spends it, compared with
/// the other arm. `id` is unique on its page; `unit` is the word for a unit of work, such as `request`.
///
/// It is an SVG drawing for wide screens and one for narrow screens, with its caption and the data of its
/// larger boxes as a table.
pub fn flame_graph(id: &str, unit: &str, arms: [Arm<'_>; 2]) -> String {
    let mut out = String::new();
    figure(unit, arms).write(&mut out, id);
    out
}

pub(in crate::html) fn figure(unit: &str, arms: [Arm<'_>; 2]) -> Figure {
    let tree = Tree::of(arms);
    let words = Words { tree: &tree, unit, names: tree.arms.map(|arm| short(arm.name, IN_TEXT)) };
    let [drawn, other] = &words.names;
    let laid_out: Vec<(&Node, [f64; 2])> =
        tree.laid_out().into_iter().filter_map(|(at, edges)| Some((tree.nodes.get(at)?, edges))).collect();
    let boxes: Vec<(usize, [f64; 2])> = laid_out.iter().map(|(node, edges)| (node.depth, *edges)).collect();
    let widest = Flame::widest(&boxes).into_iter().filter_map(|at| laid_out.get(at));
    let columns = ["level", "function", "module"].map(str::to_owned).into_iter();
    let columns = columns.chain([drawn.clone(), other.clone(), "change".to_owned()]);
    let columns = columns.chain([format!("share of {drawn}"), "share of the difference".to_owned()]);
    Figure {
        title: words.title(),
        about: words.about(),
        legend: Vec::new(),
        drawing: Drawing::Flame(Flame {
            columns: columns.collect(),
            blocks: widest.map(|(node, edges)| words.block(node, *edges)).collect(),
            dark: "kernel",
        }),
        main: true,
    }
}

struct Words<'a> {
    tree: &'a Tree<'a>,
    unit: &'a str,
    /// The names of the arm that is drawn and of the other one.
    names: [String; 2],
}

impl Words<'_> {
    fn title(&self) -> String {
        let ([drawn, other], unit, tree) = (&self.names, self.unit, self.tree);
        let whole = seconds(tree.arms[0].cpu_s);
        let more = match tree.difference() {
            0.0 => format!("as much as {other}"),
            more => format!("{} more than {other}", seconds(more)),
        };
        format!("Where {drawn} spends its CPU time: {whole} for each {unit}, {more}")
    }

    fn about(&self) -> String {
        let ([drawn, other], unit, tree) = (&self.names, self.unit, self.tree);
        let [has_samples, compares] = tree.totals().map(|total| total > 0);
        if !has_samples {
            return format!("There are no samples of {drawn}, so its functions are not known.");
        }
        let mut said = format!(
            "Each box is a function under its caller. It is as wide as the CPU time of {drawn} for each \
             {unit} that the function takes with all that it calls."
        );
        said += &match compares {
            true => format!(
                " A red box takes more than on the same path in {other}, and a blue box takes less; the full \
                 colour is {} or more.",
                seconds(self.full())
            ),
            false => format!(" There are no samples of {other}, so nothing is compared."),
        };
        said += " Functions of the kernel are darker. Boxes that would be too narrow to see are left out.";
        if tree.deeper > 0 {
            let share = percent(tree.deeper as f64 / tree.totals()[0] as f64);
            said += &format!(" {share} of the time is in calls below the {DEEPEST} levels.");
        }
        said + &self.only_other()
    }

    /// The functions on paths that only the other arm has, with the longest first.
    fn only_other(&self) -> String {
        let mut functions: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        for node in self.tree.only_other() {
            functions.entry(&node.name).or_default().push(node);
        }
        let time = |paths: &[&Node]| paths.iter().map(|node| self.tree.seconds(node)[1]).sum::<f64>();
        let mut functions: Vec<(f64, Vec<&Node>)> =
            functions.into_values().map(|paths| (time(&paths), paths)).collect();
        functions.sort_by(|a, b| b.0.total_cmp(&a.0));
        let largest = if functions.len() > NAMED { ", the largest" } else { "" };
        let named: Vec<String> =
            functions.iter().take(NAMED).map(|(time, paths)| self.only(*time, paths)).collect();
        if named.is_empty() {
            return String::new();
        }
        format!(" On paths that only {} has{largest}: {}.", self.names[1], named.join("; "))
    }

    /// A function with its time in the other arm, by its caller if there is one.
    fn only(&self, time: f64, paths: &[&Node]) -> String {
        let [node, rest @ ..] = paths else { return String::new() };
        let caller =
            node.parent.and_then(|parent| self.tree.nodes.get(parent)).filter(|caller| caller.depth > 0);
        let below = match caller {
            _ if !rest.is_empty() => format!(" on {} paths", paths.len()),
            Some(caller) => format!(" under {}", short(&caller.name, IN_TEXT)),
            None => String::new(),
        };
        format!("{}{below} ({})", short(&node.name, IN_TEXT), seconds(time))
    }

    /// The change that has the full colour, in seconds.
    fn full(&self) -> f64 {
        self.tree.difference().max(LEAST_FULL * self.tree.arms[0].cpu_s)
    }

    /// By how much a path takes more in the arm that is drawn, in seconds. Rounding errors are no change.
    fn change(&self, node: &Node) -> f64 {
        let [here, there] = self.tree.seconds(node);
        let change = here - there;
        if change.abs() < ROUNDING * here.max(there) { 0.0 } else { change }
    }

    fn block(&self, node: &Node, edges: [f64; 2]) -> Block {
        let change = self.change(node);
        let compares = self.tree.totals()[1] > 0;
        let part = change / self.full();
        let cells = self.cells(node, edges[1] - edges[0]);
        let name =
            if node.depth == 0 { format!("all of {}", self.names[0]) } else { short(&node.name, LONGEST) };
        Block {
            depth: node.depth,
            edges,
            change: (compares && part.is_finite()).then(|| part.clamp(-1.0, 1.0)),
            dark: node.kernel,
            note: if compares { signed_seconds(change) } else { String::new() },
            tip: self.tip(&name, &cells),
            cells: [node.depth.to_string(), name.clone()].into_iter().chain(cells).collect(),
            name,
        }
    }

    /// What is known of a path: its module, its time in both arms, the change, its share of the whole and of
    /// the difference.
    fn cells(&self, node: &Node, share: f64) -> [String; 6] {
        let none = || "-".to_owned();
        let [here, there] = self.tree.seconds(node);
        let (change, difference) = (self.change(node), self.tree.difference());
        let compares = self.tree.totals()[1] > 0;
        let has_share = compares && difference > LEAST_DIFFERENCE * self.tree.arms[0].cpu_s;
        [
            if node.module.is_empty() { none() } else { short(&node.module, IN_TEXT) },
            seconds(here),
            if compares { seconds(there) } else { none() },
            if compares { signed_seconds(change) } else { none() },
            percent(share),
            if has_share { percent(change / difference) } else { none() },
        ]
    }

    fn tip(&self, name: &str, [module, here, there, change, share, of_difference]: &[String; 6]) -> String {
        let ([drawn, other], unit) = (&self.names, self.unit);
        let mut tip = name.to_owned();
        if module != "-" {
            tip += &format!("\n{module}");
        }
        tip += &format!("\n{here} for each {unit}, {share} of {drawn}");
        if change != "-" {
            tip += &format!("\n{there} in {other}: {change}");
        }
        if of_difference != "-" {
            tip += &format!(", {of_difference} of the difference");
        }
        tip
    }
}

/// A name in one line of at most this many characters.
fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return printable(name);
    }
    let kept: String = name.chars().take(most.saturating_sub(1)).collect();
    printable(&kept) + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use profile::Profile;
    use proptest::prelude::*;

    use super::*;
    use crate::flame::tests::stacks;
    use crate::made_up::profile;
    use crate::svg::tests::assert_well_formed;

    /// Names with what markup gives a meaning, and with characters that are not shown.
    const HOSTILE: &str = "[<>&\"'`\\]a-z\0-\x20\u{7f}-\u{9f}\u{202a}-\u{202e}\u{fffe}\u{ffff}]{0,300}";

    fn arms<'a>(profiles: [&'a Profile; 2], cpu_s: [f64; 2]) -> [Arm<'a>; 2] {
        let arm =
            |which: usize| Arm { name: ["old", "new"][which], cpu_s: cpu_s[which], profile: profiles[which] };
        [arm(0), arm(1)]
    }

    /// A server whose new version hashes longer and has another parser.
    fn served() -> [Profile; 2] {
        [
            profile(&[
                (vec!["main", "handle", "hash"], 10),
                (vec!["main", "handle", "parse_lines"], 14),
                (vec!["main", "handle", "trim"], 1),
                (vec!["main", "handle", "hash", "trim"], 5),
                (vec!["main", "read", "sys_read"], 70),
            ]),
            profile(&[
                (vec!["main", "handle", "hash"], 40),
                (vec!["main", "handle", "parse"], 10),
                (vec!["main", "read", "sys_read"], 70),
            ]),
        ]
    }

    /// The tooltips of the boxes in the drawing for wide screens.
    fn tips(html: &str) -> Vec<&str> {
        let boxes = html.split("</svg>").next().unwrap_or_default().split("<rect class=\"box").skip(1);
        boxes.filter_map(|rest| rest.split("<title>").nth(1)?.split("</title>").next()).collect()
    }

    #[test]
    fn the_figure_says_where_the_difference_is() {
        let [old, new] = served();
        let html = flame_graph("f1", "request", arms([&old, &new], [100e-6, 120e-6]));
        assert_well_formed(&html);
        assert!(html.contains(
            "<figcaption>Where new spends its CPU time: 120 us for each request, 20.0 us more than old<"
        ));
        let expected = [
            ("all of new", "120 us", "100 %", "100 us in old: +20.0 us, 100 %"),
            ("main\nserver", "120 us", "100 %", "100 us in old: +20.0 us, 100 %"),
            ("read\nserver", "70.0 us", "58 %", "70.0 us in old: 0 ns, 0 %"),
            ("sys_read\n[kernel]", "70.0 us", "58 %", "70.0 us in old: 0 ns, 0 %"),
            ("handle\nserver", "50.0 us", "42 %", "30.0 us in old: +20.0 us, 100 %"),
            ("hash\nserver", "40.0 us", "33 %", "15.0 us in old: +25.0 us, 125 %"),
            ("parse\nserver", "10.0 us", "8.3 %", "0 ns in old: +10.0 us, 50 %"),
        ];
        let expected = expected.map(|(name, time, share, change)| {
            format!("{name}\n{time} for each request, {share} of new\n{change} of the difference")
        });
        assert_eq!(tips(&html), expected);
        assert!(
            html.contains(
                " On paths that only old has: parse_lines under handle (14.0 us); trim on 2 paths (6.00 us)."
            ),
            "{html}"
        );
        assert!(html.contains("the full colour is 20.0 us or more. Functions of the kernel"), "{html}");
        let row = ["3", "hash", "server", "40.0 us", "15.0 us", "+25.0 us", "33 %", "125 %"];
        let row: Vec<String> = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        assert!(html.contains(&row.concat()), "{html}");
    }

    #[test]
    fn what_is_red_in_one_arm_is_blue_in_the_other() {
        let [old, new] = served();
        let changes = |profiles, cpu_s| {
            let Drawing::Flame(flame) = figure("request", arms(profiles, cpu_s)).drawing else {
                unreachable!()
            };
            let named =
                flame.blocks.into_iter().map(|b| (b.name, b.change.map(|change| (change * 100.0).round())));
            named.collect::<BTreeMap<_, _>>()
        };
        let red = changes([&old, &new], [100e-6, 120e-6]);
        assert_eq!([red["hash"], red["sys_read"]], [Some(100.0), Some(0.0)]);
        // As if the old version were the slower one: each sample of it is longer.
        let blue = changes([&old, &new], [150e-6, 120e-6]);
        assert_eq!([blue["hash"], blue["parse_lines"]], [Some(-58.0), Some(70.0)]);
        // Equal arms have no full colours from small changes.
        let equal = changes([&old, &old], [100e-6, 101e-6]);
        assert_eq!([equal["hash"], equal["all of new"]], [Some(3.0), Some(20.0)]);
    }

    #[test]
    fn an_arm_without_samples_is_told() {
        let ([old, _], nothing) = (served(), Profile::default());
        let about = |profiles| figure("request", arms(profiles, [1e-6, 2e-6])).about;
        assert_eq!(about([&old, &nothing]), "There are no samples of new, so its functions are not known.");
        assert!(about([&nothing, &old]).contains(" There are no samples of old, so nothing is compared."));
        let html = flame_graph("f1", "request", arms([&nothing, &old], [1e-6, 2e-6]));
        assert_eq!(tips(&html)[1], "main\nserver\n2.00 us for each request, 100 % of new");
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }

    #[test]
    fn the_five_largest_paths_of_the_other_arm_are_named() {
        let [_, new] = served();
        let gone = |i: u64| (vec![format!("gone{i}")], 10 * i);
        let old = profile(&(1..=6).map(gone).collect::<Vec<_>>());
        let about = figure("request", arms([&old, &new], [21e-6, 30e-6])).about;
        let named = "gone6 (6.00 us); gone5 (5.00 us); gone4 (4.00 us); gone3 (3.00 us); gone2 (2.00 us).";
        assert!(about.ends_with(&format!(" On paths that only old has, the largest: {named}")), "{about}");
    }

    #[test]
    fn a_large_profile_gives_a_small_picture() {
        // Each path could be seen, at each of its levels, and one is large.
        let path = |i: u64| (0..70).map(|level| format!("f{level}_{i}")).collect();
        let stacks: Vec<(Vec<String>, u64)> =
            (0..1000).map(|i| (path(i), if i == 0 { 30_000 } else { 100 + i % 7 })).collect();
        let large = profile(&stacks);
        let html = flame_graph("f1", "request", arms([&large, &large], [1e-6, 2e-6]));
        assert_eq!(tips(&html).len(), 1500);
        assert!(html.contains("100 % of the time is in calls below the 60 levels."), "{}", &html[..2000]);
        assert!(html.contains("viewBox=\"0 0 720 1000\""), "{}", &html[..2000]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_names_give_well_formed_markup(
            names in prop::collection::vec(HOSTILE, 1..6),
            unit in "[<>&\"'a]{0,9}",
        ) {
            let profile = profile(&[(names.clone(), 3), (names[..1].to_vec(), 2)]);
            let other = Profile::default();
            let mut arms = arms([&other, &profile], [1e-6, 2e-6]);
            arms[0].name = &names[0];
            assert_well_formed(&flame_graph("f1", &unit, arms));
        }

        #[test]
        fn boxes_are_within_their_callers(first in stacks(), second in stacks()) {
            let (first, second) = (profile(&first), profile(&second));
            let html = flame_graph("f1", "request", arms([&first, &second], [1e-6, 2e-6]));
            assert_well_formed(&html);
            for svg in html.split("</svg>").take(2) {
                let mut callers: Vec<[f64; 3]> = Vec::new();
                for rest in svg.split("<rect class=\"box").skip(1) {
                    let number = |name: &str| {
                        let value = rest.split(&format!(" {name}=\"")).nth(1);
                        let value = value.and_then(|rest| rest.split('"').next()?.parse::<f64>().ok());
                        value.expect(name)
                    };
                    let (x, y, width) = (number("x"), number("y"), number("width"));
                    while callers.last().is_some_and(|caller| caller[0] >= y) {
                        callers.pop();
                    }
                    if let Some([_, left, right]) = callers.last() {
                        prop_assert!(x >= left - 1e-6 && x + width <= right + 1e-6, "{}", rest);
                    }
                    callers.push([y, x, x + width]);
                }
            }
        }
    }
}
