//! The CPU time of two arms by path, for a differential flame graph. Pure.
//!
//! A path is a function with all its callers. Its samples are those in which the function ran or had called
//! what ran, in the order of this path. The share of an arm's samples is the share of the arm's CPU time for
//! a unit of work, which was measured without the profiler.
//!
//! The tree is of the arm that takes more CPU time. A function is the same in both arms if it has the same
//! name, as in `lab::findings::functions`: the modules of two builds have different paths. Lines of a
//! function are one function.

use std::cmp::Reverse;
use std::collections::HashMap;

use lab::findings::functions::Function;
use profile::{Frame, Kind, Profile};

/// Calls deeper than this are counted in the function at this depth.
pub(crate) const DEEPEST: usize = 60;

/// One side of the comparison.
#[derive(Debug, Clone, Copy)]
pub struct Arm<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its CPU time for a unit of work, in seconds, as it was measured. What is not a positive number counts
    /// as 0.
    pub cpu_s: f64,
    /// Where its CPU time went in all rounds. Damaged stacks lose the frames that do not exist.
    pub profile: &'a Profile,
}

/// A function under its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// The function's name; of what has none, its module in brackets.
    pub(crate) name: String,
    /// The file of its module, or its word in brackets.
    pub(crate) module: String,
    pub(crate) kernel: bool,
    /// The position of its caller in the tree. None for the root.
    pub(crate) parent: Option<usize>,
    /// The number of its callers.
    pub(crate) depth: usize,
    /// Its samples with all that it calls, in the arm that is drawn and in the other one.
    pub(crate) samples: [u128; 2],
    /// The functions that it calls, as positions in the tree. Those that take most in the arm that is drawn
    /// come first.
    children: Vec<usize>,
}

/// All paths of both arms.
#[derive(Debug, Clone)]
pub(crate) struct Tree<'a> {
    /// The arm that is drawn, which takes more CPU time, and the other one.
    pub(crate) arms: [Arm<'a>; 2],
    /// The root, which stands for all of an arm, and then its paths. Callers come before what they call.
    pub(crate) nodes: Vec<Node>,
    /// The samples of the arm that is drawn in deeper calls than [`DEEPEST`].
    pub(crate) deeper: u128,
}

impl<'a> Tree<'a> {
    pub(crate) fn of(arms: [Arm<'a>; 2]) -> Self {
        let [first, second] = arms
            .map(|arm| Arm { cpu_s: if arm.cpu_s.is_finite() { arm.cpu_s.max(0.0) } else { 0.0 }, ..arm });
        let arms = if first.cpu_s > second.cpu_s { [first, second] } else { [second, first] };
        let mut tree = Self { arms, nodes: vec![node(String::new(), None)], deeper: 0 };
        let mut known = HashMap::new();
        for (which, arm) in arms.iter().enumerate() {
            for stack in &arm.profile.stacks {
                let frames = arm.profile.frames_of(stack);
                tree.add(&mut known, which, frames, stack.count.into());
            }
        }
        tree.sort();
        tree
    }

    /// Adds the samples of a stack, from its root to its leaf.
    fn add<'p>(
        &mut self,
        known: &mut HashMap<(usize, Function, bool), usize>,
        which: usize,
        frames: impl Iterator<Item = &'p Frame>,
        count: u128,
    ) {
        let mut at = 0;
        self.count(at, which, count);
        for (depth, frame) in (1..).zip(frames) {
            if depth > DEEPEST {
                self.deeper += if which == 0 { count } else { 0 };
                return;
            }
            let (function, kernel) = (Function::of(frame), frame.kind == Kind::Kernel);
            let next = self.nodes.len();
            at = *known.entry((at, function, kernel)).or_insert_with_key(|(caller, function, _)| {
                let module = frame.module.rsplit('/').next().unwrap_or_default().to_owned();
                let parent = Some(*caller);
                self.nodes.push(Node { module, kernel, depth, ..node(function.name.clone(), parent) });
                next
            });
            self.count(at, which, count);
        }
    }

    fn count(&mut self, at: usize, which: usize, count: u128) {
        if let Some(samples) = self.nodes.get_mut(at).and_then(|node| node.samples.get_mut(which)) {
            *samples += count;
        }
    }

    /// Gives each node its children in their order.
    fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_cached_key(|at| {
            self.nodes.get(*at).map(|node| (Reverse(node.samples), node.name.clone(), node.kernel))
        });
        for at in order {
            let parent = self.nodes.get(at).and_then(|node| node.parent);
            if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)) {
                parent.children.push(at);
            }
        }
    }

    /// All samples of each arm.
    pub(crate) fn totals(&self) -> [u128; 2] {
        self.nodes.first().map_or([0; 2], |root| root.samples)
    }

    /// The CPU time of a path for a unit of work in each arm, in seconds. 0 in an arm without samples.
    pub(crate) fn seconds(&self, node: &Node) -> [f64; 2] {
        let of = |samples: u128, total: u128, arm: &Arm| {
            if total == 0 { 0.0 } else { samples as f64 / total as f64 * arm.cpu_s }
        };
        let ([drawn, other], totals, arms) = (node.samples, self.totals(), &self.arms);
        [of(drawn, totals[0], &arms[0]), of(other, totals[1], &arms[1])]
    }

    /// By how much the arm that is drawn takes more for a unit of work, in seconds.
    pub(crate) fn difference(&self) -> f64 {
        self.arms[0].cpu_s - self.arms[1].cpu_s
    }

    /// The nodes of the arm that is drawn, each directly before those that it calls, with their first and
    /// their last position from 0 to 1. A node without samples in this arm is left out, except the root.
    pub(crate) fn laid_out(&self) -> Vec<(usize, [f64; 2])> {
        let total = self.totals()[0] as f64;
        let mut waiting = vec![(0, 0_u128)];
        let mut out = Vec::new();
        while let Some((at, from)) = waiting.pop() {
            let Some(node) = self.nodes.get(at) else { continue };
            if at == 0 {
                out.push((at, [0.0, 1.0]));
            } else if node.samples[0] > 0 {
                // One division for each edge: those that are the same number of samples are the same place.
                out.push((at, [from as f64 / total, (from + node.samples[0]) as f64 / total]));
            } else {
                continue;
            }
            let mut next = from;
            let placed = waiting.len();
            for child in &node.children {
                waiting.push((*child, next));
                next += self.nodes.get(*child).map_or(0, |child| child.samples[0]);
            }
            if let Some(placed) = waiting.get_mut(placed..) {
                placed.reverse();
            }
        }
        out
    }

    /// The paths that only the other arm has, without those below them, with the longest first.
    pub(crate) fn only_other(&self) -> Vec<&Node> {
        let has = |at: usize| self.nodes.get(at).is_some_and(|node| at == 0 || node.samples[0] > 0);
        let is_first = |node: &&Node| node.samples[0] == 0 && node.parent.is_some_and(has);
        let mut only: Vec<&Node> = self.nodes.iter().filter(is_first).collect();
        only.sort_by_key(|node| (Reverse(node.samples[1]), &node.name));
        only
    }
}

fn node(name: String, parent: Option<usize>) -> Node {
    Node {
        name,
        module: String::new(),
        kernel: false,
        parent,
        depth: 0,
        samples: [0; 2],
        children: Vec::new(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::made_up::profile;

    /// Stacks of few functions, some of the kernel, that call themselves and each other.
    pub(crate) fn stacks() -> impl Strategy<Value = Vec<(Vec<String>, u64)>> {
        let names = prop::collection::vec("[a-d]|sys_[ab]", 0..8);
        prop::collection::vec((names, prop_oneof![1_u64..100, Just(u64::MAX)]), 0..40)
    }

    /// The paths with their samples in the arm that is drawn and in the other one.
    fn paths(tree: &Tree) -> Vec<(String, [u128; 2])> {
        let mut paths: Vec<String> = Vec::new();
        for node in &tree.nodes {
            let caller = node.parent.map(|parent| format!("{}/", paths[parent]));
            paths.push(caller.unwrap_or_default() + &node.name);
        }
        paths.into_iter().zip(tree.nodes.iter().map(|node| node.samples)).collect()
    }

    #[test]
    fn the_arm_that_takes_more_is_drawn_and_its_paths_are_compared() {
        let slow = profile(&[
            (vec!["main", "walk", "walk"], 6),
            (vec!["main", "walk", "walk"], 1),
            (vec!["main", "read", "sys_read"], 3),
        ]);
        let fast =
            profile(&[(vec!["main", "walk"], 1), (vec!["main", "old", "older"], 1), (vec!["start"], 2)]);
        let [slow, fast] = [("slow", 5e-6, &slow), ("fast", 4e-6, &fast)].map(|(name, cpu_s, profile)| Arm {
            name,
            cpu_s,
            profile,
        });
        for arms in [[slow, fast], [fast, slow]] {
            let tree = Tree::of(arms);
            assert_eq!(tree.arms.map(|arm| arm.name), ["slow", "fast"]);
            let expected = [
                ("", [10, 4]),
                ("/main", [10, 2]),
                ("/main/walk", [7, 1]),
                ("/main/walk/walk", [7, 0]),
                ("/main/read", [3, 0]),
                ("/main/read/sys_read", [3, 0]),
                ("/main/old", [0, 1]),
                ("/main/old/older", [0, 1]),
                ("/start", [0, 2]),
            ];
            assert_eq!(paths(&tree), expected.map(|(path, samples)| (path.to_owned(), samples)));
            let seconds = tree.seconds(&tree.nodes[2]).map(|s| (s * 1e9).round());
            assert_eq!(seconds, [3500.0, 1000.0]);
            let laid_out = tree.laid_out();
            let places: Vec<_> =
                laid_out.iter().map(|(at, edges)| (tree.nodes[*at].name.as_str(), *edges)).collect();
            let expected = [
                ("", [0.0, 1.0]),
                ("main", [0.0, 1.0]),
                ("walk", [0.0, 0.7]),
                ("walk", [0.0, 0.7]),
                ("read", [0.7, 1.0]),
                ("sys_read", [0.7, 1.0]),
            ];
            assert_eq!(places, expected);
            let only: Vec<&str> = tree.only_other().iter().map(|node| node.name.as_str()).collect();
            assert_eq!(only, ["start", "old"]);
            let kernel = tree.nodes.iter().filter(|node| node.kernel);
            assert_eq!(kernel.map(|node| node.module.as_str()).collect::<Vec<_>>(), ["[kernel]"]);
        }
    }

    #[test]
    fn functions_of_two_builds_are_the_same_functions() {
        let old = profile(&[(vec!["main", "f"], 1)]);
        let mut new = old.clone();
        new.frames.iter_mut().for_each(|frame| frame.module = "/srv/new/server-2".to_owned());
        let arm = |profile| Arm { name: "", cpu_s: 1.0, profile };
        assert!(Tree::of([arm(&old), arm(&new)]).nodes.iter().all(|node| node.samples == [1, 1]));
    }

    #[test]
    fn damaged_profiles_are_drawn_as_far_as_possible() {
        let mut damaged = profile(&[(vec!["main"; 1000], u64::MAX), (vec!["main", "f"], u64::MAX)]);
        damaged.stacks[1].frames.push(u32::MAX);
        damaged.samples = 3;
        for cpu_s in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            let arm = Arm { name: "damaged", cpu_s, profile: &damaged };
            let tree = Tree::of([arm, arm]);
            assert_eq!(tree.nodes.len(), 1 + DEEPEST + 1);
            assert_eq!((tree.totals(), tree.deeper), ([2 * u128::from(u64::MAX); 2], u64::MAX.into()));
            assert!(tree.nodes.iter().all(|node| tree.seconds(node) == [0.0; 2]));
        }
        let nothing = Profile::default();
        let tree = Tree::of([&nothing, &damaged].map(|profile| Arm { name: "", cpu_s: 1.0, profile }));
        assert_eq!(tree.seconds(&tree.nodes[0]), [1.0, 0.0]);
    }

    proptest! {
        #[test]
        fn no_box_is_wider_than_its_caller(stacks in stacks(), others in stacks()) {
            let (profile, other) = (profile(&stacks), profile(&others));
            let arm = |(cpu_s, profile)| Arm { name: "", cpu_s, profile };
            let tree = Tree::of([(2.0, &profile), (1.0, &other)].map(arm));
            let whole = |stacks: &[(Vec<String>, u64)]| -> u128 {
                stacks.iter().map(|(_, count)| u128::from(*count)).sum()
            };
            prop_assert_eq!(tree.totals(), [whole(&stacks), whole(&others)]);
            // What a function does itself is what its callees leave over.
            let mut own: Vec<[u128; 2]> = tree.nodes.iter().map(|node| node.samples).collect();
            for node in &tree.nodes {
                for which in [0, 1] {
                    if let Some(parent) = node.parent {
                        let left = own[parent][which].checked_sub(node.samples[which]);
                        own[parent][which] = left.expect("callees take no more than their caller");
                    }
                }
            }
            let [sum, _] = own.iter().fold([0, 0], |sum, own| [sum[0] + own[0], sum[1] + own[1]]);
            prop_assert_eq!(sum, whole(&stacks));
            let mut callers: Vec<[f64; 2]> = Vec::new();
            for (at, edges) in tree.laid_out() {
                let depth = tree.nodes[at].depth;
                callers.truncate(depth);
                let caller = callers.last().copied().unwrap_or([0.0, 1.0]);
                prop_assert!(caller[0] <= edges[0] && edges[0] <= edges[1] && edges[1] <= caller[1]);
                // The next function that this caller calls begins where this one ends.
                if let Some(caller) = callers.last_mut() {
                    caller[0] = edges[1];
                }
                callers.push(edges);
            }
        }
    }
}
