//! Money: who spends it, on what, and what is left.

mod account_changes;
mod all;
mod changes;
mod forms;
mod key;
mod member;
mod organization;
mod organization_forms;

use http::Method;

use self::organization::ListQuery;
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::links;
use crate::console::views::spending::LookBack;
use crate::store::{PageQuery, StoreError};

/// The view of all organizations. The others are below it.
pub(super) const PATH: &str = "/console/money";
/// The times that one may look back at.
const PERIODS: [LookBack; 2] = [LookBack::Month, LookBack::Day];
/// The part of a page that has what was spent.
const SPEND: &str = "spend";
/// The rows of a page.
const PAGE_ROWS: usize = 50;

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    if request.method == Method::POST {
        return changes::change(console, request).await;
    }
    match request.rest(PATH) {
        "" => all::show(console, request).await,
        "organization" => organization::page(console, request, None).await,
        "key" => key::page(console, request, None).await,
        "member" => member::page(console, request, None).await,
        _ => ConsoleReply::not_found("There is no such page."),
    }
}

/// Says why the store has not answered.
fn refusal(error: &StoreError) -> ConsoleReply {
    match error {
        StoreError::NotFound { .. } => ConsoleReply::not_found(&error.to_string()),
        error => ConsoleReply::failed(error),
    }
}

impl ListQuery {
    /// Reads which part of a list is wanted: the parameter `search` with what stands before it, and that of its last row.
    fn parse(
        request: &ConsoleRequest,
        search: &str,
        after: &str,
    ) -> Result<Self, Box<ConsoleReply>> {
        Ok(Self {
            search: links::name_of(search, request.query(search))?,
            after: Some(links::name_of(after, request.query(after))?)
                .filter(|after| !after.is_empty()),
        })
    }

    fn page(&self) -> PageQuery<'_> {
        PageQuery {
            search: &self.search,
            after: self.after.as_deref(),
            limit: PAGE_ROWS,
        }
    }
}
