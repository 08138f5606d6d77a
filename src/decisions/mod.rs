//! Flag decisions: projects by SDK key, overrides, profiles, tokens, events.
//!
//! `filters::decisions` decides and knows the bytes; this folder keeps the state between requests. Decisions take no
//! lock: projects are snapshots, and overrides are only read if some were set.

pub mod change_streams;
pub mod cmab;
pub mod datafiles;
pub mod endpoints;
pub mod events;
mod handover;
pub mod hash_limiter;
mod mutex;
pub mod notifications;
pub mod overrides;
pub mod profiles;
pub mod routes;
pub mod segments;
pub mod stream_tickets;
pub mod user_key;
pub mod uuid;

use std::path::Path;
use std::sync::Arc;

use filters::auth::jwt::JwtTokens;
use filters::decisions::credentials::{SdkRules, key_name};
use filters::decisions::protocol::Protocol;
use http::HeaderMap;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use self::change_streams::ChangeStreams;
use self::cmab::CmabClient;
use self::datafiles::local::{DatafileWatch, LocalDatafiles, ProjectLookup};
use self::datafiles::remote::{Poll, RemoteDatafiles};
use self::datafiles::state::DatafileState;
use self::events::odp::{OdpDispatcher, OdpEvents};
use self::events::queue::{Dispatcher, EventQueue};
use self::hash_limiter::HashLimiter;
use self::notifications::Notifications;
use self::overrides::Overrides;
use self::profiles::Profiles;
use self::segments::Segments;
use self::stream_tickets::StreamTickets;
use crate::config::{Client, DecisionsConfig, Webhook};
use crate::jwks;
use crate::jwks::RemoteKeySet;
use crate::redis::Redis;
use crate::telemetry::metrics::Metrics;

/// The maximum number of operations of all batches that wait for datafiles at once. Our choice: it is higher than the
/// limit of one batch, so that one batch does not block the others.
const MAX_BATCH_FETCHES: usize = 32;

/// The state of the flag decisions between requests.
pub struct DecisionService {
    /// The bytes of requests and responses.
    pub protocol: &'static dyn Protocol,
    /// The places of SDK keys, and the tokens that count.
    pub credentials: SdkRules,
    /// The keys of tokens of another issuer.
    pub foreign_keys: Option<Arc<RemoteKeySet>>,
    /// Projects from files, by SDK key.
    pub local_datafiles: Arc<LocalDatafiles>,
    /// Projects by URL, or `None` without a source.
    pub remote_datafiles: Option<Arc<RemoteDatafiles>>,
    /// Events for the backend.
    pub events: EventQueue,
    /// Notices of decisions, or `None` if they are off.
    pub notifications: Option<Notifications>,
    /// The streams of changes of OpenFeature's clients.
    pub change_streams: ChangeStreams,
    pub cmab: CmabClient,
    pub segments: Segments,
    /// Events for the customer-data platform.
    pub odp_events: OdpEvents,
    /// The clients that may ask for tokens.
    pub clients: Vec<Client>,
    /// Limits how many of the clients' secrets are hashed at once.
    pub hash_limiter: Arc<HashLimiter>,
    /// The projects for which webhooks announce new datafiles.
    pub webhooks: Vec<Webhook>,
    pub batch_max_operations: usize,
    /// The maximum number of operations of a batch that run at once.
    pub batch_concurrency: usize,
    /// Limits how many operations of batches wait for datafiles at once.
    pub batch_fetches: Arc<Semaphore>,
    /// The overrides, or `None` if they are off.
    pub overrides: Option<Arc<Overrides>>,
    /// The profiles, or `None` if they are not stored.
    pub profiles: Option<Profiles>,
}

impl DecisionService {
    /// Builds the service of a configuration, and the dispatchers that it needs beside those that run. Slow work runs on
    /// `handle`. Of a previous service all goes on to which the same settings apply: datafiles, subscribers, overrides,
    /// profiles, predictions, segments, and the queues of events with their dispatchers. When the service is in force,
    /// [`Self::take_over`] applies its settings to these.
    ///
    /// Errors: no HTTP client can be created.
    pub fn build(
        decisions: &DecisionsConfig,
        state_dir: &Path,
        handle: &Handle,
        (metrics, redis, tickets): (&Arc<Metrics>, Option<&Redis>, StreamTickets),
        previous: Option<&Self>,
    ) -> reqwest::Result<(Self, Dispatchers)> {
        let subscribers = previous.and_then(|it| it.notifications.clone());
        let notifications = decisions
            .notifications
            .then(|| subscribers.unwrap_or_default());
        let local = previous.map(|it| &*it.local_datafiles);
        let streams = change_streams(decisions, tickets, notifications.clone(), previous);
        let local = LocalDatafiles::load(decisions, metrics, streams.announcer.clone(), local);
        let remote = RemoteDatafiles::new(
            decisions,
            state_dir,
            handle.clone(),
            metrics,
            streams.announcer.clone(),
            previous.and_then(|it| it.remote_datafiles.as_deref()),
        )?;
        let (events, odp_events, dispatchers) = events(decisions, state_dir, metrics, previous)?;
        let cmab = previous.map(|it| &it.cmab);
        let segments = previous.map(|it| &it.segments);
        let overrides = previous.and_then(|it| it.overrides.clone());
        let profiles = previous.and_then(|it| it.profiles.as_ref());
        let foreign = foreign_keys(decisions, handle, previous)?;
        let service = Self {
            protocol: decisions.protocol,
            credentials: sdk_rules(decisions, foreign.is_some()),
            foreign_keys: foreign,
            local_datafiles: Arc::new(local),
            remote_datafiles: remote.map(Arc::new),
            events,
            notifications,
            change_streams: streams,
            cmab: CmabClient::new(decisions, handle.clone(), metrics, cmab)?,
            segments: Segments::new(decisions, handle.clone(), redis.cloned(), segments)?,
            odp_events,
            clients: decisions.clients.clone(),
            hash_limiter: previous.map_or_else(Arc::default, |it| Arc::clone(&it.hash_limiter)),
            webhooks: decisions.webhooks.clone(),
            batch_max_operations: decisions.batch_max_operations,
            batch_concurrency: decisions.batch_concurrency,
            batch_fetches: match previous {
                Some(previous) => Arc::clone(&previous.batch_fetches),
                None => Arc::new(Semaphore::new(MAX_BATCH_FETCHES)),
            },
            overrides: decisions.overrides.then(|| overrides.unwrap_or_default()),
            profiles: Profiles::new(decisions, redis, profiles),
        };
        Ok((service, dispatchers))
    }

    /// Applies the settings of this service to what goes on from the previous one, when this one is in force.
    pub fn take_over(&self) {
        self.events.take_over();
        self.odp_events.take_over();
    }

    /// Returns the tasks that refresh datafiles and the keys of foreign tokens.
    pub fn background_tasks(&self) -> Vec<BackgroundTask> {
        let mut tasks: Vec<BackgroundTask> =
            vec![Box::new(DatafileWatch(Arc::clone(&self.local_datafiles)))];
        if let Some(remote) = self.remote_datafiles.clone() {
            tasks.push(Box::new(Poll(remote)));
        }
        if let Some(foreign) = self.foreign_keys.clone() {
            tasks.push(Box::new(jwks::Refresh(vec![foreign])));
        }
        tasks
    }

    /// Returns whether a request with these headers may have to wait for a datafile.
    pub fn may_fetch(&self, headers: &HeaderMap) -> bool {
        let Some(remote) = &self.remote_datafiles else {
            return false;
        };
        let keys = self.credentials.headers.iter();
        let mut keys = keys.filter_map(|name| headers.get(name)?.to_str().ok());
        keys.any(|key| {
            let local = self.local_datafiles.find(key_name(key));
            matches!(local, ProjectLookup::Unknown) && !remote.is_known(key)
        })
    }

    /// Returns the key under which the datafile of an SDK key is announced.
    pub fn datafile_key<'k>(&self, sdk_key: &'k str) -> &'k str {
        let name = key_name(sdk_key);
        match self.local_datafiles.find(name) {
            ProjectLookup::Unknown => sdk_key,
            _ => name,
        }
    }

    /// Returns what is known of each datafile in memory. Nothing is fetched.
    pub fn datafile_states(&self) -> Vec<DatafileState> {
        let mut all = self.local_datafiles.states();
        if let Some(remote) = &self.remote_datafiles {
            all.extend(remote.states());
        }
        all.sort_by_cached_key(|state| (state.hint(), state.id()));
        all
    }

    /// Returns the project of an SDK key. A project from a file comes first, under the key without its access token.
    pub async fn find(&self, sdk_key: &str) -> ProjectLookup {
        let local = self.local_datafiles.find(key_name(sdk_key));
        match (local, &self.remote_datafiles) {
            (ProjectLookup::Unknown, Some(remote)) => Box::pin(remote.find(sdk_key)).await,
            (found, _) => found,
        }
    }
}

/// Returns the queues of events, and the dispatchers that they need beside those that run.
fn events(
    decisions: &DecisionsConfig,
    state_dir: &Path,
    metrics: &Arc<Metrics>,
    previous: Option<&DecisionService>,
) -> reqwest::Result<(EventQueue, OdpEvents, Dispatchers)> {
    let before = previous.map(|it| &it.events);
    let (events, dispatcher) = EventQueue::new(decisions, state_dir, metrics, before)?;
    let (hosts, before) = (
        decisions.written_odp_hosts(),
        previous.map(|it| &it.odp_events),
    );
    let (odp_events, odp_dispatcher) = OdpEvents::new(hosts, metrics, before)?;
    let dispatchers = Dispatchers {
        dispatcher,
        odp_dispatcher,
    };
    Ok((events, odp_events, dispatchers))
}

fn sdk_rules(decisions: &DecisionsConfig, trusts_foreign: bool) -> SdkRules {
    let keys = decisions.token_keys.iter();
    let keys: Vec<Vec<u8>> = keys.map(|key| key.expose().to_vec()).collect();
    let claim_rules = decisions.claim_rules.clone();
    SdkRules {
        headers: decisions.sdk_key_headers.clone(),
        tokens: JwtTokens::new(&keys, decisions.token_ttl_s, claim_rules.clone()),
        trusts_foreign,
        claim_rules,
    }
}

/// Returns the streams of changes. Those that are open go on.
fn change_streams(
    decisions: &DecisionsConfig,
    tickets: StreamTickets,
    notifications: Option<Notifications>,
    previous: Option<&DecisionService>,
) -> ChangeStreams {
    let previous = previous.map(|it| &it.change_streams);
    let announcer = previous.map(|it| it.announcer.clone()).unwrap_or_default();
    ChangeStreams {
        announcer: announcer.with_notifications(notifications),
        tickets,
        max: decisions.event_streams,
        open: previous.map(|it| Arc::clone(&it.open)).unwrap_or_default(),
    }
}

/// Returns the keys of the other issuer of tokens, if there is one, which go on if their URL is the same.
fn foreign_keys(
    decisions: &DecisionsConfig,
    handle: &Handle,
    previous: Option<&DecisionService>,
) -> reqwest::Result<Option<Arc<RemoteKeySet>>> {
    let Some(url) = &decisions.jwks_url else {
        return Ok(None);
    };
    let known = previous.and_then(|it| it.foreign_keys.as_ref());
    if let Some(known) = known.filter(|known| known.url() == url) {
        return Ok(Some(Arc::clone(known)));
    }
    let new = RemoteKeySet::new(url.clone(), handle.clone())?;
    Ok(Some(Arc::new(new)))
}

/// A task that runs until its service is replaced or the process stops.
pub type BackgroundTask = Box<dyn BackgroundService + Send + Sync>;

/// Sends queued events until the process stops.
pub struct Dispatchers {
    dispatcher: Option<Dispatcher>,
    odp_dispatcher: Option<OdpDispatcher>,
}

impl Dispatchers {
    /// Returns whether there is none, because those of an earlier service go on.
    pub fn are_none(&self) -> bool {
        self.dispatcher.is_none() && self.odp_dispatcher.is_none()
    }

    /// Sends events until `stop`, then drains the queues as far as the time allows.
    pub async fn run(self, stop: ShutdownWatch) {
        let dispatched = async {
            if let Some(dispatcher) = self.dispatcher {
                dispatcher.run(stop.clone()).await;
            }
        };
        let odp = async {
            if let Some(dispatcher) = self.odp_dispatcher {
                dispatcher.run(stop.clone()).await;
            }
        };
        let mut stopped = stop.clone();
        let limit = async {
            _ = stopped.wait_for(|is_asked| *is_asked).await;
            tokio::time::sleep(events::queue::DRAIN_TIMEOUT).await;
        };
        let odp = async {
            tokio::select! {
                () = odp => {}
                () = limit => log::warn!("events for segments: the process ends before all are sent"),
            }
        };
        tokio::join!(dispatched, odp);
    }
}
