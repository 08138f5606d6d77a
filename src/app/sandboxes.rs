//! The built-in upstreams of a gateway.

use filters::models::hosts::ProviderKind;
use http::Uri;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::background;
use super::boot::{BootError, failed};
use crate::config::{Config, GraphUpstream};
use crate::sandbox;

/// The built-in upstreams that a configuration has asked for. They are served until the process stops, so that running
/// requests keep them.
#[derive(Default)]
pub(super) struct Sandboxes {
    /// The base URL of the provider.
    model: Option<String>,
    /// The origin of the graph service.
    graph: Option<Uri>,
}

impl Sandboxes {
    /// Returns whether there is a provider.
    pub(super) fn has_provider(&self) -> bool {
        self.model.is_some()
    }

    /// Serves the upstreams that a configuration asks for until `stop`, and sets their addresses in it.
    ///
    /// Errors: no port is free.
    pub(super) fn serve(
        &mut self,
        config: &mut Config,
        runtime: &Handle,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), BootError> {
        let providers = config.providers.iter_mut();
        for provider in providers.filter(|it| it.kind == ProviderKind::Sandbox) {
            let url = match &self.model {
                Some(url) => url.clone(),
                None => serve_provider(runtime, stop)?,
            };
            provider.base_urls = vec![url.clone()];
            self.model = Some(url);
        }
        let graph = config.graph.as_mut();
        if let Some(graph) = graph.filter(|graph| graph.upstream == GraphUpstream::Sandbox) {
            let url = match &self.graph {
                Some(url) => url.clone(),
                None => serve_graph(runtime, stop)?,
            };
            graph.upstream = GraphUpstream::At(url.clone());
            self.graph = Some(url);
        }
        Ok(())
    }
}

fn serve_provider(runtime: &Handle, stop: &watch::Receiver<bool>) -> Result<String, BootError> {
    let model = sandbox::ModelSandbox::bind();
    let model = model.map_err(|error| failed("the model sandbox", error))?;
    let url = model.base_url();
    background::spawn(runtime, Some(model), stop);
    Ok(url)
}

fn serve_graph(runtime: &Handle, stop: &watch::Receiver<bool>) -> Result<Uri, BootError> {
    let graph = sandbox::GraphSandbox::bind();
    let graph = graph.map_err(|error| failed("the graph sandbox", error))?;
    let url = format!("http://{}", graph.address());
    let url = url.parse();
    let url = url.map_err(|error| failed("the graph sandbox", error))?;
    background::spawn(runtime, Some(graph), stop);
    Ok(url)
}
