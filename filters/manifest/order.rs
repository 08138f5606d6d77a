//! The order of changes of names: a name has to be free before another thing takes it.

use std::collections::BTreeMap;

/// A thing with a name among others of its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming<'a> {
    /// The name that it has now; `None`: it is new.
    pub before: Option<&'a str>,
    /// The name that it shall have.
    pub after: &'a str,
}

/// The reason for which a name cannot be taken.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum NameConflict {
    /// A thing that keeps it has the name.
    Held,
    /// Names go round: each waits for the next. They are listed in that order.
    Round(Vec<String>),
}

/// Returns the things in an order in which each finds its name free, by their indexes. `held` has the names of things that the
/// file does not name.
///
/// Errors: the index of a thing that finds its name taken.
pub(super) fn order(
    things: &[Naming<'_>],
    is_held: impl Fn(&str) -> bool,
) -> Result<Vec<usize>, (usize, NameConflict)> {
    let holders: BTreeMap<&str, usize> = things
        .iter()
        .enumerate()
        .filter_map(|(index, it)| Some((it.before?, index)))
        .collect();
    let (mut sorted, mut is_done) = (Vec::with_capacity(things.len()), vec![false; things.len()]);
    for start in 0..things.len() {
        let mut waiting = Vec::new();
        let mut next = Some(start);
        while let Some(index) = next {
            let Some(thing) = things
                .get(index)
                .filter(|_| is_done.get(index) == Some(&false))
            else {
                break;
            };
            if let Some(from) = waiting.iter().position(|known| *known == index) {
                let round = waiting
                    .iter()
                    .skip(from)
                    .filter_map(|index| things.get(*index));
                let names = round.map(|it: &Naming<'_>| it.after.to_owned()).collect();
                return Err((index, NameConflict::Round(names)));
            }
            waiting.push(index);
            if thing.before == Some(thing.after) {
                break;
            }
            if is_held(thing.after) {
                return Err((index, NameConflict::Held));
            }
            next = holders.get(thing.after).copied();
        }
        for index in waiting.into_iter().rev() {
            if let Some(done) = is_done.get_mut(index) {
                *done = true;
            }
            sorted.push(index);
        }
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(
        things: &[(Option<&str>, &str)],
        held: &[&str],
    ) -> Result<Vec<usize>, (usize, NameConflict)> {
        let things: Vec<Naming<'_>> = things
            .iter()
            .map(|(before, after)| Naming {
                before: *before,
                after,
            })
            .collect();
        order(&things, |name| held.contains(&name))
    }

    #[test]
    fn a_name_is_free_before_another_takes_it() {
        let things = [
            (Some("a"), "b"),
            (Some("b"), "c"),
            (None, "a"),
            (Some("x"), "x"),
        ];
        assert_eq!(ordered(&things, &[]), Ok(vec![1, 0, 2, 3]));
    }

    #[test]
    fn names_that_go_round_are_refused() {
        let things = [
            (None, "n"),
            (Some("a"), "b"),
            (Some("b"), "c"),
            (Some("c"), "a"),
        ];
        let round = ["b", "c", "a"].map(str::to_owned).to_vec();
        assert_eq!(ordered(&things, &[]), Err((1, NameConflict::Round(round))));
    }

    #[test]
    fn the_name_of_what_stays_is_taken() {
        assert_eq!(
            ordered(&[(None, "a")], &["a"]),
            Err((0, NameConflict::Held))
        );
        assert_eq!(ordered(&[(Some("a"), "a")], &["a"]), Ok(vec![0]));
        // It keeps its name, so nobody else gets it.
        let things = [(Some("a"), "a"), (None, "b")];
        assert_eq!(ordered(&things, &["b"]), Err((1, NameConflict::Held)));
    }
}
