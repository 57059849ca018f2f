//! Paths in a parcel: relative, with slashes, and never out of its folder. Pure.

use std::path::{Component, Path, PathBuf};

/// The most bytes of a path, and of where a link leads, as the kernel has it (PATH_MAX, without the final NUL).
pub(super) const LONGEST: usize = 4095;
/// The most folders above a file. Each of them is looked up when a parcel comes.
pub(super) const MOST_ABOVE: usize = 128;

/// Checks that a path is relative, made of plain names, and neither too long nor too deep.
pub(super) fn check(path: &str) -> Result<(), String> {
    if path.len() > LONGEST || above(path).count() > MOST_ABOVE {
        let start: String = path.chars().take(100).collect();
        return Err(format!(
            "{start:?}... is longer than {LONGEST} bytes, or more than {MOST_ABOVE} folders deep"
        ));
    }
    let plain = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('\0');
    match path.split('/').all(plain) {
        true => Ok(()),
        false => Err(format!("{path:?} is not a path inside a home")),
    }
}

/// The folders above a path.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(index, _)| path.get(..index))
}

/// Where a link at `path` leads, if it stays inside. It may go up first and then down, but not up again: on the way down it may
/// pass another link, and `..` would then mean another folder than the words say.
pub(super) fn led_to(path: &str, to: &str) -> Result<String, String> {
    let wrong = || format!("{path} is a link to {to:?}: only links to files that are sent along can be sent");
    if to.len() > LONGEST {
        return Err(format!("{path} is a link to a path that is longer than {LONGEST} bytes"));
    }
    let mut folder: Vec<&str> = path.split('/').collect();
    folder.pop();
    if to.starts_with('/') || to.is_empty() || to.contains('\0') {
        return Err(wrong());
    }
    let mut goes_down = false;
    for name in to.split('/').filter(|name| !name.is_empty() && *name != ".") {
        match name {
            ".." if goes_down => return Err(wrong()),
            ".." => _ = folder.pop().ok_or_else(wrong)?,
            name => {
                goes_down = true;
                folder.push(name);
            }
        }
    }
    Ok(folder.join("/"))
}

/// An absolute path without `.` and `..`, as its words say. `None` if it goes above the root.
pub(super) fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !plain.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}
