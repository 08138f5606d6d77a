//! Managed prompts of all organizations as pages, for people who look through them.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::account_pages::{AccountPage, PageQuery};
use super::prompts::{number, of_prompts, read_prompt};
use super::{Store, StoreError, StoredPrompt};

/// A prompt in a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PromptSummary {
    /// `prompt_` and a uuid.
    pub id: String,
    pub name: String,
    /// The name of its organization.
    pub organization: String,
    /// The name of its project; `None`: it serves all projects of the organization.
    pub project: Option<String>,
    /// How many versions there are.
    pub versions: u64,
    /// The number of the newest version, and when it came. Units: unix milliseconds.
    pub newest: (u64, i64),
    /// The versions of its labels, by label.
    pub labels: Vec<(String, u64)>,
}

impl Store {
    /// Returns a page of the prompts of an organization, or of all, by name.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn prompts_page(
        &self,
        organization: Option<&str>,
        asked: PageQuery<'_>,
    ) -> Result<AccountPage<PromptSummary>, StoreError> {
        let owner = match organization {
            Some(name) => self.organization(name).await?.id,
            None => String::new(),
        };
        // A prompt that was removed has kept its row, and has no version.
        let sql = format!(
            "SELECT p.id, p.name, o.name AS organization, j.name AS project, v.versions, v.newest, v.newest_at \
             FROM prompts p JOIN organizations o ON o.id = p.organization_id \
             LEFT JOIN projects j ON j.id = p.project_id \
             JOIN (SELECT prompt_id, COUNT(*) AS versions, MAX(version) AS newest, MAX(created_at) AS newest_at \
             FROM prompt_versions GROUP BY prompt_id) v ON v.prompt_id = p.id \
             WHERE ($1 = '' OR p.organization_id = $1) AND substr(p.name, 1, length($2)) = $2{} \
             ORDER BY p.name, p.id LIMIT $3",
            match asked.after {
                None => "",
                Some(_) =>
                    " AND (p.name, p.id) > (SELECT a.name, a.id FROM prompts a WHERE a.id = $4)",
            }
        );
        let query = asked.query(sql, &owner);
        let mut connection = self.pool.acquire().await?;
        let rows = query.fetch_all(&mut connection).await?;
        let read: Result<Vec<PromptSummary>, StoreError> = rows.iter().map(summary).collect();
        let mut page = asked.page(read?, |prompt| prompt.id.clone());
        let ids: BTreeSet<String> = page.rows.iter().map(|it| it.id.clone()).collect();
        let mut labels: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
        let select = "SELECT prompt_id, label, version FROM prompt_labels";
        for row in of_prompts(&mut connection, select, "prompt_id", "label", Some(&ids)).await? {
            let of = labels.entry(row.try_get("prompt_id")?).or_default();
            of.push((row.try_get("label")?, number(row.try_get("version")?)?));
        }
        for prompt in &mut page.rows {
            prompt.labels = labels.remove(&prompt.id).unwrap_or_default();
        }
        Ok(page)
    }

    /// Returns the name of the organization of a prompt, and the prompt. Errors: [`StoreError::NotFound`].
    pub async fn prompt_by_id(&self, id: &str) -> Result<(String, StoredPrompt), StoreError> {
        let sql = "SELECT p.id, p.name, j.name AS project, o.name AS organization FROM prompts p \
                   JOIN organizations o ON o.id = p.organization_id \
                   LEFT JOIN projects j ON j.id = p.project_id WHERE p.id = $1";
        let mut connection = self.pool.acquire().await?;
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id);
        let row = query.fetch_optional(&mut connection).await?;
        let not_found = || StoreError::not_found("prompt", id);
        let row = row.ok_or_else(not_found)?;
        let prompt = read_prompt(&mut connection, &row, row.try_get("project")?).await?;
        match prompt.versions.is_empty() {
            true => Err(not_found()),
            false => Ok((row.try_get("organization")?, prompt)),
        }
    }
}

fn summary(row: &AnyRow) -> Result<PromptSummary, StoreError> {
    Ok(PromptSummary {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        organization: row.try_get("organization")?,
        project: row.try_get("project")?,
        versions: number(row.try_get("versions")?)?,
        newest: (number(row.try_get("newest")?)?, row.try_get("newest_at")?),
        labels: Vec::new(),
    })
}
