//! Connects the flag decisions to the model gateway.

use std::sync::Arc;

use filters::fault::Fault;
use filters::ledger::ExperimentNames;
use filters::models::managed::variation::{DecidedVariation, no_flag};
use futures::future::BoxFuture;

use crate::decisions::DecisionService;
use crate::decisions::endpoints::flag::{Undecided, decide_flag};
use crate::models::experiments::{AskedFlag, Experiments, SendImpression};

/// Decides flags for model requests.
pub(super) struct FlagExperiments(pub(super) Arc<DecisionService>);

impl Experiments for FlagExperiments {
    fn decide<'a>(
        &'a self,
        asked: AskedFlag<'a>,
    ) -> BoxFuture<'a, Result<(DecidedVariation, SendImpression), Fault>> {
        Box::pin(async move {
            let AskedFlag {
                sdk_key,
                flag,
                user_id,
                now_ms,
            } = asked;
            let decided = decide_flag(&self.0, sdk_key, flag, user_id, now_ms).await;
            let decided = decided.map_err(|undecided| match undecided {
                Undecided::NoProject => no_flag(
                    flag,
                    "has no datafile: no project has the SDK key of the experiments",
                ),
                Undecided::NoFlag => {
                    no_flag(flag, "is not in the datafile of the project's experiments")
                }
                Undecided::Off => no_flag(flag, "is off for this user"),
                Undecided::Failed(fault) => fault,
            })?;
            let (service, impressions) = (Arc::clone(&self.0), decided.impressions);
            let variation = DecidedVariation {
                names: Arc::new(ExperimentNames {
                    flag: flag.into(),
                    rule: decided.rule,
                    variation: decided.variation,
                }),
                variables: decided.variables,
            };
            let send: SendImpression = Box::new(move || {
                for (head, visitor) in impressions {
                    service.events.send(head, visitor);
                }
            });
            Ok((variation, send))
        })
    }
}
