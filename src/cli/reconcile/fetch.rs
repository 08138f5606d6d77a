//! Asks a provider for its reports, page by page. No redirect is followed; bytes, pages and time are bounded.

use std::collections::HashSet;
use std::time::Duration;

use filters::models::wires::scrub;
use filters::reconcile::report::Reports;
use filters::reconcile::{BillLine, Report, ReportPage};
use jiff::civil::Date;
use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use crate::config::Secret;
use crate::outbound::{Outbound, describe, read_body};

/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 8 << 20;
/// The maximum number of pages of a report. A year of days has twelve.
const MAX_PAGES: usize = 60;
/// The most bytes of a provider's words that are shown.
const MAX_SHOWN_BYTES: usize = 200;

/// How long is waited.
#[derive(Clone, Copy)]
pub(super) struct FetchLimits {
    /// For a page.
    pub(super) page: Duration,
    /// For all pages of all reports.
    pub(super) all: Duration,
}

impl FetchLimits {
    /// What is usual.
    pub(super) const USUAL: Self = Self {
        page: Duration::from_secs(30),
        all: Duration::from_secs(300),
    };
}

/// What is asked.
pub(super) struct ReportRequest<'a> {
    pub(super) base_url: &'a str,
    pub(super) reports: &'a Reports,
    pub(super) key: &'a Secret,
    /// The first day, and the one after the last.
    pub(super) days: [Date; 2],
}

/// Reads all reports. Errors: which one could not be read, why, and what helps.
pub(super) async fn fetch(
    asked: &ReportRequest<'_>,
    limits: FetchLimits,
) -> Result<Vec<BillLine>, String> {
    let all = async {
        let client = Outbound::new(limits.page, [asked.base_url]);
        let client =
            client.map_err(|error| format!("nothing can be asked: {}", describe(error)))?;
        let mut lines = Vec::new();
        for report in asked.reports.reports {
            let read = read_report(&client, asked, report).await;
            let read = read.map_err(|why| format!("the report on {}: {why}", report.name))?;
            lines.extend(read);
        }
        Ok(lines)
    };
    let done = timeout(limits.all, all).await;
    done.unwrap_or_else(|_| {
        Err(format!(
            "the reports took more than {} s; ask for fewer days",
            limits.all.as_secs()
        ))
    })
}

async fn read_report(
    client: &Outbound,
    asked: &ReportRequest<'_>,
    report: &Report,
) -> Result<Vec<BillLine>, String> {
    let query = (report.query)(asked.days);
    let first = format!("{}{}?{query}", asked.base_url, report.path);
    let (mut lines, mut seen) = (Vec::new(), HashSet::new());
    let mut url = first.clone();
    for _ in 0..MAX_PAGES {
        let page = read_page(client, asked, report, &url).await?;
        lines.extend(page.lines);
        let Some(next) = page.next else {
            return Ok(lines);
        };
        let token: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        url = format!("{first}&page={token}");
        if !seen.insert(next) {
            return Err("its pages lead in a circle".to_owned());
        }
    }
    Err(format!(
        "it has more than {MAX_PAGES} pages; ask for fewer days"
    ))
}

async fn read_page(
    client: &Outbound,
    asked: &ReportRequest<'_>,
    report: &Report,
    url: &str,
) -> Result<ReportPage, String> {
    let request = client.get(url).map_err(|error| error.to_string())?;
    let (name, before) = asked.reports.key_header;
    let mut request = request.header(name, format!("{before}{}", asked.key.expose()));
    for (name, value) in asked.reports.headers {
        request = request.header(*name, *value);
    }
    let reply = request.send().await.map_err(describe)?;
    if !reply.status().is_success() {
        return Err(refused(reply, asked.key).await);
    }
    let body = read_body(reply, MAX_PAGE_BYTES).await?;
    (report.read)(&body)
}

/// Describes a refusal: its status, the beginning of what the provider says of it, and what helps.
async fn refused(reply: Response, key: &Secret) -> String {
    let status = reply.status().as_u16();
    let body = read_body(reply, MAX_PAGE_BYTES).await.unwrap_or_default();
    let words = serde_json::from_slice::<Value>(&body).ok();
    let words = words.as_ref().and_then(|body| {
        let error = body.get("error")?;
        error.get("message").unwrap_or(error).as_str()
    });
    let words = words.map(|words| format!(" ({})", shorten(&scrub(words, &[key.expose()]))));
    let words = words.unwrap_or_default();
    let cure = match status {
        401 | 403 => {
            "; it takes an admin key of the organization, which is not a key for calls (--admin-key)"
        }
        404 => "; this server has no such report: give a table of its bill with --file",
        429 => "; try again in a minute",
        _ => "",
    };
    format!("it answered {status}{words}{cure}")
}

/// Returns the beginning of a text on one line.
fn shorten(text: &str) -> String {
    let plain = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char });
    let mut shown = String::new();
    for char in plain {
        if shown.len() + char.len_utf8() > MAX_SHOWN_BYTES {
            return shown + "…";
        }
        shown.push(char);
    }
    shown
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
