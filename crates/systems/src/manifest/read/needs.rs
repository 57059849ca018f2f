//! `[[needs]]`: what the machine must have, and packages of a release of Debian.

use std::ops::Range;

use toml::Spanned;

use super::super::{Manifest, Need, Program, Start, debian_name};
use super::raw::{RawDebian, RawNeed};
use super::{Read, Reader};
use crate::debian::{self, Debian};
use crate::manifest::BuildInput;
use crate::template;

impl Reader<'_> {
    pub(in crate::manifest) fn need(&self, raw: RawNeed) -> Read<Need> {
        let debian = raw.debian.as_ref().map(|raw| self.debian(raw)).transpose()?;
        match &raw.probe {
            Some(probe) if probe.get_ref().first().is_none_or(String::is_empty) => {
                let help = "name a command, such as [\"erl\", \"-version\"]";
                return self.wrong(probe.span(), "an empty probe", help);
            }
            None if debian.is_none() => {
                let help = "add probe = [\"erl\", \"-version\"]: a command that exits with 0 if it is there, and prints its version";
                return self.wrong(
                    raw.name.span(),
                    "it does not say how to find out whether it is there",
                    help,
                );
            }
            _ => {}
        }
        if let Some(version) = &raw.version
            && let Err(e) = regex::Regex::new(version.get_ref())
        {
            let reason = e.to_string().lines().last().unwrap_or_default().trim().to_owned();
            let message = format!("not a regular expression: {reason}");
            return self.wrong(
                version.span(),
                message,
                "see docs.rs/regex for the syntax; quote it with '…'",
            );
        }
        if raw.get.is_none() && debian.is_none() {
            let help = "add get = \"…\": what a person types";
            return self.wrong(raw.name.span(), "it does not say how to get it", help);
        }
        if let Some(debian) = raw.debian.filter(|_| !raw.packages.is_empty()) {
            let help =
                "keep one: packages are installed on the machine, those of debian are unpacked in the cache";
            return self.wrong(debian.span(), "packages and debian at once", help);
        }
        Ok(Need {
            name: raw.name.into_inner(),
            probe: raw.probe.map(Spanned::into_inner).unwrap_or_default(),
            version: raw.version.map(Spanned::into_inner),
            get: raw.get.unwrap_or_default(),
            packages: raw.packages,
            debian,
        })
    }

    fn debian(&self, raw: &Spanned<RawDebian>) -> Read<Debian> {
        let (span, raw) = (raw.span(), raw.get_ref());
        let checked =
            |name: &Spanned<String>, fault: fn(&str) -> Option<&'static str>, kind: &str| match fault(
                name.get_ref(),
            ) {
                Some(help) => {
                    self.wrong(name.span(), format!("`{}` cannot be a {kind}'s name", name.get_ref()), help)
                }
                None => Ok(name.get_ref().clone()),
            };
        let release = checked(&raw.release, debian::release_fault, "release")?;
        let packages = raw.packages.iter().map(|name| checked(name, debian::package_fault, "package"));
        let packages = packages.collect::<Read<Vec<_>>>()?;
        if packages.is_empty() {
            return self.wrong(span, "no package", "name at least one: packages = [\"erlang-base\"]");
        }
        if let Some(name) = &raw.name {
            self.word(name, "folder")?;
        }
        let name = raw.name.as_ref().map(|name| name.get_ref().clone());
        Ok(Debian { release, packages, dependencies: raw.dependencies, name })
    }

    /// Checks that each placeholder for a folder of packages means one.
    pub(in crate::manifest) fn debians(&self, span: &Range<usize>, manifest: &Manifest) -> Read<()> {
        let mut all: Vec<&Debian> = manifest.needs.iter().filter_map(|need| need.debian.as_ref()).collect();
        all.sort_by_key(|debian| &debian.name);
        if all.windows(2).any(|two| matches!(two, [one, other] if one.name == other.name && one != other)) {
            let help = "give one of them a name: with debian = { name = \"x\", … } its folder is {debian.x}";
            return self.wrong(
                span.clone(),
                "two needs with packages of a release and one placeholder",
                help,
            );
        }
        let names = texts(manifest).flat_map(|text| template::names(text).unwrap_or_default());
        let has =
            |name: Option<&str>| all.binary_search_by_key(&name, |debian| debian.name.as_deref()).is_ok();
        let mut unknown = names.filter(|name| debian_name(name).is_some_and(|name| !has(name)));
        match unknown.next() {
            Some(name) => {
                let help = "add a need with debian = { release = \"…\", packages = [\"…\"] }, and its name if it has one here";
                self.wrong(span.clone(), format!("no need has the packages of {{{name}}}"), help)
            }
            None => Ok(()),
        }
    }
}

/// The commands and paths of a system, and the environment of its variant.
fn texts(manifest: &Manifest) -> impl Iterator<Item = &String> {
    let build = manifest.build.iter().flat_map(|build| {
        let paths = build.inputs.iter().filter_map(|input| match input {
            BuildInput::Path(path) => Some(path),
            BuildInput::Variable(_) => None,
        });
        build.command.iter().chain(build.version.iter().flatten()).chain(paths)
    });
    let variant = manifest.variant.iter().flat_map(|variant| variant.env.values().chain(&variant.path));
    let start = match &manifest.program {
        Program::Started(start) => Some(start),
        Program::Attached(_) => None,
    };
    build.chain(variant).chain(start.into_iter().flat_map(Start::texts))
}
