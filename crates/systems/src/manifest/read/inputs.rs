//! `build.inputs`: what a build reads besides its sources.

use toml::Spanned;

use super::super::{Input, USERS};
use super::{Read, Reader};

/// `$NAME` is a variable's value; anything else is a path.
pub(super) fn read(reader: &Reader, raw: &[Spanned<String>]) -> Read<Vec<Input>> {
    raw.iter().map(|input| one(reader, input)).collect()
}

fn one(reader: &Reader, raw: &Spanned<String>) -> Read<Input> {
    let text = raw.get_ref().as_str();
    if text.is_empty() {
        let help = "name a path, or an environment variable as \"$NAME\"";
        return reader.wrong(raw.span(), "an empty input", help);
    }
    let Some(name) = text.strip_prefix('$') else {
        return Ok(Input::Path(reader.placeholders(raw, &["dir", "home", "variant", "narrows", USERS])?));
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let help = "write \"$NAME\" for its value, \"{$NAME}\" for what lies at the path that it holds";
        return reader.wrong(raw.span(), format!("`{name}` cannot name an environment variable"), help);
    }
    Ok(Input::Variable(name.to_owned()))
}
