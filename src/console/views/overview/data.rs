//! What the overview shows, without its form.

use filters::money::PricePoint;
use jiff::Timestamp;

use crate::console::Console;
use crate::console::store_answers::{LongAnswer, WaitFor};
use crate::console::views::spending::Look;
use crate::control::status::ProcessStatus;
use crate::models::planner::ProviderStanding;
use crate::store::ledger::{NearLimit, SpendQuery, Spending};
use crate::telemetry::load::{LoadPeriod, ProviderLoad};
use crate::telemetry::reload::ConfigStatus;

/// The number of limits that are shown.
const MAX_NEAR_LIMITS: usize = 10;

/// What the process knows of itself. Cost: no query.
pub(super) struct Live {
    pub(super) status: ProcessStatus,
    /// The last hour of this process, or all since its start.
    pub(super) hour: LoadPeriod,
    pub(super) providers: Vec<ProviderRow>,
    pub(super) configuration: ConfigStatus,
    pub(super) waiting: Waiting,
}

/// A provider, as it stands and as it was used in the last hour.
pub(super) struct ProviderRow {
    pub(super) standing: ProviderStanding,
    pub(super) load: ProviderLoad,
}

/// What waits to be sent elsewhere, beside the journal.
pub(super) struct Waiting {
    /// Bytes of lines for the log export, and for how many seconds the oldest waits.
    pub(super) log_export: (i64, i64),
    /// What may still be charged of running calls, in USD as metrics have it.
    pub(super) reserved: f64,
}

/// All that the page shows.
pub(super) struct Overview {
    pub(super) look: Look,
    pub(super) live: Live,
    pub(super) asked: SpendQuery,
    pub(super) spending: LongAnswer<Spending>,
    pub(super) nearest: LongAnswer<Vec<NearLimit>>,
}

/// Gathers what the process knows; `None` while it starts.
pub(super) fn live(console: &Console) -> Option<Live> {
    let (app, status) = (console.app(), console.status()?);
    let metrics = &app.proxy.metrics;
    let now = Timestamp::now();
    let hour = metrics
        .load
        .until(now.as_millisecond(), metrics.load_sample());
    let point = PricePoint {
        start_s: now.as_second().unsigned_abs(),
        ..PricePoint::default()
    };
    let standings = app
        .models
        .planner
        .standings(app.proxy.clock.now_ms(), point);
    let providers = standings.into_iter().map(|standing| ProviderRow {
        load: hour
            .load
            .providers
            .get(&*standing.name)
            .cloned()
            .unwrap_or_default(),
        standing,
    });
    Some(Live {
        status,
        providers: providers.collect(),
        hour,
        configuration: metrics.reloads.status(),
        waiting: Waiting {
            log_export: (
                metrics.log_export.spool_bytes.get(),
                metrics.log_export.oldest_seconds.get(),
            ),
            reserved: metrics.ledger_reserved.get(),
        },
    })
}

/// Returns the limits that are nearest to their end.
pub(super) async fn nearest(console: &Console, wait: WaitFor) -> LongAnswer<Vec<NearLimit>> {
    let now_ms = Timestamp::now().as_millisecond();
    console
        .nearest_limits((now_ms, MAX_NEAR_LIMITS), wait)
        .await
}

impl Overview {
    /// Adds what the store knows. Where it does not answer, the rest is shown without it.
    pub(super) async fn gather(console: &Console, live: Live, look: Look) -> Self {
        let now_ms = Timestamp::now().as_millisecond();
        let asked = look.query(None, now_ms);
        let (spending, nearest) = tokio::join!(
            console.spending(&asked, WaitFor::Page),
            nearest(console, WaitFor::Page)
        );
        Self {
            look,
            live,
            asked,
            spending,
            nearest,
        }
    }
}
