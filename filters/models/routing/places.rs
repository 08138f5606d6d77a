//! The regions of a provider: which of them serve requests that name none, in which order, and where the calls of a mapping are
//! computed. Source: docs/routing.md, Regions.

use std::sync::Arc;

/// The turn of a region among those of its provider.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RegionTurn {
    /// Lower ones are tried first.
    pub order: u32,
    /// The share of requests among regions of the same order.
    pub weight: u32,
}

impl RegionTurn {
    /// The turn of the provider's own place, which comes before all regions.
    pub const HOME: Self = Self {
        order: 0,
        weight: 1,
    };
    /// The turn of a region that usually serves only requests that name it.
    pub const LAST: Self = Self {
        order: u32::MAX,
        weight: 1,
    };

    /// Returns a number by which the regions of one order are sorted. Of many `seeds` a region comes first as often as its weight
    /// says, and one seed always gives the same number, whatever other regions there are.
    pub fn draw(self, seed: u64, candidate: u64) -> f64 {
        let uniform = (mix(seed ^ mix(candidate)) >> 11) as f64 / (1_u64 << 53) as f64;
        // The smallest of exponential numbers belongs to each of them as often as its rate says.
        -(1.0 - uniform).ln() / f64::from(self.weight.max(1))
    }
}

/// Returns a number that depends on each bit of another one.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Where a provider is.
#[derive(Clone, Debug, Default)]
pub struct ProviderPlaces {
    /// The region of calls that name none; `None`: unknown.
    pub home: Option<Arc<str>>,
    /// Its regions that serve requests that name none.
    pub turns: Vec<(Box<str>, RegionTurn)>,
    /// Returns where calls of a model in a region are computed; `None`: a call stays in its region.
    pub residence: Option<Residence>,
}

/// Returns where calls of a provider's own model id in a region are computed; `None`: that is unknown.
pub type Residence = for<'a> fn(&'a str, &'a str) -> Option<&'a str>;

impl ProviderPlaces {
    /// Returns the turn of a region, or of the provider's own place; `None`: it only serves requests that name it. `is_listed`
    /// returns whether the mapping has a region.
    pub fn turn(
        &self,
        region: Option<&str>,
        is_listed: impl Fn(&str) -> bool,
    ) -> Option<RegionTurn> {
        let is_replaced = |home: &str| match is_listed(home) {
            true => self.find(home).is_some(),
            false => self.turns.iter().any(|(name, _)| is_listed(name)),
        };
        match region {
            // A table of its region stands for the provider's own place; and a mapping that lists others is not served there.
            None if self.home.as_deref().is_some_and(is_replaced) => None,
            None => Some(RegionTurn::HOME),
            Some(region) => self.find(region),
        }
    }

    /// Returns where the calls of a model are computed; `None`: that is unknown.
    pub fn residence(&self, model: &str, region: Option<&Arc<str>>) -> Option<Arc<str>> {
        let region = region.or(self.home.as_ref())?;
        match self.residence {
            Some(residence) => residence(model, region).map(Arc::from),
            None => Some(Arc::clone(region)),
        }
    }

    fn find(&self, region: &str) -> Option<RegionTurn> {
        let mut turns = self.turns.iter();
        let (_, turn) = turns.find(|(name, _)| **name == *region)?;
        Some(*turn)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn regions_come_first_as_often_as_their_weights_say() {
        let turns = [1, 3].map(|weight| RegionTurn { order: 1, weight });
        let is_second = |seed: &u64| turns[1].draw(*seed, 8) < turns[0].draw(*seed, 7);
        let second = (0..10_000).filter(is_second).count();
        assert!((7_300..7_700).contains(&second), "{second} of 10,000");
        assert_eq!(turns[0].draw(5, 7), turns[0].draw(5, 7));
    }

    #[test]
    fn the_provider_s_own_place_is_first_unless_a_table_stands_for_it() {
        let turn = RegionTurn {
            order: 2,
            weight: 1,
        };
        let mut places = ProviderPlaces {
            home: Some("eu-west-1".into()),
            turns: vec![("eu-central-1".into(), turn)],
            residence: None,
        };
        assert_eq!(places.turn(None, |_| true), Some(RegionTurn::HOME));
        assert_eq!(places.turn(None, |_| false), Some(RegionTurn::HOME));
        assert_eq!(places.turn(None, |name| name == "eu-central-1"), None);
        assert_eq!(places.turn(Some("eu-central-1"), |_| true), Some(turn));
        assert_eq!(places.turn(Some("us-east-1"), |_| true), None);
        places.turns.push(("eu-west-1".into(), turn));
        assert_eq!(places.turn(None, |_| true), None);
        assert_eq!(places.residence("m", None).unwrap(), "eu-west-1".into());
        assert_eq!(ProviderPlaces::default().residence("m", None), None);
    }
}
