//! The hedge of a call: a second attempt beside one whose stream says nothing. Source: docs/routing.md, Hedges.
//!
//! While it runs, the hedge has a cursor, a reader and a measurement of its own; [`beside`] lends them to the exchange. Its
//! reader only tells whether content has come. Then the running attempt gives way, and the hedge is [`adopt`]ed: it is read
//! anew, from its first byte, as any attempt is. At most one attempt of the two is owed beside the one that answers, so one
//! more reservation covers it (`cancelled.rs`).

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use filters::models::request::ModelRequest;
use filters::models::routing::health::RunningAttempt;
use filters::models::routing::hedge::{HedgeCandidate, find_hedge, is_owed};
use filters::models::wires::Failure;
use pingora::http::RequestHeader;
use pingora::{Error, Result};

use super::upstream_response::{self, ReplyReader};
use super::{
    Cursor, ModelExchange, PlannedAttempt, caching, cancelled, failure, feedback, images,
    upstream_request,
};
use crate::ledger::{Receipt, Reservation};
use crate::models::Models;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;
use crate::proxy::hedge::{Adopted, HedgeCall, News, Piece, Race};

/// A reservation that the hedge's own future makes.
pub(super) type SharedReservation = Arc<Mutex<Option<Reservation>>>;

/// The hedge of a call, from the time before it begins.
pub(super) struct Hedge {
    pub(super) race: Arc<Race>,
    /// While it runs beside the attempt of Pingora's loop.
    beside: Option<Beside>,
    /// Covers the attempt that is cancelled, if its provider bills it.
    reserved: SharedReservation,
    /// Its content has come first.
    has_won: bool,
    /// It is the next attempt of Pingora's loop.
    is_next: bool,
    /// It is the running attempt of Pingora's loop.
    is_adopted: bool,
    /// No hedge runs or begins any more.
    is_over: bool,
    /// Of what was owed for the cancelled attempt.
    receipt: Option<Receipt>,
}

/// What an attempt has of its own.
#[derive(Default)]
struct Beside {
    cursor: Cursor,
    reader: ReplyReader,
    measured: Option<RunningAttempt>,
}

/// What a piece of the hedge's reply means.
enum Heard {
    Nothing,
    Content,
    /// Credit or a limit does not allow the hedge.
    Refused,
}

impl Hedge {
    /// Returns the hedge that a call may have: a stream with more than one planned attempt, but none of images, which are
    /// drawn in silence and would be paid twice, and none of an upload, which would be sent twice.
    pub(super) fn new(
        models: &Models,
        request: &ModelRequest,
        attempts: &[PlannedAttempt],
    ) -> Option<Box<Self>> {
        let hedging = models.hedging.as_ref()?;
        let operation = request.payload.operation();
        let is_drawn = operation.draws() || request.image_count().is_some();
        let is_fit = !is_drawn && !operation.is_upload();
        let may_be = request.is_stream && attempts.len() > 1 && is_fit;
        may_be.then(|| {
            Box::new(Self {
                race: Arc::new(Race::new(hedging.after)),
                beside: None,
                reserved: SharedReservation::default(),
                has_won: false,
                is_next: false,
                is_adopted: false,
                is_over: false,
                receipt: None,
            })
        })
    }

    /// Returns whether it is the running attempt of Pingora's loop.
    pub(super) fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// Returns whether it runs beside the attempt of Pingora's loop.
    pub(super) fn is_beside(&self) -> bool {
        self.beside.is_some()
    }

    /// The place of what is reserved for an attempt that is cancelled.
    pub(super) fn reserved(&self) -> SharedReservation {
        Arc::clone(&self.reserved)
    }

    /// Takes what was reserved for an attempt that is cancelled.
    pub(super) fn take_reservation(&self) -> Option<Reservation> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.take()
    }

    /// Keeps the receipt of what was owed; the last byte of the response waits for it.
    pub(super) fn keep_receipt(&mut self, receipt: Receipt) {
        self.receipt = Some(receipt);
    }

    /// Takes that receipt.
    pub(super) fn take_receipt(&mut self) -> Option<Receipt> {
        self.receipt.take()
    }

    /// Ends it, and releases what was reserved and is not owed.
    fn end(&mut self) {
        self.race.cancel();
        self.beside = None;
        self.is_over = true;
        drop(self.take_reservation());
    }
}

/// Hears why the session has called: a hedge is due, or has news.
///
/// Errors: the hedge's content has come first, so the running attempt has to end.
pub(super) fn hear(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    client: &RequestHeader,
) -> Result<()> {
    let Some(hedge) = &exchange.hedge else {
        return Ok(());
    };
    let race = Arc::clone(&hedge.race);
    if race.is_armed() {
        begin(exchange, info, client, &race);
        return Ok(());
    }
    let Some(news) = race.take_news() else {
        return Ok(());
    };
    match beside(exchange, |exchange| read(exchange, info, news)) {
        None | Some(Ok(Heard::Nothing)) => Ok(()),
        Some(Ok(Heard::Content)) => {
            if let Some(hedge) = &mut exchange.hedge {
                hedge.has_won = true;
            }
            let error = Error::explain(ATTEMPT_ABORTED, "another attempt answers first");
            Err(error.into_down())
        }
        Some(Ok(Heard::Refused)) => {
            end(exchange, "no_credit");
            Ok(())
        }
        Some(Err(failure)) => {
            fail(exchange, info, failure);
            Ok(())
        }
    }
}

/// Begins the hedge, if another attempt may run beside the running one. If not, none begins later.
fn begin(exchange: &mut ModelExchange, info: &RequestInfo, client: &RequestHeader, race: &Race) {
    let running = exchange.cursor.attempt;
    let call = find(exchange, info).and_then(|found| {
        if !exchange.running.try_later_fallback() {
            count(exchange, "no_budget");
            return None;
        }
        let cursor = Cursor {
            attempt: found,
            unsaid: exchange.cursor.unsaid,
            ..Cursor::default()
        };
        if let Some(hedge) = &mut exchange.hedge {
            hedge.beside = Some(Beside {
                cursor,
                ..Beside::default()
            });
        }
        let call = beside(exchange, |exchange| prepare(exchange, info, client)).flatten()?;
        // What fails later goes on with the attempts in their order.
        let next = running + 1;
        exchange.attempts.get_mut(next..=found)?.rotate_right(1);
        beside(exchange, |exchange| exchange.cursor.attempt = next);
        Some(call)
    });
    let Some(mut call) = call else {
        if let Some(hedge) = &mut exchange.hedge {
            hedge.end();
        }
        return;
    };
    call.permission = cancelled::reserve(exchange, info, [running, running + 1]);
    race.begin(call, info.now);
}

/// Finds the attempt that may run beside the running one.
fn find(exchange: &ModelExchange, info: &RequestInfo) -> Option<usize> {
    let now_ms = exchange.models.clock.ms_at(info.now);
    let planner = &exchange.models.planner;
    let candidate = |attempt: &PlannedAttempt| attempt.deployment.index;
    let attempts = exchange.attempts.iter().map(|attempt| HedgeCandidate {
        provider: &attempt.deployment.provider.name,
        region: attempt.deployment.region.as_deref(),
        is_byok: attempt.is_byok(),
        is_ready: planner.is_ready(candidate(attempt), now_ms),
    });
    let mut attempts = attempts.skip(exchange.cursor.attempt);
    let running = attempts.next()?;
    let found = find_hedge(&running, attempts)?;
    Some(exchange.cursor.attempt + 1 + found)
}

/// Returns the call of the hedge, without a permission; `None`: its request cannot be made now.
fn prepare(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    client: &RequestHeader,
) -> Option<HedgeCall> {
    if !images::are_there(exchange) {
        return None;
    }
    let now_ms = exchange.models.clock.ms_at(info.now);
    let body = upstream_request::encode(exchange, now_ms).ok()?;
    let body = body.iter().map(|piece| piece.in_memory().cloned());
    let body = body.collect::<Option<Vec<Bytes>>>()?;
    let origin = upstream_request::endpoint(exchange, info)?;
    let body_bytes = body.iter().map(Bytes::len).sum();
    let head = upstream_request::head(exchange, info, client, body_bytes)?;
    exchange.reader = upstream_request::reader(exchange, info, None)?;
    let (models, candidate) = (&exchange.models, exchange.deployment()?.index);
    let measured = models.planner.begin_attempt(candidate, true, now_ms);
    let hedging = models.hedging.as_ref()?;
    let call = HedgeCall {
        connector: Arc::clone(&hedging.connector),
        origin,
        head,
        body,
        read_timeout: models.stream_timeouts.first_event,
        permission: None,
    };
    exchange.measured = Some(measured);
    Some(call)
}

/// Reads a piece of the hedge's reply.
///
/// Errors: the hedge has failed.
fn read(exchange: &mut ModelExchange, info: &RequestInfo, news: News) -> Result<Heard, Failure> {
    let has_content = match news {
        News::Refused => return Ok(Heard::Refused),
        News::Piece(Piece::Head(head)) => {
            upstream_response::open(exchange, info, &head);
            return Ok(Heard::Nothing);
        }
        News::Piece(Piece::Body(bytes)) => exchange.reader.read_ahead(&bytes, false),
        News::End => match exchange.reader.read_ahead(&Bytes::new(), true) {
            Ok(false) => Err(Failure::malformed("the provider's reply is empty")),
            read => read,
        },
        News::Failed(error) => Err(failure::of_call(&error, !exchange.reader.is_open())),
    };
    match has_content {
        Ok(true) => Ok(Heard::Content),
        Ok(false) => Ok(Heard::Nothing),
        Err(failure) => Err(failure.scrubbed(&exchange.revealing())),
    }
}

/// Records that the hedge has failed; the running attempt goes on.
fn fail(exchange: &mut ModelExchange, info: &RequestInfo, failure: Failure) {
    let failed = beside(exchange, |exchange| {
        failure::record(exchange, &failure);
        feedback::record_failure(exchange, info, &failure);
        exchange.cursor.attempt
    });
    exchange.log.failures.push(failure);
    // Nobody asks it again.
    if let Some(failed) = failed.filter(|failed| *failed < exchange.attempts.len()) {
        exchange.attempts.remove(failed);
    }
    end(exchange, "failed");
}

/// Lets the running attempt give way if the hedge's content has come first; returns whether it has.
pub(super) fn give_way(exchange: &mut ModelExchange, info: &RequestInfo) -> bool {
    let Some(hedge) = exchange.hedge.as_mut().filter(|hedge| hedge.has_won) else {
        return false;
    };
    hedge.has_won = false;
    let state = &exchange.state;
    let is_owed = is_owed(state.is_sent(), state.bills_after_disconnect());
    cancelled::record(exchange, info, is_owed);
    exchange.log.aborted = None;
    take_over(exchange, "won")
}

/// Goes on with the hedge after the running attempt has failed; returns whether one was sent. One that was not begins anew
/// as the next attempt.
pub(super) fn go_on(exchange: &mut ModelExchange) -> bool {
    let Some(hedge) = exchange.hedge.as_ref().filter(|hedge| hedge.is_beside()) else {
        return false;
    };
    if !hedge.race.is_sent() {
        end(exchange, "abandoned");
        return false;
    }
    take_over(exchange, "took_over")
}

fn take_over(exchange: &mut ModelExchange, outcome: &str) -> bool {
    let hedge = exchange.hedge.as_mut();
    let Some((hedge, beside)) = hedge.and_then(|hedge| {
        let beside = hedge.beside.take()?;
        Some((hedge, beside))
    }) else {
        return false;
    };
    hedge.is_next = true;
    hedge.is_over = true;
    drop(hedge.take_reservation());
    exchange.cursor = beside.cursor;
    exchange.measured = beside.measured;
    count(exchange, outcome);
    true
}

/// Makes the hedge the attempt that begins, if it is its turn.
pub(super) fn adopt(exchange: &mut ModelExchange, info: &RequestInfo) -> Option<Arc<Adopted>> {
    let hedge = exchange.hedge.as_mut()?;
    hedge.is_adopted = false;
    if !std::mem::take(&mut hedge.is_next) {
        return None;
    }
    let (adopted, started) = hedge.race.adopt()?;
    hedge.is_adopted = true;
    let recorder = caching::recorder(exchange);
    exchange.reader = upstream_request::reader(exchange, info, recorder)?;
    let bills = exchange
        .attempt()
        .is_some_and(PlannedAttempt::bills_after_disconnect);
    exchange.state.begin_hedge(started);
    exchange.state.set_bills_after_disconnect(bills);
    Some(adopted)
}

/// Returns why the adopted hedge broke, if it did.
pub(super) fn take_failure(exchange: &ModelExchange) -> Option<Failure> {
    let error = exchange.hedge.as_ref()?.race.take_error()?;
    Some(failure::of_call(&error, !exchange.state.has_reply()))
}

/// Cancels the hedge, because content of the running attempt has come.
pub(super) fn cancel(exchange: &mut ModelExchange, info: &RequestInfo) {
    match &mut exchange.hedge {
        None => {}
        Some(hedge) if hedge.is_over => {}
        Some(hedge) if !hedge.is_beside() => hedge.end(),
        Some(_) => {
            beside(exchange, |exchange| {
                let is_owed = is_hedge_owed(exchange);
                cancelled::record(exchange, info, is_owed);
            });
            end(exchange, "lost");
        }
    }
}

/// Cancels the hedge, because the call has ended. Who left owes it as one owes a cancelled attempt; a call that failed
/// costs nothing.
pub(super) fn finish(exchange: &mut ModelExchange, info: &RequestInfo, is_gone: bool) {
    if !exchange
        .hedge
        .as_ref()
        .is_some_and(|hedge| hedge.is_beside())
    {
        return;
    }
    beside(exchange, |exchange| {
        // It says nothing of the provider.
        exchange.measured = None;
        let is_owed = is_gone && is_hedge_owed(exchange);
        cancelled::record(exchange, info, is_owed);
    });
    end(exchange, "abandoned");
}

/// Returns whether the hedge is owed if it is cancelled. It has to be lent.
fn is_hedge_owed(exchange: &ModelExchange) -> bool {
    let is_sent = exchange
        .hedge
        .as_ref()
        .is_some_and(|hedge| hedge.race.is_sent());
    let attempt = exchange.attempt();
    is_owed(
        is_sent,
        attempt.is_some_and(PlannedAttempt::bills_after_disconnect),
    )
}

fn end(exchange: &mut ModelExchange, outcome: &str) {
    count(exchange, outcome);
    if let Some(hedge) = &mut exchange.hedge {
        hedge.end();
    }
}

fn count(exchange: &ModelExchange, outcome: &str) {
    let hedges = &exchange.models.metrics.hedges;
    hedges.with_label_values(&[outcome]).inc();
}

/// Calls `act` with the exchange as if the hedge were its running attempt; `None`: none runs beside it.
fn beside<T>(exchange: &mut ModelExchange, act: impl FnOnce(&mut ModelExchange) -> T) -> Option<T> {
    let mut lent = exchange.hedge.as_mut()?.beside.take()?;
    swap(exchange, &mut lent);
    let result = act(exchange);
    swap(exchange, &mut lent);
    exchange.hedge.as_mut()?.beside = Some(lent);
    Some(result)
}

fn swap(exchange: &mut ModelExchange, beside: &mut Beside) {
    std::mem::swap(&mut exchange.cursor, &mut beside.cursor);
    std::mem::swap(&mut exchange.reader, &mut beside.reader);
    std::mem::swap(&mut exchange.measured, &mut beside.measured);
}
