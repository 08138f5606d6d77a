//! Responses that are kept for their clients, and requests that go on with one.
//!
//! [`StoredResponses::complete`] makes a usual request of one that needs kept responses, before it is planned, and
//! [`StoredResponses::keep`] keeps the response before its client sees its end. [`worker`] makes responses in the background.
//! `filters::models::stored_responses` decides, and the store keeps them encrypted. Source: docs/decisions.md 72.

pub mod worker;

use std::sync::Arc;

use bytes::Bytes;
use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind, quoted};
use filters::fault_code::FaultCode;
use filters::models::stateful::StatefulRequest;
use filters::models::stored_responses::expand::{Expanded, History, expand};
use filters::models::stored_responses::items::{ItemIndex, StoredTurn, to_array};
use filters::models::stored_responses::progress::ResponseStatus;
use filters::models::stored_responses::{ResponsePromise, response_of_item, stored_id};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::config::{Config, ResponsesConfig};
use crate::ledger::Ledger;
use crate::proxy::body;
use crate::store::{NewResponse, ResponseBounds, StoreError, StoredResponse};

const DAY_MS: i64 = 86_400_000;
/// The most responses that one request reads: that before it, and those to whose items it refers. Our choice.
const MAX_READ: usize = 9;

/// The responses of all callers.
pub struct StoredResponses {
    ledger: Arc<Ledger>,
    settings: ResponsesConfig,
    /// The maximum size of a request with its history.
    max_chat_bytes: usize,
}

/// A request that says all by itself, and what it promises.
pub struct CompletedRequest {
    pub body: Bytes,
    pub promise: ResponsePromise,
}

/// Reserves memory for what is read beside the body.
pub type ReserveBytes<'a> = dyn FnMut(usize) -> Result<(), Fault> + Send + 'a;

/// A response that was read, and its id.
struct ReadTurn {
    id: Box<str>,
    response: StoredResponse,
}

impl ReadTurn {
    fn turn(&self) -> StoredTurn<'_> {
        StoredTurn {
            id: &self.id,
            input: &self.response.input,
            response: &self.response.response,
        }
    }
}

impl StoredResponses {
    /// Returns the responses of the store, within the bounds of a configuration.
    pub fn new(config: &Config, ledger: &Arc<Ledger>) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            settings: config.responses.clone(),
            max_chat_bytes: config.limits.body_bytes.chat,
        }
    }

    /// Returns whether new ones are kept.
    pub fn is_on(&self) -> bool {
        self.settings.store
    }

    /// Completes a request with the responses that it needs. `reserve` is told of memory before it is used.
    ///
    /// Errors: 400 for a response or an item that is not there, and for a bound that is reached; 413 for a history that is too long;
    /// 503 while the store does not answer; those of `reserve`.
    pub async fn complete(
        &self,
        request: &StatefulRequest,
        caller: &Caller,
        reserve: &mut ReserveBytes<'_>,
    ) -> Result<CompletedRequest, Fault> {
        request.check()?;
        if request.is_kept() {
            self.check_room(caller).await?;
        }
        let mut read = Vec::new();
        if let Some(previous) = &request.previous {
            read.push(self.read_previous(previous, caller, reserve).await?);
        }
        let index = self
            .read_referred(request, caller, &mut read, reserve)
            .await?;
        let turns: Vec<StoredTurn<'_>> = read.iter().map(ReadTurn::turn).collect();
        let history = History {
            turns: &turns,
            has_previous: request.previous.is_some(),
            index: &index,
        };
        let parts = turns
            .iter()
            .map(|turn| turn.input.len() + turn.response.len());
        let body_bytes = request.source.body.len() + parts.sum::<usize>();
        let expanded =
            body::off_worker(body_bytes, || expand(request, history, self.max_chat_bytes))?;
        self.promise(request, expanded)
    }

    /// Returns what a request promises.
    ///
    /// Errors: 400 if its items have more bytes than a response may have.
    fn promise(
        &self,
        request: &StatefulRequest,
        expanded: Expanded,
    ) -> Result<CompletedRequest, Fault> {
        let body = Bytes::from(expanded.body);
        let input = body.slice(expanded.input);
        let most = self.settings.max_bytes_per_response;
        if request.is_kept() && input.len() > most {
            let bytes = input.len();
            let message = format!(
                "`input` has {bytes} bytes with its history; accepted for a response that is kept are at most {most}, which `[responses] max_bytes_per_response` is"
            );
            return Err(Fault::invalid("input", message).with_code(FaultCode::ResponseTooLarge));
        }
        let promise = ResponsePromise {
            id: request.is_kept().then(new_id),
            previous: request.previous.clone(),
            is_background: request.is_background,
            input,
        };
        Ok(CompletedRequest { body, promise })
    }

    /// Errors: 400 if the organization has no room for another response.
    async fn check_room(&self, caller: &Caller) -> Result<(), Fault> {
        let organization = Arc::clone(&caller.organization_id);
        let totals = self.ledger.with_store(|store, _| async move {
            let totals = store.response_totals(&organization);
            totals.await
        });
        let (totals, bounds) = (totals.await?, self.bounds());
        match totals.responses >= bounds.responses || totals.bytes >= bounds.bytes {
            true => Err(self.full()),
            false => Ok(()),
        }
    }

    fn bounds(&self) -> ResponseBounds {
        ResponseBounds {
            responses: i64::try_from(self.settings.max_count).unwrap_or(i64::MAX),
            bytes: i64::try_from(self.settings.max_bytes).unwrap_or(i64::MAX),
        }
    }

    fn full(&self) -> Fault {
        let (count, bytes) = (self.settings.max_count, self.settings.max_bytes);
        let message = format!(
            "the organization keeps as many responses as it may: {count} (`[responses] max_count`) of {bytes} bytes together (`[responses] max_bytes`); accepted is `store` false, or to delete some"
        );
        Fault::invalid("store", message).with_code(FaultCode::StoredResponsesLimitReached)
    }

    /// Reads the response before a request.
    async fn read_previous(
        &self,
        public: &str,
        caller: &Caller,
        reserve: &mut ReserveBytes<'_>,
    ) -> Result<ReadTurn, Fault> {
        const PARAM: &str = "previous_response_id";
        let refuse = |said: &str, code: FaultCode| {
            let message = format!("`{PARAM}` is {:?}, {said}", quoted(public));
            Fault::invalid(PARAM, message).with_code(code)
        };
        let unknown = || {
            let said = "which is no kept response of this key; accepted is the id of one that was made with `store: true` and has not expired";
            refuse(said, FaultCode::PreviousResponseNotFound)
        };
        let id = stored_id(public).ok_or_else(unknown)?;
        let read = self.read(id, caller, reserve).await?.ok_or_else(unknown)?;
        let status = &read.response.status;
        if !ResponseStatus::from_word(status).is_some_and(ResponseStatus::has_output) {
            let said =
                format!("which is `{status}`; accepted is one that is `completed` or `incomplete`");
            return Err(refuse(&said, FaultCode::PreviousResponseNotCompleted));
        }
        Ok(read)
    }

    /// Reads a response of the caller's key, with its input.
    async fn read(
        &self,
        id: &str,
        caller: &Caller,
        reserve: &mut ReserveBytes<'_>,
    ) -> Result<Option<ReadTurn>, Fault> {
        let of_key = (id.to_owned(), Arc::clone(&caller.key_id));
        let bytes = self.ledger.with_store(|store, _| async move {
            let bytes = store.response_bytes((&of_key.0, &of_key.1));
            bytes.await
        });
        let Some(bytes) = bytes.await? else {
            return Ok(None);
        };
        reserve(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let response = self.find(id, &caller.key_id, true).await?;
        Ok(response.map(|response| ReadTurn {
            id: id.into(),
            response,
        }))
    }

    /// Reads responses until all items are found to which the request refers. The last reference comes first: what its response
    /// answers are often the others.
    async fn read_referred<'r>(
        &self,
        request: &'r StatefulRequest,
        caller: &Caller,
        read: &mut Vec<ReadTurn>,
        reserve: &mut ReserveBytes<'_>,
    ) -> Result<ItemIndex<'r>, Fault> {
        let ids = request.references.iter().map(|reference| &*reference.id);
        let mut index = ItemIndex::new(ids);
        if request.references.is_empty() {
            return Ok(index);
        }
        for turn in read.iter() {
            add(&mut index, turn)?;
        }
        for reference in request.references.iter().rev() {
            let Some(id) = response_of_item(&reference.id).filter(|_| !index.has(&reference.id))
            else {
                continue;
            };
            if read.iter().any(|turn| *turn.id == *id) {
                continue;
            }
            if read.len() >= MAX_READ {
                let param = format!("input[{}].id", reference.index);
                let message = format!(
                    "`{param}` refers to a further response; accepted are items of at most {MAX_READ}"
                );
                return Err(Fault::invalid(param, message).with_code(FaultCode::InvalidParameters));
            }
            if let Some(turn) = self.read(id, caller, reserve).await? {
                add(&mut index, &turn)?;
                read.push(turn);
            }
        }
        Ok(index)
    }

    /// Returns a response of a key, with its input or without.
    ///
    /// Errors: 503 while the store does not answer.
    pub async fn find(
        &self,
        id: &str,
        key_id: &Arc<str>,
        with_input: bool,
    ) -> Result<Option<StoredResponse>, Fault> {
        let (id, key_id) = (id.to_owned(), Arc::clone(key_id));
        let now_ms = self.ledger.now_ms();
        let found = self.ledger.with_store(|store, _| async move {
            let found = store.response((&id, &key_id), now_ms, with_input);
            found.await
        });
        found.await
    }

    /// Deletes a response of a key that is not being made. Returns whether there was one.
    ///
    /// Errors: 503 while the store does not answer.
    pub async fn delete(&self, id: &str, key_id: &Arc<str>) -> Result<bool, Fault> {
        let (id, key_id) = (id.to_owned(), Arc::clone(key_id));
        let deleted = self.ledger.with_store(|store, _| async move {
            let deleted = store.delete_response(&id, &key_id);
            deleted.await
        });
        deleted.await
    }

    /// Cancels a response of a key that is being made in the background. Returns whether there was one.
    ///
    /// Errors: 503 while the store does not answer.
    pub async fn cancel(&self, id: &str, key_id: &Arc<str>) -> Result<bool, Fault> {
        let (id, key_id) = (id.to_owned(), Arc::clone(key_id));
        let now_ms = self.ledger.now_ms();
        let cancelled = self.ledger.with_store(|store, _| async move {
            let cancelled = store.cancel_response((&id, &key_id), now_ms);
            cancelled.await
        });
        cancelled.await
    }

    /// Returns the row of a response.
    ///
    /// Errors: a fault of ours without a promise to keep it.
    pub(super) fn row(
        &self,
        caller: &Caller,
        promise: &ResponsePromise,
        (status, response): (ResponseStatus, Bytes),
    ) -> Result<NewResponse, Fault> {
        let id = promise.id.clone();
        let nothing = || Fault::new(FaultKind::Internal, "the response is not to be kept");
        let created_ms = self.ledger.now_ms();
        let days = i64::from(self.settings.retention_days);
        Ok(NewResponse {
            id: id.ok_or_else(nothing)?,
            organization_id: Arc::clone(&caller.organization_id),
            key_id: Arc::clone(&caller.key_id),
            status: status.as_str(),
            is_background: promise.is_background,
            created_ms,
            expires_ms: created_ms.saturating_add(days.saturating_mul(DAY_MS)),
            input: to_array(&promise.input),
            response,
            bounds: self.bounds(),
        })
    }

    /// Checks a response that has ended.
    ///
    /// Errors: it has more bytes than it may have.
    pub(super) fn check_size(&self, input: &[u8], response: &[u8]) -> Result<(), Fault> {
        let (bytes, most) = (
            input.len() + response.len(),
            self.settings.max_bytes_per_response,
        );
        if bytes <= most {
            return Ok(());
        }
        let message = format!(
            "the response has {bytes} bytes with its input, of which at most {most} are kept, which `[responses] max_bytes_per_response` is"
        );
        Err(Fault::new(FaultKind::Invalid, message).with_code(FaultCode::ResponseTooLarge))
    }

    /// Keeps a response that has ended. The client sees its end once it is kept.
    ///
    /// Errors: it is larger than it may be, a bound of the organization is reached, or the store does not answer.
    pub fn keep(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        promise: &Arc<ResponsePromise>,
        ended: (ResponseStatus, Bytes),
    ) -> BoxFuture<'static, Result<(), Fault>> {
        let (this, caller, promise) = (Arc::clone(self), Arc::clone(caller), Arc::clone(promise));
        async move {
            this.check_size(&promise.input, &ended.1)?;
            let row = this.row(&caller, &promise, ended)?;
            let kept = this.ledger.with_store(|store, _| async move {
                match store.add_response(&row).await {
                    Err(StoreError::Full) => Ok(false),
                    added => added.map(|()| true),
                }
            });
            match kept.await {
                Ok(true) => Ok(()),
                Ok(false) => Err(this.full()),
                Err(fault) => {
                    let message = "the response was made, and is charged, but could not be kept";
                    Err(Fault::new(FaultKind::Unavailable, message).with_detail(fault.detail))
                }
            }
        }
        .boxed()
    }
}

fn add(index: &mut ItemIndex<'_>, turn: &ReadTurn) -> Result<(), Fault> {
    let bytes = turn.response.input.len() + turn.response.response.len();
    body::off_worker(bytes, || index.add(&turn.turn())).map_err(|error| {
        let message = "a kept response cannot be read";
        Fault::new(FaultKind::Internal, message).with_detail(error.to_string())
    })
}

/// Makes the id of a response. Ids sort by time.
fn new_id() -> Box<str> {
    let mut buffer = Uuid::encode_buffer();
    let id: &str = Uuid::now_v7().simple().encode_lower(&mut buffer);
    id.into()
}

/// Returns the 404 for a response that is not there.
pub fn unknown(public: &str) -> Fault {
    let message = format!("there is no response {:?} of this key", quoted(public));
    Fault::new(FaultKind::NotFound, message).with_code(FaultCode::ResponseNotFound)
}
