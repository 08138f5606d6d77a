//! How a request would be routed, for whoever asks: `weirgate explain` and the console. The function that plans requests decides.

use std::sync::Arc;

use filters::accounts::{AuthError, Caller, KeyState, KeyTerms, Mode, Plan};
use filters::fault::Fault;
use filters::models::request::ModelRequest;
use filters::models::routing::affinity::SessionKey;
use filters::models::routing::plan::RoutePlan;
use jiff::Timestamp;

use super::planner::{PlanContext, Planner};
use super::sessions::Session;
use crate::store::{IssuedKey, Store, StoreError};

/// The caller, and the providers for which the organization has keys.
#[derive(Default)]
pub struct Asker {
    pub caller: Option<Caller>,
    pub byok_providers: Vec<String>,
}

/// Whose request it would be.
#[derive(Clone, Copy, Debug)]
pub struct AskerNames<'n> {
    pub organization: &'n str,
    pub project: &'n str,
    /// The id of an API key, whose rules hold.
    pub key: Option<&'n str>,
}

/// Finds the organization, the project and the key in the store, or why the key would be refused.
///
/// Errors: one of them does not exist; the store does not answer.
pub async fn find_asker(
    store: &Store,
    names: AskerNames<'_>,
    now_ms: i64,
) -> Result<Result<Asker, AuthError>, StoreError> {
    let organization = store.organization(names.organization).await?;
    let project = store.project(names.organization, names.project).await?;
    let terms = match names.key {
        Some(id) => {
            let (_, key) = store.key(id).await?;
            if let Some(error) = refusal(&key, now_ms) {
                return Ok(Err(error));
            }
            Some(key.terms.check().map_err(StoreError::InvalidTerm)?)
        }
        None => None,
    };
    let keys = store.provider_keys(names.organization).await?;
    let byok_providers = keys.into_iter().map(|key| key.provider).collect();
    let ids = [organization.id, organization.name, project.id, project.name];
    let key_id = names.key.unwrap_or_default();
    let caller = caller(ids, key_id, (project.mode, organization.plan), terms);
    Ok(Ok(Asker {
        caller: Some(caller),
        byok_providers,
    }))
}

/// Returns why a key is refused, whatever it asks for.
fn refusal(key: &IssuedKey, now_ms: i64) -> Option<AuthError> {
    match key.state() {
        KeyState::Revoked => Some(AuthError::Revoked),
        KeyState::Disabled => Some(AuthError::Disabled),
        KeyState::Active => {
            let is_over = key.expires_at_ms.is_some_and(|end_ms| now_ms >= end_ms);
            is_over.then_some(AuthError::Expired)
        }
    }
}

/// Returns a caller without a store.
pub fn caller(
    [organization_id, organization, project_id, project]: [String; 4],
    key_id: &str,
    (mode, plan): (Mode, Plan),
    terms: Option<KeyTerms>,
) -> Caller {
    Caller {
        organization_id: organization_id.into(),
        organization: organization.into(),
        project_id: project_id.into(),
        project: project.into(),
        key_id: key_id.into(),
        key_label: "".into(),
        mode,
        plan,
        plan_since_ms: 0,
        member: None,
        terms: terms.map(Arc::new),
        cache_ttl_s: None,
        experiments: None,
        expires_at_ms: None,
        is_debug: false,
        regions: [None, None],
        exports_content: false,
        keep_bodies_until_ms: None,
    }
}

/// Plans a request as a server would. `now_ms` is the process's clock, by which providers are healthy or rest.
///
/// Errors: why the request would be refused.
pub fn plan(
    planner: &Planner,
    request: &ModelRequest,
    asker: &Asker,
    (has_session, now_ms): (bool, u64),
) -> Result<RoutePlan, Fault> {
    let byok_providers: Vec<&str> = asker.byok_providers.iter().map(String::as_str).collect();
    // A session without a provider: only its own requests find the one that it has.
    let session = Session {
        key: SessionKey([0; 16]),
        binding: None,
    };
    let context = PlanContext {
        caller: asker.caller.as_ref(),
        byok_providers: &byok_providers,
        passed: None,
        session: (has_session || request.session.is_some()).then_some(session),
        no_fallback: false,
        explains: true,
        notes_plan: false,
        now_ms,
        now_s: Timestamp::now().as_second().unsigned_abs(),
    };
    let resolution = planner.resolve(request, &context, false)?;
    let selection = planner.plan_attempts(request, resolution, &context)?;
    Ok(selection.plan)
}
