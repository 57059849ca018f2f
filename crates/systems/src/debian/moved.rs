//! Makes programs run from the folder into which their packages are unpacked: they are made for `/`.
//!
//! Three things lead out of the folder. Absolute links and the paths in scripts are made to lead into it. An executable names its
//! interpreter and finds its libraries in the system's folders; patchelf lets it use those beside it, so that programs of a newer or
//! older release run here with their own C library.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// What no program reads, in a folder of packages.
const PAPERS: [&str; 6] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bug",
];
/// A longer file is no script that starts a program.
const LONGEST_SCRIPT: u64 = 1 << 20;
/// Where an executable names its interpreter, at the latest.
const HEAD: u64 = 4096;
/// Scripts may name folders of the machine, such as /usr/bin in a search path. A longer path means a file of its own package.
const SHORTEST: usize = 3;

/// Checks that programs can be moved to a folder.
///
/// # Errors
/// The path has a character that would mean something else in a script or in a list of folders.
pub(super) fn can_be_moved_to(folder: &Path) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-@~,=".contains(&byte);
    match folder.as_os_str().as_encoded_bytes().iter().all(|byte| plain(*byte)) {
        true => Ok(()),
        false => Err(format!(
            "programs cannot be unpacked into {}: its path has other than plain letters",
            folder.display()
        )),
    }
}

/// What was found in a folder of packages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// Each executable that names an interpreter of the folder, with that interpreter relative to the folder.
    pub(super) executables: Vec<(PathBuf, PathBuf)>,
    /// The bytes of its files.
    pub(super) bytes: u64,
}

/// Makes links and scripts of the folder `tree` lead into it, and removes what no program reads. The folder will be at `place`.
///
/// # Errors
/// The first that the file system reports.
pub(super) fn settle(tree: &Path, place: &Path) -> io::Result<Settled> {
    for papers in PAPERS {
        match fs::remove_dir_all(tree.join(papers)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    let mut settling = Settling { tree, place, seen: HashSet::new(), found: Settled::default() };
    settling.folder(tree, 0)?;
    Ok(settling.found)
}

struct Settling<'a> {
    tree: &'a Path,
    place: &'a Path,
    /// Device and inode of files that have several names.
    seen: HashSet<(u64, u64)>,
    found: Settled,
}

impl Settling<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let meta = fs::symlink_metadata(&path)?;
            if meta.is_symlink() {
                self.link(&path, depth)?;
            } else if meta.is_dir() {
                self.folder(&path, depth.saturating_add(1))?;
            } else if meta.is_file() && self.seen.insert((meta.dev(), meta.ino())) {
                self.found.bytes = self.found.bytes.saturating_add(meta.len());
                self.file(&path, &meta)?;
            }
        }
        Ok(())
    }

    /// Makes an absolute link to something in the folder a relative one.
    fn link(&self, path: &Path, depth: usize) -> io::Result<()> {
        let to = fs::read_link(path)?;
        let Some(inside) = self.inside(&to) else { return Ok(()) };
        fs::remove_file(path)?;
        symlink(PathBuf::from_iter(std::iter::repeat_n("..", depth)).join(inside), path)
    }

    /// Where something with an absolute path is in the folder, relative to it. Releases differ in whether /lib is /usr/lib.
    fn inside(&self, absolute: &Path) -> Option<PathBuf> {
        let relative = absolute.strip_prefix("/").ok()?;
        [relative.to_owned(), Path::new("usr").join(relative)]
            .into_iter()
            .find(|inside| fs::symlink_metadata(self.tree.join(inside)).is_ok())
    }

    fn file(&mut self, path: &Path, meta: &fs::Metadata) -> io::Result<()> {
        let mode = meta.mode();
        if mode & 0o6000 != 0 {
            // Nobody gets root's rights by a program of a cache.
            fs::set_permissions(path, Permissions::from_mode(mode & 0o777))?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Libraries may be executable, and some have an interpreter. They are left as they are.
        if mode & 0o111 == 0 || name.contains(".so") {
            return Ok(());
        }
        let mut head = Vec::new();
        File::open(path)?.take(HEAD).read_to_end(&mut head)?;
        if head.starts_with(b"#!") && meta.len() <= LONGEST_SCRIPT {
            let text = fs::read(path)?;
            // A script with other bytes, such as an archive behind it, is left as it is.
            if let Ok(text) = std::str::from_utf8(&text) {
                let moved = script(text, self.place, |path| self.inside(Path::new(path)).is_some());
                if moved != text {
                    fs::write(path, moved)?;
                }
            }
        } else if let Some(interpreter) = interpreter(&head).and_then(|named| self.inside(Path::new(named))) {
            self.found.executables.push((path.to_owned(), interpreter));
        }
        Ok(())
    }
}

/// A script in which every absolute path for which `has` is true leads into the folder `place`.
#[expect(clippy::string_slice, reason = "places begin and end at bytes of ASCII")]
fn script(text: &str, place: &Path, has: impl Fn(&str) -> bool) -> String {
    let of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-@".contains(&byte);
    // Behind one of these a slash goes on with something whose value is not known.
    let goes_on = |byte: u8| of_path(byte) || b"})$*?".contains(&byte) || !byte.is_ascii();
    let place = place.display();
    let bytes = text.as_bytes();
    let (mut out, mut at, mut before) = (String::with_capacity(text.len()), 0, b' ');
    while let Some(byte) = bytes.get(at).copied() {
        let begins = byte == b'/' && !goes_on(before);
        let length =
            if begins { bytes.iter().skip(at).take_while(|byte| of_path(**byte)).count() } else { 1 };
        let end = at.saturating_add(length);
        if begins {
            let path = text[at..end].trim_end_matches(['/', '.']);
            if path.split('/').filter(|name| !name.is_empty()).count() >= SHORTEST && has(path) {
                out.push_str(&place.to_string());
            }
        }
        // A character of several bytes is copied whole.
        let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
        out.push_str(&text[at..end]);
        before = bytes.get(end.saturating_sub(1)).copied().unwrap_or(b' ');
        at = end;
    }
    out
}

/// The interpreter that an executable names, from the file's first bytes. `None` if it has none, or is made for another kind of
/// processor.
fn interpreter(head: &[u8]) -> Option<&str> {
    const OF_64_BITS: u8 = 2;
    const LITTLE_ENDIAN: u8 = 1;
    const NAMES_INTERPRETER: u64 = 3;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let part = head.get(at..at.checked_add(bytes)?)?;
        Some(part.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    };
    let index = |at: usize, bytes: usize| usize::try_from(number(at, bytes)?).ok();
    if !head.starts_with(b"\x7fELF") || head.get(4..6)? != [OF_64_BITS, LITTLE_ENDIAN] {
        return None;
    }
    let (table, size, count) = (index(32, 8)?, index(54, 2)?, index(56, 2)?);
    let mut segments = (0..count).filter_map(|segment| table.checked_add(size.checked_mul(segment)?));
    let segment = segments.find(|at| number(*at, 4) == Some(NAMES_INTERPRETER))?;
    let (from, length) = (index(segment.checked_add(8)?, 8)?, index(segment.checked_add(32)?, 8)?);
    let name = head.get(from..from.checked_add(length)?)?;
    std::str::from_utf8(name).ok().map(|name| name.trim_end_matches('\0'))
}

/// The folders with libraries in the folder `tree`, relative to it.
pub(super) fn libraries(tree: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for top in ["lib", "usr/lib"] {
        let entries = fs::read_dir(tree.join(top)).into_iter().flatten().flatten();
        let triplets = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut triplets: Vec<String> = triplets.filter(|name| name.contains("-linux-gnu")).collect();
        triplets.sort_unstable();
        folders.extend(triplets.iter().map(|name| Path::new(top).join(name)));
        folders.push(PathBuf::from(top));
    }
    folders.retain(|folder| tree.join(folder).is_dir());
    folders
}

/// Folders as a search path.
pub(super) fn search_path(below: &Path, folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| below.join(folder).display().to_string()).collect::<Vec<_>>().join(":")
}

/// Executables by the search path that they get: their own, whose absolute folders lead into the folder `place`, and then `usual`.
/// `own` has the search path of each executable, which is mostly empty.
pub(super) fn by_search_path(
    executables: &[(PathBuf, PathBuf)],
    own: &[String],
    place: &Path,
    usual: &str,
) -> BTreeMap<(PathBuf, String), Vec<PathBuf>> {
    let mut groups: BTreeMap<_, Vec<PathBuf>> = BTreeMap::new();
    for ((executable, interpreter), own) in executables.iter().zip(own) {
        let folders =
            own.split(':').filter(|folder| !folder.is_empty()).map(|folder| match folder.strip_prefix('/') {
                Some(inside) => place.join(inside).display().to_string(),
                None => folder.to_owned(),
            });
        let path = folders.chain([usual.to_owned()]).collect::<Vec<_>>().join(":");
        groups.entry((interpreter.clone(), path)).or_default().push(executable.clone());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_packages_in_scripts_lead_into_the_folder() {
        let has =
            |path: &str| ["/usr/lib/erlang", "/usr/bin/python3", "/usr/bin", "/etc/x/y"].contains(&path);
        for (text, expected) in [
            ("ROOTDIR=\"/usr/lib/erlang\"\n", "ROOTDIR=\"/c/t/usr/lib/erlang\"\n"),
            ("ROOTDIR=/usr/lib/erlang/\n", "ROOTDIR=/c/t/usr/lib/erlang/\n"),
            ("#!/usr/bin/python3 -E", "#!/c/t/usr/bin/python3 -E"),
            ("#!/bin/sh\nexec /usr/sbin/other", "#!/bin/sh\nexec /usr/sbin/other"),
            // A folder of the machine, or something behind a variable, is not the package's.
            ("PATH=/usr/bin:/bin", "PATH=/usr/bin:/bin"),
            ("$X/usr/lib/erlang ${X}/usr/lib/erlang", "$X/usr/lib/erlang ${X}/usr/lib/erlang"),
            ("a/usr/lib/erlang", "a/usr/lib/erlang"),
            ("-c=/etc/x/y,'/etc/x/y'", "-c=/c/t/etc/x/y,'/c/t/etc/x/y'"),
            ("# see /usr/lib/erlang.", "# see /c/t/usr/lib/erlang."),
            ("é /usr/lib/erlang é", "é /c/t/usr/lib/erlang é"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(script(text, Path::new("/c/t"), has), expected);
        }
    }

    /// An executable with a table of two segments, the second of which names the interpreter.
    fn executable(name: &[u8]) -> Vec<u8> {
        let mut head = vec![0; 64 + 2 * 56];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[32] = 64;
        head[54] = 56;
        head[56] = 2;
        let segment = 64 + 56;
        head[segment] = 3;
        head[segment + 8] = u8::try_from(head.len()).unwrap();
        head[segment + 32] = u8::try_from(name.len()).unwrap();
        head.extend_from_slice(name);
        head
    }

    #[test]
    fn the_interpreter_of_an_executable_is_read() {
        let whole = executable(b"/lib64/ld-linux.so.2\0");
        assert_eq!(interpreter(&whole), Some("/lib64/ld-linux.so.2"));
        for length in 0..whole.len() {
            let cut = interpreter(&whole[..length]);
            assert!(cut.is_none(), "{length}: {cut:?}");
        }
        assert_eq!(interpreter(b"#!/bin/sh"), None);
        let mut wide = whole.clone();
        wide[4] = 1;
        assert_eq!(interpreter(&wide), None, "another kind of processor");
        for place in 0..whole.len() {
            let mut odd = whole.clone();
            odd[place] = 0xff;
            let _ = interpreter(&odd); // Whatever is there, it does not panic.
        }
    }

    #[test]
    fn a_folder_of_packages_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("new");
        let make = |path: &str, content: &[u8], mode: u32| {
            let path = tree.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        make("usr/lib/x86_64-linux-gnu/ld.so", &executable(b"/lib64/ld.so\0"), 0o755);
        make("usr/lib/run/bin/run", b"#!/bin/sh\nexec /usr/lib/run/bin/real\n", 0o755);
        make("usr/lib/run/bin/real", &executable(b"/lib64/ld.so\0"), 0o4755);
        make("usr/lib/run/bin/alien", &executable(b"/lib/other.so\0"), 0o755);
        make("usr/share/doc/run/README", b"long", 0o644);
        make("etc/run.conf", b"/usr/lib/run/bin/real", 0o644);
        fs::create_dir(tree.join("lib64")).unwrap();
        symlink("/lib/x86_64-linux-gnu/ld.so", tree.join("lib64/ld.so")).unwrap();
        symlink("/usr/lib/nowhere", tree.join("lib64/away")).unwrap();
        let found = settle(&tree, Path::new("/place")).unwrap();
        let link = |path: &str| fs::read_link(tree.join(path)).unwrap();
        assert_eq!(link("lib64/ld.so"), Path::new("../usr/lib/x86_64-linux-gnu/ld.so"));
        assert_eq!(link("lib64/away"), Path::new("/usr/lib/nowhere"), "what is not here stays as it is");
        let text = |path: &str| fs::read_to_string(tree.join(path)).unwrap();
        assert_eq!(text("usr/lib/run/bin/run"), "#!/bin/sh\nexec /place/usr/lib/run/bin/real\n");
        assert_eq!(text("etc/run.conf"), "/usr/lib/run/bin/real", "no script");
        assert!(!tree.join("usr/share/doc").exists());
        let real = tree.join("usr/lib/run/bin/real");
        assert_eq!(found.executables, [(real.clone(), PathBuf::from("lib64/ld.so"))]);
        assert_eq!(fs::metadata(real).unwrap().mode() & 0o7777, 0o755);
        assert_eq!(libraries(&tree), ["usr/lib/x86_64-linux-gnu", "usr/lib"].map(PathBuf::from));
    }

    #[test]
    fn an_executable_keeps_its_own_search_path() {
        let executables = ["a", "b"].map(|name| (PathBuf::from(name), PathBuf::from("lib64/ld.so")));
        let own = ["".to_owned(), "$ORIGIN/../lib:/usr/lib/b".to_owned()];
        let groups = by_search_path(&executables, &own, Path::new("/p"), "/p/lib");
        let paths: Vec<&str> = groups.keys().map(|(_, path)| path.as_str()).collect();
        assert_eq!(paths, ["$ORIGIN/../lib:/p/usr/lib/b:/p/lib", "/p/lib"]);
    }

    #[test]
    fn odd_folders_are_refused() {
        assert_eq!(can_be_moved_to(Path::new("/home/u/.cache/narrows/debian/x-1")), Ok(()));
        for odd in ["/home/a b", "/home/a:b", "/home/$x", "/home/ü", "/home/\"x"] {
            assert!(can_be_moved_to(Path::new(odd)).is_err(), "{odd}");
        }
    }
}
