//! What programs, files and other machines say, as it may be shown: nothing in it moves the cursor of a terminal.

/// A text on one line. Control characters are spaces.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A text in its lines. Other control characters are spaces.
pub fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spaces() {
        let text = "\u{1b}[31mé\tx\r\n\u{9b}2J\u{7f}";
        assert_eq!(printable(text), " [31mé x   2J ");
        assert_eq!(printable_lines(text), " [31mé x \n 2J ");
    }
}
