//! The ledger of `narrows try`: the question of a session, and every candidate that was tried against its
//! base.
//!
//! Values only. `stats::Ledger` has the rule by which the session spends its error; this is its form in a
//! file. What was recorded is decided again when the file is read, so a level or a decision that the rule
//! does not give is an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stats::{Decision, MOST_ATTEMPTS};

use crate::findings::Ratio;
use crate::findings::candidate::Choice;
use crate::store::RunId;

/// The version of the file's form.
pub const LEDGER_SCHEMA: u32 = 1;

/// How far a level that was read may be from that of the rule, as a share of it: more than a decimal number
/// loses.
const LEVEL_ERROR: f64 = 1e-9;

/// The most characters of a damaged line that are shown.
const SHOWN: usize = 80;

/// A session: its question and its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The version of this form.
    #[cfg_attr(feature = "schema", schemars(extend("const" = LEDGER_SCHEMA)))]
    schema: u32,
    /// What all attempts have in common.
    question: Question,
    /// The attempts, in their order.
    attempts: Vec<Attempt>,
}

/// What makes attempts belong to one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The figure that decides, as `--figure` names it.
    pub figure: String,
    /// The base.
    pub base: Arm,
    /// The other options that change what is measured, by the names of the command line.
    pub options: BTreeMap<String, Value>,
}

/// What is measured: a command or a URL and, if it is one of several commits, the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LedgerArm"))]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// The command or the URL.
    pub command: String,
    /// The commit's id.
    pub commit: Option<String>,
}

/// A candidate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LedgerAttempt"))]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The candidate.
    pub candidate: Arm,
    /// When its first trial began, seconds since 1970.
    pub began_unix_s: f64,
    /// Its run in the store.
    pub run: RunId,
    /// Whether its rounds were carried out. One that was interrupted is spent all the same, with a p-value of
    /// 1: its figures may have been seen.
    pub complete: bool,
    /// The rounds that have both arms.
    pub rounds: u32,
    /// How many times better than the base it was, with its interval. Null if it could not be compared.
    pub ratio: Option<Ratio>,
    /// The one-sided p-value for "the candidate is better", 0..=1.
    pub p: f64,
    /// The level at which it was tested.
    pub level: f64,
    /// What fresh rounds showed. Null if there were none.
    pub confirmation: Option<Confirmation>,
    /// What the ledger decided.
    pub decision: Decision,
    /// What was answered.
    pub verdict: Choice,
}

/// What the fresh rounds of an attempt showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// Their run in the store.
    pub run: RunId,
    /// How many have both arms.
    pub rounds: u32,
    /// How many times better than the base the candidate was in them alone.
    pub ratio: Option<Ratio>,
    /// The one-sided p-value in them alone.
    pub p: f64,
}

impl Ledger {
    /// A session without attempts.
    pub fn new(question: Question) -> Self {
        Self { schema: LEDGER_SCHEMA, question, attempts: Vec::new() }
    }

    /// Reads a session.
    ///
    /// # Errors
    /// What is wrong, with its line or its attempt, and the field.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ledger: Self = serde_json::from_str(text).map_err(|error| damaged(text, &error))?;
        if ledger.schema != LEDGER_SCHEMA {
            return Err(format!("`schema` is {}, and this version reads {LEDGER_SCHEMA}", ledger.schema));
        }
        ledger.check()?;
        Ok(ledger)
    }

    /// As it is written.
    pub fn text(&self) -> String {
        // Only a map with keys that are not strings could fail, and there is none.
        format!("{}\n", serde_json::to_string_pretty(self).unwrap_or_default())
    }

    /// The attempts, in their order.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Why an attempt with this question does not belong to the session, and what would. None if it does.
    pub fn refuses(&self, asked: &Question) -> Option<String> {
        let Question { figure, base, options } = &self.question;
        if *base != asked.base {
            let [kept, given] = [base, &asked.base].map(shown);
            let mend = if base.commit.is_some() { "let --git begin with it" } else { "give it first" };
            return Some(format!("its base is {kept}, and this one is {given}: {mend}"));
        }
        if *figure != asked.figure {
            let given = &asked.figure;
            return Some(format!("its figure is {figure}, and this one is {given}: use --figure {figure}"));
        }
        let differs = |name: &&String| options.get(*name) != asked.options.get(*name);
        let name = options.keys().chain(asked.options.keys()).find(differs)?;
        let value = |options: &BTreeMap<String, Value>| {
            options.get(name).map_or_else(|| "not set".to_owned(), Value::to_string)
        };
        let (kept, given) = (value(options), value(&asked.options));
        Some(format!("its --{name} is {kept}, and this one is {given}: leave --{name} as it was"))
    }

    /// The level at which the next attempt is tested.
    pub fn level(&self) -> f64 {
        self.spent().level()
    }

    /// Whether it takes no more attempts.
    pub fn is_full(&self) -> bool {
        self.attempts.len() >= MOST_ATTEMPTS
    }

    /// Records an attempt that begins. It counts from now on, whatever becomes of it.
    pub fn begin(&mut self, candidate: Arm, began_unix_s: f64, run: RunId) {
        let mut attempt = Attempt {
            candidate,
            began_unix_s,
            run,
            complete: false,
            rounds: 0,
            ratio: None,
            p: 1.0,
            level: 0.0,
            confirmation: None,
            decision: Decision::Reject,
            verdict: Choice::Inconclusive,
        };
        attempt.decide(&mut self.spent());
        self.attempts.push(attempt);
    }

    /// Records what the attempt that began last has shown, and decides about it. `verdict` gives the answer
    /// to a decision. None if no attempt began.
    pub fn end(
        &mut self,
        (rounds, ratio, p): (u32, Option<Ratio>, f64),
        confirmation: Option<Confirmation>,
        verdict: impl Fn(Decision) -> Choice,
    ) -> Option<&Attempt> {
        let begun = self.attempts.pop()?;
        let mut attempt = Attempt { complete: true, rounds, ratio, p, confirmation, ..begun };
        attempt.decide(&mut self.spent());
        attempt.verdict = verdict(attempt.decision);
        self.attempts.push(attempt);
        self.attempts.last()
    }

    /// The error that is spent.
    fn spent(&self) -> stats::Ledger {
        let mut ledger = stats::Ledger::default();
        for attempt in &self.attempts {
            ledger.record(attempt.p, attempt.confirmation.as_ref().map(|fresh| fresh.p));
        }
        ledger
    }

    /// Checks that each attempt was decided by the rule.
    fn check(&self) -> Result<(), String> {
        if self.attempts.len() > MOST_ATTEMPTS {
            return Err(format!("`attempts` has more than {MOST_ATTEMPTS}"));
        }
        let spent = self.spent();
        for (number, (attempt, rule)) in (1..).zip(self.attempts.iter().zip(spent.attempts())) {
            let wrong = |field: &str, why: String| Err(format!("`{field}` of attempt {number} is {why}"));
            if attempt.p != rule.p {
                return wrong("p", format!("{}, which is not between 0 and 1", attempt.p));
            }
            let fresh = attempt.confirmation.as_ref().map(|fresh| fresh.p);
            if fresh != rule.confirmation {
                return wrong("confirmation.p", "not between 0 and 1".to_owned());
            }
            if (attempt.level / rule.level - 1.0).abs() > LEVEL_ERROR {
                return wrong("level", format!("{}, and the rule gives {}", attempt.level, rule.level));
            }
            if attempt.decision != rule.decision {
                let [kept, given] = [attempt.decision, rule.decision].map(|decision| format!("{decision:?}"));
                return wrong("decision", format!("{kept}, and the rule gives {given}").to_lowercase());
            }
        }
        Ok(())
    }
}

impl Attempt {
    /// It as the rule of the ledger sees it.
    pub fn recorded(&self) -> stats::Attempt {
        let confirmation = self.confirmation.as_ref().map(|fresh| fresh.p);
        stats::Attempt { p: self.p, level: self.level, confirmation, decision: self.decision }
    }

    /// Lets the ledger, which has all earlier attempts, decide about it.
    fn decide(&mut self, earlier: &mut stats::Ledger) {
        self.level = earlier.level();
        self.decision = earlier.record(self.p, self.confirmation.as_ref().map(|fresh| fresh.p));
        if let Some(recorded) = earlier.attempts().last() {
            self.p = recorded.p;
        }
    }
}

/// A command, and its commit.
fn shown(arm: &Arm) -> String {
    let at = arm.commit.as_ref().map_or_else(String::new, |commit| format!(" at commit {commit}"));
    format!("`{}`{at}", arm.command)
}

/// What is wrong with a text, where, and the line itself, which names the field.
fn damaged(text: &str, error: &serde_json::Error) -> String {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default().trim();
    let shown: String = line.chars().take(SHOWN).collect();
    let said = error.to_string();
    let what = said.split(" at line ").next().unwrap_or_default();
    format!("line {}, column {}: {what}, in `{shown}`", error.line(), error.column())
}

#[cfg(test)]
mod tests;
