//! Accounts as pages, with what is left of their limits: for people who look through many of them.
//!
//! A page begins behind the last row of the one before, so each costs the same however many there are before it. The command line
//! lists whole organizations instead.

use std::sync::Arc;

use filters::ledger::LimitScope;
use filters::money::limit_use::{LimitName, LimitUse};
use filters::money::tally::Spent;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row};

use super::ledger::{ScopeSpent, StoreAccount};
use super::{
    Credit, IssuedKey, Member, Organization, Project, Store, StoreError, keys, members,
    organizations, projects,
};
use crate::config::Plans;

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PageQuery<'a> {
    /// The beginning of the names that are wanted; of a key that of its label, or its id or its last four characters.
    pub search: &'a str,
    /// [`AccountPage::next`] of the page before; `None`: the first page.
    pub after: Option<&'a str>,
    pub limit: usize,
}

/// A part of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AccountPage<T> {
    pub rows: Vec<T>,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<String>,
}

/// An organization, and what it has left.
#[derive(Clone, Debug, PartialEq)]
pub struct OrganizationUse {
    pub organization: Organization,
    pub credit: Credit,
    /// The shares of its plan; none without a plan.
    pub limits: Vec<LimitUse>,
}

/// A member, and what its keys have spent.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberUse {
    pub member: Member,
    pub spent: Spent,
    /// Its budget.
    pub limit: Option<LimitUse>,
}

/// A key, and what it has spent.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyUse {
    pub key: IssuedKey,
    pub spent: Spent,
    /// All its limits.
    pub limits: Vec<LimitUse>,
}

/// Which keys of an organization are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyFilter<'a> {
    /// The name of their project.
    pub project: Option<&'a str>,
    /// The name of their owner.
    pub member: Option<&'a str>,
}

/// The SQL of a name that begins with `$2`. The name's index gives their order; where few begin so, those that do not are passed over
/// in it.
const BEGINS: &str = "substr(name, 1, length($2)) = $2";
/// The same of a key.
const IS_KEY: &str = "(substr(k.label, 1, length($2)) = $2 OR k.last_four = $2 OR k.id = $2)";

impl Store {
    /// Returns a page of all organizations, by name.
    pub async fn organizations_page(
        &self,
        asked: PageQuery<'_>,
        plans: &Plans,
        now_ms: i64,
    ) -> Result<AccountPage<OrganizationUse>, StoreError> {
        let sql = format!(
            "SELECT {}, plan_since FROM organizations WHERE $1 = '' AND {BEGINS}{} ORDER BY name LIMIT $3",
            organizations::COLUMNS,
            asked.behind("name >")
        );
        let query = asked.query(sql, "");
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let read = |row: &AnyRow| -> Result<(Organization, i64), StoreError> {
            Ok((organizations::read(row)?, row.try_get("plan_since")?))
        };
        let read: Result<Vec<_>, StoreError> = rows.iter().map(read).collect();
        let page = asked.page(read?, |(organization, _)| organization.name.clone());
        let ids: Vec<&str> = page.rows.iter().map(|(it, _)| &*it.id).collect();
        let accounts = self.stored_accounts(&ids).await?;
        let spent = self.plans_spent(&ids).await?;
        let rows = page.rows.iter().zip(spent);
        let rows = rows.map(|((organization, since_ms), spent)| {
            let limits = plans.allowance(organization.plan).map(|plan| {
                let spent = spent.so_far(now_ms, *since_ms).plan;
                LimitUse::of_plan(&plan, &spent, *since_ms, now_ms)
            });
            OrganizationUse {
                organization: organization.clone(),
                credit: credit(accounts.get(&organization.id)),
                limits: limits.into_iter().flatten().collect(),
            }
        });
        Ok(AccountPage {
            rows: rows.collect(),
            next: page.next,
        })
    }

    /// Returns an organization with what it has left. Errors: [`StoreError::NotFound`].
    pub async fn organization_use(
        &self,
        name: &str,
        plans: &Plans,
        now_ms: i64,
    ) -> Result<OrganizationUse, StoreError> {
        let sql = format!(
            "SELECT {}, plan_since FROM organizations WHERE name = $1",
            organizations::COLUMNS
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(name);
        let row = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        let row = row.ok_or_else(|| StoreError::not_found("organization", name))?;
        let (organization, since_ms) = (organizations::read(&row)?, row.try_get("plan_since")?);
        let id = [&*organization.id];
        let credit = credit(self.stored_accounts(&id).await?.get(&organization.id));
        let spent = self.plans_spent(&id).await?.into_iter().next();
        let spent = spent.unwrap_or_default().so_far(now_ms, since_ms).plan;
        let limits = plans
            .allowance(organization.plan)
            .map(|plan| LimitUse::of_plan(&plan, &spent, since_ms, now_ms));
        Ok(OrganizationUse {
            organization,
            credit,
            limits: limits.into_iter().flatten().collect(),
        })
    }

    /// Returns a page of the projects of an organization, by name, including archived ones.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn projects_page(
        &self,
        organization: &str,
        asked: PageQuery<'_>,
    ) -> Result<AccountPage<Project>, StoreError> {
        let id = self.organization(organization).await?.id;
        let sql = format!(
            "{} WHERE organization_id = $1 AND {BEGINS}{} ORDER BY name LIMIT $3",
            projects::SELECT,
            asked.behind("name >")
        );
        let query = asked.query(sql, &id);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let projects: Result<Vec<Project>, StoreError> = rows.iter().map(projects::read).collect();
        Ok(asked.page(projects?, |project| project.name.clone()))
    }

    /// Returns a page of the members of an organization, by name.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn members_page(
        &self,
        organization: &str,
        asked: PageQuery<'_>,
        now_ms: i64,
    ) -> Result<AccountPage<MemberUse>, StoreError> {
        let id = self.organization(organization).await?.id;
        let sql = format!(
            "{} WHERE organization_id = $1 AND {BEGINS}{} ORDER BY name LIMIT $3",
            members::SELECT,
            asked.behind("name >")
        );
        let query = asked.query(sql, &id);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let members: Result<Vec<Member>, StoreError> = rows.iter().map(members::read).collect();
        let page = asked.page(members?, |member| member.name.clone());
        Ok(AccountPage {
            rows: self.members_with_uses(&id, page.rows, now_ms).await?,
            next: page.next,
        })
    }

    /// Returns a member of an organization with what its keys have spent. Errors: [`StoreError::NotFound`].
    pub async fn member_use(
        &self,
        organization: &str,
        name: &str,
        now_ms: i64,
    ) -> Result<MemberUse, StoreError> {
        let member = self.member(organization, name).await?;
        let id = self.organization(organization).await?.id;
        let of = self.members_with_uses(&id, vec![member], now_ms).await?;
        let of = of.into_iter().next();
        of.ok_or_else(|| StoreError::not_found_of("member", name, &id))
    }

    /// Adds what the keys of members of an organization have spent.
    async fn members_with_uses(
        &self,
        organization_id: &str,
        members: Vec<Member>,
        now_ms: i64,
    ) -> Result<Vec<MemberUse>, StoreError> {
        let scopes = members
            .iter()
            .map(|it| LimitScope::Member(Arc::from(&*it.id)));
        let scopes: Vec<_> = scopes.collect();
        let spent = self.stored_spent(organization_id, &scopes).await?;
        let with = |(member, spent): (Member, ScopeSpent)| {
            let spent = spent.so_far(now_ms, 0).key;
            let limit = member.budget;
            let limit = limit.map(|usd| LimitUse::lasting(LimitName::Budget, usd, spent.total));
            MemberUse {
                member,
                spent,
                limit,
            }
        };
        Ok(members.into_iter().zip(spent).map(with).collect())
    }

    /// Returns a page of the keys of an organization, the newest first, including revoked ones. Cost: where few keys fit the
    /// search, all of the organization are read.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization, the project and the member; [`StoreError::Damaged`].
    pub async fn keys_page(
        &self,
        organization: &str,
        filter: KeyFilter<'_>,
        asked: PageQuery<'_>,
        now_ms: i64,
    ) -> Result<AccountPage<KeyUse>, StoreError> {
        let id = self.organization(organization).await?.id;
        let (of, owner) = match (filter.project, filter.member) {
            (Some(project), _) => (
                "k.project_id",
                self.project(organization, project).await?.id,
            ),
            (None, Some(member)) => ("k.member_id", self.member(organization, member).await?.id),
            (None, None) => ("p.organization_id", id.clone()),
        };
        let sql = format!(
            "{} WHERE {of} = $1 AND {IS_KEY}{} ORDER BY k.id DESC LIMIT $3",
            keys::SELECT,
            asked.behind("k.id <")
        );
        let query = asked.query(sql, &owner);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let read: Result<Vec<IssuedKey>, StoreError> = rows.iter().map(keys::read).collect();
        let page = asked.page(read?, |key| key.id.clone());
        Ok(AccountPage {
            rows: self.with_uses(&id, page.rows, now_ms).await?,
            next: page.next,
        })
    }

    /// Returns a key with what it has spent, and the name of its organization. Errors: [`StoreError::NotFound`].
    pub async fn key_use(&self, id: &str, now_ms: i64) -> Result<(String, KeyUse), StoreError> {
        let (organization, key) = self.key(id).await?;
        let organization_id = self.organization(&organization).await?.id;
        let of = self.with_uses(&organization_id, vec![key], now_ms).await?;
        let of = of.into_iter().next();
        of.map(|of| (organization, of))
            .ok_or_else(|| StoreError::not_found("key", id))
    }

    /// Adds what keys of an organization have spent.
    async fn with_uses(
        &self,
        organization_id: &str,
        keys: Vec<IssuedKey>,
        now_ms: i64,
    ) -> Result<Vec<KeyUse>, StoreError> {
        let scopes = keys.iter().map(|key| LimitScope::Key(Arc::from(&*key.id)));
        let scopes: Vec<_> = scopes.collect();
        let spent = self.stored_spent(organization_id, &scopes).await?;
        let with = |(key, spent): (IssuedKey, ScopeSpent)| {
            let spent = spent.so_far(now_ms, 0).key;
            let limits = key.terms.check().map_err(StoreError::InvalidTerm)?.limits;
            Ok(KeyUse {
                limits: LimitUse::of_key(&limits, &spent, now_ms),
                key,
                spent,
            })
        };
        keys.into_iter().zip(spent).map(with).collect()
    }
}

impl<'a> PageQuery<'a> {
    /// Returns the SQL of the rows behind the page before. `compares` is the column with its comparison.
    fn behind(&self, compares: &str) -> String {
        match self.after {
            None => String::new(),
            Some(_) => format!(" AND {compares} $4"),
        }
    }

    /// Makes the query: `$1` is the owner of the rows, `$2` the search, `$3` one row more than the page has, and `$4` the last row
    /// of the page before.
    pub(super) fn query(&self, sql: String, owner: &'a str) -> Query<'a, Any, AnyArguments> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
        let query = query.bind(self.search).bind(limit.saturating_add(1));
        match self.after {
            None => query,
            Some(after) => query.bind(after),
        }
    }

    /// Makes the page of its rows, of which there is one too many if it is not the last. `place` returns the place of a row.
    pub(super) fn page<T>(&self, mut rows: Vec<T>, place: impl Fn(&T) -> String) -> AccountPage<T> {
        let has_more = rows.len() > self.limit;
        rows.truncate(self.limit);
        let next = rows.last().filter(|_| has_more).map(place);
        AccountPage { rows, next }
    }
}

fn credit(account: Option<&StoreAccount>) -> Credit {
    let account = account.copied().unwrap_or_default();
    Credit {
        granted: account.granted,
        used: account.settled,
        reserved: account.leased,
    }
}
