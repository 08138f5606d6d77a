//! Providers as numbers, so that a request compares bits instead of names.

use std::collections::HashMap;
use std::sync::Arc;

use super::catalog_file::MappingWire;
use super::parameters::Parameters;
use super::places::ProviderPlaces;
use super::search::SearchDialect;
use super::thinking::ThinkingDefaults;

/// The enabled providers. A provider's number is its place in this list.
#[derive(Debug, Default)]
pub struct ProviderNames {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, usize>,
    defaults: Vec<ProviderDefaults>,
    places: Vec<ProviderPlaces>,
}

/// What all mappings of a provider have where the catalogue says nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderDefaults {
    pub parameters: Parameters,
    pub thinking: ThinkingDefaults,
    pub search: SearchDialect,
    /// The same of the mappings that are asked over another API.
    pub others: Vec<(MappingWire, Self)>,
}

impl ProviderDefaults {
    /// Returns the defaults of a provider that takes everything as it is.
    pub const fn plain() -> Self {
        Self {
            parameters: Parameters::plain(),
            thinking: ThinkingDefaults::LEVELS,
            search: SearchDialect::None,
            others: Vec::new(),
        }
    }

    /// Returns the defaults of a mapping that is asked over this wire.
    pub fn over(mut self, wire: Option<MappingWire>) -> Self {
        let mut others = self.others.iter();
        match others.position(|(other, _)| Some(*other) == wire) {
            Some(at) => self.others.swap_remove(at).1,
            None => self,
        }
    }
}

/// A set of providers, by number.
#[derive(Clone, Debug, Default)]
pub struct ProviderSet {
    words: Vec<u64>,
}

impl ProviderNames {
    /// Creates the list of providers and what their mappings have where the catalogue says nothing else.
    pub fn new<'n>(providers: impl IntoIterator<Item = (&'n str, ProviderDefaults)>) -> Self {
        let (names, defaults): (Vec<Arc<str>>, Vec<ProviderDefaults>) = providers
            .into_iter()
            .map(|(name, defaults)| (Arc::from(name), defaults))
            .unzip();
        let numbers = names.iter().enumerate();
        Self {
            numbers: numbers.map(|(at, name)| (Arc::clone(name), at)).collect(),
            names,
            defaults,
            places: Vec::new(),
        }
    }

    /// Adds where the providers are, in their order.
    #[must_use]
    pub fn at(self, places: impl IntoIterator<Item = ProviderPlaces>) -> Self {
        let places = places.into_iter().collect();
        Self { places, ..self }
    }

    /// Returns where a provider is.
    pub fn places(&self, number: usize) -> ProviderPlaces {
        self.places.get(number).cloned().unwrap_or_default()
    }

    /// Returns what the mappings of a provider have where the catalogue says nothing else.
    pub fn defaults(&self, number: usize) -> ProviderDefaults {
        let defaults = self.defaults.get(number).cloned();
        defaults.unwrap_or_else(ProviderDefaults::plain)
    }

    /// Returns the number of a provider.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Returns the name behind a number.
    pub fn name(&self, number: usize) -> Option<&Arc<str>> {
        self.names.get(number)
    }

    /// Returns the set of the providers with these names. Unknown names are left out.
    pub fn set<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> ProviderSet {
        let mut set = ProviderSet::default();
        for number in names.into_iter().filter_map(|name| self.number(name)) {
            set.insert(number);
        }
        set
    }
}

impl<'n> FromIterator<&'n str> for ProviderNames {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        Self::new(
            names
                .into_iter()
                .map(|name| (name, ProviderDefaults::plain())),
        )
    }
}

impl ProviderSet {
    /// The set without providers.
    pub const EMPTY: &'static Self = &Self { words: Vec::new() };

    /// Returns whether the provider of this number is in the set.
    pub fn contains(&self, number: usize) -> bool {
        let word = self.words.get(number / 64);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Returns the providers of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let count = self.words.len().max(other.words.len());
        let word = |set: &Self, at: usize| set.words.get(at).copied().unwrap_or_default();
        Self {
            words: (0..count)
                .map(|at| word(self, at) | word(other, at))
                .collect(),
        }
    }

    /// Returns the providers of this set that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let word = |at: usize| other.words.get(at).copied().unwrap_or_default();
        let words = self.words.iter().enumerate();
        Self {
            words: words.map(|(at, own)| own & !word(at)).collect(),
        }
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Adds the provider of this number.
    pub fn insert(&mut self, number: usize) {
        let at = number / 64;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        if let Some(word) = self.words.get_mut(at) {
            *word |= 1 << (number % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_beyond_the_first_word_too() {
        let all: Vec<String> = (0..130).map(|at| format!("p{at}")).collect();
        let names: ProviderNames = all.iter().map(String::as_str).collect();
        let set = names.set(["p0", "p63", "p64", "p129", "unknown"]);
        let held: Vec<usize> = (0..200).filter(|at| set.contains(*at)).collect();
        assert_eq!(held, [0, 63, 64, 129]);
        assert!(!ProviderSet::EMPTY.contains(0));
    }

    #[test]
    fn what_is_taken_out_of_a_set_is_gone() {
        let all: Vec<String> = (0..130).map(|at| format!("p{at}")).collect();
        let names: ProviderNames = all.iter().map(String::as_str).collect();
        let set = names.set(["p0", "p129"]);
        let rest = set.without(&names.set(["p129", "p64"]));
        assert!(rest.contains(0) && !rest.contains(129) && !rest.is_empty());
        assert!(rest.without(&set).is_empty() && ProviderSet::EMPTY.is_empty());
    }
}
