//! Packages of a release of Debian that are unpacked into a folder of the cache, for runtimes and servers that this machine does
//! not have. Nothing is installed, and the machine's own sources, lists and packages stay as they are.
//!
//! [`apt`] has the words for apt, which verifies what it fetches; [`fetch`] runs it; [`moved`] makes programs run where they are
//! unpacked. A folder exists completely or not at all.

mod apt;
mod fetch;
mod moved;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::homes;
use crate::parcel::sha256;

pub use fetch::fetch;

/// The folder in the cache of narrows with the packages of releases.
pub const CACHE: &str = "debian";

/// Debian's keys. The package of this name has them, also on distributions that are made of Debian.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The package with Debian's keys.
const KEYRING_PACKAGE: &str = "debian-archive-keyring";
/// The file in each folder with the names and versions of the packages, one in a line.
const RECORD: &str = "PACKAGES";
/// A part of the folder's name. A change of how packages are unpacked changes it, so that older folders are not used.
const LAYOUT: &str = "1";

/// Packages of a release of Debian.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Debian {
    /// The release's name, such as `bullseye`. See [`release_fault`].
    pub release: String,
    /// The packages' names. Never empty. See [`package_fault`].
    pub packages: Vec<String>,
    /// Whether the packages on which they depend are unpacked as well. Programs need those, data does not.
    pub dependencies: bool,
    /// The name of the folder in placeholders, where a system has several. It does not change what is fetched.
    pub name: Option<String>,
}

/// Why packages are not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// They can be fetched.
    Unfetched,
    /// A program that fetches them is not installed.
    Tool(&'static str),
    /// The machine does not have Debian's keys.
    Keys,
    /// There is no folder for them. The text says why.
    NoFolder(String),
}

/// What is wrong with the name of a release; `None` if it can be passed to apt.
pub fn release_fault(name: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good =
        name.len() <= 40 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(plain);
    (!good).then_some("a release's name has small letters, digits and `-`, such as bookworm")
}

/// What is wrong with the name of a package; `None` if it can be passed to apt.
pub fn package_fault(name: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    // To apt-get a `-` at the end means: remove the package.
    let good = (2..=100).contains(&name.len()) && begins && !name.ends_with('-') && name.chars().all(plain);
    (!good).then_some("a package's name has small letters, digits, `+`, `-` and `.`, such as erlang-base")
}

impl Debian {
    /// The folder with the unpacked packages, whether it exists or not. `None` if the user has no folder for a cache.
    pub fn folder(&self) -> Option<PathBuf> {
        Some(homes::cache()?.join(CACHE).join(self.key()))
    }

    /// The folder's name.
    fn key(&self) -> String {
        let dependencies = if self.dependencies { "with" } else { "without" };
        let mut words = vec![LAYOUT, env::consts::ARCH, dependencies];
        let mut packages: Vec<&str> = self.packages.iter().map(String::as_str).collect();
        packages.sort_unstable();
        words.extend(packages);
        let hash: String = sha256(words.join("\n").as_bytes()).chars().take(12).collect();
        format!("{}-{hash}", self.release)
    }

    /// Why the packages are not here, and what is missing to fetch them; `None` if they are here.
    pub fn absent(&self) -> Option<Absent> {
        let Some(folder) = self.folder() else {
            return Some(Absent::NoFolder(
                "it has no folder for a cache: set XDG_CACHE_HOME or HOME".to_owned(),
            ));
        };
        if folder.is_dir() {
            return None;
        }
        if let Err(why) = moved::can_be_moved_to(&folder) {
            return Some(Absent::NoFolder(why));
        }
        if let Some(tool) = ["apt-get", "dpkg-deb"].into_iter().find(|tool| !is_installed(tool)) {
            return Some(Absent::Tool(tool));
        }
        Some(if Path::new(KEYRING).exists() { Absent::Unfetched } else { Absent::Keys })
    }

    /// What to do if the packages are here, and are not what is needed.
    pub fn get_another(&self) -> String {
        let folder = self.folder().unwrap_or_default();
        let release = &self.release;
        format!(
            "Debian's {release} may have another version by now: remove {} to fetch it again",
            folder.display()
        )
    }

    /// The version of the first package.
    ///
    /// # Errors
    /// The packages are not here, or their record was changed.
    pub fn version(&self) -> Result<String, String> {
        let record = self.folder().unwrap_or_default().join(RECORD);
        let text = fs::read_to_string(&record).map_err(|e| format!("{}: {e}", record.display()))?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(name, _)| self.packages.first().is_some_and(|first| first == name));
        found.map(|(_, version)| version.to_owned()).ok_or_else(|| format!("{} lacks it", record.display()))
    }
}

impl Absent {
    /// Whether Narrows can fetch it, once the packages of this machine are there that [`Absent::packages`] names.
    pub fn can_be_fetched(&self) -> bool {
        matches!(self, Self::Unfetched | Self::Keys)
    }

    /// What is missing, in a few words.
    pub fn detail(&self) -> String {
        match self {
            Self::Unfetched => "not fetched yet".to_owned(),
            Self::Tool(tool) => format!("`{tool}` is not installed, which fetches it"),
            Self::Keys => format!("Debian's keys, {KEYRING}, are not here"),
            Self::NoFolder(why) => why.clone(),
        }
    }

    /// How a person gets it. `system` is the system that needs it.
    pub fn get(&self, debian: &Debian, system: &str) -> String {
        let fetch = format!("narrows systems --install {system}");
        match self {
            Self::Unfetched => {
                format!("{fetch} fetches it from Debian's {}, and installs nothing", debian.release)
            }
            Self::Tool(_) => {
                format!(
                    "install apt and dpkg, as on Debian and Ubuntu; then {fetch} fetches it from Debian's {}",
                    debian.release
                )
            }
            Self::Keys => {
                format!(
                    "apt-get install {KEYRING_PACKAGE}; then {fetch} fetches it from Debian's {}",
                    debian.release
                )
            }
            Self::NoFolder(_) => "let XDG_CACHE_HOME name another folder".to_owned(),
        }
    }

    /// The Debian packages of this machine that are missing to fetch it.
    pub fn packages(&self) -> Vec<String> {
        if *self == Self::Keys { vec![KEYRING_PACKAGE.to_owned()] } else { Vec::new() }
    }
}

/// Whether a program of this name is in a folder of `PATH`.
pub fn is_installed(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debian(release: &str, packages: &[&str], dependencies: bool) -> Debian {
        let packages = packages.iter().map(|name| (*name).to_owned()).collect();
        Debian { release: release.to_owned(), packages, dependencies, name: None }
    }

    #[test]
    fn names_that_apt_would_take_for_something_else_are_refused() {
        for (name, good) in [
            ("bullseye", true),
            ("bookworm-backports", true),
            ("", false),
            ("-o", false),
            ("Bullseye", false),
            ("a b", false),
            ("bullseye/updates", false),
            ("x]", false),
            ("a\nb", false),
            (&"x".repeat(41), false),
        ] {
            assert_eq!(release_fault(name).is_none(), good, "{name:?}");
        }
        for (name, good) in [
            ("erlang-base", true),
            ("libstdc++6", true),
            ("g++", true),
            ("7zip", true),
            ("python3.11", true),
            ("", false),
            ("a", false),
            ("-y", false),
            ("--download-only", false),
            ("nginx-", false),
            ("nginx=1", false),
            ("nginx/sid", false),
            ("nginx:i386", false),
            ("./x.deb", false),
            ("nginx*", false),
            ("a;b", false),
            ("NGINX", false),
        ] {
            assert_eq!(package_fault(name).is_none(), good, "{name:?}");
        }
    }

    #[test]
    fn each_set_of_packages_has_a_folder_of_its_own() {
        let some = debian("bullseye", &["a1", "b1"], true);
        assert_eq!(some.key(), debian("bullseye", &["b1", "a1"], true).key(), "the order does not matter");
        let others = [
            debian("bookworm", &["a1", "b1"], true),
            debian("bullseye", &["a1"], true),
            debian("bullseye", &["a1", "b1"], false),
        ];
        assert!(others.iter().all(|other| other.key() != some.key()));
        assert!(some.key().starts_with("bullseye-") && some.key().len() == "bullseye-".len() + 12);
    }
}
