//! Sets of parameters.

use super::Parameter;

/// A set of parameters, a bit for each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ParameterSet(u64);

impl ParameterSet {
    /// The set without parameters.
    pub const EMPTY: Self = Self(0);

    /// Returns whether a parameter is in the set.
    pub const fn contains(self, parameter: Parameter) -> bool {
        self.0 & parameter.bit() != 0
    }

    /// Adds a parameter.
    pub const fn insert(&mut self, parameter: Parameter) {
        self.0 |= parameter.bit();
    }

    /// Takes a parameter out.
    pub const fn remove(&mut self, parameter: Parameter) {
        self.0 &= !parameter.bit();
    }

    /// Returns the parameters of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the parameters of both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the parameters of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of its parameters.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns its parameters, in order.
    pub fn iter(self) -> impl Iterator<Item = Parameter> {
        Parameter::ALL
            .into_iter()
            .filter(move |parameter| self.contains(*parameter))
    }
}

impl FromIterator<Parameter> for ParameterSet {
    fn from_iter<I: IntoIterator<Item = Parameter>>(parameters: I) -> Self {
        let mut set = Self::EMPTY;
        parameters
            .into_iter()
            .for_each(|parameter| set.insert(parameter));
        set
    }
}
