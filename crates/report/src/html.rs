//! Findings as one HTML file. It needs no network, can be read without scripts, in light and dark colours, on paper and
//! on a phone.
//!
//! The page shows, from top to bottom: the answer, its figure, its table, the doubts, the published tables, the machine,
//! the command that repeats the run, and how to apply the result. Everything that comes from manifests, servers or the
//! command line passes [`escape`].

mod figure;
mod figures;
mod section;
mod table;

use std::fmt::Write;

use lab::findings::{CpuDifference, ExperimentFindings, Findings};
use lab::profiles::Profiled;
use serde_json::Value;

use crate::flame::Arm;
use crate::svg::escape;
use crate::words::answer;
pub use figures::flame_graph;

pub(crate) use figure::Figure;
use figures::Palette;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// The facts of a run that its page shows.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Its number in the store.
    pub id: i64,
    /// Seconds since the Unix epoch.
    pub started_unix_s: f64,
    /// The command line that started it, without the program's name.
    pub command: &'a str,
    /// The seed that shuffled the order of its trials.
    pub seed: u64,
    /// The kernel, CPU, limits and versions that were saved with it.
    pub environment: &'a Value,
    /// Where the CPU time of its scenarios went.
    pub profiles: &'a [Profiled],
}

/// The whole page.
pub fn html(findings: &Findings, run: &Run) -> String {
    let palette = Palette::of(findings);
    let mut out = head(&format!("{} \u{b7} run {}", title(findings), run.id));
    out.push_str("<body>\n<header class=\"top\">\n");
    let _ = writeln!(out, "<h1>{}</h1>", escape(&title(findings)));
    let _ = writeln!(
        out,
        "<p class=\"quiet\">Narrows {} \u{b7} run {} \u{b7} {} UTC \u{b7} seed {}</p>\n</header>\n<main>",
        env!("CARGO_PKG_VERSION"),
        run.id,
        crate::date::utc(run.started_unix_s),
        run.seed
    );
    answers(&mut out, findings);
    for (i, experiment) in findings.views().enumerate() {
        section::experiment(&mut out, i, &experiment, &palette);
    }
    for (i, experiment) in findings.experiments.iter().enumerate() {
        functions(&mut out, i, experiment, run.profiles);
    }
    environment(&mut out, findings, run.environment);
    replay(&mut out, run);
    snippets(&mut out, findings);
    let _ = write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

/// So many of the largest differences of an experiment have a flame graph, which is some 200 kB.
const MOST_FLAMES: usize = 4;

/// Where CPU time certainly differs between scenarios, each as a flame graph.
fn functions(out: &mut String, index: usize, experiment: &ExperimentFindings, profiles: &[Profiled]) {
    let Some(e) = experiment.views().next() else { return };
    let of = |at: usize| {
        let scenario = &e.estimates.get(at)?.scenario;
        Some((e.label(scenario), &profiles.iter().find(|of| of.scenario == *scenario)?.profile))
    };
    let certain = e.cpu.iter().filter(|cpu| cpu.is_certain() && cpu.functions.is_some());
    let mut certain: Vec<&CpuDifference> = certain.collect();
    certain.sort_by(|a, b| b.ratio.estimate.total_cmp(&a.ratio.estimate));
    for (i, cpu) in certain.into_iter().take(MOST_FLAMES).enumerate() {
        let Some(((less, of_less), (more, of_more))) = of(cpu.less).zip(of(cpu.more)) else { continue };
        let arms = [
            Arm { name: &less, cpu_s: cpu.less_s, profile: of_less },
            Arm { name: &more, cpu_s: cpu.less_s + cpu.more_s(), profile: of_more },
        ];
        out.push_str(&flame_graph(&format!("cpu{index}-{i}"), e.workload.about().unit.name, arms));
    }
}

/// A page of figures alone. It needs no script.
pub(crate) fn of_figures(title: &str, figures: &[Figure]) -> String {
    let mut out = head(title);
    let _ = writeln!(out, "<body>\n<header class=\"top\">\n<h1>{}</h1>\n</header>\n<main>", escape(title));
    figures.iter().enumerate().for_each(|(i, figure)| figure.write(&mut out, &format!("f{i}")));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn title(findings: &Findings) -> String {
    match &findings.experiments[..] {
        [only] => only.title.clone(),
        several => format!("{} experiments", several.len()),
    }
}

/// With `default-src 'none'` the browser refuses to load anything from outside the file.
fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <title>{} \u{b7} Narrows</title>\n<style>\n{STYLE}</style>\n</head>\n",
        escape(title)
    )
}

/// The headline of each experiment, with a link to its section.
fn answers(out: &mut String, findings: &Findings) {
    if findings.views().count() < 2 {
        return;
    }
    out.push_str("<nav class=\"answers\" aria-label=\"Answers\">\n<ul>\n");
    for (i, e) in findings.views().enumerate() {
        let answer = sentence(&answer(&e));
        let _ = writeln!(out, "<li><a href=\"#e{i}\">{}</a> <span>{answer}</span></li>", escape(&e.name));
    }
    out.push_str("</ul>\n</nav>\n");
}

/// Converts a sentence of the findings to HTML. Text in backticks becomes code.
fn sentence(text: &str) -> String {
    let parts: Vec<String> = escape(text).split('`').map(str::to_owned).collect();
    if parts.len().is_multiple_of(2) {
        return parts.join("`"); // a lone backtick: nothing is quoted
    }
    let each = parts.into_iter().enumerate();
    each.map(|(i, part)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part }).collect()
}

fn environment(out: &mut String, findings: &Findings, environment: &Value) {
    out.push_str("<section aria-labelledby=\"environment\">\n<h2 id=\"environment\">Environment</h2>\n<dl class=\"facts\">\n");
    let mut facts = Vec::new();
    flatten("", environment, &mut facts);
    let versions = findings.experiments.iter().flat_map(|e| &e.versions);
    let versions: std::collections::BTreeMap<&String, &String> = versions.collect();
    facts.extend(
        versions.into_iter().map(|(system, version)| (format!("version of {system}"), version.clone())),
    );
    for (name, value) in facts {
        let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(&name), escape(&value));
    }
    out.push_str("</dl>\n</section>\n");
}

/// Converts objects and lists to one line for each leaf.
fn flatten(name: &str, value: &Value, facts: &mut Vec<(String, String)>) {
    // The name of a sysctl of the systems' machine needs no path.
    let whole = name.is_empty() || name == "sysctls";
    let inner = |key: &str| if whole { key.to_owned() } else { format!("{name} {key}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(&inner(key), value, facts)),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            facts.push((name.to_owned(), items.iter().map(plain).collect::<Vec<_>>().join(", ")));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| flatten(&inner(&i.to_string()), item, facts));
        }
        Value::Null => {}
        leaf => facts.push((name.to_owned(), plain(leaf))),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The command with the seed, which gives the same trials in the same order.
fn replay(out: &mut String, run: &Run) {
    let seeded = run.command.split_whitespace().any(|word| word == "--seed" || word.starts_with("--seed="));
    let seed = if seeded { String::new() } else { format!(" --seed {}", run.seed) };
    let command = format!("narrows {}{seed}", run.command.trim());
    let _ = writeln!(
        out,
        "<section aria-labelledby=\"replay\">\n<h2 id=\"replay\">Again</h2>\n\
         <p>The same trials in the same order:</p>\n<pre class=\"command\" tabindex=\"0\">{}</pre>\n</section>",
        escape(&command)
    );
}

fn snippets(out: &mut String, findings: &Findings) {
    let all = || findings.views().flat_map(|e| e.snippets.iter().map(move |s| (e, s)));
    if all().next().is_none() {
        return;
    }
    out.push_str("<section aria-labelledby=\"apply\">\n<h2 id=\"apply\">Apply it</h2>\n");
    for (e, snippet) in all() {
        let point: Vec<String> = snippet
            .point
            .iter()
            .map(|(knob, value)| {
                let axis = e.axes.iter().find(|axis| axis.knob == *knob);
                format!("{knob} {}", axis.map_or_else(|| value.to_string(), |axis| axis.show(value)))
            })
            .collect();
        let _ = writeln!(
            out,
            "<p><strong>{}</strong>, best in {} with {}:</p>\n<pre class=\"command\" tabindex=\"0\">{}</pre>",
            escape(&snippet.system),
            escape(&e.name),
            escape(&point.join(", ")),
            escape(&snippet.text)
        );
    }
    out.push_str("</section>\n");
}
