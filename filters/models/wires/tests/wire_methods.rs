//! For the tests of wires: what the codec of a request's operation does.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;

use super::{BodySlice, Codec, Decoder, Quirks, ReplyHead, Target, Wire, WireHead};
use crate::fault::{Fault, FaultKind};
use crate::models::hosts::{Host, ProviderKind};
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;

impl Wire {
    pub(in crate::models::wires) fn limits(&self, operation: Operation) -> Option<WireLimits> {
        self.codec(operation).map(Codec::limits)
    }

    pub(in crate::models::wires) fn head(
        &self,
        operation: Operation,
        is_stream: bool,
        model: &str,
        quirks: &Quirks,
    ) -> Option<WireHead> {
        let codec = self.codec(operation)?;
        Some(self.host().head(codec, is_stream, model, quirks))
    }

    /// A host that serves it.
    pub(in crate::models::wires) fn host(&self) -> &'static Host {
        let kinds = [
            "openai",
            "anthropic",
            "google",
            "cohere",
            "voyage",
            "tavily",
            "exa",
        ];
        let kinds = kinds.map(|kind| serde_json::from_value::<ProviderKind>(kind.into()).unwrap());
        let is_served = |host: &&Host| {
            let others = host.other_wires.iter().map(|(_, kind)| *kind);
            let mut wires = std::iter::once(host.wire).chain(others);
            wires.any(|kind| std::ptr::eq(kind.wire(), self))
        };
        let mut hosts = kinds.into_iter().map(ProviderKind::host);
        hosts.find(is_served).unwrap()
    }

    pub(in crate::models::wires) fn codec_of(&self, request: &ModelRequest) -> &'static dyn Codec {
        self.codec(request.payload.operation()).unwrap()
    }

    /// The body of a request, which is whole in memory. Errors: also where the wire does not offer its operation.
    pub(in crate::models::wires) fn encode(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
    ) -> Result<Vec<Bytes>, Fault> {
        let codec = self.codec(request.payload.operation());
        let codec = codec.ok_or_else(|| Fault::new(FaultKind::Internal, "not offered"))?;
        let slices = codec.encode(request, target)?.into_iter();
        let bytes = slices.map(|slice| match slice {
            BodySlice::Bytes(bytes) => bytes,
            BodySlice::Upload(range) => panic!("{range:?} is not in memory"),
        });
        Ok(bytes.collect())
    }

    pub(in crate::models::wires) fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder> {
        self.codec_of(request).decoder(request, target, head)
    }
}
