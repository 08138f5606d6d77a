//! OCR: what wires need to know of a request.

use crate::money::{Unit, UnitCounts};

/// What a front found in a request to read a document.
#[derive(Clone, Copy, Debug)]
pub struct OcrFacts {
    /// How many pages it asks for; `None`: all of a document whose pages were not counted.
    pub pages: Option<u64>,
}

impl OcrFacts {
    /// The most pages of a document. Source: docs/facts/wire-formats.md 6.6.
    pub const MAX_PAGES: u64 = 1000;

    /// Returns the units that a reply is expected to take: one page, where they were not counted.
    pub fn expected_units(self) -> UnitCounts {
        Self::units(self.pages.unwrap_or(1))
    }

    /// Returns the most units that a reply may take.
    pub fn most_units(self) -> UnitCounts {
        Self::units(self.pages.unwrap_or(Self::MAX_PAGES))
    }

    /// Returns so many pages as units.
    pub fn units(pages: u64) -> UnitCounts {
        UnitCounts::ZERO.with(Unit::Page, pages)
    }
}
