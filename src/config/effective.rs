//! What a configuration amounts to: its values, and the contents of the secrets and files that it names. Two are compared
//! by it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::catalog::CatalogDigest;
use super::document;
use super::env;
use super::file::{File, SecretRef};
use super::schema::schema;
use super::secret::{self, SecretBytes};
use super::walk::{Walk, join_key, member_schema, schema_format, schema_type};

/// The datafile of the sandbox, which is no file.
const SANDBOX: &str = "sandbox";
/// The bytes of a hash that are shown.
const SHOWN_HASH_BYTES: usize = 16;
const FILE_CHUNK_BYTES: usize = 65_536;

/// What a configuration amounts to.
///
/// It has no `Debug`, because it holds secrets.
pub struct Effective {
    /// All values, without null. Lists whose entries have names are sorted by them.
    pub(super) values: Json,
    /// The secrets that were found, by key.
    pub(super) secrets: BTreeMap<String, SecretBytes>,
    /// The hashes of the files that were found, by key. The catalogue is not among them.
    pub(super) files: BTreeMap<String, [u8; 32]>,
    pub(super) catalog: CatalogDigest,
}

impl Effective {
    /// Collects the values, and reads the secrets and files.
    ///
    /// `checked` is the checked document, which has literal secrets, and `effective` has the defaults, too.
    pub(super) fn read(
        (checked, effective): (&Json, &Json),
        schema: &Json,
        env: &BTreeMap<String, String>,
    ) -> Self {
        let mut secrets = BTreeMap::new();
        visit(checked, schema, "", &mut |key, value, schema| {
            if schema_format(schema) == "secret"
                && let Ok(reference) = serde_json::from_value::<SecretRef>(value.clone())
                && let Ok(found) = secret::find_bytes(&reference, env)
            {
                secrets.insert(key.to_owned(), found);
            }
        });
        let mut files = BTreeMap::new();
        visit(effective, schema, "", &mut |key, value, schema| {
            let kind = FileKind::parse(schema, value).filter(|kind| *kind != FileKind::Catalog);
            if let Some((kind, name)) = kind.zip(value.as_str())
                && let Ok(hash) = hash_file(&kind.path(name, env))
            {
                files.insert(key.to_owned(), hash);
            }
        });
        Self {
            values: canonical(effective, schema),
            secrets,
            files,
            catalog: CatalogDigest::default(),
        }
    }

    /// Returns a hash of the configuration in hexadecimal form. Equal configurations have equal hashes, whatever the order
    /// and the comments of their files. The variables and files of clouds' own sign-ins are no part of it.
    ///
    /// `key` prevents that a short secret is guessed from the hash.
    pub fn hash(&self, key: &[u8; 32]) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
            return String::new();
        };
        let mut add = |bytes: &[u8]| {
            mac.update(&(bytes.len() as u64).to_be_bytes());
            mac.update(bytes);
        };
        add(self.values.to_string().as_bytes());
        add(&(self.secrets.len() as u64).to_be_bytes());
        for (key, secret) in &self.secrets {
            add(key.as_bytes());
            add(secret.expose());
        }
        for (key, hash) in &self.files {
            add(key.as_bytes());
            add(hash);
        }
        add(&self.catalog.hash());
        let hash = mac.finalize().into_bytes();
        let mut hex = String::with_capacity(2 * SHOWN_HASH_BYTES);
        for byte in hash.iter().take(SHOWN_HASH_BYTES) {
            _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

/// What a named file holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FileKind {
    Catalog,
    Datafile,
    /// A certificate or its key, which are read again by themselves.
    Certificate,
}

impl FileKind {
    /// Returns the kind of the file that this value names, or `None` if the value names none.
    fn parse(schema: &Json, value: &Json) -> Option<Self> {
        match schema.get("x-file").and_then(Json::as_str)? {
            "catalogue" => Some(Self::Catalog),
            "datafile" if value == SANDBOX => None,
            "datafile" => Some(Self::Datafile),
            _ => Some(Self::Certificate),
        }
    }

    fn path(self, name: &str, env: &BTreeMap<String, String>) -> PathBuf {
        match self {
            Self::Certificate => secret::find_file(name, env),
            Self::Catalog | Self::Datafile => PathBuf::from(name),
        }
    }
}

/// Returns the files that a configuration is made of beside its own: the catalogue, datafiles and secrets, each at the paths
/// at which it is searched. Certificates are not among them. A text with problems names the files of its valid part.
pub(super) fn named_files(text: &str, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let schema = schema();
    let (mut root, _) = document::parse(text);
    _ = env::apply_overrides(&mut root, env, &schema);
    let checked = Walk::default().check_document(&root, &schema);
    let file: File = serde_json::from_value(checked).unwrap_or_default();
    let effective = serde_json::to_value(&file).unwrap_or_default();
    let mut paths = Vec::new();
    visit(&effective, &schema, "", &mut |_, value, schema| {
        if schema_format(schema) == "secret"
            && let Some(name) = value.get("file").and_then(Json::as_str)
        {
            paths.extend(secret::candidate_paths(name, env));
        }
        let kind = FileKind::parse(schema, value).filter(|kind| *kind != FileKind::Certificate);
        if let Some((kind, name)) = kind.zip(value.as_str()) {
            paths.push(kind.path(name, env));
        }
    });
    paths
}

/// Calls `found` for each value that is no table and no list of tables, and for each secret, with its key and schema.
fn visit(value: &Json, schema: &Json, key: &str, found: &mut dyn FnMut(&str, &Json, &Json)) {
    match value {
        Json::Null => {}
        Json::Object(members) if schema_format(schema) != "secret" => {
            for (name, member) in members {
                let inner = member_schema(schema, name);
                visit(member, inner, &join_key(key, name), found);
            }
        }
        Json::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Json::Null);
            let names = identities(items, schema).unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                let place = match names.get(index) {
                    Some(name) => entry_key(key, name),
                    None => format!("{key}[{index}]"),
                };
                visit(item, inner, &place, found);
            }
        }
        _ => found(key, value, schema),
    }
}

/// Returns the key of an entry of a list that has this name.
pub(super) fn entry_key(list: &str, name: &str) -> String {
    format!("{list}[{name:?}]")
}

/// Returns the names of the entries of a list of tables, if each has a name of its own.
pub(super) fn identities(items: &[Json], schema: &Json) -> Option<Vec<String>> {
    let member = schema.get("x-identity").and_then(Json::as_str)?;
    let names = items.iter().map(|item| match item.get(member) {
        Some(Json::String(name)) => Some(name.clone()),
        Some(Json::Number(number)) => Some(number.to_string()),
        _ => None,
    });
    let names: Vec<String> = names.collect::<Option<_>>()?;
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    let is_unique = sorted.windows(2).all(|pair| pair.first() != pair.last());
    is_unique.then_some(names)
}

/// Returns a value without null, with lists of named entries in the order of the names.
fn canonical(value: &Json, schema: &Json) -> Json {
    match value {
        Json::Object(members) if schema_type(schema) == "object" => {
            let members = members.iter().filter(|(_, member)| !member.is_null());
            let members = members.map(|(name, member)| {
                let inner = member_schema(schema, name);
                (name.clone(), canonical(member, inner))
            });
            Json::Object(members.collect())
        }
        Json::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Json::Null);
            let canonical = items.iter().map(|item| canonical(item, inner));
            match identities(items, schema) {
                None => canonical.collect(),
                Some(names) => {
                    let named: BTreeMap<_, _> = names.into_iter().zip(canonical).collect();
                    named.into_values().collect()
                }
            }
        }
        other => other.clone(),
    }
}

/// Hashes the content of a file.
///
/// Errors: it cannot be read, or is not a regular file, which could be read without end.
pub(super) fn hash_file(path: &Path) -> io::Result<[u8; 32]> {
    let is_regular = std::fs::metadata(path)?.is_file();
    if !is_regular {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = std::fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; FILE_CHUNK_BYTES];
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(chunk.get(..length).unwrap_or_default());
    }
}
