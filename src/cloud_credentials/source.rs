//! One source of credentials: what it has given, and how the next is fetched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use filters::models::cloud_credentials::Cloud;
use filters::models::cloud_credentials::google::account::of_organization;
use filters::models::cloud_credentials::google::service_account::ServiceAccount;
use filters::models::cloud_credentials::granted::{Granted, GrantedSecret};
use filters::models::cloud_credentials::own_keys::{is_json, read_own_keys};
use filters::models::cloud_credentials::sigv4::AwsKeys;
use filters::models::cloud_credentials::source_error::SourceError;
use http::HeaderValue;
use prometheus::IntCounterVec;
use tokio::time::{Instant, timeout_at};

use super::fetch::unix_s;
use super::{aws, entra, google};
use crate::config::{CloudSettings, Secret};
use crate::single_flight::{FlightGuard, Role, SingleFlight};

/// How long a source is not asked again that has failed.
const FAILED_REST_S: u64 = 10;
/// A credential that is refused before its end is fetched anew at most this often.
const REFUSED_INTERVAL_S: u64 = 60;
/// How long a call waits for a fetch of several requests.
const WAIT_TIMEOUT: Duration = Duration::from_secs(12);

/// A source of credentials, with what it has given.
pub struct CredentialSource {
    /// The provider's name.
    pub provider: Arc<str>,
    origin: SourceOrigin,
    scope: Box<str>,
    held: ArcSwapOption<HeldCredential>,
    failure: ArcSwapOption<SourceFailure>,
    flights: Arc<SingleFlight<(), ()>>,
    /// When a credential was last refused before its end.
    refused_s: AtomicU64,
    fetches: IntCounterVec,
}

/// Where credentials come from.
enum SourceOrigin {
    /// The environment and the files that it names.
    Environment(CloudSettings),
    /// A service account of an organization.
    ServiceAccount(ServiceAccount),
    /// The AWS keys of an organization.
    Keys(AwsKeys),
    /// What an organization has given cannot be used.
    Unusable(SourceError),
}

/// A credential that a source has given.
pub struct HeldCredential {
    pub granted: Granted,
    /// When it should be replaced.
    refresh_s: Option<u64>,
    /// The value of `authorization` with a token; `None`: these are keys.
    pub bearer: Option<HeaderValue>,
}

struct SourceFailure {
    error: SourceError,
    at_s: u64,
}

/// What a call gets of a source.
pub enum SourceState {
    Ready(Arc<HeldCredential>),
    /// There is none yet, and [`CredentialSource::wait`] brings one.
    Missing,
    /// The source has failed, a moment ago.
    Failed(SourceError),
}

/// What operators see of a source.
pub struct SourceStatus {
    pub is_usable: bool,
    /// Why the last fetch has failed.
    pub error: Option<SourceError>,
}

impl CredentialSource {
    /// Creates the source of the operator.
    pub fn new(provider: &Arc<str>, settings: &CloudSettings, fetches: &IntCounterVec) -> Self {
        let origin = SourceOrigin::Environment(settings.clone());
        Self::with_origin(provider, settings, fetches, origin)
    }

    /// Creates the source of an organization's key: the JSON of a service account, or a pair of AWS keys in JSON. `None`: the
    /// key is a text that goes as it is.
    pub fn of_organization(
        (provider, settings): (&Arc<str>, &CloudSettings),
        secret: &Secret,
        fetches: &IntCounterVec,
    ) -> Option<Self> {
        let text = secret.expose().trim();
        if !is_json(text) {
            return None;
        }
        let origin = match settings.cloud {
            Cloud::Google => of_organization(text).map(SourceOrigin::ServiceAccount),
            Cloud::Aws => read_own_keys(text).map(SourceOrigin::Keys),
            Cloud::Entra => return None,
        };
        let origin = origin.unwrap_or_else(SourceOrigin::Unusable);
        Some(Self::with_origin(provider, settings, fetches, origin))
    }

    fn with_origin(
        provider: &Arc<str>,
        settings: &CloudSettings,
        fetches: &IntCounterVec,
        origin: SourceOrigin,
    ) -> Self {
        Self {
            provider: Arc::clone(provider),
            origin,
            scope: settings.scope.clone(),
            held: ArcSwapOption::empty(),
            failure: ArcSwapOption::empty(),
            flights: Arc::default(),
            refused_s: AtomicU64::new(0),
            fetches: fetches.clone(),
        }
    }

    /// Returns what a call gets now. If that should be replaced soon, a fetch starts, for which the call does not wait.
    ///
    /// Cost: no lock, unless a fetch is due.
    pub fn state(self: &Arc<Self>) -> SourceState {
        let now_s = unix_s();
        let held = self.held.load_full();
        if let Some(held) = held.filter(|held| held.granted.is_valid(now_s)) {
            self.refresh_if_due();
            return SourceState::Ready(held);
        }
        match self.recent_failure(now_s) {
            Some(failure) => SourceState::Failed(failure.error.clone()),
            None => SourceState::Missing,
        }
    }

    /// Waits for a fetch: the one that runs, or a new one.
    pub async fn wait(self: &Arc<Self>) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        match self.flights.join(&()) {
            // The task goes on for other calls if this one ends.
            Role::Leader(guard) => _ = timeout_at(deadline, self.spawn(guard)).await,
            Role::Follower(mut follower) => _ = follower.wait(deadline).await,
        }
    }

    /// Starts a fetch if one is due and none runs.
    pub fn refresh_if_due(self: &Arc<Self>) {
        if self.is_due(unix_s())
            && let Role::Leader(guard) = self.flights.join(&())
        {
            drop(self.spawn(guard));
        }
    }

    /// Records that the provider has refused a credential before its end. Returns whether the call may try again: with a
    /// newer one, or with one that is fetched now. `skew` says that this machine's clock is wrong, which the log then says.
    pub fn refuse(&self, used: &Arc<HeldCredential>, skew: Option<&str>) -> bool {
        let Some(held) = self.held.load_full() else {
            return true;
        };
        if !Arc::ptr_eq(&held, used) {
            return true;
        }
        let now_s = unix_s();
        let last_s = self.refused_s.load(Ordering::Relaxed);
        if now_s < last_s.saturating_add(REFUSED_INTERVAL_S) {
            return false;
        }
        self.refused_s.store(now_s, Ordering::Relaxed);
        if let Some(skew) = skew {
            let provider = &self.provider;
            log::warn!(
                "provider {provider} refuses its credentials: {skew}; set the clock of this machine"
            );
        }
        self.held.store(None);
        true
    }

    /// Returns what operators see of it.
    pub fn status(&self) -> SourceStatus {
        let held = self.held.load();
        let failure = self.failure.load();
        SourceStatus {
            is_usable: held
                .as_ref()
                .is_some_and(|held| held.granted.is_valid(unix_s())),
            error: failure.as_ref().map(|failure| failure.error.clone()),
        }
    }

    fn recent_failure(&self, now_s: u64) -> Option<Arc<SourceFailure>> {
        let failure = self.failure.load_full();
        failure.filter(|failure| now_s < failure.at_s.saturating_add(FAILED_REST_S))
    }

    fn is_due(&self, now_s: u64) -> bool {
        let held = self.held.load();
        let is_fresh = held.as_ref().is_some_and(|held| {
            held.refresh_s.is_none_or(|refresh_s| now_s < refresh_s) && held.granted.is_valid(now_s)
        });
        !is_fresh && self.recent_failure(now_s).is_none()
    }

    fn spawn(self: &Arc<Self>, guard: FlightGuard<(), ()>) -> tokio::task::JoinHandle<()> {
        let source = Arc::clone(self);
        tokio::spawn(async move {
            // An earlier flight may have landed after this one was found due.
            if source.is_due(unix_s()) {
                source.refresh().await;
            }
            guard.land(());
        })
    }

    async fn refresh(&self) {
        let fetched = self
            .fetch()
            .await
            .and_then(|granted| check_life(&granted).map(|()| granted));
        let outcome = match fetched {
            Ok(granted) => {
                self.held
                    .store(Some(Arc::new(HeldCredential::new(granted))));
                self.failure.store(None);
                "fetched"
            }
            Err(error) => {
                log::warn!("the credentials of provider {}: {error}", self.provider);
                let at_s = unix_s();
                self.failure
                    .store(Some(Arc::new(SourceFailure { error, at_s })));
                "failed"
            }
        };
        let labels: [&str; 2] = [&self.provider, outcome];
        self.fetches.with_label_values(&labels).inc();
    }

    async fn fetch(&self) -> Result<Granted, SourceError> {
        match &self.origin {
            SourceOrigin::Environment(settings) => {
                let environment = &settings.environment;
                match settings.cloud {
                    Cloud::Aws => aws::fetch(environment, &settings.region).await,
                    Cloud::Entra => entra::fetch(environment, &self.scope).await,
                    Cloud::Google => google::fetch(environment, &self.scope).await,
                }
            }
            SourceOrigin::ServiceAccount(account) => {
                google::sign_in("the provider key", account, &self.scope).await
            }
            SourceOrigin::Keys(keys) => Ok(Granted {
                secret: GrantedSecret::Keys(keys.clone()),
                expires_s: None,
            }),
            SourceOrigin::Unusable(error) => Err(error.clone()),
        }
    }
}

impl HeldCredential {
    fn new(granted: Granted) -> Self {
        let bearer = match &granted.secret {
            GrantedSecret::Token(token) => {
                let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
                value.ok().map(|mut value| {
                    value.set_sensitive(true);
                    value
                })
            }
            GrantedSecret::Keys(_) => None,
        };
        Self {
            refresh_s: granted.refresh_s(unix_s()),
            granted,
            bearer,
        }
    }

    /// Returns the texts that no message may show.
    pub fn revealing(&self) -> Vec<String> {
        match &self.granted.secret {
            GrantedSecret::Token(token) => vec![token.expose().to_owned()],
            GrantedSecret::Keys(keys) => {
                let token = keys.session_token.iter().map(|token| token.expose());
                let secret = std::iter::once(keys.secret_access_key.expose());
                secret.chain(token).map(str::to_owned).collect()
            }
        }
    }
}

/// Errors: what was given has ended already.
fn check_life(granted: &Granted) -> Result<(), SourceError> {
    match granted.is_valid(unix_s()) {
        true => Ok(()),
        false => {
            let came = "what the source gives has ended already";
            let cure = "set the clock of this machine, or renew what the source has";
            Err(SourceError::new("credentials", came, cure))
        }
    }
}
