//! An exchange that the gateway itself opens, with no client behind it: its attempts run as Pingora's loop runs those of a
//! client's request, one after the other, each on a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use futures::StreamExt;
use pingora::http::RequestHeader;
use pingora::{Error, ErrorType, Result};
use tokio::time::Instant;

use super::buffered::error_types::COST_NOT_RECORDED;
use super::buffered::state::{AttemptState, Stage};
use super::context::RequestInfo;
use super::exchange::{Begun, Broken, Exchange, Upstream};
use super::hedge::{HedgeCall, HedgeConnector, Piece};
use super::origin::Origin;

/// The most attempts of a call, whatever its exchange says.
const MAX_ATTEMPTS: u32 = 16;

/// A call of the gateway's own.
pub struct OwnCall<'e> {
    pub exchange: &'e mut dyn Exchange,
    pub info: RequestInfo,
    /// The state that the exchange shares.
    pub state: Arc<AttemptState>,
    pub connector: Arc<HedgeConnector>,
    /// The maximum time of each read.
    pub read_timeout: Duration,
}

impl OwnCall<'_> {
    /// Runs the attempts, and returns the body of the response.
    ///
    /// Errors: the fault of a call whose attempts have all failed.
    pub async fn run(&mut self) -> Result<Vec<u8>, Fault> {
        let mut attempts = 1;
        let error = loop {
            match self.attempt().await {
                Ok(body) => return Ok(body),
                Err(error) if error.retry() && attempts < MAX_ATTEMPTS => attempts += 1,
                Err(error) => break error,
            }
        };
        self.info.now = Instant::now();
        let report = self.exchange.report(&self.info, &error, false);
        Err(report
            .fault
            .unwrap_or_else(|| Fault::new(FaultKind::Internal, "the call was given up")))
    }

    async fn attempt(&mut self) -> Result<Vec<u8>> {
        let origin = self.begin().await?;
        match self.ask(origin).await {
            Ok(body) => Ok(body),
            Err(error) if *error.etype() == COST_NOT_RECORDED => Err(error),
            Err(error) => {
                self.info.now = Instant::now();
                let broken = Broken {
                    was_reused: false,
                    is_repeatable: false,
                };
                Err(self.exchange.broke(&self.info, error, broken))
            }
        }
    }

    async fn begin(&mut self) -> Result<Arc<Origin>> {
        loop {
            self.info.now = Instant::now();
            match self.exchange.begin_attempt(&self.info)? {
                Begun::At(Upstream::Origin(origin)) => return Ok(origin),
                Begun::At(Upstream::Hedge(_)) => {
                    return Error::e_explain(
                        ErrorType::InternalError,
                        "a call of ours has no hedge",
                    );
                }
                Begun::Wait(wait) => wait.await,
            }
        }
    }

    async fn ask(&mut self, origin: Arc<Origin>) -> Result<Vec<u8>> {
        let mut head = RequestHeader::build("POST", b"/", None)?;
        self.exchange.upstream_head(&self.info, &mut head)?;
        let mut body: Vec<Bytes> = self.state.first_piece().into_iter().collect();
        while let Ok(Some(piece)) = self.state.next_bytes() {
            body.push(piece);
        }
        self.exchange.upstream_body(&self.info, &head, None)?;
        let call = HedgeCall {
            connector: Arc::clone(&self.connector),
            origin,
            head,
            body,
            read_timeout: self.read_timeout,
            permission: None,
        };
        let mut reply = call.run(Arc::default());
        let mut out = Vec::new();
        while self.state.stage() != Stage::Complete {
            let piece = reply.next().await.transpose()?.flatten();
            self.info.now = Instant::now();
            match piece {
                Some(Piece::Head(mut head)) => {
                    if let Some(wait) = self.exchange.response_status(&self.info, &head)? {
                        wait.await;
                    }
                    self.exchange.response_head(&self.info, &mut head)?;
                }
                Some(Piece::Body(bytes)) => self.take(Some(bytes), false, &mut out).await?,
                None => {
                    self.take(None, true, &mut out).await?;
                    break;
                }
            }
        }
        Ok(out)
    }

    /// Passes a piece of the reply through the exchange.
    async fn take(
        &mut self,
        mut piece: Option<Bytes>,
        is_end: bool,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.exchange
            .response_body(&self.info, &mut piece, is_end)?;
        let Some(piece) = piece else {
            return Ok(());
        };
        if let Some(gate) = self.state.commit(self.info.now)
            && !gate.await
        {
            return Error::e_explain(COST_NOT_RECORDED, "neither journal nor store took it");
        }
        out.extend_from_slice(&piece);
        Ok(())
    }
}
