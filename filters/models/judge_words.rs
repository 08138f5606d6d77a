//! How a front asks a model whether the calls of another model's answer are dangerous, and says what that model has found.

use std::fmt::Debug;

use super::request::ModelRequest;

/// How a front's dialect asks for verdicts on the calls of an answer, and says them.
pub trait JudgeWords: Debug + Send + Sync {
    /// Returns whether a request asks for verdicts.
    fn is_asked(&self, request: &ModelRequest) -> bool;

    /// Returns the body of a chat completion that asks a model for its verdicts on the calls of a whole answer; `None`: the
    /// answer calls nothing.
    fn question(&self, request: &ModelRequest, answer: &[u8], judge: &str) -> Option<Vec<u8>>;

    /// Returns the verdicts, as the client reads them, on the calls of a whole answer. `judged` is the judge's whole chat
    /// completion, or the client's word for why there is none.
    fn verdicts(&self, answer: &[u8], judged: Result<&[u8], &'static str>) -> String;
}
