//! The google wire.
