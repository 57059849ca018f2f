//! Files that the user names. A pipe may stay silent or full for ever, so reading and writing look for Ctrl-C. A device may never
//! end, so what is read as a whole is bounded.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::common::is_interrupted;

/// The most bytes of a file that is read as a whole.
pub const LONGEST: u64 = 256 << 20;
/// How often a read or a write that waits looks for Ctrl-C.
const GLANCE: Duration = Duration::from_millis(50);

/// A file that is open for reading.
pub struct GivenFile {
    file: File,
    /// Whether bytes may come later, as from a pipe.
    waits: bool,
}

impl GivenFile {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, or is no file that can be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A pipe that nobody writes to would block even the opening.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        Self::new(OpenOptions::new().read(true).custom_flags(flags).open(path)?)
    }

    /// Standard input.
    fn standard() -> io::Result<Self> {
        Self::new(File::from(io::stdin().as_fd().try_clone_to_owned()?))
    }

    fn new(file: File) -> io::Result<Self> {
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Self { file, waits: !kind.is_file() })
    }

    /// All of its bytes.
    fn whole(self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST {
            bail!("it is longer than {} MiB, which is the limit: name a shorter one", LONGEST >> 20);
        }
        Ok(bytes)
    }
}

impl Read for GivenFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if is_interrupted() {
                return Err(io::Error::other("interrupted"));
            }
            if self.waits && !readable(&self.file)? {
                continue;
            }
            match self.file.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.waits = true,
                read => return read,
            }
        }
    }
}

/// A pipe or a device that is open for writing.
pub struct GivenSink(File);

impl GivenSink {
    /// Opens it. Waits until somebody reads a pipe.
    ///
    /// # Errors
    /// It cannot be opened, or the user interrupted.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_pipe = path.metadata()?.file_type().is_fifo();
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        loop {
            match OpenOptions::new().write(true).custom_flags(flags).open(path) {
                // Nobody reads it yet.
                Err(error) if is_pipe && error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                    if is_interrupted() {
                        return Err(io::Error::other("interrupted, and nobody reads this pipe"));
                    }
                    thread::sleep(GLANCE);
                }
                opened => return opened.map(Self),
            }
        }
    }
}

impl Write for GivenSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                // After Ctrl-C, who reads slowly still gets the rest. The signal itself ends the wait, so it is looked for before.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let interrupted = is_interrupted();
                    if !glance(&self.0, PollFlags::OUT)? && interrupted {
                        return Err(io::Error::other("interrupted, and nobody reads what was written"));
                    }
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Waits for a moment until something can be read, or the file has ended.
fn readable(file: &File) -> io::Result<bool> {
    glance(file, PollFlags::IN)
}

/// Waits for a moment until a file is ready.
fn glance(file: &File, ready_to: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::new(file, ready_to)];
    let glance = Timespec { tv_sec: 0, tv_nsec: i64::from(GLANCE.subsec_nanos()) };
    match poll(&mut fds, Some(&glance)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads a file as a whole.
///
/// # Errors
/// It cannot be read, is longer than [`LONGEST`], or the user interrupted.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let context = || format!("cannot read {}", path.display());
    GivenFile::open(path).map_err(Into::into).and_then(GivenFile::whole).with_context(context)
}

/// Reads standard input as a whole.
///
/// # Errors
/// As of [`read`].
pub fn standard_input() -> anyhow::Result<Vec<u8>> {
    GivenFile::standard().map_err(Into::into).and_then(GivenFile::whole).context("cannot read standard input")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end_and_no_device_fills_the_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a pipe");
        let writer = {
            let pipe = pipe.clone();
            thread::spawn(move || {
                let mut file = File::options().write(true).open(pipe).expect("it is opened");
                (0..3).try_for_each(|_| file.write_all(&[b'a'; 50_000])).expect("it is written");
            })
        };
        assert_eq!(read(&pipe).expect("it is read").len(), 150_000);
        writer.join().expect("it ends");
        assert_eq!(read(Path::new("/dev/null")).expect("it is read"), b"");
        let why = read(Path::new("/dev/zero")).expect_err("it never ends");
        assert!(
            format!("{why:#}")
                .contains("cannot read /dev/zero: it is longer than 256 MiB, which is the limit"),
            "{why:#}"
        );
        assert!(format!("{:#}", read(folder.path()).expect_err("a folder")).contains("directory"));
    }
}
