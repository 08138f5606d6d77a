//! Chat: what wires need to know of a request ([`facts`]), the typed tree that wires of another convention read
//! ([`call`]), and the deltas that every answer is made of ([`delta`]). No provider's name stands in here.

pub mod call;
pub mod delta;
pub mod facts;
