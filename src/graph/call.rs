//! What one request to the graph service carries from its admission to the end of its answer.

use std::sync::Arc;

use bytes::Bytes;
use filters::graph::Operation;
use filters::graph::headers::limit_headers;
use filters::limits::headers::Header;
use filters::limits::{RefundToken, WindowKey};

use super::CacheWriter;

/// See the module.
pub struct GraphExchange {
    /// The row it is counted on.
    pub operation: Arc<Operation>,
    /// Whose it is; none: the client's address counts.
    pub tenant: Option<Arc<str>>,
    /// The limit that the answer names, in requests per window.
    pub limit: u64,
    /// What became of it so far.
    pub outcome: LimitOutcome,
    /// What it took of a window, until that is given back.
    pub admission: Option<Admission>,
    /// The whole body, where it was read.
    pub body: Option<Bytes>,
    /// How much more of the body may come, where it is passed on as it comes.
    pub room_bytes: usize,
    /// The answer as it is put by, where it may be given again.
    pub collecting: Option<CacheWriter>,
    /// Connections that failed.
    pub failed_connections: u8,
    window_s: u64,
}

/// One unit of a window.
pub struct Admission {
    /// Of which one.
    pub key: WindowKey,
    /// What proves it.
    pub ticket: RefundToken,
}

/// What a limit decided.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LimitOutcome {
    /// Nothing: the request ended before it was asked, or takes no unit.
    #[default]
    Uncounted,
    /// It was counted and sent on.
    Admitted,
    /// It was over the limit.
    Refused,
    /// It was answered with what was kept, and not counted.
    Hit,
    /// It was counted, and the unit was given back.
    Refunded,
    /// Nobody could say whether there was room.
    Unavailable,
}

impl LimitOutcome {
    /// The word for it, in metrics and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Uncounted => "uncounted",
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Hit => "hit",
            Self::Refunded => "refunded",
            Self::Unavailable => "unavailable",
        }
    }
}

impl GraphExchange {
    /// A request on this row, of nobody yet.
    pub fn new(operation: &Arc<Operation>, window_s: u64) -> Self {
        Self {
            operation: Arc::clone(operation),
            tenant: None,
            limit: operation.category.default,
            outcome: LimitOutcome::default(),
            admission: None,
            body: None,
            room_bytes: usize::MAX,
            collecting: None,
            failed_connections: 0,
            window_s,
        }
    }

    /// What every answer to it says.
    pub fn headers(&self) -> [Header; 2] {
        limit_headers(self.limit, self.window_s)
    }
}
