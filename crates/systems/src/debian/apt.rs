//! What is said to apt, and what its answers mean. Pure.

use std::path::Path;

/// The mirror of those who have none of their own.
pub(super) const USUAL: &str = "http://deb.debian.org/debian";
/// Where the releases are that have left the mirrors.
pub(super) const ARCHIVE: &str = "http://archive.debian.org/debian";
/// A program that lets programs find their libraries elsewhere. Every release has it.
pub(super) const PATCHELF: &str = "patchelf";

/// Packages whose files only the scripts of an installation and of the system need. No such script runs, so apt is told that they
/// are installed.
const ASSUMED: [&str; 17] = [
    "adduser",
    "ca-certificates",
    "debconf",
    "dpkg",
    "init-system-helpers",
    "iproute2",
    "logrotate",
    "lsb-base",
    "media-types",
    "mime-support",
    "passwd",
    "procps",
    "systemd",
    "sysvinit-utils",
    "tzdata",
    "ucf",
    "usrmerge",
];

/// The configuration that apt reads behind the machine's own. Of the machine's, only how to reach a mirror is left, such as a proxy.
/// `state` is the folder for everything that apt writes.
pub(super) fn config(state: &Path) -> String {
    let state = state.display();
    format!(
        "#clear APT::Architectures;\n\
         #clear APT::Default-Release;\n\
         #clear APT::Update::Pre-Invoke;\n\
         #clear APT::Update::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n\
         Dir::State \"{state}\";\n\
         Dir::State::lists \"{state}/lists\";\n\
         Dir::State::status \"{state}/status\";\n\
         Dir::State::extended_states \"{state}/extended_states\";\n\
         Dir::Cache \"{state}\";\n\
         Dir::Cache::archives \"{state}/archives\";\n\
         Dir::Cache::pkgcache \"\";\n\
         Dir::Cache::srcpkgcache \"\";\n\
         Dir::Etc::sourcelist \"{state}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::Log \"{state}\";\n\
         APT::Sandbox::User \"root\";\n\
         APT::Install-Recommends \"false\";\n\
         APT::Install-Suggests \"false\";\n\
         APT::Get::AllowUnauthenticated \"false\";\n\
         Acquire::AllowInsecureRepositories \"false\";\n\
         Acquire::AllowWeakRepositories \"false\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::GzipIndexes \"true\";\n\
         Acquire::PDiffs \"false\";\n"
    )
}

/// The only source that apt knows.
pub(super) fn source(keyring: &str, mirror: &str, release: &str) -> String {
    format!("deb [target=Packages signed-by={keyring}] {mirror} {release} main\n")
}

/// The packages that apt takes for installed.
pub(super) fn status() -> String {
    let entry = |name: &str| {
        format!(
            "Package: {name}\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: foreign\nVersion: 99:9\n\
             Maintainer: none\nDescription: none\n\n"
        )
    };
    ASSUMED.into_iter().map(entry).collect()
}

/// Where a release may be, in the order in which one looks. `own` is what `apt-get indextargets` says of the machine's sources: the
/// URI of a repository in each line. Only a mirror of Debian's main archive ends with `debian`.
pub(super) fn mirrors(own: &str) -> Vec<String> {
    let is_mirror = |uri: &&str| {
        let plain = uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"[]\"#".contains(&byte));
        plain && (uri.starts_with("http://") || uri.starts_with("https://")) && uri.ends_with("/debian")
    };
    let mut uris = own.lines().map(|line| line.trim().trim_end_matches('/'));
    let mut mirrors = Vec::from_iter(uris.find(is_mirror).map(str::to_owned));
    for known in [USUAL, ARCHIVE] {
        if mirrors.iter().all(|mirror| mirror != known) {
            mirrors.push(known.to_owned());
        }
    }
    mirrors
}

/// What an update of the lists found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Update {
    /// The lists are here.
    Found,
    /// The mirror does not have the release.
    Gone,
    /// Something else, in words.
    Failed(String),
}

/// What `apt-get update` found. It also succeeds if it reached nobody, and then there are no lists.
pub(super) fn update(succeeded: bool, has_lists: bool, output: &str) -> Update {
    if succeeded && has_lists {
        return Update::Found;
    }
    if output.contains("does not have a Release file") {
        return Update::Gone;
    }
    let keys = ["NO_PUBKEY", "EXPKEYSIG", "is not signed", "no longer signed", "couldn't be verified"];
    let why = why(output);
    if keys.iter().any(|word| output.contains(word)) {
        return Update::Failed(format!("{why}; a newer debian-archive-keyring may have the keys"));
    }
    Update::Failed(why)
}

/// The line in which apt-get says why it failed.
pub(super) fn why(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let of = |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix));
    let line = of("E: ").or_else(|| of("W: ")).or_else(|| lines.last().copied());
    line.unwrap_or("apt-get said nothing").chars().take(300).collect()
}

/// The name and version of a package from the name of its file.
pub(super) fn named(file: &str) -> Option<(String, String)> {
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some((name.to_owned(), version.replace("%3a", ":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_writes_only_where_it_is_told_and_knows_one_source() {
        let config = config(Path::new("/c/state"));
        let set = |name: &str| {
            let line = config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" \""));
            line.unwrap_or_default().trim_end_matches("\";").to_owned()
        };
        for name in [
            "Dir::State",
            "Dir::State::lists",
            "Dir::State::status",
            "Dir::Cache",
            "Dir::Cache::archives",
            "Dir::Log",
        ] {
            assert!(set(name).starts_with("/c/state"), "{name}: {}", set(name));
        }
        assert_eq!(set("Dir::Etc::sourcelist"), "/c/state/sources.list");
        assert_eq!(set("Dir::Etc::sourceparts"), "/dev/null");
        assert_eq!(set("Acquire::AllowInsecureRepositories"), "false");
        assert_eq!(
            source("/k.gpg", "http://m/debian", "bullseye"),
            "deb [target=Packages signed-by=/k.gpg] http://m/debian bullseye main\n"
        );
        assert!(status().starts_with("Package: adduser\nStatus: install ok installed\n"));
    }

    #[test]
    fn a_release_is_looked_for_at_the_machines_own_mirror_first_and_in_the_archive_last() {
        for (own, first) in [
            ("http://ftp.example.org/pub/debian/\n", "http://ftp.example.org/pub/debian"),
            ("http://h/debian-security/\nhttps://h/debian/\nhttp://other/debian/\n", "https://h/debian"),
            ("http://proxy:3142/deb.debian.org/debian/\n", "http://proxy:3142/deb.debian.org/debian"),
            ("http://archive.ubuntu.com/ubuntu/\n", USUAL),
            ("http://snapshot.debian.org/archive/debian/20250520T000000Z/\n", USUAL),
            ("file:/srv/debian/\ncdrom:[x]/debian/\nhttp://a b/debian\n", USUAL),
            ("", USUAL),
        ] {
            let mirrors = mirrors(own);
            assert_eq!(mirrors[0], first, "{own}");
            assert_eq!(mirrors.last().map(String::as_str), Some(ARCHIVE));
            assert_eq!(mirrors.len(), if first == USUAL { 2 } else { 3 });
        }
        assert_eq!(mirrors("http://archive.debian.org/debian/\n"), [ARCHIVE, USUAL]);
    }

    #[test]
    fn an_update_without_lists_is_none() {
        let gone = "Err:2 http://m nosuch Release\n  404\nE: The repository 'http://m nosuch Release' does not have a Release file.";
        let unreached = "Err:1 http://m x InRelease\n  Could not resolve 'm'\nReading package lists...\n\
                         W: Failed to fetch http://m/dists/x/InRelease  Could not resolve 'm'\nW: Some index files failed";
        let unsigned = "W: GPG error: http://m x InRelease: not available: NO_PUBKEY 1\nE: The repository 'http://m x' is not signed.";
        for (succeeded, has_lists, output, expected) in [
            (true, true, "", Update::Found),
            (true, true, unreached, Update::Found),
            (false, false, gone, Update::Gone),
            (true, false, unreached, Update::Failed("Failed to fetch http://m/dists/x/InRelease  Could not resolve 'm'".to_owned())),
            (
                false,
                false,
                unsigned,
                Update::Failed(
                    "The repository 'http://m x' is not signed.; a newer debian-archive-keyring may have the keys".to_owned(),
                ),
            ),
            (true, false, "", Update::Failed("apt-get said nothing".to_owned())),
        ] {
            assert_eq!(update(succeeded, has_lists, output), expected, "{output}");
        }
    }

    #[test]
    fn the_names_of_files_have_the_versions() {
        let of = |file: &str| named(file).map(|(name, version)| format!("{name} {version}"));
        assert_eq!(
            of("erlang-base_1%3a23.2.6+dfsg-1_amd64.deb").as_deref(),
            Some("erlang-base 1:23.2.6+dfsg-1")
        );
        assert_eq!(of("partial"), None);
        assert_eq!(of("x.deb"), None);
    }
}
