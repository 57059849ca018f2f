//! Profiles in the formats of other tools. Pure.

mod pprof;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::profile::{Frame, Kind, Profile};

pub use pprof::pprof;

/// Stacks in lines, as flamegraph.pl and many other tools read them (Brendan Gregg's folded format): the names from the root to
/// the leaf with `;` between them, a space, and the number of samples.
///
/// As stackcollapse-perf.pl does, it writes `:` for a `;` in a name, and marks what flamegraph.pl colours: `_[k]` follows functions
/// of the kernel, `_[j]` functions that a runtime made, `_[i]` inlined ones. Lines of source files are not in this format.
pub fn folded(profile: &Profile) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &profile.stacks {
        let names: Vec<String> = profile.frames_of(stack).map(folded_name).collect();
        let sum = lines.entry(names.join(";")).or_default();
        *sum = sum.saturating_add(stack.count);
    }
    lines.into_iter().map(|(names, count)| format!("{names} {count}\n")).collect()
}

fn folded_name(frame: &Frame) -> String {
    let mark = match frame.kind {
        Kind::Kernel => "_[k]",
        Kind::Runtime => "_[j]",
        Kind::User if frame.inlined => "_[i]",
        Kind::User | Kind::Unknown => "",
    };
    // A name without characters would look like the end of the line.
    let name = if frame.name.is_empty() { "[unknown]" } else { &frame.name };
    let name = name.replace(';', ":").replace(['\n', '\r'], " ");
    if frame.kind == Kind::Unknown && !frame.module.is_empty() {
        // What is not known is told apart by where it is.
        return format!("{name} {}", frame.module.replace(';', ":").replace(['\n', '\r'], " "));
    }
    format!("{name}{mark}")
}

/// JSON for <https://www.speedscope.app> (its file-format-schema.json): a profile of the type `sampled` for each of these, with its
/// name. Each stack has the weight of its CPU time in nanoseconds.
///
/// The order of the stacks is not that of time: use its views "Left Heavy" and "Sandwich".
pub fn speedscope(profiles: &[(String, &Profile)], title: &str) -> String {
    let mut shared = Shared::default();
    let profiles: Vec<Value> = profiles.iter().map(|(name, profile)| shared.sampled(name, profile)).collect();
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "narrows",
        "name": title,
        "activeProfileIndex": 0,
        "shared": { "frames": shared.frames },
        "profiles": profiles,
    })
    .to_string()
}

/// The functions that the profiles of a file share.
#[derive(Default)]
struct Shared<'p> {
    frames: Vec<Value>,
    indices: HashMap<(&'p str, &'p str, Option<&'p str>), usize>,
}

impl<'p> Shared<'p> {
    fn sampled(&mut self, name: &str, profile: &'p Profile) -> Value {
        let mut samples: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
        for stack in &profile.stacks {
            let sample = profile.frames_of(stack).map(|frame| self.index(frame)).collect();
            let weight = samples.entry(sample).or_default();
            *weight = weight.saturating_add(stack.count.saturating_mul(profile.period_ns));
        }
        let end = samples.values().fold(0_u64, |sum, weight| sum.saturating_add(*weight));
        let (samples, weights): (Vec<_>, Vec<_>) = samples.into_iter().unzip();
        json!({
            "type": "sampled",
            "name": name,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": end,
            "samples": samples,
            "weights": weights,
        })
    }

    fn index(&mut self, frame: &'p Frame) -> usize {
        // Without the line: speedscope shows two frames as two functions.
        let key = (frame.name.as_str(), frame.module.as_str(), frame.file.as_deref());
        *self.indices.entry(key).or_insert_with(|| {
            self.frames.push(speedscope_frame(frame));
            self.frames.len().saturating_sub(1)
        })
    }
}

fn speedscope_frame(frame: &Frame) -> Value {
    let mut value = json!({ "name": frame.name });
    if let (Value::Object(fields), Some(file)) = (&mut value, frame.file.as_ref().or(module(frame))) {
        fields.insert("file".into(), json!(file));
    }
    value
}

/// Where the source is not known, the module says where a function is from.
fn module(frame: &Frame) -> Option<&String> {
    Some(&frame.module).filter(|module| !module.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Table;
    use crate::profile::tests::{frame, profile};

    /// A stack with one frame of each kind, and names that the formats could take for their own marks.
    pub(super) fn varied() -> Profile {
        let user = |name: &str| Frame { file: Some("/src/a;b.c".into()), line: Some(7), ..frame(name) };
        let other = |name: &str, kind, module: &str| Frame { kind, module: module.into(), ..frame(name) };
        let mut table = Table::default();
        let root = [user("main"), Frame { inlined: true, ..user("std::map<a; b>::at(int)") }];
        table.add(root.clone().into_iter().chain([frame("__x64_sys_read")]), 4);
        table.add(root.clone().into_iter().chain([Frame { line: Some(8), ..user("f") }]), 2);
        table.add(root.into_iter().chain([user("f")]), 1);
        table.add(
            [
                other("JS:*at /a.js:1:2", Kind::Runtime, "[perf map]"),
                other("[unknown]", Kind::Unknown, "/lib/x.so"),
            ],
            3,
        );
        let mut profile = Profile { period_ns: 1_000_000, samples: 10, ..Profile::default() };
        table.put_into(&mut profile);
        profile
    }

    #[test]
    fn folded_lines() {
        let expected = "JS:*at /a.js:1:2_[j];[unknown] /lib/x.so 3\n\
                        main;std::map<a: b>::at(int)_[i];__x64_sys_read_[k] 4\n\
                        main;std::map<a: b>::at(int)_[i];f 3\n";
        assert_eq!(folded(&varied()), expected);
        assert_eq!(folded(&Profile::default()), "");
        assert_eq!(folded(&profile(&[(&["", "a\nb"], 1)])), "[unknown];a b 1\n");
    }

    #[test]
    fn speedscope_json() {
        let json: Value =
            serde_json::from_str(&speedscope(&[("a \"run\"".to_owned(), &varied())], "a \"run\"")).unwrap();
        assert_eq!(json["name"], "a \"run\"");
        let shown = &json["profiles"][0];
        assert_eq!((&shown["type"], &shown["unit"]), (&json!("sampled"), &json!("nanoseconds")));
        assert_eq!(shown["endValue"], 10_000_000);
        let (samples, weights) = (shown["samples"].as_array().unwrap(), shown["weights"].as_array().unwrap());
        assert_eq!((samples.len(), weights.len()), (3, 3));
        let frames = json["shared"]["frames"].as_array().unwrap();
        let names = |sample: &Value| -> Vec<String> {
            let index = |index: &Value| usize::try_from(index.as_u64().unwrap()).unwrap();
            let name = |i: &Value| frames[index(i)]["name"].as_str().unwrap().to_owned();
            sample.as_array().unwrap().iter().map(name).collect()
        };
        let with_f = samples.iter().position(|sample| names(sample).last().unwrap() == "f").unwrap();
        assert_eq!(names(&samples[with_f]), ["main", "std::map<a; b>::at(int)", "f"]);
        assert_eq!(weights[with_f], 3_000_000);
        assert_eq!(frames.len(), 6);
        let file = |name: &str| frames.iter().find(|frame| frame["name"] == name).unwrap()["file"].clone();
        assert_eq!((file("f"), file("[unknown]")), (json!("/src/a;b.c"), json!("/lib/x.so")));
    }
}
