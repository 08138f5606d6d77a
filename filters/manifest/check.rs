//! Checks a file of accounts and brings its values into the form in which they are compared.

use std::collections::BTreeSet;
use std::fmt::Display;

use jiff::Timestamp;

use super::{
    DeclaredKey, DeclaredOrganization, DeclaredProject, DeclaredPrompt, MAX_THINGS, Manifest,
    ManifestFault,
};
use crate::accounts::{AllowedRegions, TermsFile, check_account_name, normal_limit};
use crate::decisions::credentials::is_sdk_key;
use crate::models::prompts::reference::{LATEST, PRODUCTION, check_label, check_prompt_name};
use crate::money::Usd;

/// The maximum length of an id.
const MAX_ID_BYTES: usize = 64;

/// The faults found so far.
#[derive(Default)]
struct Check {
    faults: Vec<ManifestFault>,
}

/// Checks a manifest, whose prompts have their contents, and returns the mistakes. Amounts, times, regions and lists get one
/// spelling each.
pub fn check(manifest: &mut Manifest) -> Vec<ManifestFault> {
    let mut check = Check::default();
    let count = manifest.count();
    if count > MAX_THINGS {
        let message = format!("the file names {count} things; accepted are {MAX_THINGS}");
        check.refuse("organizations", message, "split it into several files");
        return check.faults;
    }
    let all = &mut manifest.organizations;
    for (index, organization) in all.iter_mut().enumerate() {
        check.organization(&format!("organizations[{index}]"), organization);
    }
    let named = |it: &DeclaredOrganization| (it.id.clone(), it.name.clone());
    check.unique("organizations", all, "name", |it| named(it).1);
    check.unique("organizations", all, "id", |it| named(it).0);
    check.unique_keys(all);
    check.faults
}

impl Check {
    fn refuse(&mut self, path: &str, message: impl Into<String>, cure: &str) {
        let fault = ManifestFault::new(path.to_owned(), message, cure);
        self.faults.push(fault);
    }

    /// Records what a parser says against a text.
    fn take<T, E: Display>(&mut self, path: &str, parsed: Result<T, E>) -> Option<T> {
        parsed
            .map_err(|error| self.refuse(path, error.to_string(), ""))
            .ok()
    }

    fn organization(&mut self, at: &str, it: &mut DeclaredOrganization) {
        self.id(&format!("{at}.id"), &it.id);
        self.name(&format!("{at}.name"), &it.name, false);
        self.regions(&format!("{at}.regions"), &mut it.regions);
        for (index, project) in it.projects.iter_mut().enumerate() {
            self.project(&format!("{at}.projects[{index}]"), project);
        }
        for (index, member) in it.members.iter_mut().enumerate() {
            let at = format!("{at}.members[{index}]");
            self.id(&format!("{at}.id"), &member.id);
            self.name(&format!("{at}.name"), &member.name, false);
            if let Some(budget) = &mut member.budget {
                self.usd(&format!("{at}.budget"), budget);
            }
        }
        for (index, key) in it.keys.iter_mut().enumerate() {
            self.key(&format!("{at}.keys[{index}]"), key);
        }
        for (index, key) in it.provider_keys.iter().enumerate() {
            let at = format!("{at}.provider_keys[{index}]");
            self.name(&format!("{at}.provider"), &key.provider, false);
            self.name(&format!("{at}.label"), &key.label, false);
        }
        for (index, prompt) in it.prompts.iter_mut().enumerate() {
            self.prompt(&format!("{at}.prompts[{index}]"), prompt);
        }
        let list = |name: &str| format!("{at}.{name}");
        self.unique(&list("projects"), &it.projects, "name", |it| {
            it.name.clone()
        });
        self.unique(&list("projects"), &it.projects, "id", |it| it.id.clone());
        self.unique(&list("members"), &it.members, "name", |it| it.name.clone());
        self.unique(&list("members"), &it.members, "id", |it| it.id.clone());
        self.unique(&list("provider_keys"), &it.provider_keys, "label", |it| {
            format!("{}/{}", it.provider, it.label)
        });
        self.unique(&list("prompts"), &it.prompts, "name", |it| {
            format!("{}/{}", it.project, it.name)
        });
    }

    fn project(&mut self, at: &str, it: &mut DeclaredProject) {
        self.id(&format!("{at}.id"), &it.id);
        self.name(&format!("{at}.name"), &it.name, false);
        self.regions(&format!("{at}.regions"), &mut it.regions);
        it.cache_ttl_s = it.cache_ttl_s.filter(|ttl| *ttl > 0);
        if !it.experiments.is_empty() && !is_sdk_key(&it.experiments) {
            let message = format!("{:?} is no SDK key", it.experiments);
            let cure = "write 1 to 128 of A-Z, a-z, 0-9, +, /, =, _ and -, and a token behind `:`";
            self.refuse(&format!("{at}.experiments"), message, cure);
        }
    }

    fn key(&mut self, at: &str, it: &mut DeclaredKey) {
        self.id(&format!("{at}.id"), &it.id);
        self.name(&format!("{at}.label"), &it.label, true);
        if !it.expires.is_empty() {
            let parsed = it.expires.parse::<Timestamp>();
            if let Some(time) = self.take(&format!("{at}.expires"), parsed) {
                it.expires = to_time(time.as_millisecond());
            }
        }
        match it.terms.check() {
            Ok(_) => it.terms = normal_terms(&it.terms),
            Err(error) => self.refuse(&format!("{at}.{}", error.field), error.problem, ""),
        }
    }

    fn prompt(&mut self, at: &str, it: &mut DeclaredPrompt) {
        self.take(&format!("{at}.name"), check_prompt_name(&it.name));
        if let [only] = it.versions.as_mut_slice() {
            only.labels
                .get_or_insert_with(|| vec![PRODUCTION.to_owned()]);
        }
        let (mut labels, mut contents) = (BTreeSet::new(), BTreeSet::new());
        for (index, version) in it.versions.iter().enumerate() {
            let at = format!("{at}.versions[{index}]");
            if !contents.insert(&version.content) {
                self.refuse(&at, "the same version stands above", "take it out");
            }
            for label in version.labels.iter().flatten() {
                let at = format!("{at}.labels");
                if label == LATEST {
                    let message = "`latest` is always the newest version and cannot be moved";
                    self.refuse(&at, message, "take it out");
                } else {
                    self.take(&at, check_label(label));
                }
                if !labels.insert(label) {
                    let message = format!("{label:?} stands at another version too");
                    self.refuse(&at, message, "leave it at one of them");
                }
            }
        }
    }

    /// Checks an id, which may be absent.
    fn id(&mut self, at: &str, id: &str) {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let begins_well =
            id.is_empty() || id.starts_with(|char: char| char.is_ascii_alphanumeric());
        if id.len() > MAX_ID_BYTES || !begins_well || !id.bytes().all(is_inner) {
            let message = format!("{id:?} is no id");
            let cure = "write up to 64 of A-Z, a-z, 0-9, _, . and -, a letter or a digit first";
            self.refuse(at, message, cure);
        }
    }

    fn name(&mut self, at: &str, name: &str, may_be_empty: bool) {
        if let Err(problem) = check_account_name(name, may_be_empty) {
            self.refuse(at, format!("{name:?} {problem}"), "choose another name");
        }
    }

    fn regions(&mut self, at: &str, regions: &mut String) {
        if regions.is_empty() {
            return;
        }
        if let Some(parsed) = self.take(at, regions.parse::<AllowedRegions>()) {
            *regions = parsed.to_string();
        }
    }

    fn usd(&mut self, at: &str, amount: &mut String) {
        if let Some(usd) = self.take(at, Usd::parse(amount)) {
            *amount = usd.to_string();
        }
    }

    /// Refuses what stands in a list twice. An empty text is no value.
    fn unique<T>(&mut self, list: &str, all: &[T], field: &str, value: impl Fn(&T) -> String) {
        let mut known = BTreeSet::new();
        for (index, it) in all.iter().enumerate() {
            let value = value(it);
            if value.is_empty() || known.insert(value.clone()) {
                continue;
            }
            let message = format!("{value:?} stands in the list twice");
            self.refuse(
                &format!("{list}[{index}].{field}"),
                message,
                "take one of them out",
            );
        }
    }

    /// Refuses ids of keys that several organizations use.
    fn unique_keys(&mut self, all: &[DeclaredOrganization]) {
        let mut known = BTreeSet::new();
        for (at, organization) in all.iter().enumerate() {
            for (index, key) in organization.keys.iter().enumerate() {
                if !known.insert(&key.id) {
                    let path = format!("organizations[{at}].keys[{index}].id");
                    let message = format!("{:?} is the id of a key above", key.id);
                    self.refuse(&path, message, "give each key an id of its own");
                }
            }
        }
    }
}

/// Writes a time as files have it. Units: unix milliseconds.
pub fn to_time(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms);
    time.map_or_else(|_| String::new(), |time| time.to_string())
}

/// Returns terms with one spelling of each amount, and with sorted lists.
pub fn normal_terms(terms: &TermsFile) -> TermsFile {
    let amount =
        |text: &String| Usd::parse(text).map_or_else(|_| text.clone(), |it| it.to_string());
    let mut normal = terms.clone();
    normal.limit = terms.limit.as_ref().map(amount);
    normal.max_input_price = terms.max_input_price.as_ref().map(amount);
    normal.max_output_price = terms.max_output_price.as_ref().map(amount);
    let budgets = &mut normal.budgets;
    let tags = budgets.tags.values_mut();
    for limits in tags.chain([&mut budgets.session, &mut budgets.agent]) {
        limits.iter_mut().for_each(|it| *it = normal_limit(it));
        limits.sort();
    }
    normal
        .limit_per
        .values_mut()
        .for_each(|it| *it = amount(it));
    for list in [
        &mut normal.allow_models,
        &mut normal.deny_models,
        &mut normal.allow_providers,
        &mut normal.deny_providers,
        &mut normal.allow_ips,
        &mut normal.deny_ips,
        &mut normal.allow_passthrough,
    ] {
        list.sort();
        list.dedup();
    }
    normal
}
