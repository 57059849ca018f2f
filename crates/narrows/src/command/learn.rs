//! Learns from a first look at every point what right answers are, and refuses arms that do not do the same work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use answers::Statuses;
use anyhow::{Context, anyhow, bail};
use lab::ask::{Ask, Demand, Listed};
use lab::observation::{Failure, Scenario, Stage, Timing};
use lab::plan::Plan;
use lab::session::{Answer, Executor, Look, Pace, SECURED, Speed, TrialError};
use load::stream::Form;
use systems::said;

use crate::common;

/// The pause between two looks at the base. A clock in its answers has moved on then, by a second at least.
const APART: Duration = Duration::from_secs(1);

/// What the first look showed.
pub struct Learnt {
    /// What is sent, and what every answer must be.
    pub ask: Option<Ask>,
    /// The speed of each point, if it was measured.
    pub paces: Vec<Pace>,
    /// The seconds that it took to start each system, to ask it and to stop it: of its points, the longest.
    pub starts: BTreeMap<String, f64>,
    /// How many events the first answer has, if it is a stream of several.
    pub events: Option<u64>,
}

/// Looks at every scenario of the plan, and twice at the base if its answers may differ after another start. None if the user
/// interrupted. A point of a command that fails while another point of it does not is measured nevertheless: its trials show
/// that it fails.
///
/// # Errors
/// A command of which every point fails, with the end of its output; answers that differ between arms.
pub fn learn(
    executor: &mut dyn Executor,
    plan: &Plan,
    ask: Option<Ask>,
    timing: Timing,
    measured: bool,
) -> anyhow::Result<Option<Learnt>> {
    let mut looks: Vec<(String, Look)> = Vec::new();
    let mut starts: BTreeMap<String, f64> = BTreeMap::new();
    let sent = ask.clone().unwrap_or_else(|| Ask::get("/"));
    for planned in &plan.experiments {
        let mut points = Points::default();
        for (at, scenario) in planned.scenarios.iter().enumerate() {
            let label = planned.label(scenario);
            let began_unix_s = executor.now_unix_s();
            // A program warms up alike at all of its points, as far as anyone can wait for: how long is found out once.
            let speed = match (measured, points.right.contains(scenario.system.as_str())) {
                (false, _) => Speed::Unasked,
                (true, false) => Speed::Steady,
                (true, true) => Speed::Soon,
            };
            let mut seen = executor.look(scenario, &sent, timing, speed);
            let pace = seen.as_ref().ok().and_then(Option::as_ref).and_then(|look| look.pace);
            let took_s =
                (executor.now_unix_s() - began_unix_s).max(0.0) - pace.map_or(0.0, |pace| pace.took_s);
            let start_s = starts.entry(scenario.system.clone()).or_insert(took_s);
            *start_s = start_s.max(took_s);
            if let (Ok(Some(first)), []) = (&mut seen, looks.as_slice())
                && first.may_vary()
                && !sent.says_what_is_right()
            {
                std::thread::sleep(APART);
                let again = executor.look(scenario, &sent, timing, Speed::Unasked);
                seen = again.map(|again| again.map(|again| first.and(again)));
            }
            match seen {
                Ok(Some(look)) => {
                    points.right.insert(&scenario.system);
                    looks.push((label, look));
                }
                Ok(None) => {}
                Err(TrialError::Interrupted) => return Ok(None),
                Err(TrialError::Failed(failure)) => {
                    let later = planned.scenarios.get(at + 1..).unwrap_or_default();
                    points.fails(scenario, label, failure, later)?;
                }
            }
        }
        points.tell();
    }
    if let Some((ask, list)) = ask.as_ref().and_then(|ask| Some((ask, ask.list.as_ref()?))) {
        check_listed(ask, list, &looks)?;
    }
    let paces = looks.iter().filter_map(|(_, look)| look.pace).collect();
    let mut ask = match ask {
        Some(ask) => Some(settled(ask, &looks)?),
        None => None,
    };
    if let Some(ask) = ask.as_mut().filter(|ask| ask.list.is_none() && ask.stream.is_none()) {
        ask.stream = common_form(&looks);
    }
    let events = looks.first().and_then(|(_, look)| look.answers.first()?.events());
    Ok(Some(Learnt { ask, paces, starts, events: events.filter(|events| *events > 1) }))
}

/// The form of the streams that all arms answer. A generator that knows of it takes the kernel's times of their parts.
fn common_form(looks: &[(String, Look)]) -> Option<Form> {
    let mut forms = looks.iter().flat_map(|(_, look)| &look.answers).map(Answer::form);
    let first = forms.next()??;
    forms.all(|form| form == Some(first)).then_some(first)
}

/// The points at which a first look has looked.
#[derive(Default)]
struct Points<'a> {
    /// The commands with a point that does not fail.
    right: BTreeSet<&'a str>,
    /// The points that fail: their commands, their labels, and why.
    failing: Vec<(&'a str, String, Failure)>,
}

impl<'a> Points<'a> {
    /// Keeps a failure.
    ///
    /// # Errors
    /// The first failure of a command none of whose points is right, with the `later` ones still to be looked at. An answer that
    /// is not the wanted one is an error at once.
    fn fails(
        &mut self,
        scenario: &'a Scenario,
        label: String,
        failure: Failure,
        later: &[Scenario],
    ) -> anyhow::Result<()> {
        let system = scenario.system.as_str();
        if matches!(failure.stage, Stage::EqualWork | Stage::Machine) {
            bail!(failed(&label, &failure));
        }
        self.failing.push((system, label, failure));
        if self.right.contains(system) || later.iter().any(|scenario| scenario.system == system) {
            return Ok(());
        }
        match self.failing.iter().find(|(known, ..)| *known == system) {
            Some((_, label, failure)) => bail!(failed(label, failure)),
            None => Ok(()),
        }
    }

    /// Says which points fail.
    fn tell(&self) {
        for (_, label, failure) in &self.failing {
            let said = said(&failure.output).map_or_else(String::new, |line| format!("; it said: {line}"));
            let reason = &failure.reason;
            common::say(format_args!(
                "{label} fails, and the run goes on because other points do not: {reason}{said}"
            ));
        }
    }
}

/// Looks at each system of a saved plan once: whether it starts, and answers as when its run began. Returns false if the user
/// interrupted.
///
/// # Errors
/// A system that does not.
pub fn look_again(executor: &mut dyn Executor, plan: &Plan) -> anyhow::Result<bool> {
    const MOVED: &str = "the run began elsewhere, or its files have changed: use the folder in which it began, \
                         with the same files";
    for planned in &plan.experiments {
        let sent = planned.ask.clone().unwrap_or_else(|| Arc::new(Ask::get("/")));
        let mut points = Points::default();
        for (at, scenario) in planned.scenarios.iter().enumerate() {
            if points.right.contains(scenario.system.as_str()) {
                continue;
            }
            let look = match executor.look(scenario, &sent, planned.timing, Speed::Unasked) {
                Ok(Some(look)) => look,
                Ok(None) => return Ok(true),
                Err(TrialError::Interrupted) => return Ok(false),
                Err(TrialError::Failed(failure)) => {
                    if failure.stage == Stage::Machine {
                        bail!("{}", failure.reason);
                    }
                    // A point that failed from the start may fail again.
                    let later = planned.scenarios.get(at + 1..).unwrap_or_default();
                    let fails = points.fails(scenario, planned.label(scenario), failure, later);
                    fails.map_err(|error| anyhow!("{error}\n{MOVED}"))?;
                    continue;
                }
            };
            points.right.insert(&scenario.system);
            for looked in &look.listed {
                let right = |answer: &&Answer| looked.ask.statuses().contains(answer.status);
                if let Some(other) = looked.answers.iter().find(|answer| !right(answer)) {
                    let Ask { method, path, .. } = &looked.ask;
                    bail!(
                        "{}: it now answers {} to {method} {path}\n{MOVED}",
                        scenario.system,
                        seen_as(other)
                    );
                }
            }
            let right =
                |answer: &Answer| sent.statuses().contains(answer.status) && answer.meets(&sent.answer);
            if let Some(other) = look.answers.iter().find(|answer| !right(answer)) {
                bail!("{}: it now answers {}\n{MOVED}", scenario.system, seen_as(other));
            }
        }
    }
    Ok(true)
}

/// Checks that every arm gives the same answers to the requests of a list that were looked at, as far as they do not vary by
/// themselves.
fn check_listed(ask: &Ask, list: &Listed, looks: &[(String, Look)]) -> anyhow::Result<()> {
    let Some((_, first)) = looks.first() else { return Ok(()) };
    for (at, looked) in first.listed.iter().enumerate() {
        let of_one = looks.iter().filter_map(|(label, look)| Some((label.clone(), look.of_each().nth(at)?)));
        let of_one: Vec<(String, Look)> = of_one.collect();
        let asked = Ask { unequal: ask.unequal, ..looked.ask.clone() };
        settled(asked, &of_one)
            .with_context(|| format!("{} {} of {}", looked.ask.method, looked.ask.path, list.file))?;
    }
    Ok(())
}

/// Why an arm cannot be measured, with the end of its output.
pub fn failed(label: &str, failure: &Failure) -> String {
    let reason = &failure.reason;
    let output = match failure.output.trim_end() {
        "" if matches!(failure.stage, Stage::Start | Stage::EqualWork) => String::new(),
        "" => "\nit printed nothing".to_owned(),
        output => format!("\nthe end of its output:\n{output}"),
    };
    format!("{label}: {reason}{output}")
}

/// The request with the demand that every arm meets.
fn settled(ask: Ask, looks: &[(String, Look)]) -> anyhow::Result<Ask> {
    for (label, look) in looks {
        for answer in &look.answers {
            if !ask.statuses().contains(answer.status) {
                let usual = match ask.status {
                    Some(status) => format!("--expect-status demands {status}"),
                    None if ask.statuses() != Statuses::SUCCESS => {
                        "--expect demands another status".to_owned()
                    }
                    None => format!(
                        "choose another path with --path, or demand this status with --expect-status {}",
                        answer.status
                    ),
                };
                let help = other_protocol(answer).unwrap_or(usual);
                bail!("{label}: it answers {} to {} {}; {help}", seen_as(answer), ask.method, ask.path);
            }
        }
    }
    if ask.says_what_is_right() {
        return Ok(Ask { answer: Demand::Any, ..ask });
    }
    let Some((first_label, first)) = looks.first() else { return Ok(ask) };
    let Some(base) = first.answers.first() else { return Ok(ask) };
    // Where an arm's answers vary by themselves, no more can be demanded of any arm.
    let varies = looks.iter().any(|(_, look)| look.demand() == Demand::Any);
    let demand = if varies { Demand::Any } else { first.demand() };
    let statuses: Option<Vec<u16>> = looks.iter().map(|(_, look)| look.status()).collect();
    let status = ask.status.or(statuses.map(|_| base.status));
    let other = looks.iter().find_map(|(label, look)| {
        let differs =
            |answer: &&Answer| status.is_some_and(|status| answer.status != status) || !answer.meets(&demand);
        Some((label, look.answers.iter().find(differs)?))
    });
    if let Some((label, other)) = other {
        bail!(
            "the arms do not do the same work:\n  {first_label} answers {}\n  {label} answers {}\nLet them answer the same, say \
             what is right with --expect, or use --unequal to measure them without comparing them",
            seen_as(base),
            seen_as(other)
        );
    }
    Ok(Ask { status, answer: demand, ..ask })
}

/// What to do about an answer that asks for another protocol than HTTP/1.1 in plain text.
fn other_protocol(answer: &Answer) -> Option<String> {
    let has = |bytes: &[u8], words: &str| {
        bytes.windows(words.len()).any(|window| window.eq_ignore_ascii_case(words.as_bytes()))
    };
    // As Go's server and nginx say it.
    let to_https = ["request to an HTTPS server", "sent to HTTPS port"];
    match answer.status {
        400 if to_https.iter().any(|words| has(&answer.body, words)) => {
            Some(format!("it speaks TLS: {SECURED}"))
        }
        400 | 426 if has(&answer.head, "websocket") || has(&answer.body, "websocket") => Some(
            "it speaks WebSocket, which Narrows does not: choose a path of plain HTTP with --path".to_owned(),
        ),
        426 if has(&answer.head, "upgrade: h2c") => {
            Some("it speaks HTTP/2, which Narrows does not".to_owned())
        }
        _ => None,
    }
}

/// An answer in a few words: its status, its length, and how it begins.
fn seen_as(answer: &Answer) -> String {
    let shown = answer.body.get(..60).unwrap_or(&answer.body);
    let more = if answer.length as usize > shown.len() { "…" } else { "" };
    format!("{} with {} bytes, \"{}{more}\"", answer.status, answer.length, shown.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(bodies: &[&str]) -> Look {
        let answer = |body: &&str| Answer {
            status: 200,
            length: body.len() as u64,
            head: Vec::new(),
            body: body.as_bytes().to_vec(),
        };
        Look { answers: bodies.iter().map(answer).collect(), listed: Vec::new(), pace: None }
    }

    fn settle(arms: &[&[&str]], unequal: bool) -> Result<Demand, String> {
        let looks: Vec<(String, Look)> =
            arms.iter().enumerate().map(|(index, bodies)| (format!("arm{index}"), look(bodies))).collect();
        settled(Ask { unequal, ..Ask::get("/") }, &looks)
            .map(|ask| ask.answer)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn arms_must_answer_alike_as_far_as_they_answer_alike_themselves() {
        let content = |text: &str| Demand::Content(lab::ask::Bytes(text.as_bytes().to_vec()));
        assert_eq!(settle(&[&["ok", "ok"], &["ok", "ok"]], false), Ok(content("ok")));
        assert_eq!(settle(&[&["a1", "a2"], &["b1", "b1"]], false), Ok(Demand::Any));
        assert_eq!(settle(&[&["9", "10"], &["ok", "ok"]], false), Ok(Demand::Any));
        let refused = settle(&[&["ok", "ok"], &["no", "no"]], false).expect_err("they differ");
        assert!(refused.contains("arm0 answers 200 with 2 bytes, \"ok\""), "{refused}");
        assert!(refused.contains("arm1 answers 200 with 2 bytes, \"no\""), "{refused}");
        assert_eq!(settle(&[&["ok", "ok"], &["no", "no"]], true), Ok(Demand::Any));
        // Nothing is compared then, so nothing need be the same.
        assert_eq!(settle(&[&["ok", "ok"], &["ok", "ok"]], true), Ok(Demand::Any));
    }

    #[test]
    fn what_the_user_expects_replaces_what_answers_show() {
        let looks = vec![("a".to_owned(), look(&["one"])), ("b".to_owned(), look(&["two"]))];
        let expect = vec![answers::Check::parse("status=2xx").expect("a check")];
        let ask = settled(Ask { expect, ..Ask::get("/") }, &looks).expect("both are right");
        assert_eq!((ask.status, ask.answer), (None, Demand::Any));
    }

    #[test]
    fn a_status_that_varies_by_itself_is_not_demanded() {
        let mut looks = vec![("server".to_owned(), look(&["a", "b"]))];
        looks[0].1.answers[1].status = 201;
        assert_eq!(settled(Ask::get("/"), &looks).expect("both are right").status, None);
    }

    #[test]
    fn an_answer_that_is_no_success_names_the_status_and_the_remedy() {
        let mut looks = vec![("server".to_owned(), look(&["not here"]))];
        looks[0].1.answers[0].status = 404;
        let error = settled(Ask::get("/users"), &looks).expect_err("404").to_string();
        assert!(error.contains("server: it answers 404 with 8 bytes, \"not here\" to GET /users"), "{error}");
        assert!(error.contains("--expect-status 404"), "{error}");
        let asked = Ask { status: Some(404), ..Ask::get("/users") };
        assert!(settled(asked, &looks).is_ok());
    }
}
