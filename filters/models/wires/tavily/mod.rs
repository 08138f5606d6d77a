//! Tavily's wire: searches of the web. A mapping's model is the depth of its searches.

use crate::json::{Error, Object, Str};
use crate::models::search::{FoundPage, SearchFacts};
use crate::models::wires::found_pages::{SearchWords, read_members, text, write_list};
use crate::models::wires::search_api::SearchApi;
use crate::models::wires::wire::Target;

/// The wire.
pub(super) const TAVILY: SearchApi = SearchApi {
    words: SearchWords {
        max_results: 20,
        country: false,
        recencies: &["day", "week", "month", "year"],
    },
    key_header: None,
    write,
    read_page,
    // Beyond a plan's own statuses.
    exhausted: &[432, 433],
};

fn write(body: &mut Object<'_>, facts: &SearchFacts, target: &Target<'_>) {
    body.text("search_depth", target.model);
    body.number("max_results", facts.max_results);
    write_list(body, "include_domains", &facts.included);
    write_list(body, "exclude_domains", &facts.excluded);
    body.optional_text("time_range", facts.recency);
    for (key, day) in [("start_date", facts.after), ("end_date", facts.before)] {
        body.optional_text(key, day.map(|day| day.to_iso()).as_deref());
    }
}

fn read_page(page: &str, out: &mut Vec<u8>) -> Result<bool, Error> {
    let mut found = FoundPage::default();
    let is_object = read_members(page, |walk, key| {
        match key {
            "title" => found.title = text(walk)?,
            "url" => found.url = text(walk)?,
            "content" => found.snippet = text(walk)?,
            "published_date" => found.date = text(walk)?.filter(|date: &Str<'_>| !date.is_empty()),
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    found.write(out);
    Ok(is_object && found.url.is_some())
}
