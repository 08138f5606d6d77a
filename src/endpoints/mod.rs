//! Answers given in-process, a file each. They know nothing of Pingora: what they need is passed in, what they
//! answer is a value.

pub mod health;
