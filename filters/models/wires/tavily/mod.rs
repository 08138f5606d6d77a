//! Tavily's wire: searches of the web. A mapping's model is the depth of its searches.

use crate::json::Object;
use crate::models::operation::Operation;
use crate::models::search::{FoundPage, SearchFacts};
use crate::models::wires::codec::OperationCodec;
use crate::models::wires::error_body;
use crate::models::wires::found_pages::{self, SearchWords, write_list};
use crate::models::wires::scan::{object, string};
use crate::models::wires::wire::{Target, Wire};

/// The wire.
pub(super) static TAVILY: Wire = Wire {
    codecs: &[(Operation::Search, &CODEC)],
    // Statuses that say that the key has no credit left: beyond a plan's own.
    classify: |status, body| match status {
        432 | 433 => error_body::classify(402, body),
        _ => error_body::classify(status, body),
    },
    ..Wire::OF_ITS_OWN
};

const WORDS: SearchWords = SearchWords {
    max_results: 20,
    country: false,
    recencies: &["day", "week", "month", "year"],
};

static CODEC: OperationCodec<SearchFacts> = OperationCodec::new(
    "/search",
    |request, facts, target| {
        found_pages::encode(request, facts, target, &WORDS, |body| {
            write(body, facts, target)
        })
    },
    |_, facts, _, _| found_pages::decoder(facts, read_page),
);

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

fn read_page(page: &str, out: &mut Vec<u8>) -> bool {
    let members = object(page, ["title", "url", "content", "published_date"]);
    let [title, url, content, date] = members.unwrap_or_default();
    let found = FoundPage {
        title: string(title),
        url: string(url),
        snippet: string(content),
        date: string(date).filter(|date| !date.is_empty()),
    };
    found.write(out);
    found.url.is_some()
}
