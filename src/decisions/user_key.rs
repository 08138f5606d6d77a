//! The key under which data of a user is stored.

/// An SDK key and the id of a user of its project.
pub type UserKey = (Box<str>, Box<str>);
