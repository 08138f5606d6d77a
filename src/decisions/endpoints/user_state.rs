//! What is known of a user beside the project: read once, and used for all decisions of a call.

use std::collections::HashMap;
use std::sync::Arc;

use filters::decisions::activate::Activation;
use filters::decisions::ask::{DecisionUser, SegmentOptions};
use filters::decisions::bandit::CmabRequest;
use filters::decisions::decide::{Decision, PredictionRequest};
use filters::decisions::inputs::{Forced, Inputs, Predicted};
use filters::decisions::{Options, Profile, answer};
use filters::fault::{Fault, FaultKind};

use super::DecisionContext;

/// What is decided for a key.
pub(super) trait UserItem {
    /// What has to be predicted first.
    fn wants(&self) -> Option<&PredictionRequest<'_>>;
    /// The length of what it says for itself, which repeats the user's id.
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

/// See the module.
pub(super) struct UserState<'a> {
    asked: &'a DecisionContext<'a>,
    user: &'a DecisionUser<'a>,
    forced: &'a [Forced],
    options: Options,
    overrides: Vec<(Box<str>, Box<str>)>,
    profile: Option<Profile>,
    segments: Arc<[String]>,
    predictions: HashMap<Box<str>, Predicted>,
}

impl<'a> UserState<'a> {
    /// What is kept of the user. Where their profile cannot be read, the decisions do without.
    pub(super) async fn new(
        asked: &'a DecisionContext<'a>,
        user: &'a DecisionUser<'a>,
        forced: &'a [Forced],
        options: Options,
    ) -> Self {
        let key = &asked.sdk_key;
        let overrides = asked.flags.overrides.as_ref();
        let profiles = asked.flags.profiles.as_ref();
        let profile = match profiles.filter(|_| !options.ignore_user_profile) {
            Some(all) => all.of(key, &user.id).await.ok(),
            None => None,
        };
        Self {
            asked,
            user,
            forced,
            options,
            overrides: overrides
                .map(|all| all.of(key, &user.id))
                .unwrap_or_default(),
            profile,
            segments: Arc::default(),
            predictions: HashMap::new(),
        }
    }

    /// Asks for the user's segments.
    ///
    /// Errors: 500 where the source does not tell them.
    pub(super) async fn fetch_segments(&mut self, options: SegmentOptions) -> Result<(), Fault> {
        let project = &self.asked.loaded.project;
        let segments = &self.asked.flags.segments;
        let (odp, wanted) = (project.odp.as_ref(), project.segments());
        let found = segments.of(self.whose(), odp, wanted, options).await;
        self.segments = found
            .map_err(|_| Fault::new(FaultKind::Internal, "failed to fetch qualified segments"))?;
        Ok(())
    }

    /// Decides for every key; what has to be predicted first is asked for all of them at once.
    ///
    /// Errors: 413 for reasons that would fit no answer.
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
            answer::fits(bytes)?;
            items.push(item);
        }
        loop {
            let mut questions: Vec<CmabRequest> = Vec::new();
            for want in items.iter().filter_map(T::wants) {
                if !questions
                    .iter()
                    .any(|one| *one.experiment_id == *want.experiment_id)
                {
                    questions.push(self.question(want));
                }
            }
            if questions.is_empty() {
                return Ok(items);
            }
            self.predict(questions).await;
            for (key, item) in keys.iter().zip(&mut items) {
                if item.wants().is_some() {
                    *item = decide(key, &self.inputs());
                }
            }
        }
    }

    /// The segments that were fetched.
    pub(super) fn segments(&self) -> &[String] {
        &self.segments
    }

    fn question(&self, want: &PredictionRequest<'_>) -> CmabRequest {
        CmabRequest::new(want, &self.user.attributes, self.asked.compat())
    }

    async fn predict(&mut self, questions: Vec<CmabRequest>) {
        let (predictor, whose) = (&self.asked.flags.predictor, self.whose());
        if self.options.reset_cmab_cache && self.predictions.is_empty() {
            predictor.reset(&self.asked.sdk_key);
        }
        let predicted = predictor.predict(&whose, questions, self.options).await;
        self.predictions.extend(predicted);
    }

    fn whose(&self) -> (Box<str>, Box<str>) {
        (self.asked.sdk_key.clone(), self.user.id.as_ref().into())
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

    /// Adds what decisions found to the user's profile.
    pub(super) async fn remember(&self, found: &[(&str, &str)]) {
        if let Some(profiles) = self.asked.flags.profiles.as_ref() {
            let (key, user) = (&self.asked.sdk_key, &self.user.id);
            profiles.remember(key, user, found).await;
        }
    }
}
