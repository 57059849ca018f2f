//! `build.inputs`: what a build reads in addition to its sources.

use toml::Spanned;

use super::super::{BuildInput, DEBIAN, USERS};
use super::{Read, Reader};

/// Reads the list. `$NAME` is the value of an environment variable; anything else is a path.
pub(super) fn read(reader: &Reader, raw: &[Spanned<String>]) -> Read<Vec<BuildInput>> {
    raw.iter().map(|input| read_input(reader, input)).collect()
}

fn read_input(reader: &Reader, raw: &Spanned<String>) -> Read<BuildInput> {
    let text = raw.get_ref().as_str();
    if text.is_empty() {
        let help = "name a path, or an environment variable as \"$NAME\"";
        return reader.wrong(raw.span(), "an empty input", help);
    }
    let Some(name) = text.strip_prefix('$') else {
        return Ok(BuildInput::Path(reader.placeholders(
            raw,
            &["dir", "home", "variant", "narrows", DEBIAN, USERS].into_iter().collect(),
        )?));
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let help = "write \"$NAME\" for its value, or \"{$NAME}\" for the file or folder that it names";
        return reader.wrong(raw.span(), format!("`{name}` cannot name an environment variable"), help);
    }
    Ok(BuildInput::Variable(name.to_owned()))
}
