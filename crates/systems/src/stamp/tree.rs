//! Hashes a file or folder: names and contents, through symbolic links, in bounded time and memory.
//!
//! Knows files; knows nothing of systems.

use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tools leave beside the sources. If it were hashed, every run would build again.
const LEFTOVERS: [&str; 5] = ["target", "node_modules", "_build", "__pycache__", "erl_crash.dump"];
/// A link into these leads to content that the kernel generates for each reader.
const NO_FILES: [&str; 2] = ["/proc", "/sys"];
/// The maximum number of files and folders. Looking at so many takes a second or two.
const MOST_ENTRIES: usize = 100_000;
/// The maximum depth of folders. Deeper than any sources; keeps the recursion from filling the stack.
const DEEPEST: usize = 200;
/// How many bytes of content are read, which takes some hundredths of a second.
const MOST_BYTES: u64 = 32 << 20;

/// Whether a file or folder of this name is left out: tools leave it beside the sources, or the name begins with a dot.
pub(crate) fn is_leftover(name: &str) -> bool {
    name.starts_with('.') || LEFTOVERS.contains(&name)
}

/// What a digest leaves out besides leftovers and names that begin with a dot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Without<'a> {
    /// Names in the folder itself.
    pub(super) names: &'a [&'a str],
    /// Names with these extensions, at any depth.
    pub(super) extensions: &'a [&'a str],
}

/// Hashes trees. The bounds hold for all trees of one `Look` together.
#[derive(Debug)]
pub(super) struct Look {
    entries: usize,
    bytes: u64,
    no_files: Vec<u64>,
    /// Device and inode of the folders that are being hashed, the outermost first.
    inside: Vec<(u64, u64)>,
}

impl Look {
    pub(super) fn new() -> Self {
        Self { entries: MOST_ENTRIES, bytes: MOST_BYTES, no_files: no_files(), inside: Vec::new() }
    }

    /// Hashes the file or folder at `path`, without its own name. What cannot be read is hashed as unreadable: the
    /// build cannot read it either. The error says which bound was exceeded.
    pub(super) fn digest(&mut self, path: &Path, without: Without<'_>) -> Result<u64, String> {
        let mut hasher = DefaultHasher::new();
        self.inside.clear();
        self.look(path, without, &mut hasher).map_err(|bound| {
            let remedy = "link or name only what the build needs, or let its name begin with a dot";
            format!("{} holds {bound}: {remedy}", path.display())
        })?;
        Ok(hasher.finish())
    }

    fn look(&mut self, path: &Path, without: Without<'_>, hasher: &mut DefaultHasher) -> Result<(), String> {
        let more = || format!("more than {MOST_ENTRIES} files; the last was {}", path.display());
        self.entries = self.entries.checked_sub(1).ok_or_else(more)?;
        match fs::metadata(path) {
            Ok(meta) if self.no_files.contains(&meta.dev()) => {
                hasher.write_u8(b'k');
                Ok(())
            }
            Ok(meta) if meta.is_dir() => self.folder(path, &meta, without, hasher),
            Ok(meta) if meta.is_file() => {
                self.file(path, &meta, hasher);
                Ok(())
            }
            // A device, a socket or a pipe may never end. No build uses one as a source.
            Ok(_) => {
                hasher.write_u8(b's');
                Ok(())
            }
            Err(error) => {
                failure(&error, hasher);
                Ok(())
            }
        }
    }

    fn folder(
        &mut self,
        path: &Path,
        meta: &Metadata,
        without: Without<'_>,
        hasher: &mut DefaultHasher,
    ) -> Result<(), String> {
        let this = (meta.dev(), meta.ino());
        // A link leads back to a folder above. Do not follow it again.
        if self.inside.contains(&this) {
            hasher.write_u8(b'l');
            return Ok(());
        }
        if self.inside.len() == DEEPEST {
            return Err(format!("folders more than {DEEPEST} deep, as {}", path.display()));
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut names: Vec<_> = match entries {
            Ok(entries) => entries.into_iter().map(|entry| entry.file_name()).collect(),
            Err(error) => {
                failure(&error, hasher);
                return Ok(());
            }
        };
        names.sort_unstable();
        self.inside.push(this);
        hasher.write_u8(b'(');
        for name in &names {
            let shown = name.to_string_lossy();
            let extension = shown.rsplit_once('.').map_or("", |(_, extension)| extension);
            let left_out = is_leftover(&shown)
                || without.names.contains(&&*shown)
                || without.extensions.contains(&extension);
            if !left_out {
                text(name.as_encoded_bytes(), hasher);
                self.look(&path.join(name), Without { names: &[], ..without }, hasher)?;
            }
        }
        hasher.write_u8(b')');
        self.inside.pop();
        Ok(())
    }

    fn file(&mut self, path: &Path, meta: &Metadata, hasher: &mut DefaultHasher) {
        let length = meta.len();
        hasher.write_u64(length);
        if let Some(left) = self.bytes.checked_sub(length) {
            self.bytes = left;
            hasher.write_u8(b'c');
            // Files that the kernel generates have no length and may never end, so read no more than the length.
            let content = File::open(path).and_then(|file| content(file.take(length), hasher));
            content.unwrap_or_else(|error| failure(&error, hasher));
        } else {
            hasher.write_u8(b't');
            hasher.write_i64(meta.ctime());
            hasher.write_i64(meta.ctime_nsec());
        }
    }
}

/// The devices of the file systems in [`NO_FILES`].
fn no_files() -> Vec<u64> {
    let device = |path: &str| fs::metadata(path).map(|meta| meta.dev()).ok();
    let root = device("/");
    NO_FILES.into_iter().filter_map(device).filter(|found| Some(*found) != root).collect()
}

/// Hashes a text with its length, so that ["ab", "c"] and ["a", "bc"] differ.
pub(super) fn text(bytes: &[u8], hasher: &mut DefaultHasher) {
    hasher.write_usize(bytes.len());
    hasher.write(bytes);
}

fn failure(error: &io::Error, hasher: &mut DefaultHasher) {
    hasher.write_u8(b'e');
    hasher.write_i32(error.raw_os_error().unwrap_or_default());
}

#[expect(clippy::indexing_slicing, reason = "a read fills in no more than the buffer has")]
fn content(mut file: impl Read, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => hasher.write(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
