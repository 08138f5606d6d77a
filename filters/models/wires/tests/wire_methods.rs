//! For the tests of wires: what the codec of a request's operation does.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;

use super::{BodySlice, Codec, Decoder, Quirks, ReplyHead, Target, Wire, WireHead};
use crate::fault::{Fault, FaultKind};
use crate::models::hosts::{Host, PathNames, ProviderKind, ServedWire};
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
        let (host, served) = self.served();
        let names = PathNames {
            model,
            ..PathNames::default()
        };
        host.head(served, (operation, is_stream), &names, quirks)
    }

    /// A host that serves it.
    pub(in crate::models::wires) fn host(&self) -> &'static Host {
        self.served().0
    }

    /// The path of an endpoint at a host that serves it.
    pub(in crate::models::wires) fn path(&self, endpoint: &str, quirks: &Quirks) -> String {
        let (_, served) = self.served();
        served.path(endpoint, &PathNames::default(), quirks)
    }

    /// A host that serves it, and how it does.
    fn served(&self) -> (&'static Host, &'static ServedWire) {
        let kinds = [
            "openai",
            "anthropic",
            "google",
            "cohere",
            "voyage",
            "tavily",
            "exa",
            "bedrock",
            "vertex",
        ];
        let kinds = kinds.map(|kind| serde_json::from_value::<ProviderKind>(kind.into()).unwrap());
        let hosts = kinds.into_iter().map(ProviderKind::host);
        let mut served = hosts.flat_map(|host| host.wires.iter().map(move |wire| (host, wire)));
        let is_it = |(_, served): &(_, &ServedWire)| std::ptr::eq(served.kind.wire(), self);
        served.find(is_it).unwrap()
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
