//! Warns of models that their providers deactivate soon.

use filters::models::routing::{WrittenMapping, WrittenModel};

use crate::config::{Config, Location, Problem};

const DAY_S: u64 = 24 * 60 * 60;
/// How long before a deactivation the check warns of it.
const NOTICE_S: u64 = 31 * DAY_S;

/// Warns of mappings of enabled providers that end within a month of `now_s` (unix seconds).
///
/// Source: model-gateway 9.4.
pub(super) fn find(config: &Config, now_s: u64) -> Vec<Problem> {
    let models = config.models.catalog.as_ref();
    let models = models.map(|file| file.models.as_slice());
    let models = models.unwrap_or_default().iter().enumerate();
    let warnings = models.flat_map(|(index, model)| {
        let mappings = model.providers.iter().enumerate();
        let on = mappings.filter(|(_, mapping)| {
            let mut providers = config.providers.iter();
            providers.any(|provider| provider.name == mapping.provider)
        });
        on.filter_map(move |(at, mapping)| {
            let key = format!("models[{index}].providers[{at}].deactivated_at");
            warn(key, model, mapping, now_s)
        })
    });
    warnings.collect()
}

fn warn(
    key: String,
    model: &WrittenModel,
    mapping: &WrittenMapping,
    now_s: u64,
) -> Option<Problem> {
    let date = mapping.deactivated_at.as_ref()?;
    let left_s = date.unix_s()?.checked_sub(now_s)?;
    if left_s > NOTICE_S {
        return None;
    }
    let (id, provider, days) = (&model.id, &mapping.provider, left_s.div_ceil(DAY_S));
    let others = model.providers.len() - 1;
    let cure = match (&model.successor, others) {
        (Some(successor), _) => format!("move its callers to {successor}"),
        (None, 0) => {
            "move its callers to another model; `successor` in the catalogue tells them which"
                .to_owned()
        }
        (None, others) => {
            format!("nothing, if the other {others} in the catalogue serve its callers")
        }
    };
    Some(Problem {
        key,
        place: Location::Nowhere {},
        message: format!("{provider} deactivates {id} on {}, in {days} days", date.0),
        cure,
    })
}

#[cfg(test)]
#[path = "retirement_tests.rs"]
mod tests;
