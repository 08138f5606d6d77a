//! Writes the changes of a plan.

use std::collections::{BTreeMap, BTreeSet};

use filters::accounts::{ApiKey, KeyText, Pepper, TermsFile};
use filters::audit::{AuditKind, Verb};
use filters::manifest::{
    Action, DeclaredMember, DeclaredOrganization, DeclaredProject, DeclaredProviderKey,
    ManifestFault, PlannedChange, PlannedKey, PlannedPrompt, PlannedRow,
};
use filters::secret_ref::SecretRef;
use jiff::Timestamp;
use sqlx::any::{AnyArguments, AnyQueryResult};
use sqlx::query::Query;
use sqlx::{Any, Row};

use super::super::StoreError;
use super::super::account_change::{AccountChange, Noted};
use super::super::cipher::Cipher;
use super::super::feed::{Changed, DeletedKind};
use super::super::keys::{random_key, to_column};
use super::super::prompts::{insert_version, set_label};
use super::super::provider_keys::{check_text, last_four};
use crate::config::Secret;

/// A row of the feed, to be written at the end.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum Touched {
    Organization(String),
    Project(String),
    Member(String),
    DeletedMember(String),
    Key(String),
    ProviderKeys(String),
    Prompt(String),
}

/// A transaction in which a plan is carried out.
pub(super) struct Writing<'a> {
    change: AccountChange,
    pepper: Pepper,
    secrets: &'a BTreeMap<SecretRef, Secret>,
    now_ms: i64,
    touched: BTreeSet<Touched>,
    /// What the log is to say, in the order of the changes.
    noted: Vec<Noted>,
    new_keys: Vec<(String, KeyText)>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(
        change: AccountChange,
        pepper: Pepper,
        secrets: &'a BTreeMap<SecretRef, Secret>,
        now_ms: i64,
    ) -> Self {
        Self {
            change,
            pepper,
            secrets,
            now_ms,
            touched: BTreeSet::new(),
            noted: Vec::new(),
            new_keys: Vec::new(),
        }
    }

    /// Commits everything, and returns the texts of new keys.
    pub(super) async fn commit(self) -> Result<Vec<(String, KeyText)>, StoreError> {
        let changed = self.touched.iter().map(|it| match it {
            Touched::Organization(id) => Changed::Organization(id),
            Touched::Project(id) => Changed::Project(id),
            Touched::Member(id) => Changed::Member(id),
            Touched::DeletedMember(id) => Changed::Deleted(DeletedKind::Member, id),
            Touched::Key(id) => Changed::Key(id),
            Touched::ProviderKeys(id) => Changed::ProviderKeys(id),
            Touched::Prompt(id) => Changed::Prompt(id),
        });
        let changed: Vec<Changed<'_>> = changed.collect();
        self.change.commit_all(&changed, self.noted).await?;
        Ok(self.new_keys)
    }

    /// Writes a change. Returns what the store has against it: an id or a text that another row has.
    pub(super) async fn write(
        &mut self,
        planned: &PlannedChange,
    ) -> Result<Option<ManifestFault>, StoreError> {
        let noted = self.note(planned).await?;
        self.noted.push(noted);
        let is_new = planned.action == Action::Create;
        let written = match &planned.row {
            PlannedRow::Organization(row) => self.organization(is_new, row).await,
            PlannedRow::Project(owner, row) => self.project(is_new, owner, row).await,
            PlannedRow::Member(owner, row) => self.member(planned.action, owner, row).await,
            PlannedRow::Key(row) => self.key(planned.action, row).await,
            PlannedRow::ProviderKey(owner, row) => {
                self.provider_key(planned.action, owner, row).await
            }
            PlannedRow::Prompt(row) => self.prompt(planned, row).await,
        };
        let message = match written {
            Ok(()) => return Ok(None),
            Err(StoreError::InvalidSecret(problem)) => format!("the text of the secret {problem}"),
            Err(error) if is_taken(&error) => {
                let (kind, id) = (planned.kind, &planned.id);
                format!("another {kind} of the store has the id `{id}`, its name or its text")
            }
            Err(error) => return Err(error),
        };
        Ok(Some(ManifestFault {
            path: planned.path.clone(),
            message,
            cure: "choose another one".to_owned(),
        }))
    }

    /// Notes a change for the log. What is removed is read, because plans do not say how it was.
    async fn note(&mut self, planned: &PlannedChange) -> Result<Noted, StoreError> {
        let (kind, name, organization_id) = match &planned.row {
            PlannedRow::Organization(row) => (AuditKind::Organization, &row.name, &row.id),
            PlannedRow::Project(owner, row) => (AuditKind::Project, &row.name, owner),
            PlannedRow::Member(owner, row) => (AuditKind::Member, &row.name, owner),
            PlannedRow::Key(row) => (AuditKind::Key, &row.key.label, &row.organization_id),
            PlannedRow::ProviderKey(owner, row) => (AuditKind::ProviderKey, &row.label, owner),
            PlannedRow::Prompt(row) => (AuditKind::Prompt, &row.name, &row.organization_id),
        };
        let verb = match (planned.action, kind) {
            (Action::Create, AuditKind::Prompt) => Verb::Put,
            (Action::Create, _) => Verb::Create,
            (Action::Update, _) => Verb::Update,
            (Action::Remove, AuditKind::Key) => Verb::Revoke,
            (Action::Remove, _) => Verb::Delete,
        };
        if planned.action == Action::Remove {
            return self.change.note(kind, verb, &planned.id).await;
        }
        let is_new = planned.action == Action::Create;
        let of = (name.as_str(), organization_id.as_str());
        let what = (kind, verb, is_new);
        Ok(Noted::planned(what, &planned.id, of, &planned.fields))
    }

    async fn execute(
        &mut self,
        query: Query<'_, Any, AnyArguments>,
    ) -> Result<AnyQueryResult, StoreError> {
        Ok(query.execute(&mut *self.change).await?)
    }

    async fn organization(
        &mut self,
        is_new: bool,
        row: &DeclaredOrganization,
    ) -> Result<(), StoreError> {
        let sql = match is_new {
            true => {
                "INSERT INTO organizations (id, name, plan, status, regions, export_content, \
                 plan_since, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)"
            }
            // The first cycle of another plan begins now.
            false => {
                "UPDATE organizations SET name = $2, plan = $3, status = $4, regions = $5, \
                 export_content = $6, \
                 plan_since = CASE WHEN plan = $3 THEN plan_since ELSE $7 END WHERE id = $1"
            }
        };
        let query = sqlx::query(sql)
            .bind(row.id.clone())
            .bind(row.name.clone())
            .bind(row.plan.clone())
            .bind(row.status.clone())
            .bind(optional(&row.regions))
            .bind(i64::from(row.export_content))
            .bind(self.now_ms);
        self.execute(query).await?;
        if is_new {
            // Calls of one that was deleted are set aside. This one has the same id, and calls of its own.
            let sql = "DELETE FROM deleted_organizations WHERE id = $1";
            self.execute(sqlx::query(sql).bind(row.id.clone())).await?;
        }
        self.touched.insert(Touched::Organization(row.id.clone()));
        Ok(())
    }

    async fn project(
        &mut self,
        is_new: bool,
        organization_id: &str,
        row: &DeclaredProject,
    ) -> Result<(), StoreError> {
        let sql = match is_new {
            true => {
                "INSERT INTO projects (id, name, mode, cache_ttl_s, experiments, regions, status, \
                 organization_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
            }
            false => {
                "UPDATE projects SET name = $2, mode = $3, cache_ttl_s = $4, experiments = $5, \
                 regions = $6, status = $7 WHERE id = $1"
            }
        };
        let mut query = sqlx::query(sql)
            .bind(row.id.clone())
            .bind(row.name.clone())
            .bind(row.mode.clone())
            .bind(row.cache_ttl_s.map(i64::from))
            .bind(optional(&row.experiments))
            .bind(optional(&row.regions))
            .bind(row.status.clone());
        if is_new {
            query = query.bind(organization_id.to_owned()).bind(self.now_ms);
        }
        self.execute(query).await?;
        self.touched.insert(Touched::Project(row.id.clone()));
        Ok(())
    }

    async fn member(
        &mut self,
        action: Action,
        organization_id: &str,
        row: &DeclaredMember,
    ) -> Result<(), StoreError> {
        let query = match action {
            Action::Remove => return self.remove_member(&row.id).await,
            Action::Create => sqlx::query(
                "INSERT INTO members (id, name, budget, organization_id, created_at) \
                 VALUES ($1, $2, $3, $4, $5)",
            ),
            Action::Update => {
                sqlx::query("UPDATE members SET name = $2, budget = $3 WHERE id = $1")
            }
        };
        let mut query = query
            .bind(row.id.clone())
            .bind(row.name.clone())
            .bind(row.budget.clone());
        if action == Action::Create {
            query = query.bind(organization_id.to_owned()).bind(self.now_ms);
        }
        self.execute(query).await?;
        self.touched.insert(Touched::Member(row.id.clone()));
        Ok(())
    }

    /// Removes a member. Its keys are revoked by then; what they have spent stays under its id.
    async fn remove_member(&mut self, id: &str) -> Result<(), StoreError> {
        let sql = "UPDATE api_keys SET member_id = NULL WHERE member_id = $1 RETURNING id";
        let query = sqlx::query(sql).bind(id.to_owned());
        for row in query.fetch_all(&mut *self.change).await? {
            self.touched.insert(Touched::Key(row.try_get("id")?));
        }
        let query = sqlx::query("DELETE FROM members WHERE id = $1").bind(id.to_owned());
        self.execute(query).await?;
        self.touched.insert(Touched::DeletedMember(id.to_owned()));
        Ok(())
    }

    async fn key(&mut self, action: Action, row: &PlannedKey) -> Result<(), StoreError> {
        let key = &row.key;
        if action == Action::Remove {
            return self.revoke_key(&key.id).await;
        }
        let terms: Option<String> = to_column(&TermsFile::clone(&key.terms))?;
        let expires_at_ms = expiry(&key.expires)?;
        let disabled_at = (key.status != "active").then_some(self.now_ms);
        let text = row.is_text_new.then(|| self.key_text(row)).transpose()?;
        let sql = match action {
            Action::Create => {
                "INSERT INTO api_keys (id, project_id, label, member_id, expires_at, debug, terms, \
                 disabled_at, hash, last_four, created_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
            }
            _ => {
                "UPDATE api_keys SET project_id = $2, label = $3, member_id = $4, expires_at = $5, \
                 debug = $6, terms = $7, disabled_at = CASE WHEN CAST($8 AS BIGINT) IS NULL THEN NULL \
                 ELSE COALESCE(disabled_at, CAST($8 AS BIGINT)) END WHERE id = $1"
            }
        };
        let mut query = sqlx::query(sql)
            .bind(key.id.clone())
            .bind(row.project_id.clone())
            .bind(key.label.clone())
            .bind(row.member_id.clone())
            .bind(expires_at_ms)
            .bind(i64::from(key.debug))
            .bind(terms)
            .bind(disabled_at);
        if let (Action::Create, Some((hash, last_four))) = (action, &text) {
            query = query.bind(hash.clone()).bind(last_four.clone());
            query = query.bind(self.now_ms);
        }
        self.execute(query).await?;
        if let (Action::Update, Some((hash, last_four))) = (action, text) {
            let sql = "UPDATE api_keys SET hash = $2, last_four = $3 WHERE id = $1";
            let query = sqlx::query(sql)
                .bind(key.id.clone())
                .bind(hash)
                .bind(last_four);
            self.execute(query).await?;
        }
        self.touched.insert(Touched::Key(key.id.clone()));
        Ok(())
    }

    async fn revoke_key(&mut self, id: &str) -> Result<(), StoreError> {
        let sql = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1";
        let query = sqlx::query(sql).bind(id.to_owned()).bind(self.now_ms);
        self.execute(query).await?;
        self.touched.insert(Touched::Key(id.to_owned()));
        Ok(())
    }

    /// Returns the hash and the last four characters of a key's text, which is made if the file gives none.
    fn key_text(&mut self, row: &PlannedKey) -> Result<(Vec<u8>, String), StoreError> {
        let given = row.key.secret.as_ref().and_then(|it| self.secrets.get(it));
        let given = given.map(|secret| ApiKey::parse(secret.expose().as_bytes()));
        if let Some(key) = given {
            let key = key.map_err(|_| StoreError::InvalidSecret("is no API key"))?;
            return Ok((self.pepper.hash(key).as_bytes().to_vec(), key.last_four()));
        }
        let text = random_key()?;
        let hash = self.pepper.hash(text.to_api_key()).as_bytes().to_vec();
        let last_four = text.to_api_key().last_four();
        self.new_keys.push((row.key.id.clone(), text));
        Ok((hash, last_four))
    }

    async fn provider_key(
        &mut self,
        action: Action,
        organization_id: &str,
        row: &DeclaredProviderKey,
    ) -> Result<(), StoreError> {
        let id = row.id.clone();
        let text = row.secret.as_ref().and_then(|it| self.secrets.get(it));
        let text = text.map(Secret::expose).unwrap_or_default();
        let query = if action == Action::Remove {
            sqlx::query("DELETE FROM provider_keys WHERE id = $1").bind(id)
        } else {
            check_text(text)?;
            let sealed = Cipher::new(&self.pepper)?.encrypt(&id, text)?;
            let query = match action {
                Action::Create => sqlx::query(
                    "INSERT INTO provider_keys (id, sealed, last_four, organization_id, provider, \
                     label, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                ),
                _ => sqlx::query(
                    "UPDATE provider_keys SET sealed = $2, last_four = $3 WHERE id = $1",
                ),
            };
            let query = query.bind(id).bind(sealed).bind(last_four(text));
            match action {
                Action::Create => query
                    .bind(organization_id.to_owned())
                    .bind(row.provider.clone())
                    .bind(row.label.clone())
                    .bind(self.now_ms),
                _ => query,
            }
        };
        self.execute(query).await?;
        self.touched
            .insert(Touched::ProviderKeys(organization_id.to_owned()));
        Ok(())
    }

    async fn prompt(
        &mut self,
        planned: &PlannedChange,
        row: &PlannedPrompt,
    ) -> Result<(), StoreError> {
        let id = &planned.id;
        if planned.action == Action::Remove {
            for sql in [
                "DELETE FROM prompt_labels WHERE prompt_id = $1",
                "DELETE FROM prompt_versions WHERE prompt_id = $1",
            ] {
                self.execute(sqlx::query(sql).bind(id.clone())).await?;
            }
        }
        if planned.action == Action::Create {
            // A prompt that was removed has kept its row.
            let sql = "INSERT INTO prompts (id, organization_id, project_id, name, last_version) \
                       VALUES ($1, $2, $3, $4, 0) ON CONFLICT (id) DO NOTHING";
            let query = sqlx::query(sql)
                .bind(id.clone())
                .bind(row.organization_id.clone())
                .bind(row.project_id.clone())
                .bind(row.name.clone());
            self.execute(query).await?;
        }
        if planned.action != Action::Remove {
            for (content, labels) in &row.new_versions {
                let number = insert_version(&mut self.change, id, content, self.now_ms).await?;
                for label in labels {
                    set_label(&mut self.change, id, label, number).await?;
                }
            }
            for (label, number) in &row.labels {
                let number = i64::try_from(*number).map_err(|_| StoreError::Damaged("version"))?;
                set_label(&mut self.change, id, label, number).await?;
            }
            for label in &row.dropped_labels {
                let sql = "DELETE FROM prompt_labels WHERE prompt_id = $1 AND label = $2";
                let query = sqlx::query(sql).bind(id.clone()).bind(label.clone());
                self.execute(query).await?;
            }
        }
        self.touched.insert(Touched::Prompt(id.clone()));
        Ok(())
    }
}

/// Returns the column of a text that files leave out.
fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Parses a time that was checked.
fn expiry(text: &str) -> Result<Option<i64>, StoreError> {
    if text.is_empty() {
        return Ok(None);
    }
    let time = text.parse::<Timestamp>();
    let time = time.map_err(|_| StoreError::Damaged("expires"))?;
    Ok(Some(time.as_millisecond()))
}

/// Returns whether a row with that id, name or text exists.
fn is_taken(error: &StoreError) -> bool {
    match error {
        StoreError::Database(error) => error
            .as_database_error()
            .is_some_and(|error| error.is_unique_violation()),
        _ => false,
    }
}
