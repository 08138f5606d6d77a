//! A request with its SDK key and its project.

use std::sync::Arc;

use filters::decisions::credentials::SdkKeyGrant;
use filters::decisions::decide::Impression;
use filters::decisions::event;
use filters::decisions::event::{EventHead, Moment};
use filters::decisions::notice::Topic;
use filters::decisions::protocol::Protocol;
use filters::decisions::request_body::{DecisionBody, DecisionUser, check_media_type};
use filters::fault::{Fault, FaultKind};

use crate::decisions::DecisionService;
use crate::decisions::datafiles::loaded::LoadedDatafile;
use crate::decisions::datafiles::local::ProjectLookup;
use crate::decisions::profiles::Profiles;
use crate::decisions::uuid::new_uuid;
use crate::proxy::handler::Request;

/// A request with its SDK key and its project.
pub(super) struct DecisionContext<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) service: &'a DecisionService,
    pub(super) sdk_key: Box<str>,
    pub(super) loaded: Arc<LoadedDatafile>,
}

impl<'a> DecisionContext<'a> {
    /// Returns the context of a request to an endpoint that reads the body.
    ///
    /// Errors: as [`authorize`], and 415.
    pub(super) async fn open(
        service: &'a DecisionService,
        request: &'a Request<'a>,
    ) -> Result<Self, Fault> {
        let context = Self::authorize(service, request).await?;
        check_media_type(request.headers, request.body)?;
        Ok(context)
    }

    /// Returns the context of a request to an endpoint that ignores the body.
    ///
    /// Errors: as [`authorize`], and 415 if the protocol checks ignored bodies.
    pub(super) async fn open_without_body(
        service: &'a DecisionService,
        request: &'a Request<'a>,
    ) -> Result<Self, Fault> {
        let context = Self::authorize(service, request).await?;
        if service.protocol.endpoint_rules().checks_unread_bodies {
            check_media_type(request.headers, request.body)?;
        }
        Ok(context)
    }

    async fn authorize(
        service: &'a DecisionService,
        request: &'a Request<'a>,
    ) -> Result<Self, Fault> {
        let (sdk_key, loaded) = authorize(service, request).await?;
        Ok(Self {
            request,
            service,
            sdk_key,
            loaded,
        })
    }

    /// Puts the datafile of this tag in force for the request, if the project has another one and its source may have this one.
    /// Returns whether there is no tag, or the datafile in force has it.
    ///
    /// Errors: as [`find_project`].
    pub(super) async fn follow(&mut self, etag: Option<&str>) -> Result<bool, Fault> {
        let is_current = |loaded: &LoadedDatafile| etag.is_none_or(|etag| etag == &*loaded.etag);
        if is_current(&self.loaded) {
            return Ok(true);
        }
        if let Some(remote) = &self.service.remote_datafiles {
            remote.catch_up(&self.sdk_key).await;
            self.loaded = find_project(self.service, &self.sdk_key).await?;
        }
        Ok(is_current(&self.loaded))
    }

    pub(super) fn protocol(&self) -> &'static dyn Protocol {
        self.service.protocol
    }

    /// Reads the body. Errors: 400.
    pub(super) fn read_body(&self) -> Result<DecisionBody<'a>, Fault> {
        self.protocol().read(self.request.body)
    }

    /// Returns the user profiles. Errors: 403 if profiles are not stored.
    pub(super) fn profiles(&self) -> Result<&'a Profiles, Fault> {
        let profiles = self.service.profiles.as_ref();
        let message = "no user profile service found";
        profiles.ok_or_else(|| self.protocol().lacking(FaultKind::Forbidden, message))
    }

    /// Publishes a notice to the subscribers.
    pub(super) fn publish(&self, topic: Topic, json: impl FnOnce() -> Vec<u8>) {
        if let Some(notifications) = &self.service.notifications {
            notifications.publish(&self.sdk_key, topic, json);
        }
    }

    /// Queues impressions of a user.
    pub(super) fn queue_impressions<'i>(
        &self,
        user: &DecisionUser<'_>,
        impressions: impl IntoIterator<Item = &'i Impression<'i>>,
    ) {
        let events = &self.service.events;
        if !events.is_on() {
            return events.count_unsent(impressions.into_iter().count() as u64);
        }
        for impression in impressions {
            events.send(self.event_head(), self.visitor(user, impression));
        }
    }

    /// Returns the visitor of a user's impression.
    pub(super) fn visitor(&self, user: &DecisionUser<'_>, impression: &Impression<'_>) -> Vec<u8> {
        let uuid = new_uuid();
        event::impression(&self.loaded.project, impression, &self.moment(user, &uuid))
    }

    /// Returns the head of the project's events.
    pub(super) fn event_head(&self) -> EventHead {
        EventHead::new(&self.loaded.project, self.protocol().event_client())
    }

    pub(super) fn moment<'m>(&self, user: &'m DecisionUser<'m>, uuid: &'m str) -> Moment<'m> {
        Moment {
            user_id: &user.id,
            attributes: &user.attributes,
            now_ms: self.request.now_ms,
            uuid,
        }
    }
}

/// Returns the SDK key of a request, and its project.
///
/// Errors: 400, 401 and 403 for the credentials; 401, or 403 in agent mode, for an unknown key; 503, or 500 in agent
/// mode, if the project has no usable datafile.
pub(super) async fn authorize(
    service: &DecisionService,
    request: &Request<'_>,
) -> Result<(Box<str>, Arc<LoadedDatafile>), Fault> {
    let granted = read_granted(service, request).await?;
    let sdk_key = granted.into_key(&service.credentials)?;
    let loaded = find_project(service, &sdk_key).await?;
    Ok((sdk_key, loaded))
}

/// Returns the project of an SDK key.
///
/// Errors: as [`authorize`], but for the credentials.
pub(super) async fn find_project(
    service: &DecisionService,
    sdk_key: &str,
) -> Result<Arc<LoadedDatafile>, Fault> {
    let protocol = service.protocol;
    match service.find(sdk_key).await {
        ProjectLookup::Project(loaded) => Ok(loaded),
        ProjectLookup::Unknown => Err(protocol.unknown_key()),
        ProjectLookup::Refused(status) => Err(protocol.refused_by_source(status)),
        ProjectLookup::Unusable => Err(protocol.unusable_datafile(sdk_key)),
    }
}

/// Checks the credentials of a batch. A project without a usable datafile only fails the operations, not the batch.
///
/// Errors: 400, 401 and 403.
pub(super) async fn check_credentials(
    service: &DecisionService,
    request: &Request<'_>,
) -> Result<(), Fault> {
    let SdkKeyGrant::Key(sdk_key) = read_granted(service, request).await? else {
        return Ok(());
    };
    let protocol = service.protocol;
    match service.find(&sdk_key).await {
        ProjectLookup::Project(_) | ProjectLookup::Unusable => Ok(()),
        ProjectLookup::Unknown => Err(protocol.unknown_key()),
        ProjectLookup::Refused(status) => Err(protocol.refused_by_source(status)),
    }
}

/// Returns the grant of a request's credentials. Errors: 400, 401, 403.
async fn read_granted(
    service: &DecisionService,
    request: &Request<'_>,
) -> Result<SdkKeyGrant, Fault> {
    let protocol = service.protocol;
    let foreign = match &service.foreign_keys {
        Some(published) => match protocol.token(request.headers) {
            Some(token) => Box::pin(published.find_for_token(token)).await,
            None => None,
        },
        None => None,
    };
    let now_s = request.now_ms / 1000;
    protocol.credentials(
        request.headers,
        &service.credentials,
        foreign.as_deref(),
        now_s,
    )
}
