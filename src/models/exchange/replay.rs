//! Stored replies: replays one in place of all attempts, or stores the reply that has come.

use bytes::Bytes;
use filters::models::dialects::state::OwnedMaker;
use filters::models::exported_content::{CopyingText, CutText};
use filters::models::metadata::{AnswerMembers, AttemptRecord};
use filters::models::reply::{ReplyIdentity, ResponseKind};
use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::recorder::ReplyRecorder;
use http::{HeaderName, HeaderValue};
use uuid::Uuid;

use super::ModelExchange;
use super::caching::Caching;
use super::reply_reader::ReplyReader;
use crate::models::reply_cache::ReplyLookup;
use crate::proxy::context::RequestInfo;
use crate::proxy::response::{self, Reply, Response};

const CACHE_STATUS: HeaderName = HeaderName::from_static("x-weirgate-cache");

impl ModelExchange {
    /// Returns the replayed response to a call, if a reply was found.
    ///
    /// A replay needs no credit: nothing is reserved and nothing is settled. Our choice: a caller without credit gets
    /// a response for which its project has already paid.
    pub fn replay(&mut self, info: &RequestInfo, found: ReplyLookup) -> Option<Response> {
        let reply = match found {
            ReplyLookup::Hit(reply) => reply,
            ReplyLookup::Miss(guard) => {
                self.call.caching = Caching::Storing(guard);
                return None;
            }
            ReplyLookup::Bypass => return None,
        };
        let body = self.write_reply(info, &reply)?;
        self.call.caching = Caching::Replayed(reply);
        self.call.send_impression();
        let mut headers = vec![(CACHE_STATUS, HeaderValue::from_static("HIT"))];
        if self.running.reader.kind() == Some(ResponseKind::Events) {
            headers.extend(response::stream_headers());
        }
        Some(Response {
            status: 200,
            headers,
            body: Reply::Bytes(body),
        })
    }

    /// Returns the body of a replayed response, or `None` if the reply is damaged.
    fn write_reply(&mut self, info: &RequestInfo, reply: &CachedReply) -> Option<Bytes> {
        let identity = ReplyIdentity {
            id: info.id.as_str().into(),
            created: info.unix_s(),
            model: reply.used_model().into(),
            maker: OwnedMaker {
                states: self.call.states.clone(),
                name: reply.maker().into(),
                dialect: None,
                is_vendor: false,
            },
        };
        let call = &mut self.call;
        let mut writer = call.request.front.writer(&call.request, identity);
        let mut answer = call.copies_content.then(CutText::default);
        match &mut answer {
            None => reply.replay(&mut *writer)?,
            Some(answer) => reply.replay(&mut CopyingText {
                sink: &mut *writer,
                answer,
            })?,
        }
        let billing = &mut call.billing;
        billing.record_replay(reply.settlement(), Uuid::now_v7());
        let settlement = call.billing.settlement()?;
        call.with_metadata(info, reply.members(), |metadata| {
            writer.complete(settlement, metadata);
        });
        let body = writer.take();
        // The log line describes the response like a new one.
        self.running.reader = ReplyReader::new(writer, None, None).keeping_text(answer);
        Some(body)
    }

    /// Lets one of the followers call, because the refusal of this call does not affect them.
    pub fn release_followers(&mut self) {
        self.call.caching = Caching::Off;
    }

    /// Stores the complete recorded reply, or lets the followers call if it may not be stored.
    pub(super) fn store_reply(&mut self, info: &RequestInfo) {
        let Caching::Storing(guard) = std::mem::take(&mut self.call.caching) else {
            return;
        };
        let recorded = self.running.reader.take_recorder();
        let events = recorded.and_then(ReplyRecorder::into_events);
        let (call, running) = (&self.call, &self.running);
        let (Some(events), Some(settlement), Some(deployment), Some(maker)) = (
            events,
            call.billing.settlement(),
            running.deployment(call),
            running.maker_name(call),
        ) else {
            return guard.release_followers();
        };
        let used = &deployment.used;
        // A replay costs nothing.
        let free = call
            .log
            .records
            .iter()
            .cloned()
            .map(|record| AttemptRecord {
                owed: None,
                ..record
            });
        let free: Vec<AttemptRecord> = free.collect();
        let members = AnswerMembers::Fresh {
            used,
            price: call.billing.price_notes(),
            routing: &free,
        };
        let names = (&*used.used_model, &*maker, used.log());
        let stored_ms = info.unix_ms();
        let reply = CachedReply::new(events, settlement.usage, names, &members, stored_ms);
        guard.store(reply);
    }
}
