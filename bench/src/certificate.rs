//! The certificate of the servers: P-256, by an authority that exists for one run. A folder has its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use tls::{Authority, Identity, KeyKind, Leaf};

/// Issues a certificate for this machine, and writes it, its key and the root.
pub fn issue(folder: &Path) -> anyhow::Result<()> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let now = SystemTime::now();
    let (from, until) = (now - DAY, now + DAY);
    let authority = Authority::new(from, until)?;
    let issued = authority.issue(&Leaf { names: &["127.0.0.1"], key: KeyKind::P256, from, until })?;
    fs::write(root(folder), authority.certificate())?;
    fs::write(chain(folder), issued.certificate)?;
    Ok(fs::write(key(folder), issued.key)?)
}

/// Reads the certificate and its key.
pub fn read(folder: &Path) -> anyhow::Result<Identity> {
    let read = |file: PathBuf| fs::read(&file).with_context(|| file.display().to_string());
    Ok(Identity { certificate: read(chain(folder))?, key: read(key(folder))? })
}

/// The file that clients need.
pub fn root(folder: &Path) -> PathBuf {
    folder.join("root.pem")
}

/// The file of the certificate.
pub fn chain(folder: &Path) -> PathBuf {
    folder.join("certificate.pem")
}

/// The file of its key.
pub fn key(folder: &Path) -> PathBuf {
    folder.join("key.pem")
}
