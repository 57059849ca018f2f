//! What programs, files and other machines say, as it may be shown: nothing in it moves the cursor of a terminal.

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
    const DIRECTIONS: [char; 3] = ['\u{61c}', '\u{200e}', '\u{200f}'];
    c.is_control()
        || DIRECTIONS.contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
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
}
