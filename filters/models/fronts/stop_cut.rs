//! Stop sequences of an answer whose provider may ignore them: the text ends before the first one that stands in it.

use std::sync::Arc;

/// Looks for stop sequences in the pieces of a text. Cost of a clone: what is held, not the sequences.
#[derive(Clone, Debug)]
pub(super) struct StopCut {
    stops: Arc<[Box<str>]>,
    /// The end of the text so far, which may be the beginning of a stop sequence.
    held: String,
    found: Option<Box<str>>,
}

impl StopCut {
    /// Returns one for these sequences; `None`: there are none.
    pub(super) fn new<T: Into<Box<str>>>(stops: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut stops: Vec<Box<str>> = stops.into_iter().map(Into::into).collect();
        stops.retain(|stop| !stop.is_empty());
        (!stops.is_empty()).then_some(Self {
            stops: stops.into(),
            held: String::new(),
            found: None,
        })
    }

    /// Returns the sequence at which the text has ended.
    pub(super) fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// Takes a piece of the text. Returns what may go out.
    ///
    /// Cost: the length of the piece and of the longest sequence, for each sequence.
    pub(super) fn take(&mut self, text: &str) -> String {
        if self.found.is_some() {
            return String::new();
        }
        self.held.push_str(text);
        let first = self.stops.iter().filter_map(|stop| {
            let at = self.held.find(&**stop)?;
            Some((at, stop))
        });
        // The one counts that is complete first, as if the text came in single characters.
        if let Some((at, stop)) = first.min_by_key(|(at, stop)| (at + stop.len(), *at)) {
            self.found = Some(stop.clone());
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let beginnings = self.stops.iter().map(|stop| beginning(&self.held, stop));
        let kept = beginnings.max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - kept);
        std::mem::replace(&mut self.held, rest)
    }

    /// Returns what was held back, because the text has ended.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Returns how many bytes at the end of a text are the beginning of a sequence.
fn beginning(text: &str, stop: &str) -> usize {
    let beginnings = stop
        .char_indices()
        .rev()
        .filter_map(|(end, _)| stop.get(..end));
    let mut held = beginnings.filter(|beginning| text.ends_with(beginning));
    held.next().map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let Some(mut cut) = StopCut::new(stops.iter().copied()) else {
            return (pieces.concat(), None);
        };
        let mut out: String = pieces.iter().map(|piece| cut.take(piece)).collect();
        let found = cut.found().map(str::to_owned);
        out += &cut.rest();
        (out, found)
    }

    #[test]
    fn a_text_ends_before_a_stop_sequence_however_it_is_cut() {
        let stops = ["</a>", "END"];
        for (pieces, out, found) in [
            (&["one</a>two"][..], "one", Some("</a>")),
            (&["one<", "/", "a", ">two"], "one", Some("</a>")),
            (&["one</", "b>EN", "Dx</a>"], "one</b>", Some("END")),
            (&["one</a"], "one</a", None),
            (&["</a>"], "", Some("</a>")),
            (&["é</é", "</a>"], "é</é", Some("</a>")),
        ] {
            let expected = (out.to_owned(), found.map(str::to_owned));
            assert_eq!(cut(&stops, pieces), expected, "{pieces:?}");
        }
        for pieces in [&["xab"][..], &["x", "a", "b"]] {
            assert_eq!(
                cut(&["ab", "a"], pieces),
                ("x".to_owned(), Some("a".to_owned()))
            );
        }
        assert_eq!(cut(&["", ""], &["x"]), ("x".to_owned(), None));
    }

    proptest! {
        #[test]
        fn the_cuts_make_no_difference(text in "[ab]{0,12}", stop in "[ab]{1,4}", at in 0_usize..12) {
            let at = at.min(text.len());
            let whole = cut(&[&stop], &[&text]);
            prop_assert_eq!(&cut(&[&stop], &[&text[..at], &text[at..]]), &whole);
            let single: Vec<&str> = text.split("").collect();
            prop_assert_eq!(&cut(&[&stop], &single), &whole);
            let expected = text.find(&stop).map_or(&*text, |at| &text[..at]);
            prop_assert_eq!(&whole.0, expected);
        }
    }
}
