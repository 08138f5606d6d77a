//! The Anthropic wire.

use super::{Decoder, Encoded, Failure, Provider, Target};
use crate::chat::delta::Sink;
use crate::chat::request::Request;
use crate::fault::{Fault, Kind};

/// The family.
#[derive(Debug)]
pub struct Anthropic;

impl Provider for Anthropic {
    fn encode(&self, _: &Request, _: &Target<'_>) -> Result<Encoded, Fault> {
        Err(Fault::new(
            Kind::Internal,
            "this provider's wire is not built yet",
        ))
    }

    fn decode(&self, _: &[u8], _: &Target<'_>, _: &mut dyn Sink) -> Result<(), Failure> {
        Err(Failure::malformed("this provider's wire is not built yet"))
    }

    fn stream(&self, _: &Target<'_>) -> Box<dyn Decoder> {
        Box::new(Unbuilt)
    }

    fn refusal(&self, status: u16, _: &[u8]) -> Failure {
        Failure::refused(status, "")
    }
}

/// Fails every stream.
struct Unbuilt;

impl Decoder for Unbuilt {
    fn event(
        &mut self,
        _: crate::sse::Event<'_>,
        _: &mut dyn Sink,
    ) -> Result<super::Progress, Failure> {
        Err(Failure::malformed("this provider's wire is not built yet"))
    }

    fn ended(&mut self, _: &mut dyn Sink) -> Result<super::Progress, Failure> {
        Err(Failure::malformed("this provider's wire is not built yet"))
    }
}
