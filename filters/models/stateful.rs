//! A request that needs responses which are kept: it goes on with one, refers to items of some, or is to be kept itself.
//!
//! [`expand`](super::stored_responses::expand) makes a body of it that says all by itself. That goes through the checks of its front
//! like any other, so everything behind them sees a usual request.

use super::request::Source;
use crate::fault::Fault;
use crate::fault_code::FaultCode;

/// A request whose members have been checked, except those that need kept responses.
#[derive(Clone, Debug)]
pub struct StatefulRequest {
    pub source: Source,
    pub is_stream: bool,
    /// `store`, where it is given.
    pub store: Option<bool>,
    /// `background` is true.
    pub is_background: bool,
    /// `previous_response_id`, where it is given.
    pub previous: Option<Box<str>>,
    /// Items that stand for others, in order.
    pub references: Vec<ItemReference>,
    /// What is said where no responses are kept: it names the first of these members.
    pub refusal: Fault,
}

/// An item that stands for another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ItemReference {
    /// The id of the other one.
    pub id: Box<str>,
    /// Its index in `input`.
    pub index: usize,
}

impl StatefulRequest {
    /// Returns whether its response is to be kept. One that is made in the background has to be.
    pub fn is_kept(&self) -> bool {
        self.store.unwrap_or(self.is_background)
    }

    /// Checks what holds between its members.
    ///
    /// Errors: 400 for a background response that is streamed, or not to be kept.
    pub fn check(&self) -> Result<(), Fault> {
        let refuse = |said: &str| {
            let message = format!("`background` is true {said}");
            Err(Fault::invalid("background", message).with_code(FaultCode::UnsupportedValue))
        };
        match (self.is_background, self.is_stream, self.store) {
            (true, true, _) => refuse(
                "beside `stream`; accepted is one of them: a background response is not streamed, its state is at `GET /v1/responses/{id}`",
            ),
            (true, _, Some(false)) => {
                refuse("and `store` false; accepted is `store` true or absent")
            }
            _ => Ok(()),
        }
    }
}
