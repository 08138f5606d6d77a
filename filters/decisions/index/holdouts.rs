//! Finds the holdouts that count for each flag and rule. Source: docs/facts/decision-engine.md B 3.

use super::RuleIndex;
use crate::decisions::datafile;
use crate::decisions::evaluation_rules::HoldoutScope;
use crate::decisions::project::Project;

impl RuleIndex<'_> {
    /// Adds the running holdouts.
    pub(super) fn holdouts(&self, written: &datafile::Datafile, project: &mut Project) {
        let is_running = |one: &&datafile::DatafileExperiment| one.status == "Running";
        for holdout in written.holdouts.iter().filter(is_running) {
            let at = project.holdouts.len();
            project.holdouts.push(self.rule(holdout, None));
            for flag in &mut project.flags {
                let names = |flags: &[String]| flags.iter().any(|id| **id == *flag.id);
                let counts = match self.evaluation.holdout_scope {
                    HoldoutScope::EveryFlag => true,
                    HoldoutScope::ListedFlags => {
                        holdout.included_flags.is_empty() || names(&holdout.included_flags)
                    }
                };
                if counts {
                    flag.holdouts.push(at);
                }
            }
        }
        match self.evaluation.holdout_scope {
            HoldoutScope::ListedFlags => drop_excluded(written, project),
            HoldoutScope::EveryFlag => {
                for holdout in written.local_holdouts.iter().filter(is_running) {
                    let Some(rules) = &holdout.included_rules else {
                        continue;
                    };
                    let at = project.holdouts.len();
                    project.holdouts.push(self.rule(holdout, None));
                    let all = project.experiments.iter_mut();
                    let all = all.chain(project.rollouts.iter_mut().flatten());
                    for rule in all.filter(|rule| rules.iter().any(|id| **id == *rule.id)) {
                        rule.holdouts.push(at);
                    }
                }
            }
        }
    }
}

/// Applies [`HoldoutScope::ListedFlags`]. If one global holdout excludes a flag, no global holdout holds for that
/// flag. Global holdouts come before those that list the flag.
fn drop_excluded(written: &datafile::Datafile, project: &mut Project) {
    let running: Vec<&datafile::DatafileExperiment> = written
        .holdouts
        .iter()
        .filter(|one| one.status == "Running")
        .collect();
    let is_global = |at: &usize| {
        running
            .get(*at)
            .is_some_and(|one| one.included_flags.is_empty())
    };
    for flag in &mut project.flags {
        let is_excluded = running.iter().any(|one| {
            one.included_flags.is_empty() && one.excluded_flags.iter().any(|id| **id == *flag.id)
        });
        let (global, named): (Vec<usize>, Vec<usize>) =
            flag.holdouts.iter().copied().partition(is_global);
        flag.holdouts = if is_excluded {
            named
        } else {
            [global, named].concat()
        };
    }
}
