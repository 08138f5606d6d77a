//! Members: who owns keys, and how much they may spend together.

use filters::money::Usd;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{AccountChange, Store, StoreError, check_name, new_id, organizations};

/// A member of an organization: a person or a service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// `mem_` and a uuid.
    pub id: String,
    /// Its name, which no other of the organization has.
    pub name: String,
    /// The most that all of its keys may ever spend together; none: any amount.
    pub budget: Option<Usd>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
}

impl Store {
    /// Makes a member.
    ///
    /// Errors: [`StoreError::Absent`] or [`StoreError::Closed`] for the organization, [`StoreError::Taken`], [`StoreError::BadName`].
    pub async fn add_member(
        &self,
        organization: &str,
        name: &str,
        now_ms: i64,
    ) -> Result<Member, StoreError> {
        check_name("member", name, false)?;
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let member = Member {
            id: new_id("mem"),
            name: name.to_owned(),
            budget: None,
            created_at_ms: now_ms,
        };
        let sql = "INSERT INTO members (id, organization_id, name, created_at) \
                   VALUES ($1, $2, $3, $4)";
        sqlx::query(sql)
            .bind(&member.id)
            .bind(organization.id)
            .bind(name)
            .bind(now_ms)
            .execute(&mut *change)
            .await
            .map_err(|error| StoreError::taken(error, "member", name))?;
        change.commit().await?;
        Ok(member)
    }

    /// All members of an organization, by name.
    ///
    /// Errors: [`StoreError::Absent`] for the organization.
    pub async fn members(&self, organization: &str) -> Result<Vec<Member>, StoreError> {
        let id = self.organization(organization).await?.id;
        let sql = "SELECT id, name, budget, created_at FROM members \
                   WHERE organization_id = $1 ORDER BY name";
        let rows = sqlx::query(sql).bind(id).fetch_all(&self.pool).await?;
        rows.iter().map(read).collect()
    }

    /// Sets or lifts a member's budget.
    ///
    /// Errors: [`StoreError::Absent`] for the organization or the member.
    pub async fn set_budget(
        &self,
        organization: &str,
        name: &str,
        budget: Option<Usd>,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let id = member_id(&mut change, &organization.id, name).await?;
        let sql = "UPDATE members SET budget = $2 WHERE id = $1";
        let budget = budget.map(|usd| usd.to_string());
        let update = sqlx::query(sql).bind(id).bind(budget);
        update.execute(&mut *change).await?;
        Ok(change.commit().await?)
    }
}

/// The id of a member. Errors: [`StoreError::Absent`].
pub(super) async fn member_id(
    change: &mut AccountChange,
    organization_id: &str,
    name: &str,
) -> Result<String, StoreError> {
    let sql = "SELECT id FROM members WHERE organization_id = $1 AND name = $2";
    let found = sqlx::query_scalar(sql).bind(organization_id).bind(name);
    let id: Option<String> = found.fetch_optional(&mut **change).await?;
    id.ok_or_else(|| StoreError::absent("member", name))
}

/// A budget as it was stored.
pub(super) fn budget(row: &AnyRow) -> Result<Option<Usd>, StoreError> {
    let text: Option<String> = row.try_get("budget")?;
    let budget = text.as_deref().map(Usd::parse).transpose();
    budget.map_err(|_| StoreError::Damaged("budget"))
}

fn read(row: &AnyRow) -> Result<Member, StoreError> {
    Ok(Member {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        budget: budget(row)?,
        created_at_ms: row.try_get("created_at")?,
    })
}
