//! Managed prompts: numbered versions that never change, and labels that move between them.

use std::collections::BTreeSet;

use filters::audit::{AuditKind, Verb};
use filters::models::prompts::reference::{LATEST, PRODUCTION, VersionReference};
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::connections::Connected;
use super::projects::active_project;
use super::rows::Rows;
use super::{
    AccountChange, AccountEditor, Changed, Store, StoreError, new_id, organizations, rename,
};

/// The organization of a prompt, and its project if it has one: names, not ids.
#[derive(Clone, Copy, Debug)]
pub struct PromptOwner<'a> {
    pub organization: &'a str,
    /// The project whose prompt it is; `None`: it serves all projects of the organization.
    pub project: Option<&'a str>,
}

/// A prompt without the content of its versions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredPrompt {
    /// `prompt_` and a uuid.
    pub id: String,
    pub name: String,
    pub project: Option<String>,
    /// The numbers of its versions and the times at which they came, in unix milliseconds.
    pub versions: Vec<(u64, i64)>,
    pub labels: Vec<(String, u64)>,
}

/// A version.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredVersion {
    pub number: u64,
    /// The JSON.
    pub content: String,
    pub created_at_ms: i64,
}

/// A prompt as a snapshot has it: the last record of an id counts, and one without versions is removed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PromptRecord {
    /// `prompt_` and a uuid.
    pub id: String,
    /// The id of its project, else of its organization.
    pub owner_id: String,
    pub name: String,
    pub labels: Vec<(String, u64)>,
    pub versions: Vec<(u64, String)>,
}

impl PromptRecord {
    /// Returns the record of a prompt whose row is gone.
    pub(super) fn removed(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            owner_id: String::new(),
            name: String::new(),
            labels: Vec::new(),
            versions: Vec::new(),
        }
    }
}

impl StoredPrompt {
    /// Returns the number that a version has, if it exists.
    pub fn find(&self, version: &VersionReference) -> Option<u64> {
        match version {
            VersionReference::Number(number) => {
                self.versions.iter().map(|it| it.0).find(|it| it == number)
            }
            VersionReference::Label(label) if &**label == LATEST => {
                self.versions.last().map(|it| it.0)
            }
            VersionReference::Label(label) => {
                let mut labels = self.labels.iter();
                labels.find(|(known, _)| **known == **label).map(|it| it.1)
            }
        }
    }
}

impl Store {
    /// Returns the prompts of an organization and all its projects, or those of one project, by name.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn prompts(&self, owner: PromptOwner<'_>) -> Result<Vec<StoredPrompt>, StoreError> {
        let organization_id = self.organization(owner.organization).await?.id;
        let sql = "SELECT p.id, p.name, j.name AS project FROM prompts p \
                   LEFT JOIN projects j ON j.id = p.project_id \
                   WHERE p.organization_id = $1 ORDER BY p.name, p.project_id IS NOT NULL, project";
        let rows = sqlx::query(sql)
            .bind(&organization_id)
            .fetch_all(&mut self.pool.acquire().await?)
            .await?;
        let mut connection = self.pool.acquire().await?;
        let mut prompts = Vec::new();
        for row in &rows {
            let project: Option<String> = row.try_get("project")?;
            if owner.project.is_some() && project.as_deref() != owner.project {
                continue;
            }
            let prompt = read_prompt(&mut connection, row, project).await?;
            prompts.extend((!prompt.versions.is_empty()).then_some(prompt));
        }
        Ok(prompts)
    }

    /// Returns a prompt. Without a project it is the organization's.
    ///
    /// Errors: [`StoreError::NotFound`] for organization, project and prompt.
    pub async fn prompt(
        &self,
        owner: PromptOwner<'_>,
        name: &str,
    ) -> Result<StoredPrompt, StoreError> {
        let all = self.prompts(owner).await?;
        let mut of_owner = all
            .into_iter()
            .filter(|it| it.project.as_deref() == owner.project);
        let found = of_owner.find(|prompt| prompt.name == name);
        match found {
            Some(prompt) => Ok(prompt),
            None => {
                let organization = self.organization(owner.organization).await?;
                Err(StoreError::not_found_of("prompt", name, &organization.id))
            }
        }
    }

    /// Returns a version of a prompt.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn prompt_version(
        &self,
        prompt: &StoredPrompt,
        version: &VersionReference,
    ) -> Result<StoredVersion, StoreError> {
        let not_found = || StoreError::not_found("version", &format!("{}@{version}", prompt.name));
        let number = prompt.find(version).ok_or_else(not_found)?;
        let sql = "SELECT content, created_at FROM prompt_versions \
                   WHERE prompt_id = $1 AND version = $2";
        let row = sqlx::query(sql)
            .bind(&prompt.id)
            .bind(stored(number))
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?
            .ok_or_else(not_found)?;
        Ok(StoredVersion {
            number,
            content: row.try_get("content")?,
            created_at_ms: row.try_get("created_at")?,
        })
    }

    /// Returns all prompts.
    pub async fn all_prompts(&self) -> Result<Vec<PromptRecord>, StoreError> {
        self.prompt_records(None).await
    }

    /// Returns the records of all prompts, or of those with these ids. An id without versions has none.
    pub(super) async fn prompt_records(
        &self,
        ids: Option<&BTreeSet<String>>,
    ) -> Result<Vec<PromptRecord>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let prompts =
            "SELECT id, COALESCE(project_id, organization_id) AS owner_id, name FROM prompts";
        let mut records: Vec<PromptRecord> = Vec::new();
        for row in of_prompts(&mut connection, prompts, "id", "id", ids).await? {
            records.push(PromptRecord {
                id: row.try_get("id")?,
                owner_id: row.try_get("owner_id")?,
                name: row.try_get("name")?,
                labels: Vec::new(),
                versions: Vec::new(),
            });
        }
        let find = |records: &[PromptRecord], row: &AnyRow| -> Result<Option<usize>, StoreError> {
            let id: String = row.try_get("prompt_id")?;
            Ok(records.binary_search_by(|record| record.id.cmp(&id)).ok())
        };
        records.sort_by(|a, b| a.id.cmp(&b.id));
        let versions = "SELECT prompt_id, version, content FROM prompt_versions";
        for row in of_prompts(&mut connection, versions, "prompt_id", "version", ids).await? {
            let of = find(&records, &row)?.and_then(|at| records.get_mut(at));
            // A row that no version writes hides this version of the prompt, and nothing else.
            if let (Some(record), Ok(number)) = (of, number(row.try_get("version")?)) {
                record.versions.push((number, row.try_get("content")?));
            }
        }
        let labels = "SELECT prompt_id, label, version FROM prompt_labels";
        for row in of_prompts(&mut connection, labels, "prompt_id", "label", ids).await? {
            let of = find(&records, &row)?.and_then(|at| records.get_mut(at));
            if let (Some(record), Ok(number)) = (of, number(row.try_get("version")?)) {
                record.labels.push((row.try_get("label")?, number));
            }
        }
        if ids.is_none() {
            records.retain(|record| !record.versions.is_empty());
        }
        Ok(records)
    }
}

impl AccountEditor<'_> {
    /// Stores a new version of a prompt and moves labels to it. The first version without a label becomes `production`.
    /// Returns its number and whether it became that.
    ///
    /// The content has been checked. Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for organization and
    /// project.
    pub async fn put_prompt(
        self,
        owner: PromptOwner<'_>,
        name: &str,
        content: &str,
        labels: &[String],
        now_ms: i64,
    ) -> Result<u64, StoreError> {
        let mut change = self.change().await?;
        let id = find_or_insert(&mut change, owner, name).await?;
        let noted = change.note(AuditKind::Prompt, Verb::Put, &id).await?;
        let version = insert_version(&mut change, &id, content, now_ms).await?;
        for label in labels {
            set_label(&mut change, &id, label, version).await?;
        }
        if labels.is_empty() {
            let sql = "INSERT INTO prompt_labels (prompt_id, label, version) VALUES ($1, $2, $3) \
                       ON CONFLICT (prompt_id, label) DO NOTHING";
            sqlx::query(sql)
                .bind(&id)
                .bind(PRODUCTION)
                .bind(version)
                .execute(&mut *change)
                .await?;
        }
        change.commit(&[Changed::Prompt(&id)], noted).await?;
        number(version)
    }

    /// Renames a prompt. A later prompt of the name before goes on counting its versions, so that a number never means another
    /// text.
    ///
    /// The name has been checked. Errors: [`StoreError::NotFound`]; [`StoreError::AlreadyExists`], also for the name of a prompt
    /// that was removed.
    pub async fn rename_prompt(
        self,
        owner: PromptOwner<'_>,
        name: &str,
        new_name: &str,
    ) -> Result<(), StoreError> {
        let id = self.prompt(owner, name).await?.id;
        if name == new_name {
            return Ok(());
        }
        let mut change = self.change().await?;
        let noted = change.note(AuditKind::Prompt, Verb::Rename, &id).await?;
        let sql = "UPDATE prompts SET name = $2 WHERE id = $1";
        rename(&mut change, sql, &id, ("prompt", new_name)).await?;
        let sql = "INSERT INTO prompts (id, organization_id, project_id, name, last_version) \
                   SELECT $2, organization_id, project_id, $3, last_version FROM prompts WHERE id = $1";
        let query = sqlx::query(sql).bind(&id).bind(new_id("prompt")).bind(name);
        query.execute(&mut *change).await?;
        change.commit(&[Changed::Prompt(&id)], noted).await
    }

    /// Moves a label of a prompt to a version, or makes it. Returns the version's number.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn label_prompt(
        self,
        owner: PromptOwner<'_>,
        name: &str,
        version: &VersionReference,
        label: &str,
    ) -> Result<u64, StoreError> {
        let prompt = self.prompt(owner, name).await?;
        let version = self.prompt_version(&prompt, version).await?.number;
        let mut change = self.change().await?;
        let noted = change.note(AuditKind::Prompt, Verb::Label, &prompt.id);
        let noted = noted.await?;
        set_label(&mut change, &prompt.id, label, stored(version)).await?;
        let changed = [Changed::Prompt(&prompt.id)];
        change.commit(&changed, noted).await?;
        Ok(version)
    }

    /// Removes a label of a prompt, or the whole prompt. A later version of the same name goes on counting.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn remove_prompt(
        self,
        owner: PromptOwner<'_>,
        name: &str,
        label: Option<&str>,
    ) -> Result<(), StoreError> {
        let prompt = self.prompt(owner, name).await?;
        let mut change = self.change().await?;
        let verb = label.map_or(Verb::Delete, |_| Verb::Label);
        let noted = change.note(AuditKind::Prompt, verb, &prompt.id).await?;
        let deleted = match label {
            Some(label) => {
                let sql = "DELETE FROM prompt_labels WHERE prompt_id = $1 AND label = $2";
                let query = sqlx::query(sql).bind(&prompt.id).bind(label);
                query.execute(&mut *change).await?
            }
            None => {
                let sql = "DELETE FROM prompt_labels WHERE prompt_id = $1";
                let query = sqlx::query(sql).bind(&prompt.id);
                query.execute(&mut *change).await?;
                let sql = "DELETE FROM prompt_versions WHERE prompt_id = $1";
                let query = sqlx::query(sql).bind(&prompt.id);
                query.execute(&mut *change).await?
            }
        };
        if let (Some(label), 0) = (label, deleted.rows_affected()) {
            return Err(StoreError::not_found("label", &format!("{name}@{label}")));
        }
        let changed = [Changed::Prompt(&prompt.id)];
        change.commit(&changed, noted).await
    }
}

/// Reads rows of all prompts, or of those with these ids in `column`.
pub(super) async fn of_prompts(
    connection: &mut Connected,
    select: &str,
    column: &str,
    order: &str,
    ids: Option<&BTreeSet<String>>,
) -> Result<Vec<AnyRow>, StoreError> {
    let Some(ids) = ids else {
        let sql = format!("{select} ORDER BY {order}");
        return Ok(sqlx::query(AssertSqlSafe(sql))
            .fetch_all(connection)
            .await?);
    };
    let ids = Rows::from_texts(connection, ids.iter().map(String::as_str))?;
    let sql =
        format!("{select} WHERE {column} IN (SELECT value ->> 0 FROM {{rows}}) ORDER BY {order}");
    Ok(ids.query(&sql).fetch_all(connection).await?)
}

/// Reads a prompt whose row has `id` and `name`.
pub(super) async fn read_prompt(
    connection: &mut Connected,
    row: &AnyRow,
    project: Option<String>,
) -> Result<StoredPrompt, StoreError> {
    let id: String = row.try_get("id")?;
    let sql =
        "SELECT version, created_at FROM prompt_versions WHERE prompt_id = $1 ORDER BY version";
    let mut versions = Vec::new();
    for row in sqlx::query(sql)
        .bind(&id)
        .fetch_all(&mut *connection)
        .await?
    {
        versions.push((number(row.try_get("version")?)?, row.try_get("created_at")?));
    }
    let sql = "SELECT label, version FROM prompt_labels WHERE prompt_id = $1 ORDER BY label";
    let mut labels = Vec::new();
    for row in sqlx::query(sql).bind(&id).fetch_all(connection).await? {
        labels.push((row.try_get("label")?, number(row.try_get("version")?)?));
    }
    Ok(StoredPrompt {
        name: row.try_get("name")?,
        id,
        project,
        versions,
        labels,
    })
}

/// Returns the id of a prompt, and makes its row if it is missing.
async fn find_or_insert(
    change: &mut AccountChange,
    owner: PromptOwner<'_>,
    name: &str,
) -> Result<String, StoreError> {
    let organization_id = organizations::active(change, owner.organization).await?.id;
    let project_id = match owner.project {
        Some(project) => Some(active_project(change, &organization_id, project).await?),
        None => None,
    };
    let sql = "SELECT id FROM prompts WHERE organization_id = $1 AND name = $2 \
               AND COALESCE(project_id, '') = $3";
    let known = sqlx::query_scalar(sql)
        .bind(&organization_id)
        .bind(name)
        .bind(project_id.as_deref().unwrap_or_default())
        .fetch_optional(&mut **change)
        .await?;
    if let Some(id) = known {
        return Ok(id);
    }
    let id = new_id("prompt");
    let sql = "INSERT INTO prompts (id, organization_id, project_id, name, last_version) \
               VALUES ($1, $2, $3, $4, 0)";
    sqlx::query(sql)
        .bind(&id)
        .bind(&organization_id)
        .bind(project_id)
        .bind(name)
        .execute(&mut **change)
        .await?;
    Ok(id)
}

/// Inserts the next version of a prompt. Returns its number.
pub(super) async fn insert_version(
    change: &mut AccountChange,
    id: &str,
    content: &str,
    now_ms: i64,
) -> Result<i64, StoreError> {
    let sql = "UPDATE prompts SET last_version = last_version + 1 WHERE id = $1 \
               RETURNING last_version";
    let version: i64 = sqlx::query_scalar(sql)
        .bind(id)
        .fetch_one(&mut **change)
        .await?;
    let sql = "INSERT INTO prompt_versions (prompt_id, version, content, created_at) \
               VALUES ($1, $2, $3, $4)";
    sqlx::query(sql)
        .bind(id)
        .bind(version)
        .bind(content)
        .bind(now_ms)
        .execute(&mut **change)
        .await?;
    Ok(version)
}

pub(super) async fn set_label(
    change: &mut AccountChange,
    id: &str,
    label: &str,
    version: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO prompt_labels (prompt_id, label, version) VALUES ($1, $2, $3) \
               ON CONFLICT (prompt_id, label) DO UPDATE SET version = excluded.version";
    let query = sqlx::query(sql).bind(id).bind(label).bind(version);
    query.execute(&mut **change).await?;
    Ok(())
}

/// Reads the number of a version. Errors: it is negative.
pub(super) fn number(version: i64) -> Result<u64, StoreError> {
    u64::try_from(version).map_err(|_| StoreError::Damaged("version"))
}

/// No stored version has a number beyond.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
