//! Facts of every request: its framing, its path, the client's address and the gateway's own origin.

mod byte_class;
mod chunks;
mod client_ip;
mod framing;
mod head_error;
mod own_origin;
mod path;
mod requests;
mod stand_in;

pub use chunks::{ChunkError, Chunks};
pub use client_ip::client_address;
pub use framing::{BodyFraming, MAX_FIELDS, MAX_TARGET_BYTES, check_http1, check_http2};
pub use head_error::HeadError;
pub use own_origin::{OwnOrigin, is_loopback};
pub use path::{InvalidPath, has_nameless_segment, normalise};
pub use requests::{RequestFollower, RequestRefusal};
pub use stand_in::write_stand_in;
