//! What an entry may say of a thing: the fields of each kind, and no others.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

/// The kind of a thing whose changes have entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuditKind {
    Organization,
    Project,
    Member,
    Key,
    ProviderKey,
    Prompt,
    /// Credit that was given or taken back.
    Credit,
    /// A client of the MCP server's OAuth.
    OAuthClient,
    /// The journal of a process that may have calls that the store lacks.
    Journal,
    /// What a session, an agent or a tag may spend.
    Budget,
}

/// What is done to a thing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    Create,
    Update,
    Rename,
    Enable,
    Disable,
    Hold,
    Release,
    Archive,
    Revoke,
    Delete,
    /// A prompt got a version.
    Put,
    /// A label of a prompt was moved or removed.
    Label,
    /// Credit was given.
    Add,
    /// Credit was taken back.
    Take,
    /// A journal is waited for no more.
    Forget,
}

/// A field that a text of a key or a secret changes. Neither text is in an entry.
const SECRET: &str = "secret";
/// What a longer value is replaced by its size for. Units: bytes of JSON.
const MAX_VALUE_BYTES: usize = 8 << 10;
/// What longer fields together are replaced by their size for. Units: bytes of JSON.
const MAX_FIELDS_BYTES: usize = 64 << 10;
/// The member that stands for what was too long.
const OMITTED: &str = "omitted_bytes";
/// The beginning of the fields that say where the labels of a prompt are.
const LABELS: &str = "labels.";

impl AuditKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Organization,
        Self::Project,
        Self::Member,
        Self::Key,
        Self::ProviderKey,
        Self::Prompt,
        Self::Credit,
        Self::OAuthClient,
        Self::Journal,
        Self::Budget,
    ];

    /// Returns the word of entries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Project => "project",
            Self::Member => "member",
            Self::Key => "key",
            Self::ProviderKey => "provider_key",
            Self::Prompt => "prompt",
            Self::Credit => "credit",
            Self::OAuthClient => "oauth_client",
            Self::Journal => "journal",
            Self::Budget => "budget",
        }
    }

    /// Returns the fields that entries of this kind may have. None of them holds a secret, a hash of one, or what was sealed.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Organization => &[
                "name",
                "plan",
                "regions",
                "export_content",
                "keep_bodies_until",
                "status",
                "with",
                "balance",
            ],
            Self::Project => &[
                "name",
                "mode",
                "cache_ttl_s",
                "experiments",
                "regions",
                "status",
                "with",
            ],
            Self::Member => &["name", "budget"],
            Self::Key => &[
                "project",
                "label",
                "member",
                "expires",
                "debug",
                "status",
                "last_four",
                SECRET,
                "limit",
                "limit_per",
                "allow_models",
                "deny_models",
                "allow_providers",
                "deny_providers",
                "max_input_price",
                "max_output_price",
                "allow_ips",
                "deny_ips",
                "budgets",
                "allow_passthrough",
                "with",
            ],
            Self::ProviderKey => &["provider", "label", "last_four", SECRET],
            Self::Prompt => &["name", "project", "versions"],
            Self::Credit => &["amount"],
            Self::OAuthClient => &["created_at", "status"],
            Self::Journal => &["last_call_at"],
            Self::Budget => &["granted", "status"],
        }
    }

    fn has_field(self, name: &str) -> bool {
        self.fields().contains(&name) || self == Self::Prompt && name.starts_with(LABELS)
    }
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 15] = [
        Self::Create,
        Self::Update,
        Self::Rename,
        Self::Enable,
        Self::Disable,
        Self::Hold,
        Self::Release,
        Self::Archive,
        Self::Revoke,
        Self::Delete,
        Self::Put,
        Self::Label,
        Self::Add,
        Self::Take,
        Self::Forget,
    ];

    /// Returns the word of entries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Rename => "rename",
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Archive => "archive",
            Self::Revoke => "revoke",
            Self::Delete => "delete",
            Self::Put => "put",
            Self::Label => "label",
            Self::Add => "add",
            Self::Take => "take",
            Self::Forget => "forget",
        }
    }
}

impl fmt::Display for AuditKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The fields of a thing before and after a change, those alone that differ.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EntryFields {
    /// `None`: the thing is new.
    pub before: Option<Map<String, Value>>,
    /// `None`: the thing is gone.
    pub after: Option<Map<String, Value>>,
}

impl EntryFields {
    /// Compares a thing before and after a change. Fields that its kind does not list are left out, and so are those without
    /// a value where the thing is new or gone.
    pub fn compare(
        kind: AuditKind,
        before: Option<&Map<String, Value>>,
        after: Option<&Map<String, Value>>,
    ) -> Self {
        let value = |fields: Option<&Map<String, Value>>, name: &str| {
            fields
                .and_then(|it| it.get(name))
                .cloned()
                .unwrap_or_default()
        };
        let names = before.into_iter().chain(after).flat_map(Map::keys);
        let names: BTreeSet<&String> = names.filter(|name| kind.has_field(name)).collect();
        let (mut was, mut is) = (Map::new(), Map::new());
        for name in names {
            let (then, now) = (value(before, name), value(after, name));
            if then != now {
                was.insert(name.clone(), then);
                is.insert(name.clone(), now);
            }
        }
        Self {
            before: before.map(|_| was),
            after: after.map(|_| is),
        }
    }

    /// Returns whether nothing has changed: there was no such thing and is none, or no field differs.
    pub fn is_same(&self) -> bool {
        match (&self.before, &self.after) {
            (None, None) => true,
            (Some(before), Some(after)) => before.is_empty() && after.is_empty(),
            _ => false,
        }
    }

    /// Returns both as JSON of a bounded size.
    pub fn to_texts(&self) -> [Option<String>; 2] {
        [&self.before, &self.after].map(|fields| fields.as_ref().map(to_text))
    }
}

/// Writes fields as JSON. What is too long is replaced by `{"omitted_bytes": …}`.
fn to_text(fields: &Map<String, Value>) -> String {
    let omitted = |bytes: usize| json!({ OMITTED: bytes });
    let bounded: Map<String, Value> = fields
        .iter()
        .map(|(name, value)| {
            let bytes = value.to_string().len();
            let value = match bytes > MAX_VALUE_BYTES {
                true => omitted(bytes),
                false => value.clone(),
            };
            (name.clone(), value)
        })
        .collect();
    let text = Value::Object(bounded).to_string();
    match text.len() > MAX_FIELDS_BYTES {
        true => omitted(text.len()).to_string(),
        false => text,
    }
}
