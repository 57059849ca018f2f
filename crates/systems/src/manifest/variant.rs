//! Variants: one system on several runtimes or library versions. Each variant is a system of its own, named
//! `SYSTEM@VARIANT`.
//!
//! A variant becomes a complete [`Manifest`] here. The rest of the program knows variants only by the environment of
//! their commands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::read::{Known, RawEnvironment, RawVariant, Read, Reader};
use super::{DEBIAN, Manifest, Program, USERS};
use crate::template;

/// The most variants of a system. Each is a whole manifest in memory, with all that the plain system says.
const MOST_VARIANTS: usize = 100;

/// What a variant adds to its [`Manifest`]: the environment of all of its commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The name after the `@`.
    pub name: String,
    /// A folder to put in front of `PATH`. May contain placeholders, including `{$NAME}` for the user's environment.
    pub path: Option<String>,
    /// Variables for probes, build and start. Values may contain the same placeholders.
    pub env: BTreeMap<String, String>,
    /// How a person gets what `path` and `env` refer to.
    pub get: String,
}

/// Something that a variant needs but the user's environment lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unset {
    /// Its name.
    pub(crate) name: String,
    /// What is wrong with it.
    pub(crate) detail: String,
}

impl Manifest {
    /// The variables that every command of this system gets. Empty if it is not a variant. `PATH` is only the variant's
    /// own folder, without the user's `PATH`.
    pub(crate) fn environment(
        &self,
        users: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<(String, String)>, Unset> {
        let Some(variant) = &self.variant else { return Ok(Vec::new()) };
        let fill = |text: &String| self.fill_environment(text, &users);
        let mut environment = Vec::new();
        for (name, value) in &variant.env {
            environment.push((name.clone(), fill(value)?));
        }
        if let Some(path) = &variant.path {
            let path = fill(path)?;
            if !std::path::Path::new(&path).is_dir() {
                return Err(Unset { name: path, detail: "no such folder".to_owned() });
            }
            environment.push(("PATH".to_owned(), path));
        }
        Ok(environment)
    }

    fn fill_environment(
        &self,
        text: &str,
        users: &impl Fn(&str) -> Option<OsString>,
    ) -> Result<String, Unset> {
        let value =
            |name: &str| users(name).filter(|v| !v.is_empty()).map(|v| v.to_string_lossy().into_owned());
        let names = template::names(text).unwrap_or_default();
        if let Some(name) =
            names.iter().filter_map(|name| name.strip_prefix('$')).find(|n| value(n).is_none())
        {
            let name = format!("the environment variable {name}");
            return Err(Unset { name, detail: "not set".to_owned() });
        }
        let filled = template::expand(text, |name| match name.strip_prefix('$') {
            Some(variable) => value(variable),
            None => self.constant(name),
        });
        filled.map_err(|detail| Unset { name: self.name.clone(), detail })
    }

    /// Sets the environment of this system's variant on a command.
    pub(crate) fn set_environment(&self, command: &mut Command) -> Result<(), String> {
        let environment = self.environment(|name| std::env::var_os(name));
        for (name, value) in environment.map_err(|unset| format!("{}: {}", unset.name, unset.detail))? {
            if name == "PATH" && self.variant.as_ref().is_some_and(|variant| variant.path.is_some()) {
                let mut path = OsString::from(value);
                if let Some(users) = std::env::var_os("PATH") {
                    path.push(":");
                    path.push(users);
                }
                command.env(name, path);
            } else {
                command.env(name, value);
            }
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// The plain system, followed by its variants.
    pub(super) fn with_variants(
        &self,
        plain: Manifest,
        raw: BTreeMap<Spanned<String>, RawVariant>,
    ) -> Read<Vec<Manifest>> {
        if let Some(beyond) = raw.keys().nth(MOST_VARIANTS) {
            let message = format!("more than {MOST_VARIANTS} variants, the most of a system");
            return self.wrong(beyond.span(), message, "divide them among several systems");
        }
        let mut all = vec![plain.clone()];
        for (name, raw) in raw {
            let variant = self.variant(&plain, &name, raw)?;
            all.push(variant);
        }
        Ok(all)
    }

    /// What a variant adds to the environment of its commands.
    pub(super) fn added(
        &self,
        name: &Spanned<String>,
        path: Option<&Spanned<String>>,
        env: &RawEnvironment,
        get: Option<String>,
    ) -> Read<Variant> {
        self.word(name, "variant")?;
        let known = Known::from_iter(["dir", "home", "variant", DEBIAN, USERS]);
        let path = path.map(|path| self.placeholders(path, &known)).transpose()?;
        let env = self.environment(env, &known)?;
        let users = env.values().chain(&path).any(|text| text.contains("{$"));
        if users && get.is_none() {
            let help = "add get = \"…\": what to set, and how a person gets it";
            return self.wrong(name.span(), "it does not say how to get what the user must set", help);
        }
        if env.contains_key("PATH") && path.is_some() {
            return self.wrong(name.span(), "path and env.PATH at once", "keep one");
        }
        Ok(Variant { name: name.get_ref().clone(), path, env, get: get.unwrap_or_default() })
    }

    fn variant(&self, plain: &Manifest, name: &Spanned<String>, raw: RawVariant) -> Read<Manifest> {
        let added = self.added(name, raw.path.as_ref(), &raw.env, raw.get)?;
        let mut variant = plain.clone();
        variant.name = format!("{}@{}", plain.name, name.get_ref());
        variant.about = raw.about.unwrap_or_else(|| plain.about.clone());
        for need in raw.needs {
            let need = self.need(need)?;
            match variant.needs.iter_mut().find(|known| known.name == need.name) {
                Some(known) => *known = need,
                None => variant.needs.push(need),
            }
        }
        if let Some(build) = &raw.build {
            variant.build = Some(self.build(build)?);
        }
        if let Some(start) = &raw.start {
            let span = start.command.span();
            let start = self.start(start, plain.role, &plain.knobs, &plain.dir)?;
            let knob_spans: Vec<_> = plain.knobs.keys().map(|knob| (knob.as_str(), span.clone())).collect();
            self.every_knob_used(&knob_spans, &start)?;
            variant.program = Program::Started(start);
        }
        if raw.answer.is_some() {
            variant.answer = self.answer(raw.answer.as_ref(), &plain.workloads)?;
        }
        variant.variant = Some(added);
        self.debians(&name.span(), &variant)?;
        Ok(variant)
    }
}
