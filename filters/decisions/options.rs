//! The options of a decision. Source: docs/decision-agent.md 2.2, docs/decisions.md 21.

/// Options of a decision.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Options {
    pub disable_decision_event: bool,
    pub enabled_flags_only: bool,
    /// The user's profile is neither read nor written.
    pub ignore_user_profile: bool,
    pub exclude_variables: bool,
    /// All reasons are shown, not only errors.
    pub include_reasons: bool,
    /// Predictions are fetched again.
    pub ignore_cmab_cache: bool,
    /// All cached predictions are dropped first.
    pub reset_cmab_cache: bool,
    /// The cached predictions of this user are dropped first.
    pub invalidate_user_cmab_cache: bool,
}

/// An option that does not exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownOption(pub String);

impl Options {
    /// Options by their names.
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
