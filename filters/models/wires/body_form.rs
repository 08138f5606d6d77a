//! What a host wants of bodies, where it differs from the vendor of the dialect.

/// The deviations of a host from its wire. Source: docs/facts/clouds.md.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyForm {
    /// The version that stands in the body in place of the model, which the path names; `None`: the model stands there.
    pub version_for_model: Option<&'static str>,
    /// Whether ids of users have to be plain words, so that hashes take their places.
    pub hashes_users: bool,
    /// Whether it refuses forms of answers and strict tools.
    pub refuses_forms: bool,
}

impl BodyForm {
    /// What the vendor of the dialect wants.
    pub const OF_WIRE: Self = Self {
        version_for_model: None,
        hashes_users: false,
        refuses_forms: false,
    };
}
