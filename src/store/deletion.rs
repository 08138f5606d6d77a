//! Deletes organizations, projects, members and keys for good.
//!
//! Only what is out of use is deleted, so a deletion cuts nothing that runs. Each one first counts what goes with the row; unless
//! it is confirmed, that is all. Sums of usage stay under the ids of keys, but not those of an organization.

use filters::accounts::{KeyState, OrganizationStatus};
use filters::audit::{AuditKind, Verb};
use filters::ledger::LimitScope;
use filters::money::Usd;
use serde_json::json;
use sqlx::{AssertSqlSafe, Row};

use super::feed::DeletedKind;
use super::keys::key_state;
use super::members::member_id;
use super::projects::find_project;
use super::{AccountChange, AccountEditor, Changed, StoreError, ledger, organizations, responses};

/// A deletion: what it gives up, or has given up.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Deletion {
    /// The id of the row.
    pub id: String,
    /// What goes with it, and how many of each there are.
    pub parts: Vec<(&'static str, i64)>,
    /// The credit that an organization has left.
    pub balance: Usd,
}

/// Keys that are deleted together: the SQL of those whose owner is `$1`.
type KeysOf = &'static str;
const ITSELF: KeysOf = "SELECT id FROM api_keys WHERE id = $1";
const OF_PROJECT: KeysOf = "SELECT id FROM api_keys WHERE project_id = $1";
const OF_ORGANIZATION: KeysOf = "SELECT k.id FROM api_keys k JOIN projects p ON p.id = k.project_id \
     WHERE p.organization_id = $1";

/// What goes with keys: a name for people, and the tables that have a row for each.
const WITH_KEYS: [(&str, &str); 3] = [
    ("kept responses", "responses"),
    ("video jobs", "video_jobs"),
    ("grants of MCP clients", "oauth_grants"),
];
/// What goes with an organization besides.
const WITH_ORGANIZATION: [(&str, &str); 4] = [
    ("projects", "projects"),
    ("members", "members"),
    ("provider keys", "provider_keys"),
    ("prompts", "prompts"),
];

impl AccountEditor<'_> {
    /// Deletes a key that is disabled or revoked, with the responses and jobs that only it finds. Without `is_confirmed` it only
    /// counts them.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Kept`].
    pub async fn delete_key(
        self,
        id: &str,
        is_confirmed: bool,
        now_ms: i64,
    ) -> Result<Deletion, StoreError> {
        let mut change = self.change().await?;
        let (state, organization_id) = key_state(&mut change, id).await?;
        if state == KeyState::Active {
            let why = format!("it is in use: `weirgate key disable {id}` ends that");
            return Err(StoreError::kept("key", id, why));
        }
        check_jobs(&mut change, ITSELF, ("key", id), id).await?;
        let deletion = Deletion {
            id: id.to_owned(),
            parts: count_with_keys(&mut change, ITSELF, id).await?,
            ..Deletion::default()
        };
        if is_confirmed {
            let noted = change.note(AuditKind::Key, Verb::Delete, id).await?;
            let noted = noted.with_parts(&deletion.parts);
            let revoked = delete_keys(&mut change, ITSELF, (id, &organization_id), now_ms).await?;
            let deleted = [Changed::Deleted(DeletedKind::Key, id)].into_iter();
            let changed: Vec<_> = deleted
                .chain(revoked.iter().map(|id| Changed::Revoked(id)))
                .collect();
            change.commit(&changed, noted).await?;
        }
        Ok(deletion)
    }

    /// Deletes an archived project with its keys and prompts. Without `is_confirmed` it only counts them.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the project, [`StoreError::Kept`].
    pub async fn delete_project(
        self,
        (organization, name): (&str, &str),
        is_confirmed: bool,
        now_ms: i64,
    ) -> Result<Deletion, StoreError> {
        let mut change = self.change().await?;
        let organization_id = organizations::find(&mut change, organization).await?.id;
        let (id, is_archived) = find_project(&mut change, &organization_id, name).await?;
        if !is_archived {
            let cure = format!("`weirgate project archive --org {organization} {name}`");
            let why = format!("it is in use: {cure} ends that");
            return Err(StoreError::kept("project", name, why));
        }
        check_jobs(&mut change, OF_PROJECT, ("project", name), &id).await?;
        let mut parts = vec![
            ("keys", count(&mut change, OF_PROJECT, &id).await?),
            (
                "prompts",
                count(&mut change, PROMPTS_OF_PROJECT, &id).await?,
            ),
        ];
        parts.extend(count_with_keys(&mut change, OF_PROJECT, &id).await?);
        if is_confirmed {
            let owner = (&*id, &*organization_id);
            let noted = change.note(AuditKind::Project, Verb::Delete, &id).await?;
            let noted = noted.with_parts(&parts);
            let revoked = delete_keys(&mut change, OF_PROJECT, owner, now_ms).await?;
            let prompts = delete_prompts(&mut change, PROMPTS_OF_PROJECT, &id).await?;
            run(&mut change, "DELETE FROM projects WHERE id = $1", &id).await?;
            let deleted = [Changed::Deleted(DeletedKind::Project, &id)].into_iter();
            let changed = deleted.chain(revoked.iter().map(|id| Changed::Revoked(id)));
            let changed = changed.chain(prompts.iter().map(|id| Changed::Prompt(id)));
            let changed: Vec<_> = changed.collect();
            change.commit(&changed, noted).await?;
        }
        Ok(Deletion {
            id,
            parts,
            ..Deletion::default()
        })
    }

    /// Deletes a member without keys, or only looks whether that can be done.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the member, [`StoreError::Kept`].
    pub async fn delete_member(
        self,
        (organization, name): (&str, &str),
        is_confirmed: bool,
    ) -> Result<Deletion, StoreError> {
        let mut change = self.change().await?;
        let organization_id = organizations::find(&mut change, organization).await?.id;
        let id = member_id(&mut change, &organization_id, name).await?;
        let keys = count(
            &mut change,
            "SELECT id FROM api_keys WHERE member_id = $1",
            &id,
        )
        .await?;
        if keys > 0 {
            let why = format!(
                "{keys} keys belong to it: give each another owner with `weirgate key update ID --member NAME`, or none \
                 with `weirgate key update ID --clear member`"
            );
            return Err(StoreError::kept("member", name, why));
        }
        if is_confirmed {
            let noted = change.note(AuditKind::Member, Verb::Delete, &id).await?;
            let scope = LimitScope::Member(id.as_str().into()).to_string();
            let sql = "DELETE FROM limit_counters WHERE organization_id = $1 AND scope = $2";
            let query = sqlx::query(sql).bind(&organization_id).bind(scope);
            query.execute(&mut *change).await?;
            run(&mut change, "DELETE FROM members WHERE id = $1", &id).await?;
            let deleted = [Changed::Deleted(DeletedKind::Member, &id)];
            change.commit(&deleted, noted).await?;
        }
        Ok(Deletion {
            id,
            ..Deletion::default()
        })
    }

    /// Deletes a disabled organization with all that the store has of it. Without `is_confirmed` it only counts that.
    ///
    /// Sums go first, in portions, because they may be many: a deletion that is cut there is done again. Single calls stay for
    /// `store.usage_retention_days`, packed with those of others. A call that comes later is refused
    /// ([`StoreError::DeletedOrganizations`]).
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Kept`].
    pub async fn delete_organization(
        self,
        name: &str,
        is_confirmed: bool,
        now_ms: i64,
    ) -> Result<Deletion, StoreError> {
        let id = check_unused(&mut self.change().await?, name).await?;
        self.return_leases(&id).await?;
        let (_, deletion) = self.begin_deletion(name).await?;
        if !is_confirmed {
            return Ok(deletion);
        }
        self.delete_sums(&id).await?;
        let (mut change, deletion) = self.begin_deletion(name).await?;
        let id = deletion.id.as_str();
        let noted = change
            .note(AuditKind::Organization, Verb::Delete, id)
            .await?;
        let mut noted = noted.with_parts(&deletion.parts);
        noted.add("balance", json!(deletion.balance.to_string()));
        let revoked = delete_keys(&mut change, OF_ORGANIZATION, (id, id), now_ms).await?;
        let prompts = delete_prompts(&mut change, PROMPTS_OF_ORGANIZATION, id).await?;
        let sql = "DELETE FROM members WHERE organization_id = $1 RETURNING id";
        let members = delete_ids(&mut change, sql, id).await?;
        ledger::delete_all(&mut change, id).await?;
        for sql in [
            "DELETE FROM provider_keys WHERE organization_id = $1",
            "DELETE FROM projects WHERE organization_id = $1",
            "DELETE FROM organizations WHERE id = $1",
        ] {
            run(&mut change, sql, id).await?;
        }
        let sql = "INSERT INTO deleted_organizations (id, deleted_at) VALUES ($1, $2)";
        let query = sqlx::query(sql).bind(id).bind(now_ms);
        query.execute(&mut *change).await?;
        let deleted = [
            Changed::Deleted(DeletedKind::Organization, id),
            Changed::ProviderKeys(id),
        ];
        let members = members
            .iter()
            .map(|id| Changed::Deleted(DeletedKind::Member, id));
        let changed = deleted.into_iter().chain(members);
        let changed = changed.chain(revoked.iter().map(|id| Changed::Revoked(id)));
        let changed: Vec<_> = changed
            .chain(prompts.iter().map(|id| Changed::Prompt(id)))
            .collect();
        change.commit(&changed, noted).await?;
        Ok(deletion)
    }

    /// Begins the deletion of an organization: checks that nothing of it is in use, and counts what it has.
    async fn begin_deletion(self, name: &str) -> Result<(AccountChange, Deletion), StoreError> {
        let mut change = self.change().await?;
        let id = check_unused(&mut change, name).await?;
        let credit = ledger::lock_credit(&mut change, &id).await?;
        if credit.leased > Usd::ZERO {
            let why = format!(
                "servers hold back {} USD for calls of it that run: try again once they have ended. What a server held \
                 that has died is free after half a minute",
                credit.leased
            );
            return Err(StoreError::kept("organization", name, why));
        }
        let mut parts = Vec::new();
        for (what, table) in WITH_ORGANIZATION {
            let sql = format!("SELECT id FROM {table} WHERE organization_id = $1");
            parts.push((what, count(&mut change, &sql, &id).await?));
        }
        parts.push(("keys", count(&mut change, OF_ORGANIZATION, &id).await?));
        parts.extend(count_with_keys(&mut change, OF_ORGANIZATION, &id).await?);
        let deletion = Deletion {
            id,
            parts,
            balance: credit.granted.minus(credit.settled),
        };
        Ok((change, deletion))
    }
}

/// Checks that an organization is disabled and that none of its jobs runs. Returns its id.
async fn check_unused(change: &mut AccountChange, name: &str) -> Result<String, StoreError> {
    let organization = organizations::find(change, name).await?;
    if organization.status != OrganizationStatus::Disabled {
        let why = format!("it is in use: `weirgate org disable {name}` ends that");
        return Err(StoreError::kept("organization", name, why));
    }
    let id = organization.id;
    check_jobs(change, OF_ORGANIZATION, ("organization", name), &id).await?;
    Ok(id)
}

async fn run(change: &mut AccountChange, sql: &str, owner: &str) -> Result<(), StoreError> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned())).bind(owner);
    query.execute(&mut **change).await?;
    Ok(())
}

/// Deletes rows and returns their ids.
async fn delete_ids(
    change: &mut AccountChange,
    sql: &str,
    owner: &str,
) -> Result<Vec<String>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned())).bind(owner);
    let rows = query.fetch_all(&mut **change).await?;
    rows.iter().map(|row| Ok(row.try_get("id")?)).collect()
}

/// Counts the rows of a statement.
async fn count(change: &mut AccountChange, rows: &str, owner: &str) -> Result<i64, StoreError> {
    let sql = format!("SELECT COUNT(*) FROM ({rows}) AS counted");
    let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(owner);
    Ok(query.fetch_one(&mut **change).await?)
}

/// Counts what goes with keys.
async fn count_with_keys(
    change: &mut AccountChange,
    keys: KeysOf,
    owner: &str,
) -> Result<Vec<(&'static str, i64)>, StoreError> {
    let mut parts = Vec::new();
    for (what, table) in WITH_KEYS {
        let sql = format!("SELECT id FROM {table} WHERE key_id IN ({keys})");
        parts.push((what, count(change, &sql, owner).await?));
    }
    Ok(parts)
}

/// Refuses while a job of these keys goes on: its end is charged to them.
async fn check_jobs(
    change: &mut AccountChange,
    keys: KeysOf,
    (kind, name): (&'static str, &str),
    owner: &str,
) -> Result<(), StoreError> {
    let mut open = 0;
    for table in ["video_jobs", "response_jobs"] {
        let sql = format!("SELECT id FROM {table} WHERE is_open = 1 AND key_id IN ({keys})");
        open += count(change, &sql, owner).await?;
    }
    match open {
        0 => Ok(()),
        open => {
            let why = format!("{open} of its jobs still run: try again once they have ended");
            Err(StoreError::kept(kind, name, why))
        }
    }
}

/// Deletes the keys of an owner with all that only they find. Returns the grants of OAuth that this revokes.
///
/// The revocations stay, because a key of the same text may be made again.
async fn delete_keys(
    change: &mut AccountChange,
    keys: KeysOf,
    (owner, organization_id): (&str, &str),
    now_ms: i64,
) -> Result<Vec<String>, StoreError> {
    let sql = format!(
        "INSERT INTO oauth_revocations (id, revoked_at) SELECT g.id, $2 FROM oauth_grants g \
         WHERE g.key_id IN ({keys}) \
         ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at RETURNING id"
    );
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner).bind(now_ms);
    let rows = query.fetch_all(&mut **change).await?;
    let revoked: Result<Vec<String>, StoreError> =
        rows.iter().map(|row| Ok(row.try_get("id")?)).collect();
    let sql = format!(
        "DELETE FROM limit_counters WHERE organization_id = $2 \
         AND scope IN (SELECT CAST($3 AS TEXT) || id FROM ({keys}) AS owned)"
    );
    let of_key = LimitScope::Key("".into()).to_string();
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
    let query = query.bind(organization_id).bind(of_key);
    query.execute(&mut **change).await?;
    responses::delete_of_keys(change.unlimited()?, keys, owner).await?;
    for table in ["oauth_codes", "oauth_grants", "video_jobs"] {
        let sql = format!("DELETE FROM {table} WHERE key_id IN ({keys})");
        run(change, &sql, owner).await?;
    }
    let sql = format!("DELETE FROM api_keys WHERE id IN ({keys})");
    run(change, &sql, owner).await?;
    revoked
}

/// The SQL of prompts by their owner.
const PROMPTS_OF_PROJECT: &str = "SELECT id FROM prompts WHERE project_id = $1";
const PROMPTS_OF_ORGANIZATION: &str = "SELECT id FROM prompts WHERE organization_id = $1";

/// Deletes prompts with their versions and labels. Returns their ids.
async fn delete_prompts(
    change: &mut AccountChange,
    prompts: &str,
    owner: &str,
) -> Result<Vec<String>, StoreError> {
    for table in ["prompt_labels", "prompt_versions"] {
        let sql = format!("DELETE FROM {table} WHERE prompt_id IN ({prompts})");
        run(change, &sql, owner).await?;
    }
    let sql = format!("DELETE FROM prompts WHERE id IN ({prompts}) RETURNING id");
    delete_ids(change, &sql, owner).await
}
