//! Which route a request takes: matched on the normalised copy of its path, so that what is authorised is what is routed.
//!
//! Source: docs/decisions.md 18.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::limits::QuotaGroup;
use filters::proxy::normalise;
use http::Method;

use super::handler::Handler;
use super::response::Response;

/// One endpoint.
#[derive(Clone)]
pub struct Route {
    /// Its label in metrics and logs, and the name of its test module.
    pub name: &'static str,
    /// The method; `HEAD` is served wherever `GET` is.
    pub method: Method,
    /// The normalised path; `*` stands for one last segment.
    pub path: &'static str,
    /// Who may call.
    pub access: Access,
    /// The quota that requests count against.
    pub quota: Option<QuotaGroup>,
    /// Whether requests count against `limits.in_flight`.
    pub takes_permit: bool,
    /// How the body is read before the handler sees the request.
    pub body: BodyRule,
    /// The style of its errors.
    pub errors: ErrorStyle,
    /// Who handles its requests.
    pub handler: Handler,
}

/// Writes a fault as a response.
pub type ErrorStyle = Arc<dyn Fn(&Fault) -> Response + Send + Sync>;

/// Who may call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Anyone; the handler may ask for credentials of its own.
    Open,
    /// The holder of an API key.
    Key,
}

/// How a body is read before the handler sees the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyRule {
    /// There is none; what comes is left unread.
    None,
    /// JSON of at most so many bytes.
    Json(usize),
    /// Any media type, at most so many bytes.
    Any(usize),
    /// The handler reads it, or passes it on.
    Unread,
}

/// The first segments of our own paths, beside `/`. Source: docs/decisions.md 18.
const RESERVED_PREFIXES: [&str; 5] = ["v1", "oauth", "ofrep", ".well-known", "webhooks"];
/// What others of our paths begin with.
const MCP: &str = "mcp";

/// Returns whether a path, normalised or not, is ours: known or not, it is never forwarded.
pub fn is_reserved(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    let first = first.unwrap_or_default();
    let start = first.get(..MCP.len());
    first.is_empty()
        || start.is_some_and(|start| start.eq_ignore_ascii_case(MCP))
        || RESERVED_PREFIXES
            .iter()
            .any(|own| first.eq_ignore_ascii_case(own))
}

/// Methods and paths, matched in order.
pub struct PathTable(Vec<(Method, &'static str)>);

impl PathTable {
    /// A table of these rows; `*` in a path stands for one last segment.
    pub fn new(rows: Vec<(Method, &'static str)>) -> Self {
        Self(rows)
    }

    /// Returns the index of the row that takes a request. With `has_fallback`, a path that is not ours has the index
    /// behind the last row.
    ///
    /// Errors: 400 for a path that cannot be normalised, 404, 405.
    pub fn find(&self, method: &Method, path: &str, has_fallback: bool) -> Result<usize, Fault> {
        // Nearly every path comes as it stands in the table, and needs no normalised copy.
        let rows = &self.0;
        let is_exact = |(takes, at): &(Method, &str)| *at == path && takes == method;
        if let Some(index) = rows.iter().position(is_exact) {
            return Ok(index);
        }
        let path = normalise(path)?;
        if has_fallback && !is_reserved(&path) {
            return Ok(rows.len());
        }
        let takes = |own: &Method| own == method || *own == Method::GET && *method == Method::HEAD;
        let found = rows
            .iter()
            .position(|(own, at)| is_at(at, &path) && takes(own));
        found.ok_or_else(|| self.not_found(&path))
    }

    fn not_found(&self, path: &str) -> Fault {
        let at_path = self.0.iter().filter(|(_, at)| is_at(at, path));
        let accepted: Vec<&str> = at_path.map(|(method, _)| method.as_str()).collect();
        if accepted.is_empty() {
            return Fault::new(FaultKind::NotFound, NOTHING_HERE);
        }
        let accepted = accepted.join(", ");
        Fault::new(
            FaultKind::MethodNotAllowed,
            format!("this path does not take this method; accepted: {accepted}"),
        )
    }
}

fn is_at(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => pattern == path,
        Some(before) => path
            .strip_prefix(before)
            .is_some_and(|last| !last.is_empty() && !last.contains('/')),
    }
}

/// All routes.
pub struct Router {
    /// Our own.
    routes: Vec<Route>,
    paths: PathTable,
    fallback: Option<Route>,
}

impl Router {
    /// A router over our own routes, with the one that takes every path that is not ours, where there is one.
    pub fn new(routes: Vec<Route>, fallback: Option<Route>) -> Self {
        let paths = routes
            .iter()
            .map(|route| (route.method.clone(), route.path));
        Self {
            paths: PathTable::new(paths.collect()),
            routes,
            fallback,
        }
    }

    /// The route of every path that is not ours.
    pub fn fallback(&self) -> Option<&Route> {
        self.fallback.as_ref()
    }

    /// The route at an index that [`find`](Self::find) returned.
    pub fn get(&self, index: usize) -> Option<&Route> {
        if index == self.routes.len() {
            return self.fallback();
        }
        self.routes.get(index)
    }

    /// The index that stands for no route.
    pub fn none(&self) -> usize {
        self.routes.len() + 1
    }

    /// Returns the index of the route that takes a request.
    ///
    /// Errors: 400 for a path that cannot be normalised, 404, 405.
    pub fn find(&self, method: &Method, path: &str) -> Result<usize, Fault> {
        self.paths.find(method, path, self.fallback.is_some())
    }
}

/// The message of a path without a route.
pub const NOTHING_HERE: &str = "there is nothing at this path";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::proxy::handler::{Endpoint, Request};
    use futures::future::BoxFuture;

    struct Nothing;

    impl Endpoint for Nothing {
        fn call<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
            Box::pin(async { Ok(Response::json("{}")) })
        }
    }

    fn route(name: &'static str, method: Method, path: &'static str) -> Route {
        Route {
            name,
            method,
            path,
            access: Access::Open,
            quota: None,
            takes_permit: false,
            body: BodyRule::None,
            errors: Arc::new(|fault| Response::from(fault)),
            handler: Handler::Endpoint(Arc::new(Nothing)),
        }
    }

    fn find(method: &Method, path: &str, has_graph: bool) -> Result<&'static str, Fault> {
        let own = vec![
            route("health", Method::GET, "/"),
            route("models", Method::GET, "/v1/models"),
            route("chat_completions", Method::POST, "/v1/chat/completions"),
            route("ofrep_flags", Method::POST, "/ofrep/v1/evaluate/flags"),
            route("ofrep_flag", Method::POST, "/ofrep/v1/evaluate/flags/*"),
        ];
        let graph = has_graph.then(|| route("graph", Method::GET, ""));
        let router = Router::new(own, graph);
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
        assert_eq!(
            name("/ofrep/v1/evaluate/flags/a/b").unwrap_err().status(),
            404
        );
    }

    #[test]
    fn what_is_ours_is_never_the_graph_services() {
        for path in [
            "/",
            "/v1/nothing",
            "/V1/nothing",
            "/v1",
            "/x/../v1/nothing",
            "//oauth/x",
            "/ofrep/v2",
            "/mcp",
            "/mcp/oauth/x",
            "/MCP;x/y",
            "/.well-known/x",
            "/webhooks/x",
        ] {
            let found = find(&Method::PUT, path, true);
            assert_ne!(found.ok(), Some("graph"), "{path}");
        }
        for path in ["/content/v2", "/v2/models", "/api/v1/x", "/%63ontent"] {
            assert_eq!(find(&Method::PUT, path, true).unwrap(), "graph");
            assert_eq!(find(&Method::PUT, path, false).unwrap_err().status(), 404);
        }
    }

    #[test]
    fn another_method_is_told_from_another_path() {
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
