//! The interfaces of providers that tell what was used and what it costs.

use jiff::civil::Date;
use serde::Deserialize;

use super::bill::BillLine;
use super::{anthropic, openai};
use crate::models::hosts::ProviderKind;

/// A report of a provider, which is read page by page.
pub struct Report {
    /// What it is called in messages.
    pub name: &'static str,
    /// Its path behind the provider's base URL.
    pub path: &'static str,
    /// Returns the query of days in UTC, the second of which is the one after the last.
    pub query: fn([Date; 2]) -> String,
    /// Reads a page. Errors: what is wrong with it.
    pub read: fn(&[u8]) -> Result<ReportPage, String>,
}

/// The reports of a kind of provider.
pub struct Reports {
    pub reports: &'static [Report],
    /// The types of models of which they tell by model; `None`: all.
    pub types: Option<&'static [&'static str]>,
    /// The variable that has the key, unless another is named.
    pub key_variable: &'static str,
    /// The header of the key, and what stands before it.
    pub key_header: (&'static str, &'static str),
    /// Headers beside it.
    pub headers: &'static [(&'static str, &'static str)],
}

/// A page of a report.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReportPage {
    pub lines: Vec<BillLine>,
    /// The token of the next page.
    pub next: Option<String>,
}

/// Returns the reports of a kind of provider, if it has some.
pub fn reports(kind: ProviderKind) -> Option<&'static Reports> {
    match kind {
        ProviderKind::OpenAi => Some(&openai::REPORTS),
        ProviderKind::Anthropic => Some(&anthropic::REPORTS),
        _ => None,
    }
}

/// A page as both providers write it.
#[derive(Deserialize)]
pub(super) struct WrittenPage<B> {
    pub data: Vec<B>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    next_page: Option<String>,
}

impl<B> WrittenPage<B> {
    /// Reads a page whose buckets `read` turns into lines.
    pub(super) fn read(
        self,
        read: impl Fn(B, &mut Vec<BillLine>) -> Result<(), String>,
    ) -> Result<ReportPage, String> {
        let mut lines = Vec::new();
        for bucket in self.data {
            read(bucket, &mut lines)?;
        }
        let next = self
            .next_page
            .filter(|next| self.has_more && !next.is_empty());
        match self.has_more && next.is_none() {
            true => Err("it has `has_more`, and no `next_page`".to_owned()),
            false => Ok(ReportPage { lines, next }),
        }
    }
}

/// Parses a page. Errors: what is wrong with it, without its text.
pub(super) fn parse<'p, B: Deserialize<'p>>(page: &'p [u8]) -> Result<WrittenPage<B>, String> {
    serde_json::from_slice(page).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            format!("it is not as its documentation says: {error}")
        }
        _ => "it is no JSON".to_owned(),
    })
}

/// Reads the service tier of a line. The usual one is none.
pub(super) fn tier(word: Option<Box<str>>) -> Option<Box<str>> {
    word.filter(|word| !matches!(&**word, "" | "default" | "standard"))
}
