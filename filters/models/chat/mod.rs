//! Chat: what wires need to know of a request ([`facts`]), the typed tree that wires of another convention read
//! ([`tree`]), data URLs ([`data_url`]), images by address ([`inlined`]), and the deltas that every answer is made of ([`delta`]). No provider's name
//! stands in here.

pub mod data_url;
pub mod delta;
pub mod facts;
pub mod inlined;
pub mod sniff;
pub mod tree;
