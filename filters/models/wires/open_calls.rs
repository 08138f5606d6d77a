//! Calls that wait for their results. A result is found in constant time, whatever the order of results: a history may have a
//! hundred thousand of them.

use std::collections::HashMap;

/// The end of a chain.
const END: usize = usize::MAX;

/// Places by key: those of one key in their order.
#[derive(Debug, Default)]
struct Chains<'a> {
    /// The first and the last place of each key.
    ends: HashMap<&'a str, (usize, usize)>,
    /// The next place of the same key, of each place.
    next: Vec<usize>,
}

impl<'a> Chains<'a> {
    /// Adds the next place.
    fn push(&mut self, key: &'a str) {
        let place = self.next.len();
        self.next.push(END);
        let (first, last) = self.ends.entry(key).or_insert((END, END));
        match self.next.get_mut(*last).filter(|_| *first != END) {
            Some(next) => *next = place,
            None => *first = place,
        }
        *last = place;
    }

    /// Takes the first place of a key that is open.
    fn pop(&mut self, key: &str, is_open: impl Fn(usize) -> bool) -> Option<usize> {
        let (first, _) = self.ends.get_mut(key)?;
        while let Some(next) = self.next.get(*first) {
            let place = std::mem::replace(first, *next);
            if is_open(place) {
                return Some(place);
            }
        }
        None
    }
}

/// Calls with what a wire keeps of each.
#[derive(Debug)]
pub(super) struct OpenCalls<'a, T> {
    calls: Vec<OpenCall<'a, T>>,
    by_id: Chains<'a>,
    /// Of the first results that name a function and no call on.
    by_name: Option<Chains<'a>>,
    /// Before it all are answered.
    first: usize,
    open: usize,
}

#[derive(Debug)]
struct OpenCall<'a, T> {
    name: &'a str,
    kept: T,
    is_open: bool,
}

impl<T> Default for OpenCalls<'_, T> {
    fn default() -> Self {
        Self {
            calls: Vec::new(),
            by_id: Chains::default(),
            by_name: None,
            first: 0,
            open: 0,
        }
    }
}

impl<'a, T> OpenCalls<'a, T> {
    /// Returns whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    pub(super) fn push(&mut self, id: &'a str, name: &'a str, kept: T) {
        self.by_id.push(id);
        if let Some(by_name) = &mut self.by_name {
            by_name.push(name);
        }
        self.calls.push(OpenCall {
            name,
            kept,
            is_open: true,
        });
        self.open += 1;
    }

    /// Takes the result of a call: of this id, else of this function, else of the next one. Returns what is kept of the call.
    pub(super) fn answer(&mut self, id: Option<&str>, name: Option<&str>) -> Option<&mut T> {
        let calls = &self.calls;
        let is_open = |place: usize| calls.get(place).is_some_and(|call| call.is_open);
        let place = match (id, name) {
            (Some(id), _) => self.by_id.pop(id, is_open)?,
            (None, Some(name)) => {
                let by_name = self.by_name.get_or_insert_with(|| {
                    let mut chains = Chains::default();
                    calls.iter().for_each(|call| chains.push(call.name));
                    chains
                });
                by_name.pop(name, is_open)?
            }
            (None, None) => self.first_place()?,
        };
        let call = self.calls.get_mut(place)?;
        call.is_open = false;
        self.open -= 1;
        Some(&mut call.kept)
    }

    /// Returns what is kept of the first call that waits.
    pub(super) fn first(&mut self) -> Option<&T> {
        let place = self.first_place()?;
        self.calls.get(place).map(|call| &call.kept)
    }

    /// Takes all calls, in their order: the name of the function, and what is kept.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (&'a str, T)> + use<'a, T> {
        let all = std::mem::take(self).calls.into_iter();
        all.map(|call| (call.name, call.kept))
    }

    fn first_place(&mut self) -> Option<usize> {
        while self.calls.get(self.first).is_some_and(|call| !call.is_open) {
            self.first += 1;
        }
        (self.first < self.calls.len()).then_some(self.first)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn three() -> OpenCalls<'static, u32> {
        let mut calls = OpenCalls::default();
        for (number, (id, name)) in [("a", "f"), ("b", "g"), ("a", "f")].into_iter().enumerate() {
            calls.push(id, name, number as u32);
        }
        calls
    }

    #[test]
    fn a_result_answers_the_first_call_that_it_names() {
        let mut calls = three();
        assert_eq!(calls.answer(Some("a"), Some("g")).copied(), Some(0));
        assert_eq!(calls.answer(Some("a"), None).copied(), Some(2));
        assert_eq!(calls.answer(Some("a"), None), None);
        assert_eq!((calls.first().copied(), calls.is_empty()), (Some(1), false));
        assert_eq!(calls.answer(Some("c"), None), None);
        assert_eq!(calls.answer(None, None).copied(), Some(1));
        assert!(calls.is_empty() && calls.first().is_none() && calls.answer(None, None).is_none());
        // An id may come again.
        calls.push("a", "f", 9);
        assert_eq!(calls.answer(Some("a"), None).copied(), Some(9));
    }

    #[test]
    fn a_name_counts_where_no_call_is_named() {
        let mut calls = three();
        assert_eq!(calls.answer(Some("a"), None).copied(), Some(0));
        assert_eq!(calls.answer(None, Some("f")).copied(), Some(2));
        assert_eq!(calls.answer(None, Some("f")), None);
        calls.push("d", "f", 3);
        assert_eq!(calls.answer(None, Some("f")).copied(), Some(3));
        let all: Vec<_> = three().take().collect();
        assert_eq!(all, [("f", 0), ("g", 1), ("f", 2)]);
    }
}
