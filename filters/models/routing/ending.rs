//! The models that their providers end.

use super::catalog_file::{CatalogFile, Date, WrittenMapping, WrittenModel};

const DAY_S: i64 = 86_400;

/// A model at a provider that ends it.
#[derive(Clone, Debug)]
pub struct Ending<'c> {
    pub model: &'c WrittenModel,
    pub mapping: &'c WrittenMapping,
    /// The days until it is not served, of which the last one may be a part. 0 or less: it is not served any more. `None`: only
    /// the day is known from which it should not be used.
    pub days_left: Option<i64>,
    /// The other providers that are on and serve the model longer.
    pub others: Vec<&'c str>,
}

impl Ending<'_> {
    /// Returns whether it is not served in so many days.
    pub fn is_within(&self, days: i64) -> bool {
        self.days_left.is_some_and(|left| left <= days)
    }
}

/// Returns what providers end, the first to end first. `is_on` says which providers serve calls; `now_s` is the time in unix seconds.
pub fn find_endings<'c>(
    catalog: &'c CatalogFile,
    is_on: impl Fn(&str) -> bool,
    now_s: i64,
) -> Vec<Ending<'c>> {
    let mut endings = Vec::new();
    for model in &catalog.models {
        for mapping in &model.providers {
            let ends_s = end_s(mapping);
            if ends_s.is_none() && mapping.deprecated_at.is_none() {
                continue;
            }
            let goes_on = |other: &&WrittenMapping| {
                other.provider != mapping.provider
                    && is_on(&other.provider)
                    && end_s(other).is_none_or(|end| ends_s.is_some_and(|own| end > own))
            };
            let others = model.providers.iter().filter(goes_on);
            let mut others: Vec<&str> = others.map(|other| other.provider.as_str()).collect();
            others.dedup();
            endings.push(Ending {
                model,
                mapping,
                days_left: ends_s.map(|end| days_until(end, now_s)),
                others,
            });
        }
    }
    endings.sort_by_key(|ending| ending.days_left.unwrap_or(i64::MAX));
    endings
}

fn end_s(mapping: &WrittenMapping) -> Option<i64> {
    let day = mapping.deactivated_at.as_ref().and_then(Date::unix_s)?;
    i64::try_from(day).ok()
}

/// Returns the days from one time until another, the last of which may be a part.
fn days_until(end_s: i64, now_s: i64) -> i64 {
    end_s
        .saturating_sub(now_s)
        .saturating_add(DAY_S - 1)
        .div_euclid(DAY_S)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::json;

    use super::*;

    /// 2026-11-28T12:00:00Z.
    const NOW_S: i64 = 1_795_867_200;

    fn catalog() -> CatalogFile {
        let of = |provider: &str, dates: serde_json::Value| {
            let mut mapping = json!({"provider": provider, "name": "n"});
            let members = mapping.as_object_mut().unwrap();
            members.extend(dates.as_object().unwrap().clone());
            mapping
        };
        serde_json::from_value(json!({"models": [
            {"id": "kept", "providers": [of("a", json!({}))]},
            {"id": "warned", "providers": [of("a", json!({"deprecated_at": "2026-01-01"}))]},
            {"id": "late", "providers": [of("a", json!({"deactivated_at": "2027-01-01"}))]},
            {"id": "soon", "successor": "kept", "providers": [
                of("a", json!({"deactivated_at": "2026-11-30"})),
                of("b", json!({"deactivated_at": "2026-11-29"})),
                of("c", json!({})),
                of("off", json!({})),
            ]},
            {"id": "gone", "providers": [of("a", json!({"deactivated_at": "2026-11-28"}))]},
        ]}))
        .unwrap()
    }

    #[test]
    fn what_ends_first_comes_first_with_the_days_that_are_left() {
        let catalog = catalog();
        let endings = find_endings(&catalog, |name| name != "off", NOW_S);
        let told = endings.iter().map(|ending| {
            let provider = ending.mapping.provider.as_str();
            (ending.model.id.as_str(), provider, ending.days_left)
        });
        let expected = [
            ("gone", "a", Some(0)),
            ("soon", "b", Some(1)),
            ("soon", "a", Some(2)),
            ("late", "a", Some(34)),
            ("warned", "a", None),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let within: Vec<bool> = endings.iter().map(|ending| ending.is_within(1)).collect();
        assert_eq!(within, [true, true, false, false, false]);
    }

    #[test]
    fn others_are_those_that_are_on_and_serve_longer() {
        let catalog = catalog();
        let endings = find_endings(&catalog, |name| name != "off", NOW_S);
        assert_eq!(endings[1].others, ["a", "c"]);
        assert_eq!(endings[2].others, ["c"]);
        assert!(endings[0].others.is_empty());
    }
}
