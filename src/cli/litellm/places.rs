//! Where a deployment is, and with what it signs in.

use http::Uri;
use toml::{Table, Value};

use super::fields::{Field, Fields};
use super::providers::{ModelName, ProviderRow};
use super::references::{Reading, is_variable};

/// Where calls go, and with which key.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Endpoint {
    /// The address; `None`: the usual one.
    pub base_url: Option<String>,
    /// The region of a cloud.
    pub region: Option<String>,
    /// The variable of the key; `None`: it needs none, or signs in otherwise.
    pub key: Option<String>,
}

/// The place of a deployment.
pub(super) struct DeploymentPlace {
    /// What is configured for its provider beside the endpoint.
    pub settings: Table,
    pub endpoint: Endpoint,
}

/// How calls to a cloud are signed, and the fields that say otherwise.
struct SignIn {
    cloud: &'static str,
    /// Fields, each with the variable that the cloud's sign-in reads here.
    fields: &'static [(&'static str, &'static str)],
}

const AWS: SignIn = SignIn {
    cloud: "aws",
    fields: &[
        ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
        ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
        ("aws_session_token", "AWS_SESSION_TOKEN"),
        ("aws_profile_name", "AWS_PROFILE"),
        ("aws_role_name", "AWS_ROLE_ARN"),
        ("aws_session_name", "AWS_ROLE_SESSION_NAME"),
        ("aws_web_identity_token", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        ("aws_sts_endpoint", "AWS_ENDPOINT_URL_STS"),
    ],
};
const ENTRA: SignIn = SignIn {
    cloud: "entra",
    fields: &[
        ("tenant_id", "AZURE_TENANT_ID"),
        ("client_id", "AZURE_CLIENT_ID"),
        ("client_secret", "AZURE_CLIENT_SECRET"),
    ],
};
const GOOGLE: SignIn = SignIn {
    cloud: "google",
    fields: &[("vertex_credentials", "GOOGLE_APPLICATION_CREDENTIALS")],
};

/// The region that calls go to where nothing names one. Our choice: it is the one of the shipped catalogue's prices.
const AWS_REGION: &str = "us-east-1";

/// Reads where a deployment is. Returns `None`, with a finding, where that is not known.
pub(super) fn read<'n>(
    entry: &Field<'n>,
    model: &ModelName,
    params: &mut Fields<'n>,
    reading: &mut Reading<'_>,
) -> Option<DeploymentPlace> {
    let address = params.take("api_base").or_else(|| params.take("base_url"));
    let address = match address {
        Some(field) => Some(read_address(&field, model, reading)?),
        None => None,
    };
    let mut settings = model
        .row
        .settings(is_elsewhere(address.as_deref(), model.row));
    let mut endpoint = Endpoint {
        base_url: address,
        ..Endpoint::default()
    };
    read_headers(&mut settings, params, reading);
    match model.row.shipped() {
        Some("azure") => read_azure(
            entry,
            (&mut settings, &mut endpoint),
            params,
            (model, reading),
        )?,
        Some("bedrock") => read_bedrock(model, (&mut settings, &mut endpoint), params, reading),
        Some("vertex") => read_vertex(entry, (&mut settings, &mut endpoint), params, reading)?,
        _ => {
            endpoint.base_url = endpoint.base_url.or_else(|| model.row.base_url());
            endpoint.key = read_key(model.row, params, reading);
            if endpoint.base_url.is_none() && model.row.shipped().is_none() {
                let what = "has no api_base, so nothing can be asked";
                let cure = "add it, and import again";
                reading.findings.left_out(entry, what, cure);
                return None;
            }
        }
    }
    Some(DeploymentPlace { settings, endpoint })
}

/// Returns whether an address is that of another server than the provider's own, or one below its name.
pub(super) fn is_elsewhere(address: Option<&str>, row: &ProviderRow) -> bool {
    let host = |url: &str| {
        let uri: Uri = url.parse().ok()?;
        uri.host().map(str::to_ascii_lowercase)
    };
    let usual = row.base_url().and_then(|url| host(&url));
    let Some((address, usual)) = address.and_then(host).zip(usual) else {
        return false;
    };
    address != usual && !address.ends_with(&format!(".{usual}"))
}

/// Returns the variable of the key: the one of `api_key`, or the provider's usual one.
fn read_key(
    row: &ProviderRow,
    params: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) -> Option<String> {
    match params.take("api_key") {
        Some(field) => reading.secret(&field, row.prefix),
        None => Some(row.key.to_owned()).filter(|key| !key.is_empty()),
    }
}

/// Returns the address without what is added to it here: paths of operations, and versions that a kind adds itself.
fn read_address(field: &Field<'_>, model: &ModelName, reading: &mut Reading<'_>) -> Option<String> {
    let text = reading.text(field)?;
    let url = text.trim().trim_end_matches('/');
    let parsed: Option<Uri> = url.parse().ok();
    let parsed = parsed.filter(|uri| {
        let has_user = uri
            .authority()
            .is_some_and(|host| host.as_str().contains('@'));
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        is_http && !has_user && uri.host().is_some_and(|host| !host.is_empty())
    });
    let Some(uri) = parsed else {
        let what = "is no address of a server, or has a user in it";
        let cure = "write it as https://HOST/v1, and import again";
        reading.findings.left_out(field, what, cure);
        return None;
    };
    let root = format!(
        "{}://{}",
        uri.scheme_str().unwrap_or("https"),
        uri.authority()?.as_str()
    );
    let kept = match model.row.shipped() {
        // The resource alone: paths of deployments are added.
        Some("azure") => root,
        _ => {
            let path = uri.path().trim_end_matches('/');
            let ends = [
                "/chat/completions",
                "/completions",
                "/embeddings",
                "/messages",
            ];
            let path = ends
                .iter()
                .find_map(|end| path.strip_suffix(end))
                .unwrap_or(path);
            let path = match model.row.shipped() {
                Some("anthropic") => path.trim_end_matches("/v1"),
                Some("google") => path.trim_end_matches("/v1beta"),
                _ => path,
            };
            let is_ollama = model.row.prefix.starts_with("ollama") && path.is_empty();
            let path = if is_ollama { "/v1" } else { path };
            format!("{root}{path}")
        }
    };
    if kept != url && uri.query().is_some() {
        let what = "what stands behind ? is not part of an address here";
        reading.findings.differs(
            field,
            what,
            "use api_version, or headers, if the server needs it",
        );
    }
    Some(kept)
}

/// Reads headers that are added to each request. Those that hold credentials have no place in a configuration.
fn read_headers(settings: &mut Table, params: &mut Fields<'_>, reading: &mut Reading<'_>) {
    let mut headers = Table::new();
    for name in ["extra_headers", "headers"] {
        let given = Fields::read(params.take(name), &mut reading.findings);
        for (header, field) in given.into_rest() {
            let lower = header.to_ascii_lowercase();
            let words = ["key", "token", "secret", "auth", "cookie", "password"];
            let is_secret = words.iter().any(|word| lower.contains(word));
            let is_plain = http::HeaderName::from_bytes(header.as_bytes()).is_ok();
            let owned = [
                "host",
                "content-",
                "accept-encoding",
                "connection",
                "transfer-encoding",
                "upgrade",
            ];
            let is_owned = owned.iter().any(|start| lower.starts_with(start));
            if is_secret || is_owned || !is_plain || is_variable(&field) {
                let what = "a header is a fixed text here, and no secret";
                let cure = "use auth_header and keys of the provider, if it is its key";
                reading.findings.left_out(&field, what, cure);
            } else if let Some(text) = field.to_text() {
                headers.insert(lower, Value::from(text));
            } else {
                reading.findings.wrong_kind(&field, "a text");
            }
        }
    }
    if let Some(field) = params.take("organization")
        && let Some(text) = reading.text(&field)
    {
        headers.insert("openai-organization".to_owned(), Value::from(text));
    }
    if !headers.is_empty() {
        settings.insert("headers".to_owned(), Value::Table(headers));
    }
}

fn read_azure<'n>(
    entry: &Field<'n>,
    (settings, endpoint): (&mut Table, &mut Endpoint),
    params: &mut Fields<'n>,
    (model, reading): (&ModelName, &mut Reading<'_>),
) -> Option<()> {
    let usual = || reading.references.variable("AZURE_API_BASE");
    endpoint.base_url = endpoint.base_url.take().or_else(usual);
    if endpoint.base_url.is_none() {
        let what = "has no api_base, and AZURE_API_BASE is not set here: the resource is not known";
        let cure = "add api_base, or set the variable, and import again";
        reading.findings.left_out(entry, what, cure);
        return None;
    }
    if let Some(field) = params.take("api_version")
        && let Some(api) = reading.text(&field)
    {
        read_version(&field, &api, settings, reading);
    }
    let is_token =
        |name: &str| name == "azure_ad_token" || ENTRA.fields.iter().any(|(it, _)| *it == name);
    let has_key = params.has("api_key");
    let token = params.take("azure_ad_token");
    if !has_key && (token.is_some() || params.has_any(is_token)) {
        if let Some(field) = token {
            let what = "a token that ends is not a key here: tokens are fetched as the cloud's own SDKs do";
            let cure = "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or use a machine's identity (docs/providers.md)";
            reading.findings.differs(&field, what, cure);
        }
        sign_in(&ENTRA, settings, params, reading);
    } else {
        endpoint.key = read_key(model.row, params, reading);
    }
    Some(())
}

fn read_version(field: &Field<'_>, api: &str, settings: &mut Table, reading: &mut Reading<'_>) {
    let day = api.get(..10).unwrap_or_default();
    let is_day = filters::models::routing::Date(day.to_owned())
        .unix_s()
        .is_some();
    let is_dated = is_day && matches!(api.get(10..), Some("" | "-preview"));
    if is_dated {
        settings.insert("api".to_owned(), Value::from(api));
    } else if !["v1", "latest", "preview"].contains(&api) {
        let what = "is no version of the API; the newest is used";
        let cure = "write it as 2024-10-21 or v1, and import again";
        reading.findings.left_out(field, what, cure);
    }
}

fn read_bedrock(
    model: &ModelName,
    (settings, endpoint): (&mut Table, &mut Endpoint),
    params: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    if let Some(field) = params.take("aws_bedrock_runtime_endpoint") {
        endpoint.base_url = read_address(&field, model, reading);
    }
    let field = params.take("aws_region_name");
    let named = field.as_ref().and_then(|field| reading.text(field));
    let usual = || {
        let names = ["AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION"];
        names
            .iter()
            .find_map(|name| reading.references.variable(name))
    };
    let region = model.region.clone().or(named).or_else(usual);
    endpoint.region = Some(region.unwrap_or_else(|| AWS_REGION.to_owned()));
    match params.take("api_key") {
        Some(field) => endpoint.key = reading.secret(&field, model.row.prefix),
        None => sign_in(&AWS, settings, params, reading),
    }
}

fn read_vertex<'n>(
    entry: &Field<'n>,
    (settings, endpoint): (&mut Table, &mut Endpoint),
    params: &mut Fields<'n>,
    reading: &mut Reading<'_>,
) -> Option<()> {
    let mut find = |fields: [&str; 2], variables: [&str; 2]| {
        let field = fields.iter().find_map(|name| params.take(name));
        let named = field.and_then(|field| reading.text(&field));
        let usual = || {
            variables
                .iter()
                .find_map(|name| reading.references.variable(name))
        };
        named.or_else(usual)
    };
    let project = find(
        ["vertex_project", "vertex_ai_project"],
        ["VERTEXAI_PROJECT", "DEFAULT_VERTEXAI_PROJECT"],
    );
    let region = find(
        ["vertex_location", "vertex_ai_location"],
        ["VERTEXAI_LOCATION", "DEFAULT_VERTEXAI_LOCATION"],
    );
    let Some(project) = project else {
        let what =
            "has no vertex_project, and VERTEXAI_PROJECT is not set here: the project is not known";
        let cure = "add vertex_project, and import again";
        reading.findings.left_out(entry, what, cure);
        return None;
    };
    settings.insert("project".to_owned(), Value::from(project));
    endpoint.region = Some(region.unwrap_or_else(|| "global".to_owned()));
    sign_in(&GOOGLE, settings, params, reading);
    Some(())
}

/// Lets a provider sign in as its cloud's own SDKs do. What the input says of that is in variables here.
fn sign_in(how: &SignIn, settings: &mut Table, params: &mut Fields<'_>, reading: &mut Reading<'_>) {
    settings.insert("credentials".to_owned(), Value::from(how.cloud));
    for (name, variable) in how.fields {
        let Some(field) = params.take(name) else {
            continue;
        };
        let is_same = field.to_text() == Some(format!("os.environ/{variable}"));
        if !is_same {
            let what = format!("the sign-in of {} takes it from {variable}", how.cloud);
            let cure =
                format!("set {variable} in the environment of the server (docs/providers.md)");
            reading.findings.differs(&field, what, cure);
        }
    }
}
