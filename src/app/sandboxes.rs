//! The built-in upstreams of a gateway.

use filters::models::hosts::ProviderKind;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::background;
use super::boot::{BootError, failed};
use crate::config::{Config, GraphUpstream};
use crate::sandbox;

/// The built-in upstreams that are configured.
pub(super) struct Sandboxes {
    pub(super) model: Option<sandbox::ModelSandbox>,
    graph: Option<sandbox::GraphSandbox>,
}

impl Sandboxes {
    /// Serves the upstreams until `stop`.
    pub(super) fn spawn(self, runtime: &Runtime, stop: &watch::Receiver<bool>) {
        background::spawn(runtime, self.model, stop);
        background::spawn(runtime, self.graph, stop);
    }

    /// Binds the upstreams and sets their addresses in the configuration.
    pub(super) fn bind(config: &mut Config) -> Result<Self, BootError> {
        Ok(Self {
            model: bind_model_sandbox(config)?,
            graph: bind_graph_sandbox(config)?,
        })
    }
}

fn bind_model_sandbox(config: &mut Config) -> Result<Option<sandbox::ModelSandbox>, BootError> {
    let mut sandboxes = config
        .providers
        .iter_mut()
        .filter(|provider| provider.kind == ProviderKind::Sandbox);
    let Some(first_provider) = sandboxes.next() else {
        return Ok(None);
    };
    let model =
        sandbox::ModelSandbox::bind().map_err(|error| failed("the model sandbox", error))?;
    first_provider.base_urls = vec![model.base_url()];
    for provider in sandboxes {
        provider.base_urls = vec![model.base_url()];
    }
    Ok(Some(model))
}

fn bind_graph_sandbox(config: &mut Config) -> Result<Option<sandbox::GraphSandbox>, BootError> {
    let graph = config.graph.as_mut();
    let Some(graph) = graph.filter(|graph| graph.upstream == GraphUpstream::Sandbox) else {
        return Ok(None);
    };
    let sandbox =
        sandbox::GraphSandbox::bind().map_err(|error| failed("the graph sandbox", error))?;
    let url = format!("http://{}", sandbox.address());
    let url = url
        .parse()
        .map_err(|error| failed("the graph sandbox", error))?;
    graph.upstream = GraphUpstream::At(url);
    Ok(Some(sandbox))
}
