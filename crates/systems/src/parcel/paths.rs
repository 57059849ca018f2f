//! Paths in a parcel: relative, with slashes, and never out of its folder. Pure.

use std::path::{Component, Path, PathBuf};

/// Checks that a path is relative and made of plain names.
pub(super) fn check(path: &str) -> Result<(), String> {
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
    let mut folder: Vec<&str> = path.split('/').collect();
    folder.pop();
    let mut rest = to;
    while let Some(up) = rest.strip_prefix("..").filter(|up| up.is_empty() || up.starts_with('/')) {
        folder.pop().ok_or_else(wrong)?;
        rest = up.trim_start_matches('/');
    }
    if to.starts_with('/') || to.is_empty() {
        return Err(wrong());
    }
    for name in rest.split('/').filter(|_| !rest.is_empty()) {
        check(name).map_err(|_| wrong())?;
        folder.push(name);
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
