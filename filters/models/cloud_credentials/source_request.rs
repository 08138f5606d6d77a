//! A request to a source of credentials.

use http::Method;
use url::Url;

/// A request to a source of credentials. It may hold secrets, so it has no `Debug`.
pub struct SourceRequest {
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(&'static str, String)>,
    /// Headers that a file of credentials names.
    pub more_headers: Vec<(String, String)>,
    /// The body, whose type is among the headers.
    pub body: Option<String>,
    /// The setting that the address comes from, for errors.
    pub setting: &'static str,
    /// Whether the server is one of metadata, on this machine or beside it: it answers at once or not at all.
    pub is_metadata: bool,
}

impl SourceRequest {
    /// Creates a request to a metadata server.
    pub fn to_metadata(setting: &'static str, url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: Vec::new(),
            more_headers: Vec::new(),
            body: None,
            setting,
            is_metadata: true,
        }
    }

    /// Creates a request with a form.
    pub fn with_form(setting: &'static str, url: Url, form: &[(&str, &str)]) -> Self {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        let content_type = "application/x-www-form-urlencoded".to_owned();
        Self {
            method: Method::POST,
            url,
            headers: vec![("content-type", content_type)],
            more_headers: Vec::new(),
            body: Some(body.finish()),
            setting,
            is_metadata: false,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}
