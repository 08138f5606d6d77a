//! The names that exist where one was not found, so that a message can say which was meant.

use super::{Store, StoreError};

/// The most names that are read.
const MAX_NAMES: i64 = 1_000;

impl Store {
    /// Returns the names among which one was not found. Other errors have none.
    pub async fn known_names(&self, error: &StoreError) -> Result<Vec<String>, StoreError> {
        let StoreError::NotFound { kind, owner, .. } = error else {
            return Ok(Vec::new());
        };
        let sql = match (*kind, owner) {
            ("organization", None) => {
                "SELECT name FROM organizations WHERE $1 = '' ORDER BY name LIMIT $2"
            }
            ("project", Some(_)) => {
                "SELECT name FROM projects WHERE organization_id = $1 ORDER BY name LIMIT $2"
            }
            ("member", Some(_)) => {
                "SELECT name FROM members WHERE organization_id = $1 ORDER BY name LIMIT $2"
            }
            ("prompt", Some(_)) => {
                "SELECT DISTINCT p.name FROM prompts p JOIN prompt_versions v ON v.prompt_id = p.id \
                 WHERE p.organization_id = $1 ORDER BY p.name LIMIT $2"
            }
            _ => return Ok(Vec::new()),
        };
        let query = sqlx::query_scalar(sql).bind(owner.as_deref().unwrap_or_default());
        let mut connection = self.pool.acquire().await?;
        Ok(query.bind(MAX_NAMES).fetch_all(&mut connection).await?)
    }
}
