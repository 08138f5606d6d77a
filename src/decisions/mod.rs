//! The decision endpoints' organ: projects by SDK key, overrides, profiles, tokens, events.
//!
//! What is decided is decided in `filters::decisions`; here stands what has to be kept between requests. The request
//! path takes no lock for a decision: projects are snapshots, overrides are only looked at where any were set.

pub mod cmab;
pub mod datafiles;
pub mod endpoints;
pub mod events;
pub mod hash_limiter;
pub mod notifications;
pub mod overrides;
pub mod profiles;
pub mod routes;
pub mod segments;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filters::auth::jwt::JwtTokens;
use filters::decisions::Compat;
use filters::decisions::credentials::SdkRules;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::runtime::Handle;

use self::cmab::CmabClient;
use self::datafiles::local::{DatafileWatch, LocalDatafiles, ProjectLookup};
use self::datafiles::remote::{Poll, RemoteDatafiles};
use self::events::odp::{OdpDispatcher, OdpEvents};
use self::events::queue::{Dispatcher, EventQueue};
use self::hash_limiter::HashLimiter;
use self::notifications::Notifications;
use self::overrides::Overrides;
use self::profiles::Profiles;
use self::segments::Segments;
use crate::config::{Client, DecisionsConfig, Webhook};
use crate::jwks;
use crate::jwks::RemoteKeySet;
use crate::redis::Redis;
use crate::telemetry::metrics::Metrics;

/// See the module.
pub struct DecisionService {
    /// Whose behaviour is shown.
    pub compat: Compat,
    /// How callers show who they are.
    pub credentials: SdkRules,
    /// Keys of tokens that somebody else issues.
    pub foreign: Option<Arc<RemoteKeySet>>,
    /// Projects from files, by SDK key.
    pub projects: Arc<LocalDatafiles>,
    /// Projects by URL; `None` where there is no source.
    pub fetched: Option<Arc<RemoteDatafiles>>,
    /// Events on their way to the backend.
    pub events: EventQueue,
    /// Who listens to what is decided; `None`: nobody may.
    pub notices: Option<Notifications>,
    /// Who predicts for bandits.
    pub predictor: CmabClient,
    /// Segments of users.
    pub segments: Segments,
    /// Events that segments are made of.
    pub segment_events: OdpEvents,
    /// Who may ask for tokens.
    pub clients: Vec<Client>,
    /// How many of their secrets are checked at once.
    pub hashing: HashLimiter,
    /// Who may announce new datafiles.
    pub webhooks: Vec<Webhook>,
    /// The most operations of a batch, and how many run at once.
    pub batch: (usize, usize),
    /// `None` where overrides may not be set.
    pub overrides: Option<Overrides>,
    /// `None` where no profiles are kept.
    pub profiles: Option<Profiles>,
}

impl DecisionService {
    /// The organ of a configuration, and who sends its events. What takes time runs on `handle`.
    ///
    /// Errors: no HTTP client can be made.
    pub fn build(
        decisions: &DecisionsConfig,
        state_dir: &Path,
        handle: &Handle,
        metrics: &Arc<Metrics>,
        redis: Option<&Redis>,
    ) -> reqwest::Result<(Self, Dispatchers)> {
        let notices = decisions.notifications.then(Notifications::default);
        let projects = Arc::new(LocalDatafiles::load(decisions, metrics, notices.clone()));
        let fetched = RemoteDatafiles::new(
            decisions,
            state_dir,
            handle.clone(),
            metrics,
            notices.clone(),
        )?;
        let (events, dispatcher) = EventQueue::new(decisions, state_dir, metrics)?;
        let (segment_events, teller) = OdpEvents::new(metrics)?;
        let keys = decisions.token_keys.iter();
        let keys: Vec<Vec<u8>> = keys.map(|key| key.expose().to_vec()).collect();
        let foreign = decisions.jwks_url.clone();
        let foreign = foreign.map(|url| RemoteKeySet::new(url, handle.clone()));
        let foreign = foreign.transpose()?.map(Arc::new);
        let flags = Self {
            compat: decisions.compat,
            credentials: SdkRules {
                headers: decisions.sdk_key_headers.clone(),
                tokens: JwtTokens::new(&keys, decisions.token_ttl_s),
                trusts_foreign: foreign.is_some(),
                is_agent: decisions.compat == Compat::Agent,
            },
            foreign,
            projects,
            fetched: fetched.map(Arc::new),
            events,
            notices,
            predictor: CmabClient::new(decisions, handle.clone(), metrics)?,
            segments: Segments::new(decisions, handle.clone(), redis.cloned())?,
            segment_events,
            clients: decisions.clients.clone(),
            hashing: HashLimiter::default(),
            webhooks: decisions.webhooks.clone(),
            batch: (decisions.batch_max_operations, decisions.batch_concurrency),
            overrides: decisions.overrides.then(Overrides::default),
            profiles: Profiles::new(decisions, redis),
        };
        Ok((flags, Dispatchers { dispatcher, teller }))
    }

    /// Who follows what changes elsewhere: datafiles, and the keys of foreign tokens.
    pub fn followers(&self) -> Vec<BackgroundTask> {
        let mut followers: Vec<BackgroundTask> =
            vec![Box::new(DatafileWatch(Arc::clone(&self.projects)))];
        if let Some(fetched) = self.fetched.clone() {
            followers.push(Box::new(Poll(fetched)));
        }
        if let Some(foreign) = self.foreign.clone() {
            followers.push(Box::new(jwks::Refresh(vec![foreign])));
        }
        followers
    }
}

/// Who follows something that changes elsewhere.
pub type BackgroundTask = Box<dyn BackgroundService + Send + Sync>;

/// Who tells others what was decided, until the process stops.
pub struct Dispatchers {
    dispatcher: Option<Dispatcher>,
    teller: OdpDispatcher,
}

impl Dispatchers {
    /// Tells until it is asked to stop, and then what waits as far as there is time.
    pub async fn run(self, stop: ShutdownWatch) {
        let dispatched = async {
            if let Some(dispatcher) = self.dispatcher {
                dispatcher.run(stop.clone()).await;
            }
        };
        let told = self.teller.run(stop.clone());
        let mut stopped = stop.clone();
        let limit = async {
            _ = stopped.wait_for(|is_asked| *is_asked).await;
            tokio::time::sleep(events::queue::DRAIN_TIMEOUT).await;
        };
        let told = async {
            tokio::select! {
                () = told => {}
                () = limit => log::warn!("events for segments: the process ends before all are sent"),
            }
        };
        tokio::join!(dispatched, told);
    }
}

/// An event's id. It is a name and no secret.
pub fn new_uuid() -> String {
    let mut random = [0; 16];
    fastrand::fill(&mut random);
    uuid::Builder::from_random_bytes(random)
        .into_uuid()
        .to_string()
}

impl DecisionService {
    /// What an SDK key stands for: a project from a file first, under the name in front of an access token.
    pub async fn find(&self, sdk_key: &str) -> ProjectLookup {
        let name = sdk_key.split(':').next().unwrap_or_default();
        match (self.projects.find(name), &self.fetched) {
            (ProjectLookup::Unknown, Some(fetched)) => fetched.find(sdk_key).await,
            (found, _) => found,
        }
    }
}

/// An SDK key and a user of its project.
type UserKey = (Box<str>, Box<str>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
