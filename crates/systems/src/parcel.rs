//! The files of a system that another machine needs in order to build and start it: read from its home, and unpacked there.
//!
//! Reads and writes files. What is inside is checked without them, so that a parcel from elsewhere cannot reach anything outside
//! the folder into which it is unpacked.

mod parts;
mod paths;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ring::digest;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

pub use parts::Parts;

use crate::manifest::{BuildInput, Manifest, Program};
use crate::stamp::is_leftover;
use crate::template;

/// The most bytes of content. Written as JSON they fit into one frame of the pipe to another machine, whatever they are.
const MOST_BYTES: usize = 8 << 20;
/// The most files, folders and links.
const MOST_ENTRIES: usize = 10_000;
/// The most folders inside each other. It keeps the recursion from filling the stack.
const DEEPEST: usize = 64;
/// The folder of what systems share, in a home.
const SHARED: &str = "systems/shared";
/// The folder of builds, in a home.
const BUILDS: &str = "target";

/// A part of a home: a system's folder, `systems/shared`, and what its build reads elsewhere in the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Entry>", into = "BTreeMap<String, Entry>")]
pub struct Parcel {
    /// By path, relative to the home. No path and no link leads out of the home, and no path goes through a link.
    entries: BTreeMap<String, Entry>,
}

/// A file, folder or link in a parcel. Of the mode, only whether a file can be executed is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Entry {
    Folder,
    File {
        #[serde(with = "text")]
        content: Vec<u8>,
        executable: bool,
    },
    /// More bytes of a file whose first are in an earlier parcel.
    Rest(#[serde(with = "text")] Vec<u8>),
    /// A symbolic link, with where it leads from its own folder.
    Link(String),
}

impl TryFrom<BTreeMap<String, Entry>> for Parcel {
    type Error = String;

    fn try_from(entries: BTreeMap<String, Entry>) -> Result<Self, String> {
        if entries.len() > MOST_ENTRIES {
            return Err(format!("more than {MOST_ENTRIES} files"));
        }
        let mut bytes = 0_usize;
        for (path, entry) in &entries {
            paths::check(path)?;
            let through =
                paths::above(path).find(|above| !matches!(entries.get(*above), None | Some(Entry::Folder)));
            if let Some(above) = through {
                return Err(format!("{path} goes through {above}, which is no folder"));
            }
            match entry {
                Entry::Folder => {}
                Entry::File { content, .. } | Entry::Rest(content) => {
                    bytes = bytes.saturating_add(content.len());
                }
                Entry::Link(to) => _ = paths::led_to(path, to)?,
            }
        }
        match bytes > MOST_BYTES {
            true => Err(format!("more than {} MiB", MOST_BYTES >> 20)),
            false => Ok(Self { entries }),
        }
    }
}

impl From<Parcel> for BTreeMap<String, Entry> {
    fn from(parcel: Parcel) -> Self {
        parcel.entries
    }
}

impl Parcel {
    /// Packs what a system needs. Names that begin with a dot, builds, and what tools leave beside sources stay behind, as in a
    /// build's stamp. So does what a variable of the environment names.
    ///
    /// # Errors
    /// What cannot be sent, with the reason and what to do.
    pub fn of(manifest: &Manifest) -> Result<Self, String> {
        let wrong =
            |why: String| format!("the files of {} cannot be sent to another machine: {why}", manifest.name);
        let home = manifest.home();
        let folder = manifest.dir.strip_prefix(home).ok().filter(|folder| folder.starts_with("systems"));
        let folder = folder.and_then(Path::to_str).filter(|folder| paths::check(folder).is_ok());
        let folder = folder.ok_or_else(|| wrong("its folder is not in systems/ of its home".to_owned()))?;
        let mut packing = Packing { home, entries: BTreeMap::new(), bytes: 0 };
        let mut roots = vec![folder.to_owned(), SHARED.to_owned()];
        roots.extend(inputs(manifest));
        for root in roots {
            packing.root(&root).map_err(wrong)?;
        }
        packing.links_are_whole().map_err(wrong)?;
        Self::try_from(packing.entries).map_err(wrong)
    }

    /// The SHA-256 of all paths and contents, in hexadecimal digits.
    pub fn hash(&self) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut add = |bytes: &[u8]| {
            context.update(&(bytes.len() as u64).to_le_bytes());
            context.update(bytes);
        };
        for (path, entry) in &self.entries {
            add(path.as_bytes());
            match entry {
                Entry::Folder => add(b"folder"),
                Entry::File { content, executable } => {
                    add(if *executable { b"program" } else { b"file" });
                    add(content);
                }
                Entry::Rest(content) => {
                    add(b"rest");
                    add(content);
                }
                Entry::Link(to) => {
                    add(b"link");
                    add(to.as_bytes());
                }
            }
        }
        hexadecimal(&context.finish())
    }

    /// Unpacks it into a folder of `cache` that its hash names, unless that was done before. The folder exists completely or not
    /// at all. Returns it.
    ///
    /// # Errors
    /// The first that the file system reports.
    pub fn unpack(&self, cache: &Path) -> io::Result<PathBuf> {
        let hash = self.hash();
        if let Some(home) = unpacked(cache, &hash) {
            return Ok(home);
        }
        fs::create_dir_all(cache)?;
        let (home, new) = (cache.join(&hash), cache.join(format!(".{hash}.{}", std::process::id())));
        let _ = fs::remove_dir_all(&new); // What a process with this number may have left.
        let written = DirBuilder::new().create(&new).and_then(|()| self.add_to(&new));
        let moved = written.and_then(|()| fs::rename(&new, &home));
        if moved.is_err() {
            let _ = fs::remove_dir_all(&new);
        }
        match moved {
            Err(_) if home.is_dir() => Ok(home), // Another process was quicker.
            moved => moved.map(|()| home),
        }
    }

    /// Writes it into a folder that is empty, or has what earlier parcels of the same folder held.
    ///
    /// # Errors
    /// The first that the file system reports. A file that is there already, or a path through a link, is one.
    pub fn add_to(&self, folder: &Path) -> io::Result<()> {
        for (path, entry) in &self.entries {
            paths::above(path).try_for_each(|above| make_folder(&folder.join(above)))?;
            let path = folder.join(path);
            match entry {
                Entry::Folder => make_folder(&path)?,
                Entry::File { content, executable } => {
                    let mode = if *executable { 0o755 } else { 0o644 };
                    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
                    file.write_all(content)?;
                }
                Entry::Rest(content) => {
                    let mut options = OpenOptions::new();
                    options.append(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
                    options.open(&path)?.write_all(content)?;
                }
                Entry::Link(to) => symlink(to, &path)?,
            }
        }
        Ok(())
    }
}

fn hexadecimal(hash: &digest::Digest) -> String {
    hash.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // A string takes everything.
        text
    })
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&digest::digest(&digest::SHA256, bytes))
}

/// Makes a folder, unless it is there. A link to one, which an earlier parcel may have made, is none.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists && fs::symlink_metadata(path)?.is_dir() => {
            Ok(())
        }
        made => made,
    }
}

/// The folder of `cache` into which the parcel with this hash was unpacked; `None` if it was not, or if this is no hash.
pub fn unpacked(cache: &Path, hash: &str) -> Option<PathBuf> {
    let digits = hash.len() == 2 * digest::SHA256_OUTPUT_LEN && hash.bytes().all(|b| b.is_ascii_hexdigit());
    Some(cache.join(hash)).filter(|home| digits && home.is_dir())
}

impl Manifest {
    /// The same system in another home, such as the one into which its parcel was unpacked.
    pub fn in_home(mut self, home: &Path) -> Self {
        let moved = |path: &Path| match path.strip_prefix(&self.home) {
            Ok(inside) => home.join(inside),
            Err(_) => path.to_owned(),
        };
        let dir = moved(&self.dir);
        if let Program::Started(start) = &mut self.program {
            start.dir = moved(&start.dir);
        }
        (self.dir, self.home) = (dir, home.to_owned());
        self
    }
}

/// What the build of a system reads elsewhere in its home, relative to the home, except what builds have made.
fn inputs(manifest: &Manifest) -> Vec<String> {
    let inputs = manifest.build.iter().flat_map(|build| &build.inputs);
    let inside = inputs.filter_map(|input| match input {
        BuildInput::Variable(_) => None,
        BuildInput::Path(written) => {
            let path = manifest.dir.join(template::expand(written, |name| manifest.constant(name)).ok()?);
            let path = paths::plain(&path)?;
            let path = path.strip_prefix(paths::plain(manifest.home())?).ok()?.to_str()?.to_owned();
            Some(path).filter(|path| path.split('/').next() != Some(BUILDS) && !path.is_empty())
        }
    });
    inside.collect()
}

/// Reads the files of a parcel.
struct Packing<'a> {
    home: &'a Path,
    entries: BTreeMap<String, Entry>,
    bytes: usize,
}

impl Packing<'_> {
    /// Adds a file or folder that was named. If it is a link, what is there counts. Nothing need be there.
    fn root(&mut self, path: &str) -> Result<(), String> {
        let is_folder = match fs::metadata(self.home.join(path)) {
            Ok(meta) => meta.is_dir(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(format!("{path}: {error}")),
        };
        if is_folder { self.folder(path, 0) } else { self.file(path) }
    }

    fn add(&mut self, path: &str, entry: Entry) -> Result<(), String> {
        self.entries.insert(path.to_owned(), entry);
        match self.entries.len() > MOST_ENTRIES {
            true => Err(format!("there are more than {MOST_ENTRIES} files; the last was {path}: {REMEDY}")),
            false => Ok(()),
        }
    }

    fn folder(&mut self, path: &str, depth: usize) -> Result<(), String> {
        if depth == DEEPEST {
            return Err(format!("{path} is {DEEPEST} folders deep: {REMEDY}"));
        }
        let failed = |error: io::Error| format!("{path}: {error}");
        self.add(path, Entry::Folder)?;
        for entry in fs::read_dir(self.home.join(path)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name =
                name.to_str().ok_or_else(|| format!("{path}/{} is no text", name.to_string_lossy()))?;
            let (kind, path) = (entry.file_type().map_err(failed)?, format!("{path}/{name}"));
            match () {
                () if is_leftover(name) => {}
                () if kind.is_dir() => self.folder(&path, depth.saturating_add(1))?,
                () if kind.is_symlink() => self.link(&path)?,
                () if kind.is_file() => self.file(&path)?,
                // A device, a socket or a pipe. No build uses one as a source.
                () => {}
            }
        }
        Ok(())
    }

    fn link(&mut self, path: &str) -> Result<(), String> {
        let to = fs::read_link(self.home.join(path)).map_err(|error| format!("{path}: {error}"))?;
        let to = to.to_str().ok_or_else(|| format!("the link {path} leads to what is no text"))?;
        self.add(path, Entry::Link(to.to_owned()))
    }

    fn file(&mut self, path: &str) -> Result<(), String> {
        let failed = |error: io::Error| format!("{path}: {error}");
        let whole = self.home.join(path);
        let meta = fs::metadata(&whole).map_err(failed)?;
        let most = || format!("they are more than {} MiB with {path}: {REMEDY}", MOST_BYTES >> 20);
        // The length is asked first, so that a large file is not read in vain.
        let length = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        self.bytes.checked_add(length).filter(|bytes| *bytes <= MOST_BYTES).ok_or_else(most)?;
        let content = fs::read(&whole).map_err(failed)?;
        self.bytes = self.bytes.saturating_add(content.len());
        self.add(path, Entry::File { content, executable: meta.permissions().mode() & 0o111 != 0 })
    }

    /// Checks that every link leads to something that is sent along.
    fn links_are_whole(&self) -> Result<(), String> {
        for (path, entry) in &self.entries {
            let Entry::Link(to) = entry else { continue };
            let there = paths::led_to(path, to)?;
            if !self.entries.contains_key(&there) {
                return Err(format!("{path} is a link to {to}, which is not sent: name it in build.inputs"));
            }
        }
        Ok(())
    }
}

/// What to do about too many files.
const REMEDY: &str = "let the build fetch or make them, or let their names begin with a dot";

/// Bytes as a text in which each character is one byte. Most sources are text, and in JSON numbers would be four times as long.
mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let bytes = String::deserialize(from)?.chars().map(u8::try_from).collect::<Result<_, _>>();
        bytes.map_err(|_| D::Error::custom("a character of a file's content is not one byte"))
    }
}

#[cfg(test)]
mod tests;
