//! Whether the arms of `narrows try` are measured at the same time as the base: where that is asked for, and
//! where it decides more.

use lab::condition::Condition;
use systems::Workload;

use super::Args;
use crate::command::{self, arms};
use crate::common::Usage;
use crate::condition::{self, FigureChoice};
use crate::here;

impl Args {
    /// Whether each arm is measured at the same time as the base. Without an option for it, commits, gates
    /// and attempts of a ledger are if the servers have one core: there a duet needs a tenth of the trials
    /// beside other work (docs/decisions/0020), and what it means is what these ask for, a ratio. A rate that
    /// was given is meant for one server, and a percentile is not the same beside another one. What is
    /// prepared for one server, or runs beside it, may not bear two.
    pub(super) fn is_duet(&self, workload: Workload) -> Result<bool, Usage> {
        let of_shares = |choice: &FigureChoice| {
            use FigureChoice::*;
            matches!(choice, Rate | Cpu | Calls | Instructions | Memory)
        };
        let asks = self.is_of_commits() || !self.fail_if.is_empty() || self.has_ledger();
        let start = &self.command.start;
        let suits = self.command.traffic().rate.is_none()
            && start.prepare.is_none()
            && start.conclude.is_none()
            && !self.command.has_services()
            && self.slo.is_none()
            && !self.unequal
            && !self.cold
            && self.figures().iter().all(of_shares)
            && here::placement().system.len() == 1;
        if self.duet || self.no_duet || !asks || !suits {
            return Ok(self.duet);
        }
        let conditions = condition::conditions(&self.fail_if).map_err(Usage)?;
        Ok(self.prevents_duets(workload, &conditions).is_none())
    }

    /// Checks that --duet can be done.
    pub(super) fn check_duet(&self, workload: Workload, conditions: &[Condition]) -> Result<(), Usage> {
        match self.prevents_duets(workload, conditions).filter(|_| self.duet) {
            Some(why) => Err(Usage(format!("--duet {why}"))),
            None => Ok(()),
        }
    }

    /// What --duet needs or does that does not agree with this question. None if it does.
    fn prevents_duets(&self, workload: Workload, conditions: &[Condition]) -> Option<String> {
        if let Some(why) = command::prevents_duets(workload, &self.lab.fleet) {
            return Some(why.to_owned());
        }
        if self.driver.given() && !self.driver.has("duration") {
            return Some(
                "needs a driver that can be told how long it drives: put {duration} into --driver".to_owned(),
            );
        }
        if self.arms.iter().any(|arm| arms::is_url(arm)) {
            return Some("starts both servers on the same cores: give commands instead of URLs".to_owned());
        }
        let of_figure = conditions.iter().find(|condition| !condition.needs_baseline())?;
        Some(format!(
            "measures servers that share their cores, so --fail-if {} would judge another figure than users see: limit a ratio, such as \
             rate<0.97, or leave out --duet",
            of_figure.text
        ))
    }
}
