//! The key under which something is stored for a user.

/// An SDK key and the id of a user of its project.
pub type UserKey = (Box<str>, Box<str>);
