//! What has to change so that the store says what a file says.

use std::collections::BTreeMap;

use super::changes::{Action, PlannedChange, PlannedRow, changed, fields, removal};
use super::planner::{Match, Named, Owners, Planner, ids, new_names, unnamed};
use super::prompts::plan_prompts;
use super::{
    ACTIVE, DeclaredKey, DeclaredMember, DeclaredOrganization, DeclaredProject, DeclaredPrompt,
    FIRST_PROJECT, Manifest, ManifestFault,
};

/// Compares a file with the store and returns the changes in the order in which they are made. `stored` has the organizations
/// that the file names, and all if the plan is to prune; both were checked. `new_id` makes an id for a prefix.
///
/// With `is_pruning`, what the file does not name is taken out of use: organizations are disabled, projects archived, keys
/// revoked, the rest is deleted.
///
/// Errors: what the store has against the file.
pub fn plan(
    declared: &Manifest,
    stored: &Manifest,
    is_pruning: bool,
    new_id: &mut dyn FnMut(&'static str) -> String,
) -> Result<Vec<PlannedChange>, Vec<ManifestFault>> {
    if is_pruning && declared.organizations.is_empty() {
        let message = "the file names no organization, so everything would be taken out of use";
        let cure = "leave --prune out, or name the organizations that stay";
        return Err(vec![ManifestFault::new(String::new(), message, cure)]);
    }
    let mut planner = Planner {
        is_pruning,
        new_id,
        changes: Vec::new(),
        removals: Vec::new(),
        faults: Vec::new(),
    };
    let (declared, stored) = (&declared.organizations, &stored.organizations);
    let matched = planner.match_all("organizations", declared, stored);
    for it in &matched {
        planner.change_organization(it);
    }
    let in_file_order: BTreeMap<usize, &Match<'_, DeclaredOrganization>> =
        matched.iter().map(|it| (it.index, it)).collect();
    for it in in_file_order.values() {
        planner.plan_inside(it);
    }
    if is_pruning {
        for organization in unnamed(stored, &matched).filter(|it| it.status == ACTIVE) {
            planner.disable(organization);
        }
    }
    if !planner.faults.is_empty() {
        return Err(planner.faults);
    }
    planner.changes.append(&mut planner.removals);
    Ok(planner.changes)
}

impl Planner<'_> {
    fn change_organization(&mut self, it: &Match<'_, DeclaredOrganization>) {
        let row = |organization: &DeclaredOrganization| DeclaredOrganization {
            id: it.id.clone(),
            projects: Vec::new(),
            members: Vec::new(),
            keys: Vec::new(),
            provider_keys: Vec::new(),
            prompts: Vec::new(),
            ..organization.clone()
        };
        let fields = changed(it.stored.map(fields), fields(it.declared));
        let name = it.declared.name.clone();
        let path = format!("organizations[{}]", it.index);
        let row = PlannedRow::Organization(row(it.declared));
        self.push::<DeclaredOrganization>(it.stored.is_some(), (&it.id, name), (fields, row), path);
    }

    /// Plans what belongs to an organization.
    fn plan_inside(&mut self, it: &Match<'_, DeclaredOrganization>) {
        let at = format!("organizations[{}]", it.index);
        let none = DeclaredOrganization::default();
        let (declared, stored) = (it.declared, it.stored.unwrap_or(&none));
        let first = DeclaredProject {
            name: FIRST_PROJECT.to_owned(),
            mode: "platform".to_owned(),
            status: ACTIVE.to_owned(),
            ..DeclaredProject::default()
        };
        let is_named = declared.projects.iter().any(|it| it.name == FIRST_PROJECT);
        let known = stored.projects.iter().find(|it| it.name == FIRST_PROJECT);
        let mut first_id = known.map(|it| it.id.clone());
        if it.stored.is_none() && !is_named {
            let id = (self.new_id)(DeclaredProject::PREFIX);
            self.change_project((&it.id, &declared.name), None, (&id, &first), String::new());
            first_id = Some(id);
        }
        let projects = self.match_all(
            &format!("{at}.projects"),
            &declared.projects,
            &stored.projects,
        );
        for project in &projects {
            let path = format!("{at}.projects[{}]", project.index);
            let (now, then) = (project.stored, (project.id.as_str(), project.declared));
            self.change_project((&it.id, &declared.name), now, then, path);
        }
        let members = self.plan_members(&at, (&it.id, declared), &stored.members);
        let mut owners = Owners {
            organization: &declared.name,
            organization_id: &it.id,
            projects: ids(&projects, &stored.projects, self.is_pruning),
            members: ids(&members, &stored.members, self.is_pruning),
        };
        if let Some(first) = first_id {
            let known = owners.projects.entry(FIRST_PROJECT.to_owned());
            known.or_insert(first);
        }
        let (keys, prompts) = following(stored, &new_names(&projects), &new_names(&members));
        self.plan_keys(&at, &owners, &declared.keys, &keys);
        self.plan_provider_keys(&at, &owners, &declared.provider_keys, &stored.provider_keys);
        plan_prompts(self, &at, &owners, &declared.prompts, &prompts);
        if self.is_pruning {
            self.prune_members(&owners, unnamed(&stored.members, &members));
            self.archive(&owners, unnamed(&stored.projects, &projects));
        }
    }

    fn plan_members<'a>(
        &mut self,
        at: &str,
        (organization_id, organization): (&str, &'a DeclaredOrganization),
        stored: &'a [DeclaredMember],
    ) -> Vec<Match<'a, DeclaredMember>> {
        let list = format!("{at}.members");
        let members = self.match_all(&list, &organization.members, stored);
        for member in &members {
            let fields = changed(member.stored.map(fields), fields(member.declared));
            let row = DeclaredMember {
                id: member.id.clone(),
                ..member.declared.clone()
            };
            let name = format!("{}/{}", organization.name, row.name);
            let path = format!("{list}[{}]", member.index);
            let change = (fields, PlannedRow::Member(organization_id.to_owned(), row));
            let is_stored = member.stored.is_some();
            self.push::<DeclaredMember>(is_stored, (&member.id, name), change, path);
        }
        members
    }

    fn change_project(
        &mut self,
        (organization_id, organization): (&str, &str),
        stored: Option<&DeclaredProject>,
        (id, declared): (&str, &DeclaredProject),
        path: String,
    ) {
        let fields = changed(stored.map(fields), fields(declared));
        let row = DeclaredProject {
            id: id.to_owned(),
            ..declared.clone()
        };
        let name = format!("{organization}/{}", declared.name);
        let change = (fields, PlannedRow::Project(organization_id.to_owned(), row));
        self.push::<DeclaredProject>(stored.is_some(), (id, name), change, path);
    }

    fn prune_members<'m>(
        &mut self,
        owners: &Owners<'_>,
        unnamed: impl Iterator<Item = &'m DeclaredMember>,
    ) {
        for member in unnamed {
            let name = format!("{}/{}", owners.organization, member.name);
            let row = PlannedRow::Member(owners.organization_id.to_owned(), member.clone());
            self.removals
                .push(removal("member", (&member.id, name), row));
        }
    }

    fn archive<'p>(
        &mut self,
        owners: &Owners<'_>,
        unnamed: impl Iterator<Item = &'p DeclaredProject>,
    ) {
        let is_pruned = |it: &&DeclaredProject| it.status == ACTIVE && it.name != FIRST_PROJECT;
        for project in unnamed.filter(is_pruned) {
            let row = DeclaredProject {
                status: "archived".to_owned(),
                ..project.clone()
            };
            self.removals.push(PlannedChange {
                action: Action::Update,
                kind: DeclaredProject::KIND,
                id: project.id.clone(),
                name: format!("{}/{}", owners.organization, project.name),
                fields: changed(Some(fields(project)), fields(&row)),
                row: PlannedRow::Project(owners.organization_id.to_owned(), row),
                path: String::new(),
            });
        }
    }

    fn disable(&mut self, organization: &DeclaredOrganization) {
        let row = DeclaredOrganization {
            status: "disabled".to_owned(),
            ..organization.clone()
        };
        self.removals.push(PlannedChange {
            action: Action::Update,
            kind: DeclaredOrganization::KIND,
            id: organization.id.clone(),
            name: organization.name.clone(),
            fields: changed(Some(fields(organization)), fields(&row)),
            row: PlannedRow::Organization(row),
            path: String::new(),
        });
    }
}

/// Returns the keys and prompts of the store with the names that their projects and members will have.
fn following(
    stored: &DeclaredOrganization,
    projects: &BTreeMap<&str, &str>,
    members: &BTreeMap<&str, &str>,
) -> (Vec<DeclaredKey>, Vec<DeclaredPrompt>) {
    let new = |names: &BTreeMap<&str, &str>, name: &String| match names.get(name.as_str()) {
        Some(new) => (*new).to_owned(),
        None => name.clone(),
    };
    let keys = stored.keys.iter().map(|key| DeclaredKey {
        project: new(projects, &key.project),
        member: new(members, &key.member),
        ..key.clone()
    });
    let prompts = stored.prompts.iter().map(|prompt| DeclaredPrompt {
        project: new(projects, &prompt.project),
        ..prompt.clone()
    });
    (keys.collect(), prompts.collect())
}
