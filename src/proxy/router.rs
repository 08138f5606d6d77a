//! Finds the route of a request. It matches the normalised copy of the path, which also decides about authorisation.
//!
//! Source: docs/decisions.md 18.

use std::net::IpAddr;
use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::limits::QuotaGroup;
use filters::proxy::{has_nameless_segment, normalise};
use http::{HeaderMap, Method};

use super::body;
use super::deprecation::Deprecation;
use super::handler::Handler;
use super::response::Response;

/// One row of the route table.
#[derive(Clone)]
pub struct Route {
    /// The label in metrics and logs, and the name of the test module.
    pub name: &'static str,
    /// The method; a `GET` route also serves `HEAD`.
    pub method: Method,
    /// The normalised path; `*` stands for one segment, `**` for the rest of the path as received, up to what stands behind it.
    pub path: &'static str,
    pub access: Access,
    /// The quota against which requests count.
    pub quota: Option<QuotaGroup>,
    /// The announcement that the route will end. Each response of the route has it.
    pub deprecation: Option<Deprecation>,
    /// Whether requests count against `limits.in_flight`.
    pub takes_permit: bool,
    /// The rule for reading the body before the handler sees the request.
    pub body: BodyRule,
    pub errors: ErrorStyle,
    /// The description of the route for callers, beyond this row: a JSON text. CONTRIBUTING.md lists its members.
    pub description: &'static str,
    /// Whether the configuration enables the route. A disabled route refuses requests, and is not described.
    pub is_on: bool,
    pub handler: Handler,
}

/// The style of error responses.
#[derive(Clone)]
pub struct ErrorStyle {
    /// The name of the schema of the bodies in `GET /v1/openapi.json`. `None` if the responses of the route are not
    /// described, because the route speaks a protocol of others.
    pub schema: Option<&'static str>,
    /// Writes a fault as a response to a request.
    pub write: WriteErrorResponse,
}

/// Writes a fault as a response to a request.
pub type WriteErrorResponse = Arc<dyn Fn(&Fault, &Refused<'_>) -> Response + Send + Sync>;

/// The facts about a request that gets an error response.
pub struct Refused<'a> {
    pub headers: &'a HeaderMap,
    /// The address of the client.
    pub client_ip: Option<IpAddr>,
    /// The id of the request.
    pub id: &'a str,
}

impl ErrorStyle {
    /// Returns the compatible style.
    pub fn compatible() -> Self {
        Self {
            schema: Some("Error"),
            write: Arc::new(|fault, _| Response::from(fault)),
        }
    }
}

/// The access rule of a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Every client may call.
    Open,
    /// The handler checks an SDK key, or a token that stands for one.
    SdkKey,
    /// A valid API key is required.
    Key,
    /// A valid API key is required, which may stand in the query.
    KeyInQuery,
    /// A valid API key is required, or an access token that stands for one and is for the path of this row.
    KeyOrToken,
    /// A valid API key or access token is required to get an event stream. Every client may make other requests.
    KeyOrTokenForEvents,
}

/// The rule for reading a body before the handler sees the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyRule {
    /// No body is expected; one that arrives stays unread.
    None,
    /// A JSON body of at most this many bytes.
    Json(usize),
    /// A JSON body of at most this many bytes. The long data of its data URLs goes to disk.
    SpooledJson(usize),
    /// A JSON body or a form with files, of at most this many bytes.
    JsonOrForm(usize),
    /// A form of at most this many bytes, whose files go to disk.
    Form(usize),
    /// A body of any media type, of at most this many bytes.
    Any(usize),
    /// The handler reads the body or forwards it.
    Unread,
}

impl BodyRule {
    /// Checks the size of a body that was made for a route.
    ///
    /// Errors: 413.
    pub fn check_size(self, bytes: usize) -> Result<(), Fault> {
        self.max_bytes()
            .map_or(Ok(()), |max_bytes| body::check_size(bytes, max_bytes))
    }

    /// Returns the maximum bytes of a body, or `None` if no body is read.
    pub fn max_bytes(self) -> Option<usize> {
        match self {
            Self::None | Self::Unread => None,
            Self::Json(bytes)
            | Self::SpooledJson(bytes)
            | Self::JsonOrForm(bytes)
            | Self::Form(bytes)
            | Self::Any(bytes) => Some(bytes),
        }
    }
}

/// The first segment of the paths of the model gateway.
const VERSION_PREFIX: &str = "/v1";

/// First path segments that are never forwarded, even if no route has the path. A segment with `*` at its end stands
/// for all segments with that prefix.
pub type ReservedSegments = &'static [&'static str];

/// Returns whether the first segment of a path is reserved. An empty one always is.
fn is_reserved(reserved: ReservedSegments, path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    let first = first.unwrap_or_default();
    let is = |segment: &&str| match segment.strip_suffix('*') {
        Some(start) => first
            .get(..start.len())
            .is_some_and(|first| first.eq_ignore_ascii_case(start)),
        None => first.eq_ignore_ascii_case(segment),
    };
    first.is_empty() || reserved.iter().any(is)
}

/// A list of methods and paths, matched in order.
pub struct PathTable(Vec<(Method, &'static str)>);

impl PathTable {
    /// Creates a table of these rows. `*` stands for one segment, and `**` for the rest of the path, or for all of it but the end
    /// that stands behind the stars.
    /// Handlers read that rest as received, so it may have escapes that no other path may have.
    pub fn new(rows: Vec<(Method, &'static str)>) -> Self {
        Self(rows)
    }

    /// Returns the index of the row that matches a request. In a table with reserved segments, a path that is not
    /// reserved gets the index after the last row, which is the fallback's.
    ///
    /// Errors: 400 for a path that cannot be normalised, 404, 405.
    pub fn find(
        &self,
        method: &Method,
        path: &str,
        reserved: Option<ReservedSegments>,
    ) -> Result<usize, Fault> {
        // Nearly every path is spelled as in the table, and needs no normalised copy.
        let rows = &self.0;
        let is_exact =
            |(accepted, pattern): &(Method, &str)| *pattern == path && accepted == method;
        if let Some(index) = rows.iter().position(is_exact) {
            return Ok(index);
        }
        let accepts = |accepted: &Method| {
            accepted == method || *accepted == Method::GET && *method == Method::HEAD
        };
        let is_rest =
            |(accepted, pattern): &(Method, &str)| accepts(accepted) && has_rest(pattern, path);
        if let Some(index) = rows.iter().position(is_rest) {
            return Ok(index);
        }
        let received = path;
        let path = normalise(received)?;
        if reserved.is_some_and(|reserved| !is_reserved(reserved, &path)) {
            return Ok(rows.len());
        }
        if has_nameless_segment(received) {
            return Err(Fault::new(FaultKind::NotFound, NOT_FOUND_MESSAGE));
        }
        let index = rows
            .iter()
            .position(|(accepted, pattern)| matches_pattern(pattern, &path) && accepts(accepted));
        index.ok_or_else(|| self.not_found(&path))
    }

    fn not_found(&self, path: &str) -> Fault {
        let rows = self.0.iter();
        let matching = rows.filter(|(_, pattern)| matches_pattern(pattern, path));
        let mut accepted = Vec::new();
        for (method, _) in matching {
            accepted.push(method.as_str());
            if *method == Method::GET {
                accepted.push(Method::HEAD.as_str());
            }
        }
        // `OPTIONS` only tells pages which requests they may send, so its row alone does not make a path exist.
        if accepted
            .iter()
            .all(|method| *method == Method::OPTIONS.as_str())
        {
            return Fault::new(FaultKind::NotFound, NOT_FOUND_MESSAGE);
        }
        Fault::wrong_method(&accepted)
    }
}

/// Returns whether a path matches a pattern with `**`. What stands behind the stars is compared without case, as all paths of
/// ours are.
fn has_rest(pattern: &str, path: &str) -> bool {
    let Some((prefix, end)) = pattern.split_once("**") else {
        return false;
    };
    let Some(rest) = path.strip_prefix(prefix) else {
        return false;
    };
    let place = rest.len().checked_sub(end.len()).filter(|at| *at > 0);
    let found = place.and_then(|at| rest.get(at..));
    found.is_some_and(|found| found.eq_ignore_ascii_case(end))
}

fn matches_pattern(pattern: &str, path: &str) -> bool {
    if pattern.contains("**") {
        return has_rest(pattern, path);
    }
    if !pattern.contains('*') {
        return pattern == path;
    }
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some("*"), Some(segment)) if !segment.is_empty() => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => return false,
        }
    }
}

/// All routes.
pub struct Router {
    routes: Vec<Route>,
    paths: PathTable,
    reserved: ReservedSegments,
    fallback: Option<Route>,
}

impl Router {
    /// Creates a router. The fallback takes every path that is not reserved. Without a fallback such paths are
    /// unknown.
    pub fn new(routes: Vec<Route>, reserved: ReservedSegments, fallback: Option<Route>) -> Self {
        let paths = routes
            .iter()
            .map(|route| (route.method.clone(), route.path));
        Self {
            paths: PathTable::new(paths.collect()),
            routes,
            reserved,
            fallback,
        }
    }

    /// Returns whether a path can only be ours: it is reserved, or is a reserved path without its `/v1`.
    pub fn is_own_path(&self, path: &str) -> bool {
        is_reserved(self.reserved, path) || self.lacks_prefix(path)
    }

    /// Returns the reserved routes.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Returns the route of all paths that are not reserved.
    pub fn fallback(&self) -> Option<&Route> {
        self.fallback.as_ref()
    }

    /// Returns whether an index that [`find`](Self::find) returned is the fallback's.
    pub fn is_fallback(&self, index: usize) -> bool {
        index == self.routes.len()
    }

    /// Returns the route at an index that [`find`](Self::find) returned.
    pub fn get(&self, index: usize) -> Option<&Route> {
        if self.is_fallback(index) {
            return self.fallback();
        }
        self.routes.get(index)
    }

    /// Returns the index that means no route.
    pub fn no_route(&self) -> usize {
        self.routes.len() + 1
    }

    /// Returns the index of the route that matches a request.
    ///
    /// Errors: 400 for a path that cannot be normalised, 404, 405. A path that lacks the `/v1` of a route for API
    /// keys is 404, even with a fallback: a client with a wrong base URL would send its key to the upstream of the
    /// fallback.
    pub fn find(&self, method: &Method, path: &str) -> Result<usize, Fault> {
        let reserved = self.fallback.as_ref().map(|_| self.reserved);
        let index = self.paths.find(method, path, reserved);
        let is_forwarded = index.as_ref().is_ok_and(|index| self.is_fallback(*index));
        if (is_forwarded || index.is_err()) && self.lacks_prefix(path) {
            let message = "there is nothing at this path: add `/v1` to the base URL";
            return Err(Fault::new(FaultKind::NotFound, message));
        }
        index
    }

    /// Returns whether a path is the path of a route for API keys without its `/v1`.
    fn lacks_prefix(&self, path: &str) -> bool {
        let Ok(path) = normalise(path) else {
            return false;
        };
        let keyed = self
            .routes
            .iter()
            .filter(|route| matches!(route.access, Access::Key | Access::KeyInQuery));
        let mut suffixes = keyed.filter_map(|route| route.path.strip_prefix(VERSION_PREFIX));
        suffixes.any(|suffix| matches_pattern(suffix, &path))
    }
}

/// The message of a path without a route.
pub const NOT_FOUND_MESSAGE: &str = "there is nothing at this path";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::proxy::handler::{Endpoint, Request};
    use futures::future::BoxFuture;

    struct EmptyEndpoint;

    impl Endpoint for EmptyEndpoint {
        fn call<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
            Box::pin(async { Ok(Response::json("{}")) })
        }
    }

    fn route(name: &'static str, method: Method, path: &'static str) -> Route {
        let is_keyed = name == "chat_completions" || name == "models";
        Route {
            name,
            method,
            path,
            access: if is_keyed { Access::Key } else { Access::Open },
            quota: None,
            deprecation: None,
            takes_permit: false,
            body: BodyRule::None,
            errors: ErrorStyle::compatible(),
            description: "{}",
            is_on: true,
            handler: Handler::Endpoint(Arc::new(EmptyEndpoint)),
        }
    }

    fn find(method: &Method, path: &str, has_graph: bool) -> Result<&'static str, Fault> {
        let routes = vec![
            route("health", Method::GET, "/"),
            route("models", Method::GET, "/v1/models"),
            route("chat_completions", Method::POST, "/v1/chat/completions"),
            route("model", Method::GET, "/v1/models/**"),
            route("ofrep_flags", Method::POST, "/ofrep/v1/evaluate/flags"),
            route("ofrep_flag", Method::POST, "/ofrep/v1/evaluate/flags/**"),
            route("video", Method::GET, "/v1/videos/*"),
            route("video_content", Method::GET, "/v1/videos/*/content"),
            route("preflight", Method::OPTIONS, "/.well-known/**"),
            route("answer", Method::POST, "/v1/models/**:answer"),
            route("count", Method::POST, "/v1/models/**:count"),
        ];
        let graph = has_graph.then(|| route("graph", Method::GET, ""));
        let reserved = &["v1", "ofrep", ".well-known", "own*"];
        let router = Router::new(routes, reserved, graph);
        let index = router.find(method, path)?;
        Ok(router.get(index).unwrap().name)
    }

    #[test]
    fn spellings_of_one_path_find_one_row() {
        for path in [
            "//v1//models",
            "/V1/Models/",
            "/v1/x/../models",
            "/v1;a=b/models",
            "/%76%31/models",
        ] {
            assert_eq!(find(&Method::GET, path, false).unwrap(), "models", "{path}");
        }
        for path in ["/v1%2fmodels", "/v1%25", "/v1%00", "/v1%", "/é"] {
            assert_eq!(
                find(&Method::GET, path, false).unwrap_err().status(),
                400,
                "{path}"
            );
        }
    }

    #[test]
    fn a_star_is_one_segment() {
        let name = |path| find(&Method::POST, path, false);
        assert_eq!(name("/ofrep/v1/evaluate/flags/a").unwrap(), "ofrep_flag");
        assert_eq!(name("/ofrep/v1/evaluate/flags/").unwrap(), "ofrep_flags");
        // A key is the rest of the path as received, whatever is in it.
        for path in ["a/b", "%3B", "a%2Fb", "%C3%A9"] {
            let path = format!("/ofrep/v1/evaluate/flags/{path}");
            let found = find(&Method::POST, &path, true);
            assert_eq!(found.unwrap(), "ofrep_flag", "{path}");
        }
        let name = |path| find(&Method::GET, path, false);
        for path in [
            "/v1/videos/%3B",
            "/v1/videos/;",
            "/v1/videos/%3b%29",
            "/v1/;a/models",
        ] {
            assert_eq!(name(path).unwrap_err().status(), 404, "{path}");
        }
        assert_eq!(name("/v1/models;a=b").unwrap(), "models");
        assert_eq!(name("/v1/videos/a").unwrap(), "video");
        assert_eq!(name("/v1/videos/a/content").unwrap(), "video_content");
        assert_eq!(name("/v1/videos/a/Content/").unwrap(), "video_content");
        for other in [
            "/v1/videos//content/x",
            "/v1/videos/a/b/content",
            "/v1/videos/a/b",
        ] {
            assert_eq!(name(other).unwrap_err().status(), 404, "{other}");
        }
    }

    #[test]
    fn two_stars_are_the_rest_of_the_path_as_received() {
        for path in [
            "/v1/models/a",
            "/v1/models/maker/Model-1.5:free",
            "/v1/models/maker%2FModel",
            "/v1/models/../key",
            "//v1/models/a",
        ] {
            assert_eq!(find(&Method::GET, path, false).unwrap(), "model", "{path}");
            assert_eq!(find(&Method::HEAD, path, true).unwrap(), "model", "{path}");
        }
        assert_eq!(find(&Method::GET, "/v1/models/", false).unwrap(), "models");
        let refused = find(&Method::POST, "/v1/models/a", false).unwrap_err();
        assert_eq!(refused.status(), 405);
        assert_eq!(refused.methods(), Some("GET, HEAD"));
        assert_eq!(
            find(&Method::POST, "/v1/models/a%2Fb", false)
                .unwrap_err()
                .status(),
            400
        );
    }

    #[test]
    fn an_end_behind_two_stars_tells_routes_apart() {
        let name = |path| find(&Method::POST, path, true);
        assert_eq!(name("/v1/models/a:answer").unwrap(), "answer");
        assert_eq!(name("/v1/models/a/b:eu:Count").unwrap(), "count");
        assert_eq!(name("//v1/models/a%2Fb:count").unwrap_err().status(), 400);
        assert_eq!(name("//v1/models/A:answer").unwrap(), "answer");
        for path in ["/v1/models/:answer", "/v1/models/a:other", "/v1/models/a"] {
            assert!(name(path).is_err_and(|it| it.status() == 405), "{path}");
        }
        assert_eq!(
            find(&Method::GET, "/v1/models/a:answer", true).unwrap(),
            "model"
        );
    }

    #[test]
    fn a_path_that_only_pages_ask_about_is_not_there() {
        let name = |method| find(&method, "/.well-known/x", false);
        assert_eq!(name(Method::OPTIONS).unwrap(), "preflight");
        assert_eq!(name(Method::GET).unwrap_err().status(), 404);
    }

    #[test]
    fn a_reserved_path_never_goes_to_the_graph_service() {
        for path in [
            "/",
            "/v1/nothing",
            "/V1/nothing",
            "/v1",
            "/x/../v1/nothing",
            "/ofrep/v2",
            "/own",
            "/own/oauth/x",
            "/OWNER;x/y",
            "/.well-known/x",
        ] {
            let found = find(&Method::PUT, path, true);
            assert_ne!(found.ok(), Some("graph"), "{path}");
        }
        for path in ["/content/v2", "/v2/models", "/api/v1/x", "/%63ontent"] {
            assert_eq!(find(&Method::PUT, path, true).unwrap(), "graph");
            assert_eq!(find(&Method::PUT, path, false).unwrap_err().status(), 404);
        }
    }

    /// Contract: model-gateway 9 1
    #[test]
    fn a_path_without_its_version_is_404_and_names_the_cure() {
        for path in ["/chat/completions", "//Chat/completions/", "/models"] {
            for has_graph in [true, false] {
                let fault = find(&Method::POST, path, has_graph).unwrap_err();
                assert_eq!(fault.status(), 404, "{path}");
                assert!(fault.message.contains("`/v1`"), "{path}");
            }
        }
        let decision = find(&Method::POST, "/evaluate/flags", true);
        assert_eq!(decision.unwrap(), "graph");
    }

    #[test]
    fn an_unknown_method_is_405_and_an_unknown_path_404() {
        assert_eq!(
            find(&Method::GET, "/v1/chat/completions", false)
                .unwrap_err()
                .status(),
            405
        );
        assert_eq!(
            find(&Method::GET, "/v1/chat", false).unwrap_err().status(),
            404
        );
        assert_eq!(find(&Method::HEAD, "/", false).unwrap(), "health");
    }
}
