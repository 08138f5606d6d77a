//! Requests whose tokens are asked for, and estimates of them.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::dialects::Dialect;
use crate::models::front::ClientHead;
use crate::models::request::ModelRequest;

/// An API that counts tokens.
#[derive(Debug)]
pub struct CountingApi {
    pub dialect: Dialect,
    /// Reads a request.
    ///
    /// Errors: 400 naming the field, what came and what is accepted.
    pub read: fn(&ClientHead<'_>, Bytes) -> Result<Counted, Fault>,
    /// The member of the response that says how many there are.
    pub member: &'static str,
}

/// A request whose tokens are asked for.
#[derive(Debug)]
pub struct Counted {
    pub request: ModelRequest,
    /// How many tokens it has: an estimate that errs high.
    pub estimate: u64,
}

/// Returns how many tokens a request has: an estimate that errs high.
pub(super) fn estimate(request: &ModelRequest) -> u64 {
    /// Bytes of a token. Texts have about four, code and other languages fewer.
    const TOKEN_BYTES: u64 = 3;
    /// The most tokens of an image at the vendor.
    const IMAGE_TOKENS: u64 = 1600;
    /// Tokens of a page of a document, and the bytes of its base64.
    const PAGE_TOKENS: u64 = 3000;
    let costs = &request.cost_inputs;
    let texts = request.text_bytes.div_ceil(TOKEN_BYTES);
    // What is no text of the body: keys, roles, ids.
    let rest = costs.bytes.saturating_sub(request.text_bytes) / 8;
    let media = IMAGE_TOKENS * costs.images + PAGE_TOKENS * costs.files;
    (texts + rest + media).max(1)
}
