//! What programs, files and other machines say, as it may be shown: nothing in it moves the cursor of a terminal, or makes other
//! text look different. Pure.

/// A text on one line. Control characters are spaces.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

/// A text in its lines. Other control characters are spaces.
pub fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) && c != '\n' { ' ' } else { c }).collect()
}

/// Whether a character would change how others look: a control character, or one that sets the direction of text or breaks lines.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The beginning of a text, at most so many characters. An ellipsis stands for what was cut off.
pub fn beginning(text: &str, most: usize) -> String {
    let mut kept: String = text.chars().take(most).collect();
    if kept.len() < text.len() && kept.pop().is_some() {
        kept.push('…');
    }
    kept
}

/// The end of a text, at most so many characters. An ellipsis stands for what was cut off.
pub fn end(text: &str, most: usize) -> String {
    let mut kept: String = text.chars().rev().take(most).collect();
    if kept.len() < text.len() && kept.pop().is_some() {
        kept.push('…');
    }
    kept.chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spaces() {
        let text = "\u{1b}[31mé\tx\r\n\u{9b}2J\u{7f}";
        assert_eq!(printable(text), " [31mé x   2J ");
        assert_eq!(printable_lines(text), " [31mé x \n 2J ");
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{200f}d\u{2028}e"), "a b c d e");
    }

    #[test]
    fn hidden_are_control_characters_directions_and_breaks_of_lines() {
        let hidden = [
            '\0'..='\u{1f}',
            '\u{7f}'..='\u{9f}',
            '\u{61c}'..='\u{61c}',
            '\u{200e}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2066}'..='\u{2069}',
        ];
        for c in '\0'..=char::MAX {
            assert_eq!(is_hidden(c), hidden.iter().any(|range| range.contains(&c)), "{c:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_at_either_end() {
        for (text, most, beginning, end) in [
            ("", 3, "", ""),
            ("éaö", 3, "éaö", "éaö"),
            ("éaöb", 3, "éa…", "…öb"),
            ("éaöb", 1, "…", "…"),
            ("a", 0, "", ""),
        ] {
            assert_eq!(super::beginning(text, most), beginning, "{text:?}, {most}");
            assert_eq!(super::end(text, most), end, "{text:?}, {most}");
        }
    }
}
