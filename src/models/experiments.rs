//! Experiments on models: a flag decides which model, prompt and parameters a request gets.

use filters::fault::Fault;
use filters::models::managed::variation::DecidedVariation;
use futures::future::BoxFuture;

/// A flag, and the user whom it is decided for.
#[derive(Clone, Copy, Debug)]
pub struct AskedFlag<'a> {
    pub sdk_key: &'a str,
    pub flag: &'a str,
    pub user_id: &'a str,
    /// The wall clock.
    pub now_ms: u64,
}

/// Tells the decisions' events that a user has met a variation. A request that is refused before a model is asked drops it.
pub type SendImpression = Box<dyn FnOnce() + Send + Sync>;

/// Decides flags. The product that does so is joined to this one where the process is put together.
pub trait Experiments: Send + Sync {
    /// Decides a flag.
    ///
    /// Errors: 404 for a flag that is unknown or off, 503 if the datafile cannot be had.
    fn decide<'a>(
        &'a self,
        asked: AskedFlag<'a>,
    ) -> BoxFuture<'a, Result<(DecidedVariation, SendImpression), Fault>>;
}
