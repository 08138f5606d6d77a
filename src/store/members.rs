//! Members: the owners of keys, with a shared budget each.

use filters::audit::{AuditKind, Verb};
use filters::money::Usd;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::{
    AccountChange, AccountEditor, Changed, Noted, Store, StoreError, check_name, new_id,
    organizations, rename,
};

/// A member of an organization: a person or a service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// `mem_` and a uuid.
    pub id: String,
    /// Its name, unique in the organization.
    pub name: String,
    /// The total that all its keys may spend together; `None`: no limit.
    pub budget: Option<Usd>,
    pub created_at_ms: i64,
}

/// The SQL that reads members.
pub(super) const SELECT: &str = "SELECT id, name, budget, created_at FROM members";

impl Store {
    /// Returns all members of an organization, by name.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn members(&self, organization: &str) -> Result<Vec<Member>, StoreError> {
        let sql = format!("{SELECT} WHERE organization_id = $1 ORDER BY name");
        self.read_of(organization, AssertSqlSafe(sql), read).await
    }

    /// Returns a member of an organization.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the member.
    pub async fn member(&self, organization: &str, name: &str) -> Result<Member, StoreError> {
        let organization_id = self.organization(organization).await?.id;
        let sql = format!("{SELECT} WHERE organization_id = $1 AND name = $2");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(&organization_id);
        let query = query.bind(name);
        let row = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        let row = row.ok_or_else(|| StoreError::not_found_of("member", name, &organization_id));
        read(&row?)
    }
}

impl AccountEditor<'_> {
    /// Creates a member.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for the organization,
    /// [`StoreError::AlreadyExists`], [`StoreError::InvalidName`].
    pub async fn add_member(
        self,
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
            .map_err(|error| StoreError::from_insert(error, "member", name))?;
        let noted = Noted::new(AuditKind::Member, Verb::Create, &member.id);
        let changed = [Changed::Member(&member.id)];
        change.commit(&changed, noted).await?;
        Ok(member)
    }

    /// Renames a member.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the member, [`StoreError::AlreadyExists`],
    /// [`StoreError::InvalidName`].
    pub async fn rename_member(
        self,
        (organization, name): (&str, &str),
        new_name: &str,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization_id = organizations::find(&mut change, organization).await?.id;
        let id = member_id(&mut change, &organization_id, name).await?;
        let noted = change.note(AuditKind::Member, Verb::Rename, &id).await?;
        let sql = "UPDATE members SET name = $2 WHERE id = $1";
        rename(&mut change, sql, &id, ("member", new_name)).await?;
        change.commit(&[Changed::Member(&id)], noted).await
    }

    /// Sets or removes a member's budget.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the member.
    pub async fn set_budget(
        self,
        organization: &str,
        name: &str,
        budget: Option<Usd>,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let id = member_id(&mut change, &organization.id, name).await?;
        let noted = change.note(AuditKind::Member, Verb::Update, &id).await?;
        let sql = "UPDATE members SET budget = $2 WHERE id = $1";
        let budget = budget.map(|usd| usd.to_string());
        let query = sqlx::query(sql).bind(&id).bind(budget);
        query.execute(&mut *change).await?;
        change.commit(&[Changed::Member(&id)], noted).await
    }
}

/// Returns the id of a member. Errors: [`StoreError::NotFound`].
pub(super) async fn member_id(
    change: &mut AccountChange,
    organization_id: &str,
    name: &str,
) -> Result<String, StoreError> {
    let sql = "SELECT id FROM members WHERE organization_id = $1 AND name = $2";
    let found = sqlx::query_scalar(sql).bind(organization_id).bind(name);
    let id: Option<String> = found.fetch_optional(&mut **change).await?;
    id.ok_or_else(|| StoreError::not_found_of("member", name, organization_id))
}

/// Parses a budget of its column.
pub(super) fn budget(text: Option<&str>) -> Result<Option<Usd>, StoreError> {
    let budget = text.map(Usd::parse).transpose();
    budget.map_err(|_| StoreError::Damaged("budget"))
}

/// Reads a row of [`SELECT`].
pub(super) fn read(row: &AnyRow) -> Result<Member, StoreError> {
    Ok(Member {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        budget: budget(row.try_get::<Option<String>, _>("budget")?.as_deref())?,
        created_at_ms: row.try_get("created_at")?,
    })
}
