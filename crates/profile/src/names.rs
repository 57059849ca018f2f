//! Names out of strangers' files: as they were written in the source, short, and without what would change how others look. Pure.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use printable::{beginning, is_hidden};

/// How long a name or a path may be, in characters.
const LONGEST: usize = 256;
/// How long a mangled name may be that is demangled, in bytes, and what comes out of it. A short name can stand for an endless one:
/// its parts refer to earlier parts.
const LONGEST_MANGLED: usize = 4096;
const LONGEST_DEMANGLED: usize = 4 * LONGEST;
/// How deep parts of a name may lie in each other. The stack of a thread has room for more.
const DEEPEST: u32 = 64;

/// A function's name as it was written in C++ or Rust, or as it is.
pub(crate) fn function(symbol: &str) -> String {
    let demangled = (symbol.len() <= LONGEST_MANGLED).then(|| rust(symbol).or_else(|| cpp(symbol))).flatten();
    clean(demangled.as_deref().unwrap_or(symbol))
}

/// A text with at most 256 characters. Control characters, and those that set the direction of text or break lines, are replaced.
pub(crate) fn clean(text: &str) -> String {
    let shown = |c: char| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c };
    beginning(text, LONGEST).chars().map(shown).collect()
}

fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut text = Limited::default();
    // The alternate form leaves out the hash. What did not fit is left out, too.
    let _ = write!(text, "{name:#}");
    Some(text.0)
}

fn cpp(symbol: &str) -> Option<String> {
    // Compilers append what they did with a function: `.cold`, `.part.0`, `.constprop.0`. Its name is the same.
    let mangled = symbol.split_once('.').map_or(symbol, |(name, _)| name);
    if !mangled.starts_with("_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(DEEPEST);
    let name = Symbol::new_with_options(mangled, &parse).ok()?;
    let mut text = Limited::default();
    let options = DemangleOptions::default().recursion_limit(DEEPEST);
    let done = name.structured_demangle(&mut text, &options);
    (done.is_ok() || text.0.len() >= LONGEST_DEMANGLED).then_some(text.0)
}

/// A text that refuses to grow beyond the limit, so that whoever writes to it stops.
#[derive(Default)]
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() >= LONGEST_DEMANGLED {
            return Err(fmt::Error);
        }
        self.0.extend(text.chars().take(LONGEST_DEMANGLED));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_as_they_were_written() {
        let table = [
            ("main.(*Server).serve", "main.(*Server).serve"),
            ("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_ZN3foo3barEv.constprop.0", "foo::bar()"),
            ("tcp_sendmsg", "tcp_sendmsg"),
            ("JS:*at /a.js:1:2", "JS:*at /a.js:1:2"),
            ("_Z", "_Z"),
            ("a\u{1b}[31m\nb\u{202e}", "a\u{fffd}[31m\u{fffd}b\u{fffd}"),
        ];
        for (symbol, name) in table {
            assert_eq!(function(symbol), name);
        }
    }

    #[test]
    fn long_names_are_cut() {
        let long = function(&"é".repeat(300));
        assert_eq!((long.chars().count(), long.chars().last()), (LONGEST, Some('…')));
        assert_eq!(clean(&"x".repeat(LONGEST)).len(), LONGEST);
    }

    #[test]
    fn a_bomb_of_names_stays_small() {
        // Each argument is a pair of the one before it: the 40th would need 2^40 names.
        let mut bomb = String::from("_Z1fPiS_");
        for index in 0..40_u32 {
            let digit = std::char::from_digit(index % 36, 36).unwrap().to_ascii_uppercase();
            let number = if index < 36 { format!("{digit}") } else { format!("1{digit}") };
            bomb.push_str(&format!("4pairIS{number}_S{number}_E"));
        }
        let name = function(&bomb);
        assert!(name.starts_with("f(") && name.chars().count() == LONGEST, "{name}");
        let deep = format!("_Z1f{}i", "P".repeat(4000));
        assert!(function(&deep).chars().count() <= LONGEST);
        let rust = format!("_RIN1a1bT{}E", "T".repeat(2000));
        assert!(function(&rust).chars().count() <= LONGEST);
        // A tuple of two of the tuple before, by reference to its position.
        let mut pairs = String::from("_RINvC1a1bThhE");
        let mut last = 8;
        for _ in 0..60 {
            let begin = pairs.len() - 2;
            let reference = base62(last);
            pairs.push_str(&format!("TB{reference}B{reference}E"));
            last = begin;
        }
        pairs.push('E');
        let name = function(&pairs);
        assert!(name.starts_with("a::b::<(u8, u8), ((u8") && name.chars().count() == LONGEST, "{name}");
    }

    fn base62(number: usize) -> String {
        const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let Some(mut rest) = number.checked_sub(1) else { return "_".into() };
        let mut text = String::from("_");
        loop {
            text.insert(0, char::from(DIGITS[rest % 62]));
            rest /= 62;
            if rest == 0 {
                return text;
            }
        }
    }

    proptest! {
        #[test]
        fn any_symbol_has_a_name(symbol in "(_Z|_R|_ZN|)[ -~]{0,80}", other in any::<String>()) {
            for symbol in [symbol, other] {
                let name = function(&symbol);
                prop_assert!(name.chars().count() <= LONGEST && !name.chars().any(is_hidden), "{:?}", name);
            }
        }
    }
}
