//! The systems and experiments that come with the program. They are unpacked into the user's cache when they are needed, in a folder
//! for this version, because systems are built and started from files.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use systems::{CatalogError, Fleeting, Home, homes};

/// The path of each file, whether it is a program, and its content.
const FILES: &[(&str, bool, &[u8])] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The folder's name. Programs of one version can differ while it is being developed.
const NAME: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("BUILT_IN_HASH"));

/// All homes, the strongest first.
///
/// # Errors
/// See [`homes::find`].
pub fn homes() -> Result<Vec<Home>, CatalogError> {
    homes::find(|| {
        let cache = homes::cache().ok_or_else(|| io::Error::other("this user has no home folder"))?;
        unpack(&cache)
    })
}

/// Whether a home came with this program, so that another machine with the same program has it, too.
pub fn is_home(home: &Path) -> bool {
    homes::cache().is_some_and(|cache| cache.join(NAME) == home)
}

/// The folder with the files, which is made unless it is there.
fn unpack(cache: &Path) -> io::Result<PathBuf> {
    let folder = cache.join(NAME);
    if folder.is_dir() {
        return Ok(folder);
    }
    // Whoever finds the folder finds all of it, because it gets its name at the end.
    fs::create_dir_all(cache)?;
    let unfinished = Fleeting::new(cache.join(format!("{NAME}.{}.new", std::process::id())));
    let made = write(unfinished.path()).and_then(|()| fs::rename(unfinished.path(), &folder));
    // Another narrows may have made it in the meantime.
    if folder.is_dir() { Ok(folder) } else { made.map(|()| folder) }
}

fn write(folder: &Path) -> io::Result<()> {
    for (name, program, content) in FILES {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, content)?;
        if *program {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_with_the_program_is_unpacked_once_and_whole() {
        let cache = tempfile::tempdir().expect("a folder");
        let folder = unpack(cache.path()).expect("it is unpacked");
        let catalog = systems::Catalog::load(&folder);
        assert!(catalog.get("nginx").is_ok() && catalog.broken().next().is_none());
        assert!(folder.join("experiments/frames.toml").is_file());
        let marker = folder.join("marker");
        fs::write(&marker, "").expect("a file");
        assert_eq!(unpack(cache.path()).expect("it is there"), folder);
        assert!(marker.exists(), "it was not made again");
        assert_eq!(fs::read_dir(cache.path()).expect("the cache").count(), 1, "nothing else is left");
    }
}
