//! Objects whose keys may be written in both spellings of the vendor.

use crate::json::{Type, Walker};
use crate::models::check::read::{expect, twice};
use crate::models::check::reject::Reject;
use crate::models::dialects::contents::canonical;

/// Reads an object, in which null counts as absent: calls `member` with each member whose key is in `known`, and skips the others.
///
/// Errors: not an object, or a key of `known` twice, in whichever spelling.
pub(in crate::models::fronts) fn object<'a>(
    walk: &mut Walker<'a>,
    known: &[&'static str],
    mut member: impl FnMut(&mut Walker<'a>, &'static str) -> Result<(), Reject>,
) -> Result<(), Reject> {
    all_members(walk, known, |walk, _, known| match known {
        Some(key) => member(walk, key),
        None => Ok(walk.skip().map(|_| ())?),
    })
}

/// Reads an object likewise; `member` is called with each member that is not null, its key, and the key of `known` that it has.
pub(in crate::models::fronts) fn all_members<'a>(
    walk: &mut Walker<'a>,
    known: &[&'static str],
    mut member: impl FnMut(&mut Walker<'a>, &str, Option<&'static str>) -> Result<(), Reject>,
) -> Result<(), Reject> {
    expect(walk, Type::Object, "an object")?;
    let mut seen = 0_u64;
    walk.object(|walk, said| {
        let key = canonical(&said);
        let at = known.iter().position(|known| *known == key);
        if let Some(at) = at {
            if seen & (1 << at) != 0 {
                return Err(twice().within(&said));
            }
            seen |= 1 << at;
        }
        if walk.null()? {
            return Ok(());
        }
        let name = at.and_then(|at| known.get(at)).copied();
        member(walk, &key, name).map_err(|reject| reject.within(&said))
    })
}
