//! Chat: the rules for its requests ([`check`]), the typed tree that wires of another convention read ([`call`]), and the
//! deltas that every answer is made of ([`delta`]). No provider's name stands in here.

pub mod call;
pub mod check;
pub mod delta;
