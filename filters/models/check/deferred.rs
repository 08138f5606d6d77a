//! A value whose rules depend on a member that may stand behind it, such as the type of a block.

use crate::json::Walker;
use crate::models::check::reject::Reject;

/// Such a value.
#[derive(Debug)]
pub(crate) enum Deferred<'a> {
    /// The member was known, so the value was read where it stands. What it breaks is told once all members are known: others
    /// may be broken, too, and theirs is told first.
    Read(Result<(), Reject>),
    /// The value as JSON, to be read once the member is known.
    Json(&'a str),
}

impl<'a> Deferred<'a> {
    /// Reads the next value with `read`, from its start to its end.
    ///
    /// Errors: it is not JSON.
    pub(crate) fn read(
        walk: &mut Walker<'a>,
        read: impl FnOnce(&mut Walker<'a>) -> Result<(), Reject>,
    ) -> Result<Self, Reject> {
        let start = walk.clone();
        let result = read(walk);
        if result.is_err() {
            // The rest of the value may be no JSON, which is told before any rule.
            *walk = start;
            walk.skip()?;
        }
        Ok(Self::Read(result))
    }

    /// Keeps the next value for later.
    ///
    /// Errors: it is not JSON.
    pub(crate) fn keep(walk: &mut Walker<'a>) -> Result<Self, Reject> {
        Ok(Self::Json(walk.skip()?))
    }

    /// Returns what was found where the value was read, or reads it now.
    pub(crate) fn finish(
        self,
        read: impl FnOnce(&mut Walker<'a>) -> Result<(), Reject>,
    ) -> Result<(), Reject> {
        match self {
            Self::Read(result) => result,
            Self::Json(json) => read(&mut Walker::over(json)),
        }
    }
}
