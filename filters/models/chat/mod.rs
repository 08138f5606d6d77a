//! Chat: what wires need to know of a request ([`facts`]), its turns ([`conversation`]) and [`tools`], data URLs
//! ([`data_url`]), the size of images ([`dimensions`]), images by address ([`inlined`]), and the pieces that every answer is
//! made of ([`piece`]). No provider's name stands in here.

pub mod conversation;
pub mod data_url;
pub mod dimensions;
pub mod facts;
pub mod inlined;
pub mod input;
pub mod piece;
pub mod sniff;
pub mod text;
pub mod tools;
