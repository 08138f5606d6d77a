//! What changes of API keys and of provider keys.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::{
    Action, PlannedChange, PlannedKey, PlannedRow, changed, fields, removal, replaced_secret,
};
use super::planner::{Owners, Planner};
use super::{DeclaredKey, DeclaredProviderKey};

impl Planner<'_> {
    /// Plans the keys of an organization.
    pub(super) fn plan_keys(
        &mut self,
        at: &str,
        owners: &Owners<'_>,
        declared: &[DeclaredKey],
        stored: &[DeclaredKey],
    ) {
        let known: BTreeMap<&str, &DeclaredKey> =
            stored.iter().map(|it| (it.id.as_str(), it)).collect();
        for (index, key) in declared.iter().enumerate() {
            let now = known.get(key.id.as_str()).copied();
            self.plan_key(format!("{at}.keys[{index}]"), owners, key, now);
        }
        let named: BTreeSet<&str> = declared.iter().map(|it| it.id.as_str()).collect();
        let unnamed = stored.iter().filter(|it| !named.contains(it.id.as_str()));
        for key in unnamed.filter(|it| self.is_pruning && !it.is_revoked) {
            let row = PlannedRow::Key(PlannedKey {
                organization_id: owners.organization_id.to_owned(),
                project_id: String::new(),
                member_id: None,
                key: key.clone(),
                is_text_new: false,
            });
            let name = format!("{}/{}", owners.organization, key.id);
            self.removals.push(removal("key", (&key.id, name), row));
        }
    }

    fn plan_key(
        &mut self,
        path: String,
        owners: &Owners<'_>,
        key: &DeclaredKey,
        now: Option<&DeclaredKey>,
    ) {
        if now.is_some_and(|it| it.is_revoked) {
            let message = format!("the key `{}` is revoked, which is final", key.id);
            self.refuse(format!("{path}.id"), message, "give the key another id");
            return;
        }
        let project_id = self.find_owner(&path, "project", &key.project, &owners.projects);
        let member_id = match key.member.as_str() {
            "" => Some(None),
            name => {
                let found = self.find_owner(&path, "member", name, &owners.members);
                found.map(Some)
            }
        };
        let (Some(project_id), Some(member_id)) = (project_id, member_id) else {
            return;
        };
        let is_text_new = match (now, &key.hash) {
            (Some(now), Some(hash)) => now.hash.as_ref() != Some(hash),
            (now, _) => now.is_none(),
        };
        let mut fields = changed(now.map(fields), fields(key));
        if now.is_some() && is_text_new {
            fields.push(replaced_secret());
        }
        if now.is_some() && fields.is_empty() {
            return;
        }
        self.changes.push(PlannedChange {
            action: now.map_or(Action::Create, |_| Action::Update),
            kind: "key",
            id: key.id.clone(),
            name: format!("{}/{}", owners.organization, key.id),
            fields,
            row: PlannedRow::Key(PlannedKey {
                organization_id: owners.organization_id.to_owned(),
                project_id,
                member_id,
                key: key.clone(),
                is_text_new,
            }),
            path,
        });
    }

    /// Plans the provider keys of an organization.
    pub(super) fn plan_provider_keys(
        &mut self,
        at: &str,
        owners: &Owners<'_>,
        declared: &[DeclaredProviderKey],
        stored: &[DeclaredProviderKey],
    ) {
        let place = |it: &DeclaredProviderKey| (it.provider.clone(), it.label.clone());
        let known: BTreeMap<_, _> = stored.iter().map(|it| (place(it), it)).collect();
        let named: BTreeSet<_> = declared.iter().map(place).collect();
        let name = |it: &DeclaredProviderKey| {
            format!("{}/{}/{}", owners.organization, it.provider, it.label)
        };
        for (index, key) in declared.iter().enumerate() {
            let path = format!("{at}.provider_keys[{index}]");
            let now = known.get(&place(key)).copied();
            let fields = match (now, &key.hash) {
                (Some(_), None) => continue,
                (Some(now), hash) if now.hash == *hash => continue,
                (Some(_), Some(_)) => vec![replaced_secret()],
                (None, Some(_)) => changed(None, fields(key)),
                (None, None) => {
                    let message = "the store has no such key, so its text is needed".to_owned();
                    self.refuse(
                        path,
                        message,
                        "add secret = { env = \"NAME\" } or { file = \"PATH\" }",
                    );
                    continue;
                }
            };
            let id = now.map_or_else(|| (self.new_id)("pk"), |it| it.id.clone());
            let row = DeclaredProviderKey {
                id: id.clone(),
                ..key.clone()
            };
            self.changes.push(PlannedChange {
                action: now.map_or(Action::Create, |_| Action::Update),
                kind: "provider key",
                id,
                name: name(key),
                fields,
                row: PlannedRow::ProviderKey(owners.organization_id.to_owned(), row),
                path,
            });
        }
        let unnamed = stored.iter().filter(|it| !named.contains(&place(it)));
        for key in unnamed.filter(|_| self.is_pruning) {
            let row = PlannedRow::ProviderKey(owners.organization_id.to_owned(), key.clone());
            self.removals
                .push(removal("provider key", (&key.id, name(key)), row));
        }
    }
}
