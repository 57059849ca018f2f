//! The certificates of the servers that a session starts: an authority of its own, and files in a folder that it is given.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use systems::Work;
use systems::manifest::{Manifest, key_of};
use tls::{Authority, Dialing, KeyKind, Leaf, Parameters, Trust};

/// The name by which the generator calls every server that it starts.
const NAME: &str = "localhost";
/// The names in every certificate.
const NAMES: [&str; 3] = [NAME, "127.0.0.1", "::1"];

/// How long before and after its beginning a session's certificates are valid. No run is that long.
const BEFORE: Duration = Duration::from_secs(24 * 3600);
const AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

/// An authority, and what it has issued so far, as files.
#[derive(Debug)]
pub(super) struct Certificates {
    authority: Authority,
    valid: (SystemTime, SystemTime),
    folder: PathBuf,
    /// The names in the certificates.
    names: Vec<String>,
    issued: BTreeMap<KeyKind, PathBuf>,
}

impl Certificates {
    /// An authority whose certificates will be in `folder`, for servers that listen at this address.
    pub(super) fn new(folder: PathBuf, address: IpAddr) -> io::Result<Self> {
        let now = SystemTime::now();
        let valid = (now - BEFORE, now + AFTER);
        let authority = Authority::new(valid.0, valid.1).map_err(io::Error::other)?;
        let mut names = NAMES.map(str::to_owned).to_vec();
        names.extend(Some(address.to_string()).filter(|name| !NAMES.contains(&name.as_str())));
        Ok(Self { authority, valid, folder, names, issued: BTreeMap::new() })
    }

    /// The path of a certificate with a key of this kind.
    pub(super) fn of(&mut self, kind: KeyKind) -> io::Result<PathBuf> {
        if let Some(path) = self.issued.get(&kind) {
            return Ok(path.clone());
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let leaf = Leaf { names: &names, key: kind, from: self.valid.0, until: self.valid.1 };
        let issued = self.authority.issue(&leaf).map_err(io::Error::other)?;
        let path = self.folder.join(format!("{}.pem", kind.name()));
        write(&path, &issued.certificate)?;
        write(&key_of(&path), &issued.key)?;
        self.issued.insert(kind, path.clone());
        Ok(path)
    }

    /// The root that they lead to.
    pub(super) fn root(&self) -> Vec<u8> {
        self.authority.certificate().into_bytes()
    }
}

/// Writes a file that only its owner may read. It replaces that of an earlier authority, in a folder that is the session's own.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(bytes)
}

/// How the generator speaks TLS in a trial; `None` for plain text. `root` is that of the session's own authority.
pub(super) fn dialing(manifest: &Manifest, work: &Work, root: Option<&[u8]>) -> Option<Dialing> {
    let tls = work.tls()?;
    let own = manifest.tls.clone();
    let parameters = own.as_ref().map(|own| own.parameters.clone()).unwrap_or_default();
    let parameters = Parameters { versions: vec![tls.version], sessions: tls.sessions, ..parameters };
    match (own, root) {
        (Some(own), None) => Some(Dialing { parameters, ..own }),
        (own, root) => Some(Dialing {
            name: NAME.to_owned(),
            trust: Trust::Pem(root.unwrap_or_default().to_vec()),
            identity: own.and_then(|own| own.identity),
            parameters,
        }),
    }
}
