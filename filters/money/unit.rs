//! The units that providers bill beside tokens, requests and drawn images.

use serde::{Deserialize, Serialize};

use super::usd::{InvalidAmount, Price};

/// A unit. Its number is its index in [`PerUnit`] and in stored calls, so new units come last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// A page that was read.
    Page,
    /// A millisecond of audio or video in the request.
    InputTime,
    /// A millisecond of audio or video in the response.
    OutputTime,
    /// A character of a text that is spoken.
    Character,
    /// A search: a query of the web, or one over up to a hundred documents.
    Search,
    /// A document that was ranked.
    Document,
}

/// The number of units.
const UNITS: usize = Unit::ALL.len();

impl Unit {
    /// All units, in their order.
    pub const ALL: [Self; 6] = [
        Self::Page,
        Self::InputTime,
        Self::OutputTime,
        Self::Character,
        Self::Search,
        Self::Document,
    ];

    /// Returns the name of the unit's count in log lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Page => "pages",
            Self::InputTime => "input_ms",
            Self::OutputTime => "output_ms",
            Self::Character => "characters",
            Self::Search => "searches",
            Self::Document => "documents",
        }
    }

    /// Returns the key of the unit's price in files.
    pub fn price_key(self) -> &'static str {
        match self {
            Self::Page => "page_price",
            Self::InputTime => "input_second_price",
            Self::OutputTime => "output_second_price",
            Self::Character => "character_price",
            Self::Search => "search_price",
            Self::Document => "document_price",
        }
    }

    /// Parses the unit's price: per page and search, per second, per 1,000 documents, per million characters.
    ///
    /// Errors: as [`Price::per_call`].
    pub fn parse_price(self, text: &str) -> Result<Price, InvalidAmount> {
        match self {
            Self::Page | Self::Search => Price::per_call(text),
            Self::InputTime | Self::OutputTime | Self::Document => Price::per_thousand(text),
            Self::Character => Price::per_million(text),
        }
    }

    /// Returns whether the unit is part of the response, and not of the request.
    pub(super) fn is_output(self) -> bool {
        self == Self::OutputTime
    }
}

/// A value of each unit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct PerUnit<T>([T; UNITS]);

/// The count of each unit.
pub type UnitCounts = PerUnit<u64>;

/// The price of each unit.
pub type UnitPrices = PerUnit<Price>;

impl<T: Copy + Default + Eq> PerUnit<T> {
    /// Makes the table from the values in the order of [`Unit::ALL`].
    pub fn from_array(values: [T; UNITS]) -> Self {
        Self(values)
    }

    /// Returns the values in the order of [`Unit::ALL`].
    pub fn to_array(&self) -> [T; UNITS] {
        self.0
    }

    /// Returns the value of a unit.
    pub fn get(&self, unit: Unit) -> T {
        self.0.get(unit as usize).copied().unwrap_or_default()
    }

    /// Returns the table with another value for one unit.
    #[must_use]
    pub fn with(mut self, unit: Unit, value: T) -> Self {
        if let Some(place) = self.0.get_mut(unit as usize) {
            *place = value;
        }
        self
    }

    /// Returns the units whose value is not zero.
    pub fn set(&self) -> impl Iterator<Item = (Unit, T)> {
        let all = Unit::ALL.into_iter().zip(self.0);
        all.filter(|(_, value)| *value != T::default())
    }

    /// Returns whether all values are zero.
    pub fn is_zero(&self) -> bool {
        self.set().next().is_none()
    }
}

impl UnitCounts {
    /// The table of zeros.
    pub const ZERO: Self = Self([0; UNITS]);

    /// Returns the sums of both tables.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let add =
            |counts: Self, (unit, more)| counts.with(unit, counts.get(unit).saturating_add(more));
        other.set().fold(self, add)
    }

    /// Returns the counts, each at most that of `most` if `most` has one.
    #[must_use]
    pub fn at_most(self, most: Self) -> Self {
        let cap = |counts: Self, (unit, most)| counts.with(unit, counts.get(unit).min(most));
        most.set().fold(self, cap)
    }

    /// Returns how many units the counts have beyond those of `within`.
    pub fn beyond(self, within: Self) -> u64 {
        let beyond = |(unit, count): (Unit, u64)| count.saturating_sub(within.get(unit));
        self.set().map(beyond).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_unit_stands_at_its_place() {
        for (at, unit) in Unit::ALL.into_iter().enumerate() {
            assert_eq!(unit as usize, at);
            let counts = UnitCounts::default().with(unit, 7);
            assert_eq!(counts.get(unit), 7);
            assert_eq!(counts.set().collect::<Vec<_>>(), [(unit, 7)]);
        }
        assert!(UnitCounts::default().is_zero());
    }

    #[test]
    fn the_price_of_one_is_that_of_its_measure() {
        let prices = [
            (Unit::Page, "0.004"),
            (Unit::InputTime, "0.000004"),
            (Unit::OutputTime, "0.000004"),
            (Unit::Character, "0.000000004"),
            (Unit::Search, "0.004"),
            (Unit::Document, "0.000004"),
        ];
        for (unit, price) in prices {
            assert_eq!(unit.parse_price("0.004").unwrap().to_decimal(), price);
            assert!(unit.parse_price("-1").is_err());
        }
    }
}
