//! Experiments on models: a flag decides the model, the prompt and the parameters of a request.

use filters::fault::Fault;
use filters::models::managed::variation::DecidedVariation;
use futures::future::BoxFuture;

/// A flag, and the user for whom it is decided.
#[derive(Clone, Copy, Debug)]
pub struct AskedFlag<'a> {
    pub sdk_key: &'a str,
    pub flag: &'a str,
    pub user_id: &'a str,
    /// The wall clock.
    pub now_ms: u64,
}

/// Tells the queue of events that a user has met a variation. It is dropped if the request is refused before a model
/// is asked.
pub type SendImpression = Box<dyn FnOnce() + Send + Sync>;

/// Decides flags. The process connects the product that implements this to the model gateway.
pub trait Experiments: Send + Sync {
    /// Decides a flag.
    ///
    /// Errors: 404 for a flag that is unknown or off, 503 without a datafile.
    fn decide<'a>(
        &'a self,
        asked: AskedFlag<'a>,
    ) -> BoxFuture<'a, Result<(DecidedVariation, SendImpression), Fault>>;
}
