//! A flame graph with its root on top: boxes under their callers, coloured by how much more or less they are
//! than in another graph.
//!
//! The root is on top because a page is read from its top, and stays in place when the graph has more levels.
//! Box widths and colours are the caller's; this module knows pixels. A sign before a name repeats the colour
//! for those who do not see it, and for paper. The page's script finds boxes and enlarges them; its numbers
//! for labels are those of this module.

use super::canvas::{Anchor, Canvas};
use super::{Data, Width};

/// The narrowest box that is drawn.
const NARROWEST: f64 = 0.5;

/// The most boxes of a drawing.
const MOST: usize = 1500;

/// The height of a level, and that of the key above all levels.
const LEVEL: f64 = 16.0;
const KEY: f64 = 24.0;

/// The width of a column of a box's font, and the room that a label leaves free in its box.
const COLUMN: f64 = 6.7;
const PADDING: f64 = 6.0;

/// A label has at least this many columns.
const SHORTEST: usize = 5;

/// Narrower boxes have no edge, which would cover them.
const WITH_EDGE: f64 = 3.0;

/// From this share of the full colour on, a label has a sign.
const TELLING: f64 = 0.1;

/// The table has boxes of at least this share of the whole.
const IN_TABLE: f64 = 0.01;

/// The colours of what is less, alike and more. Black text can be read on all of them, and on their darker
/// shades.
const LESS: [f64; 3] = [96.0, 150.0, 226.0];
const ALIKE: [f64; 3] = [232.0, 231.0, 226.0];
const MORE: [f64; 3] = [236.0, 118.0, 96.0];

/// What is left of the colour in a darker shade.
const DARKER: f64 = 0.86;

/// A box of the graph.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    /// Its level, from 0.
    pub(crate) depth: usize,
    /// The places of its left and right edge, from 0 to 1. They are within those of its caller.
    pub(crate) edges: [f64; 2],
    /// From -1 (less) to 1 (more). None if there is nothing to compare it with.
    pub(crate) change: Option<f64>,
    /// Whether it is a darker shade of its colour, with a label in italics.
    pub(crate) dark: bool,
    pub(crate) name: String,
    /// What follows the name if there is room.
    pub(crate) note: String,
    /// Its tooltip. The first line is its name.
    pub(crate) tip: String,
    /// Its row in the table of the data.
    pub(crate) cells: Vec<String>,
}

impl Block {
    fn width(&self) -> f64 {
        self.edges[1] - self.edges[0]
    }
}

/// A graph of boxes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flame {
    /// The columns of the table of the data.
    pub(crate) columns: Vec<String>,
    /// Each box directly before those that it calls.
    pub(crate) blocks: Vec<Block>,
    /// What darker shades mean.
    pub(crate) dark: &'static str,
}

impl Flame {
    /// Which boxes with these levels and edges are drawn at most: the widest ones. A box is drawn only if its
    /// caller is.
    pub(crate) fn widest(boxes: &[(usize, [f64; 2])]) -> Vec<usize> {
        let width = |at: &usize| boxes.get(*at).map_or(0.0, |(_, [left, right])| right - left);
        let depth = |at: &usize| boxes.get(*at).map_or(0, |(depth, _)| *depth);
        let is_visible = |at: &usize| *at == 0 || width(at) * Width::Wide.units() >= NARROWEST;
        let mut widest: Vec<usize> = (0..boxes.len()).filter(is_visible).collect();
        widest.sort_by(|a, b| width(b).total_cmp(&width(a)).then(depth(a).cmp(&depth(b))));
        widest.truncate(MOST);
        widest.sort_unstable();
        widest
    }

    /// Draws the graph and returns its height.
    pub(super) fn draw(&self, canvas: &mut Canvas, width: Width) -> f64 {
        canvas.open("flame");
        self.key(canvas);
        let mut deepest = 0;
        let is_visible = |block: &&Block| block.depth == 0 || block.width() * width.units() >= NARROWEST;
        for block in self.blocks.iter().filter(is_visible) {
            // Edges are rounded, and not widths, so that no box is wider than its caller.
            let [left, right] = block.edges.map(|edge| (edge * width.units() * 10.0).round() / 10.0);
            let top = KEY + LEVEL * block.depth as f64;
            let wide = right - left;
            let class = match (block.dark, wide < WITH_EDGE) {
                (false, false) => "box",
                (false, true) => "box thin",
                (true, false) => "box dark",
                (true, true) => "box dark thin",
            };
            canvas.rect(class, (left, top), (wide, LEVEL), &fill(block.change, block.dark), &block.tip);
            let label = label(block, wide);
            if !label.is_empty() {
                canvas.text("on-bright", Anchor::Start, (left + PADDING / 2.0, top + 12.0), &label);
            }
            deepest = deepest.max(block.depth);
        }
        canvas.close();
        KEY + LEVEL * (deepest as f64 + 1.0)
    }

    /// The meaning of the colours.
    fn key(&self, canvas: &mut Canvas) {
        let mut left = 0.0;
        for (word, change, dark) in
            [("- less", -1.0, false), ("alike", 0.0, false), ("+ more", 1.0, false), (self.dark, 0.0, true)]
        {
            canvas.rect("sample", (left, 3.0), (16.0, 12.0), &fill(Some(change), dark), "");
            canvas.text("tick", Anchor::Start, (left + 21.0, 13.0), word);
            left += 38.0 + COLUMN * columns(word) as f64;
        }
    }

    /// The largest boxes. All would be as long as the picture itself.
    pub(super) fn data(&self) -> Data {
        let large = self.blocks.iter().filter(|block| block.width() >= IN_TABLE);
        Data { columns: self.columns.clone(), rows: large.map(|block| block.cells.clone()).collect() }
    }
}

/// The label of a box of this width. Empty if there is no room.
fn label(block: &Block, width: f64) -> String {
    let room = ((width - PADDING) / COLUMN).max(0.0) as usize;
    let whole = format!("{} {}", block.name, block.note);
    if columns(&whole) <= room {
        return whole.trim_end().to_owned();
    }
    let sign = match block.change {
        Some(change) if change >= TELLING => "+ ",
        Some(change) if change <= -TELLING => "- ",
        _ => "",
    };
    let room = room.saturating_sub(sign.len());
    if room < SHORTEST { String::new() } else { format!("{sign}{}", cut(&block.name, room)) }
}

/// Cuts a name that does not fit. Where a name has a path, its end tells more than its beginning.
fn cut(name: &str, room: usize) -> String {
    if columns(name) <= room {
        return name.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let fits = |c: &char| {
        let wide = column(*c);
        let fits = wide <= left;
        left = if fits { left - wide } else { 0 };
        fits
    };
    if name.contains("::") || name.contains('/') {
        let kept: Vec<char> = name.chars().rev().take_while(fits).collect();
        return format!("\u{2026}{}", kept.into_iter().rev().collect::<String>());
    }
    let kept: String = name.chars().take_while(fits).collect();
    format!("{kept}\u{2026}")
}

fn columns(text: &str) -> usize {
    text.chars().map(column).sum()
}

/// The columns of a character. Other scripts may be twice as wide as Latin.
fn column(c: char) -> usize {
    if c.is_ascii() || c == '\u{2026}' { 1 } else { 2 }
}

/// The style of a box. The colours are the same in light and dark schemes, as text on them is black.
fn fill(change: Option<f64>, dark: bool) -> String {
    let change = change.unwrap_or(0.0);
    let end = if change < 0.0 { LESS } else { MORE };
    let (part, shade) = (change.abs().min(1.0), if dark { DARKER } else { 1.0 });
    let [r, g, b] = [0, 1, 2].map(|i: usize| ((ALIKE[i] + (end[i] - ALIKE[i]) * part) * shade).round() as u8);
    format!("fill:rgb({r} {g} {b})")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::heat::brightness;
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_cut_where_they_tell_least() {
        for (name, room, shown) in [
            ("tcp_sendmsg", 11, "tcp_sendmsg"),
            ("tcp_sendmsg", 8, "tcp_sen\u{2026}"),
            ("<a::Task as Future>::poll", 10, "\u{2026}re>::poll"),
            ("net/http.serve", 6, "\u{2026}serve"),
            ("\u{8aad}\u{8aad}", 4, "\u{8aad}\u{8aad}"),
            ("\u{8aad}\u{8aad}\u{8aad}", 4, "\u{8aad}\u{2026}"),
        ] {
            assert_eq!(cut(name, room), shown);
        }
    }

    #[test]
    fn a_label_has_the_change_or_its_sign() {
        let block = |change| Block {
            depth: 1,
            edges: [0.0, 1.0],
            change,
            dark: false,
            name: "check_token".to_owned(),
            note: "+8.20 us".to_owned(),
            tip: String::new(),
            cells: Vec::new(),
        };
        for (change, columns, shown) in [
            (Some(1.0), 20.0, "check_token +8.20 us"),
            (Some(1.0), 19.0, "+ check_token"),
            (Some(0.05), 19.0, "check_token"),
            (Some(-0.5), 8.0, "- check\u{2026}"),
            (None, 5.0, "chec\u{2026}"),
            (None, 4.0, ""),
            (Some(1.0), 6.0, ""),
        ] {
            assert_eq!(label(&block(change), PADDING + COLUMN * columns + 0.1), shown);
        }
    }

    #[test]
    fn colours_go_from_blue_to_red() {
        for (change, colour) in [
            (Some(-1.0), "96 150 226"),
            (Some(0.0), "232 231 226"),
            (None, "232 231 226"),
            (Some(0.5), "234 175 161"),
            (Some(7.0), "236 118 96"),
        ] {
            assert_eq!(fill(change, false), format!("fill:rgb({colour})"));
        }
        assert_eq!(fill(Some(0.0), true), "fill:rgb(200 199 194)");
    }

    #[test]
    fn black_text_can_be_read_on_all_colours() {
        let black = brightness([16, 21, 27]) + 0.05;
        for (change, dark) in [-1.0, -0.5, 0.0, 0.5, 1.0].into_iter().flat_map(|c| [(c, false), (c, true)]) {
            let style = fill(Some(change), dark);
            let numbers = style.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
            let colour: Vec<u8> = numbers.collect();
            let contrast = (brightness([colour[0], colour[1], colour[2]]) + 0.05) / black;
            assert!(contrast > 4.5, "{style}: {contrast}");
        }
    }

    proptest! {
        #[test]
        fn a_label_is_never_wider_than_its_box(
            name in "\\PC{0,40}",
            note in "[+-][0-9]{1,3} us",
            change in -1.0..1.0,
            width in 0.0..400.0,
        ) {
            let block = Block {
                depth: 0,
                edges: [0.0, 1.0],
                change: Some(change),
                dark: false,
                name,
                note,
                tip: String::new(),
                cells: Vec::new(),
            };
            let label = label(&block, width);
            prop_assert!(label.is_empty() || columns(&label) as f64 * COLUMN + PADDING <= width, "{label}");
        }

        #[test]
        fn the_widest_boxes_are_drawn_and_always_their_callers(
            shares in prop::collection::vec(0.0..1.0, 1..4000),
        ) {
            // Each box takes this share of the one before it, or of the whole.
            let mut boxes = vec![(0, [0.0, 1.0])];
            for (i, share) in shares.iter().enumerate() {
                let (depth, [left, right]) = if i % 40 == 0 { boxes[0] } else { boxes[i] };
                boxes.push((depth + 1, [left, left + (right - left) * share]));
            }
            let widest = Flame::widest(&boxes);
            prop_assert!(widest.len() <= MOST && widest[0] == 0 && widest.is_sorted());
            let caller = |at: usize| if (at - 1).is_multiple_of(40) { 0 } else { at - 1 };
            prop_assert!(widest[1..].iter().all(|at| widest.binary_search(&caller(*at)).is_ok()));
        }
    }
}
