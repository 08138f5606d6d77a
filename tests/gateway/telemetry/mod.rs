//! What operators see: metrics, traces, dashboards.

mod calls;
mod collectors;
mod dashboards;
mod histograms;
mod promql;
mod sampling;
mod traces;

use crate::support::upstream::Upstream;

/// The section that exports traces to this collector, and more keys of it.
fn exporting_to(collector: &Upstream, more: &str) -> String {
    format!(
        "[telemetry]\notlp_endpoint = \"{}\"\n{more}\n",
        collector.url()
    )
}
