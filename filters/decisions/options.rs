//! The options of a decision. Source: docs/decision-agent.md 2.2, docs/decisions.md 21.

/// Options of a decision.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Options {
    pub disable_decision_event: bool,
    pub enabled_flags_only: bool,
    /// Neither read nor write the user's profile.
    pub ignore_user_profile: bool,
    pub exclude_variables: bool,
    /// Return all reasons, not only errors.
    pub include_reasons: bool,
    /// Fetch predictions again.
    pub ignore_cmab_cache: bool,
    /// Drop all cached predictions first.
    pub reset_cmab_cache: bool,
    /// Drop the cached predictions of this user first.
    pub invalidate_user_cmab_cache: bool,
}

/// An option that does not exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownOption(pub String);

impl Options {
    /// Reads options by their names.
    ///
    /// Errors: the first unknown name.
    pub fn parse<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, UnknownOption> {
        let mut options = Self::default();
        for name in names {
            let option = match name {
                "DISABLE_DECISION_EVENT" => &mut options.disable_decision_event,
                "ENABLED_FLAGS_ONLY" => &mut options.enabled_flags_only,
                "IGNORE_USER_PROFILE_SERVICE" => &mut options.ignore_user_profile,
                "EXCLUDE_VARIABLES" => &mut options.exclude_variables,
                "INCLUDE_REASONS" => &mut options.include_reasons,
                "IGNORE_CMAB_CACHE" => &mut options.ignore_cmab_cache,
                "RESET_CMAB_CACHE" => &mut options.reset_cmab_cache,
                "INVALIDATE_USER_CMAB_CACHE" => &mut options.invalidate_user_cmab_cache,
                _ => return Err(UnknownOption(name.to_owned())),
            };
            *option = true;
        }
        Ok(options)
    }
}
