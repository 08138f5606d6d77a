//! Makes the store say what a file of accounts says, in one transaction.

mod read;
mod write;

use std::collections::BTreeMap;

use filters::accounts::{ApiKey, KeyText};
use filters::manifest::{DeclaredOrganization, Manifest, ManifestFault, PlannedChange, plan};
use filters::secret_ref::SecretRef;

use super::{AccountEditor, Store, StoreError, new_id};
use crate::config::Secret;

/// What a store is to say, and how it gets there.
pub struct WantedAccounts<'a> {
    pub manifest: &'a Manifest,
    /// The texts of the secrets that the manifest refers to.
    pub secrets: &'a BTreeMap<SecretRef, Secret>,
    /// Whether what the manifest does not name is taken out of use.
    pub is_pruning: bool,
    /// Whether the changes are only named.
    pub is_plan: bool,
}

/// The changes that were made, or that would be. It has no `Debug`, because it holds the texts of new keys.
pub struct AppliedAccounts {
    pub changes: Vec<PlannedChange>,
    /// The ids and the texts of keys that were made without a text of their own.
    pub new_keys: Vec<(String, KeyText)>,
}

impl Store {
    /// Returns all accounts, or those of one organization, as a file declares them. Revoked keys are left out.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn declared_accounts(
        &self,
        organization: Option<&str>,
    ) -> Result<Manifest, StoreError> {
        let mut connection = self.pool.begin().await?;
        let scope = organization.map(|name| Manifest {
            organizations: vec![DeclaredOrganization {
                name: name.to_owned(),
                ..DeclaredOrganization::default()
            }],
        });
        let mut manifest = read::manifest(&mut connection, &self.pepper, scope.as_ref()).await?;
        connection.commit().await?;
        if let (Some(name), true) = (organization, manifest.organizations.is_empty()) {
            return Err(StoreError::not_found("organization", name));
        }
        for organization in &mut manifest.organizations {
            organization.keys.retain(|key| !key.is_revoked);
            organization
                .prompts
                .retain(|prompt| !prompt.versions.is_empty());
            for prompt in &mut organization.prompts {
                let last = prompt.versions.last().map(|it| it.number);
                let is_named = |labels: &Option<Vec<String>>| {
                    labels.as_ref().is_some_and(|labels| !labels.is_empty())
                };
                prompt
                    .versions
                    .retain(|it| is_named(&it.labels) || Some(it.number) == last);
            }
        }
        Ok(manifest)
    }

    /// Adds the hashes of the texts that a manifest refers to.
    fn hash_secrets(&self, manifest: &mut Manifest, secrets: &BTreeMap<SecretRef, Secret>) {
        let text = |reference: &Option<SecretRef>| {
            let found = reference.as_ref().and_then(|it| secrets.get(it));
            found.map(|secret| secret.expose().as_bytes())
        };
        for organization in &mut manifest.organizations {
            for key in &mut organization.keys {
                let parsed = text(&key.secret).and_then(|it| ApiKey::parse(it).ok());
                key.hash = parsed.map(|it| self.pepper.hash(it));
            }
            for key in &mut organization.provider_keys {
                key.hash = text(&key.secret).map(|it| self.pepper.hash_secret(it));
            }
        }
    }
}

impl AccountEditor<'_> {
    /// Changes accounts so that they are as wanted. Either all changes are made, or none.
    ///
    /// Errors: what the store has against the manifest, and errors of the database.
    pub async fn apply(
        self,
        wanted: &WantedAccounts<'_>,
        now_ms: i64,
    ) -> Result<Result<AppliedAccounts, Vec<ManifestFault>>, StoreError> {
        let mut declared = wanted.manifest.clone();
        self.hash_secrets(&mut declared, wanted.secrets);
        let mut change = self.change().await?;
        let scope = (!wanted.is_pruning).then_some(&declared);
        let stored = read::manifest(&mut change, &self.pepper, scope).await?;
        let planned = plan(&declared, &stored, wanted.is_pruning, &mut new_id);
        let changes = match planned {
            Ok(changes) => changes,
            Err(faults) => return Ok(Err(faults)),
        };
        // A plan is a change that is dropped.
        if wanted.is_plan || changes.is_empty() {
            let new_keys = Vec::new();
            return Ok(Ok(AppliedAccounts { changes, new_keys }));
        }
        let mut writing = write::Writing::new(change, self.pepper.clone(), wanted.secrets, now_ms);
        for planned in &changes {
            if let Some(fault) = writing.write(planned).await? {
                return Ok(Err(vec![fault]));
            }
        }
        let new_keys = writing.commit().await?;
        Ok(Ok(AppliedAccounts { changes, new_keys }))
    }
}
