//! A user's overrides, profile, segments and predictions. They are read once, for all decisions of a request.

use std::collections::HashMap;
use std::sync::Arc;

use filters::decisions::activate::Activation;
use filters::decisions::cmab::CmabRequest;
use filters::decisions::decide::{Decision, PredictionRequest};
use filters::decisions::inputs::{ForcedDecision, Inputs, Predicted};
use filters::decisions::request_body::{DecisionUser, SegmentOptions};
use filters::decisions::{Options, Profile, response_body};
use filters::fault::{Fault, FaultKind};

use super::context::DecisionContext;
use crate::decisions::profiles::Profiles;
use crate::decisions::user_key::UserKey;

/// A decision for one key.
pub(super) trait UserItem {
    /// Returns the prediction that the decision needs first.
    fn wants(&self) -> Option<&PredictionRequest<'_>>;
    /// Returns the length of the reasons, which repeat the user's id.
    fn reason_bytes(&self) -> usize;
}

impl UserItem for Decision<'_> {
    fn wants(&self) -> Option<&PredictionRequest<'_>> {
        self.wants.as_ref()
    }

    fn reason_bytes(&self) -> usize {
        self.reasons.iter().map(String::len).sum()
    }
}

impl UserItem for Activation<'_> {
    fn wants(&self) -> Option<&PredictionRequest<'_>> {
        self.wants.as_ref()
    }

    fn reason_bytes(&self) -> usize {
        0
    }
}

/// A user's overrides, profile, segments and predictions.
pub(super) struct UserState<'a> {
    context: &'a DecisionContext<'a>,
    user: &'a DecisionUser<'a>,
    forced: &'a [ForcedDecision],
    options: Options,
    overrides: Vec<(Box<str>, Box<str>)>,
    profile: Option<Profile>,
    segments: Arc<[String]>,
    predictions: HashMap<Box<str>, Predicted>,
}

impl<'a> UserState<'a> {
    /// Reads the overrides and the profile of the user. An unreadable profile counts as absent.
    pub(super) async fn new(
        context: &'a DecisionContext<'a>,
        user: &'a DecisionUser<'a>,
        forced: &'a [ForcedDecision],
        options: Options,
    ) -> Self {
        let key = &context.sdk_key;
        let overrides = context.service.overrides.as_ref();
        let profiles = profiles_for(context, user);
        let profile = match profiles.filter(|_| !options.ignore_user_profile) {
            Some(all) => all.find(key, &user.id).await.ok(),
            None => None,
        };
        Self {
            context,
            user,
            forced,
            options,
            overrides: overrides
                .map(|all| all.find(key, &user.id))
                .unwrap_or_default(),
            profile,
            segments: Arc::default(),
            predictions: HashMap::new(),
        }
    }

    /// Fetches the user's segments.
    ///
    /// Errors: 403 for a project without a platform, 502 if the platform does not respond.
    pub(super) async fn fetch_segments(&mut self, options: SegmentOptions) -> Result<(), Fault> {
        let project = &self.context.loaded.project;
        let segments = &self.context.service.segments;
        let (odp, wanted) = (project.odp.as_ref(), project.segments());
        let protocol = self.context.protocol();
        let failed = |kind| protocol.lacking(kind, "failed to fetch qualified segments");
        if segments.target(odp).is_none() {
            return Err(failed(FaultKind::Forbidden));
        }
        let found = segments.find(self.user_key(), odp, wanted, options).await;
        self.segments = found.map_err(|_| failed(FaultKind::UpstreamFailed))?;
        Ok(())
    }

    /// Decides for every key. The predictions for all of them are requested together.
    ///
    /// Errors: 413 for reasons that would fit no response.
    pub(super) async fn decide<K, T: UserItem>(
        &mut self,
        keys: &[K],
        decide: impl Fn(&K, &Inputs<'_>) -> T,
    ) -> Result<Vec<T>, Fault> {
        let mut items: Vec<T> = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in keys {
            let item = decide(key, &self.inputs());
            bytes += item.reason_bytes();
            response_body::check_size(bytes)?;
            items.push(item);
        }
        loop {
            let mut requests: Vec<CmabRequest> = Vec::new();
            for want in items.iter().filter_map(T::wants) {
                if !requests
                    .iter()
                    .any(|one| *one.experiment_id == *want.experiment_id)
                {
                    requests.push(self.cmab_request(want));
                }
            }
            if requests.is_empty() {
                return Ok(items);
            }
            // Boxed, because most decisions need no prediction, and this future is large.
            Box::pin(self.predict(requests)).await;
            for (key, item) in keys.iter().zip(&mut items) {
                if item.wants().is_some() {
                    *item = decide(key, &self.inputs());
                }
            }
        }
    }

    /// Returns the fetched segments.
    pub(super) fn segments(&self) -> &[String] {
        &self.segments
    }

    fn cmab_request(&self, want: &PredictionRequest<'_>) -> CmabRequest {
        let rules = self.context.loaded.project.rules;
        CmabRequest::new(want, &self.user.attributes, rules.prediction_attribute)
    }

    async fn predict(&mut self, requests: Vec<CmabRequest>) {
        let (cmab, user_key) = (&self.context.service.cmab, self.user_key());
        if self.options.reset_cmab_cache && self.predictions.is_empty() {
            cmab.reset(&self.context.sdk_key);
        }
        let predicted = cmab.predict(&user_key, requests, self.options).await;
        self.predictions.extend(predicted);
    }

    fn user_key(&self) -> UserKey {
        (self.context.sdk_key.clone(), self.user.id.as_ref().into())
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            user_id: &self.user.id,
            attributes: &self.user.attributes,
            segments: &self.segments,
            forced: self.forced,
            overrides: &self.overrides,
            profile: self.profile.as_ref(),
            predictions: &self.predictions,
            options: self.options,
        }
    }

    /// Adds new bucketing results to the user's profile.
    pub(super) async fn remember(&self, found: &[(&str, &str)]) {
        if let Some(profiles) = profiles_for(self.context, self.user) {
            let (key, user) = (&self.context.sdk_key, &self.user.id);
            profiles.remember(key, user, found).await;
        }
    }
}

/// Returns the profiles if the user has an id. Otherwise all anonymous users would share one profile.
fn profiles_for<'a>(
    context: &DecisionContext<'a>,
    user: &DecisionUser<'_>,
) -> Option<&'a Profiles> {
    let profiles = context.service.profiles.as_ref();
    profiles.filter(|_| !user.id.is_empty())
}
