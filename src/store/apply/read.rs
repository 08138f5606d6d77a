//! Reads accounts in the form in which files declare them.

use std::collections::{BTreeMap, BTreeSet};

use filters::accounts::{KeyHash, Pepper, TermsFile};
use filters::manifest::{
    DeclaredKey, DeclaredMember, DeclaredOrganization, DeclaredProject, DeclaredPrompt,
    DeclaredProviderKey, DeclaredVersion, Manifest, normal_terms, to_time,
};
use filters::money::Usd;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::super::StoreError;
use super::super::cipher::Cipher;
use super::super::connections::Connected;
use super::super::keys::{is_debug, read_terms};

/// Reads all organizations with what belongs to them, or those that a manifest names by id or name.
pub(super) async fn manifest(
    connection: &mut Connected,
    pepper: &Pepper,
    scope: Option<&Manifest>,
) -> Result<Manifest, StoreError> {
    let sql =
        "SELECT id, name, plan, regions, export_content, status FROM organizations ORDER BY name";
    let rows = sqlx::query(sql).fetch_all(&mut *connection).await?;
    let named = scope.map(|scope| {
        let all = scope.organizations.iter();
        let names = all.flat_map(|it| [it.id.as_str(), it.name.as_str()]);
        names.collect::<BTreeSet<&str>>()
    });
    let cipher = Cipher::new(pepper)?;
    let mut organizations = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut organization = organization(row)?;
        let is_named = |named: &BTreeSet<&str>| {
            named.contains(organization.id.as_str()) || named.contains(organization.name.as_str())
        };
        // Whoever else has a name of the file is seen, too.
        if named.as_ref().is_none_or(is_named) {
            fill(connection, (pepper, &cipher), &mut organization).await?;
            organizations.push(organization);
        }
    }
    Ok(Manifest { organizations })
}

/// Reads what belongs to an organization.
async fn fill(
    connection: &mut Connected,
    (pepper, cipher): (&Pepper, &Cipher),
    organization: &mut DeclaredOrganization,
) -> Result<(), StoreError> {
    let of = |sql: &'static str| sqlx::query(sql).bind(organization.id.clone());
    let sql = "SELECT id, name, mode, cache_ttl_s, experiments, regions, status FROM projects \
               WHERE organization_id = $1 ORDER BY name";
    let projects = of(sql).fetch_all(&mut *connection).await?;
    let sql = "SELECT id, name, budget FROM members WHERE organization_id = $1 ORDER BY name";
    let members = of(sql).fetch_all(&mut *connection).await?;
    let sql = "SELECT k.id, p.name AS project, k.label, m.name AS member, k.expires_at, k.debug, \
               k.terms, k.hash, k.revoked_at, k.disabled_at FROM api_keys k \
               JOIN projects p ON p.id = k.project_id LEFT JOIN members m ON m.id = k.member_id \
               WHERE p.organization_id = $1 ORDER BY k.id";
    let keys = of(sql).fetch_all(&mut *connection).await?;
    let sql = "SELECT id, provider, label, sealed FROM provider_keys \
               WHERE organization_id = $1 ORDER BY provider, label";
    let provider_keys = of(sql).fetch_all(&mut *connection).await?;
    organization.prompts = prompts(connection, &organization.id).await?;
    organization.projects = projects.iter().map(project).collect::<Result<_, _>>()?;
    organization.members = members.iter().map(member).collect::<Result<_, _>>()?;
    organization.keys = keys.iter().map(key).collect::<Result<_, _>>()?;
    for row in &provider_keys {
        let mut key = DeclaredProviderKey {
            provider: row.try_get("provider")?,
            label: row.try_get("label")?,
            id: row.try_get("id")?,
            ..DeclaredProviderKey::default()
        };
        // One that was sealed under another secret is worthless: any text is another one.
        let text = cipher.decrypt(&key.id, &row.try_get::<Vec<u8>, _>("sealed")?);
        key.hash = text.ok().map(|text| pepper.hash_secret(text.as_bytes()));
        organization.provider_keys.push(key);
    }
    Ok(())
}

/// Reads a column that may have no value, which is the empty text in files.
fn text(row: &AnyRow, column: &str) -> Result<String, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    Ok(text.unwrap_or_default())
}

fn organization(row: &AnyRow) -> Result<DeclaredOrganization, StoreError> {
    Ok(DeclaredOrganization {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        plan: row.try_get("plan")?,
        regions: text(row, "regions")?,
        export_content: row.try_get::<i64, _>("export_content")? != 0,
        status: row.try_get("status")?,
        ..DeclaredOrganization::default()
    })
}

fn project(row: &AnyRow) -> Result<DeclaredProject, StoreError> {
    let cache_ttl_s = super::super::projects::cache_ttl_s(row.try_get("cache_ttl_s")?)?;
    Ok(DeclaredProject {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        mode: row.try_get("mode")?,
        cache_ttl_s: cache_ttl_s.filter(|ttl| *ttl > 0),
        experiments: text(row, "experiments")?,
        regions: text(row, "regions")?,
        status: row.try_get("status")?,
    })
}

fn member(row: &AnyRow) -> Result<DeclaredMember, StoreError> {
    let budget: Option<String> = row.try_get("budget")?;
    let budget = super::super::members::budget(budget.as_deref())?;
    Ok(DeclaredMember {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        budget: budget.as_ref().map(Usd::to_string),
    })
}

fn key(row: &AnyRow) -> Result<DeclaredKey, StoreError> {
    let hash: Vec<u8> = row.try_get("hash")?;
    let hash: [u8; 32] = hash.try_into().map_err(|_| StoreError::Damaged("hash"))?;
    let expires_at_ms: Option<i64> = row.try_get("expires_at")?;
    let disabled_at_ms: Option<i64> = row.try_get("disabled_at")?;
    let terms: TermsFile = read_terms(row)?;
    Ok(DeclaredKey {
        id: row.try_get("id")?,
        project: row.try_get("project")?,
        label: row.try_get("label")?,
        member: text(row, "member")?,
        expires: expires_at_ms.map(to_time).unwrap_or_default(),
        debug: is_debug(row)?,
        status: match disabled_at_ms {
            Some(_) => "disabled".to_owned(),
            None => "active".to_owned(),
        },
        secret: None,
        terms: normal_terms(&terms),
        hash: Some(KeyHash::from_bytes(hash)),
        is_revoked: row.try_get::<Option<i64>, _>("revoked_at")?.is_some(),
    })
}

async fn prompts(
    connection: &mut Connected,
    organization_id: &str,
) -> Result<Vec<DeclaredPrompt>, StoreError> {
    let of = |sql: &'static str| sqlx::query(sql).bind(organization_id.to_owned());
    let sql = "SELECT p.id, p.name, j.name AS project FROM prompts p \
               LEFT JOIN projects j ON j.id = p.project_id \
               WHERE p.organization_id = $1 ORDER BY p.name, p.id";
    let rows = of(sql).fetch_all(&mut *connection).await?;
    let sql = "SELECT v.prompt_id, v.version, v.content FROM prompt_versions v \
               JOIN prompts p ON p.id = v.prompt_id WHERE p.organization_id = $1 ORDER BY v.version";
    let versions = of(sql).fetch_all(&mut *connection).await?;
    let sql = "SELECT l.prompt_id, l.version, l.label FROM prompt_labels l \
               JOIN prompts p ON p.id = l.prompt_id WHERE p.organization_id = $1 ORDER BY l.label";
    let labels = of(sql).fetch_all(&mut *connection).await?;
    let mut labels_of: BTreeMap<(String, i64), Vec<String>> = BTreeMap::new();
    for row in &labels {
        let version = (row.try_get("prompt_id")?, row.try_get("version")?);
        labels_of
            .entry(version)
            .or_default()
            .push(row.try_get("label")?);
    }
    let mut versions_of: BTreeMap<String, Vec<DeclaredVersion>> = BTreeMap::new();
    for row in &versions {
        let id: String = row.try_get("prompt_id")?;
        let version: i64 = row.try_get("version")?;
        let labels = labels_of.remove(&(id.clone(), version)).unwrap_or_default();
        versions_of.entry(id).or_default().push(DeclaredVersion {
            content: row.try_get("content")?,
            labels: Some(labels),
            number: u64::try_from(version).map_err(|_| StoreError::Damaged("version"))?,
            ..DeclaredVersion::default()
        });
    }
    let mut prompts = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: String = row.try_get("id")?;
        prompts.push(DeclaredPrompt {
            name: row.try_get("name")?,
            project: text(row, "project")?,
            versions: versions_of.remove(&id).unwrap_or_default(),
            id,
        });
    }
    Ok(prompts)
}
