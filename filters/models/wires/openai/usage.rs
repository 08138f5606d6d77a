//! Usage as providers of this convention report it.

use crate::json::{Error, Type, Walker};
use crate::models::usage::{Unread, Usage};

/// Reads a `usage` object.
///
/// `reasoning_is_extra`: the provider leaves reasoning out of `completion_tokens`. What providers get wrong is
/// put right, so that prompt ≥ cached + written and completion ≥ reasoning. Source: docs/facts/wire-formats.md 8.3, R8.
pub(super) fn read(
    walk: &mut Walker<'_>,
    reasoning_is_extra: bool,
) -> Result<Option<Usage>, Error> {
    if walk.peek()? != Type::Object {
        walk.skip()?;
        return Ok(None);
    }
    let mut usage = Usage {
        unread: Unread {
            prompt: true,
            completion: true,
        },
        ..Usage::default()
    };
    walk.object(|walk, key| {
        match &*key {
            "prompt_tokens" => {
                let reported = count(walk)?;
                usage.unread.prompt = reported.is_none();
                usage.prompt = reported.unwrap_or(0);
            }
            "completion_tokens" => {
                let reported = count(walk)?;
                usage.unread.completion = reported.is_none();
                usage.completion = reported.unwrap_or(0);
            }
            "reasoning_tokens" => usage.reasoning = count(walk)?.or(usage.reasoning),
            "cached_tokens" | "prompt_cache_hit_tokens" => {
                usage.cached = count(walk)?.unwrap_or(usage.cached).max(usage.cached);
            }
            "num_search_queries" => usage.web_searches = count(walk)?.unwrap_or(0),
            "prompt_tokens_details" => prompt_details(walk, &mut usage)?,
            "completion_tokens_details" => completion_details(walk, &mut usage)?,
            _ => {
                walk.skip()?;
            }
        }
        Ok::<(), Error>(())
    })?;
    if reasoning_is_extra {
        usage.completion = usage
            .completion
            .saturating_add(usage.reasoning.unwrap_or(0));
    }
    usage.reasoning = usage
        .reasoning
        .map(|reasoning| reasoning.min(usage.completion));
    usage.cached = usage.cached.min(usage.prompt);
    usage.cache_write = usage.cache_write.min(usage.prompt - usage.cached);
    Ok(Some(usage))
}

fn prompt_details(walk: &mut Walker<'_>, usage: &mut Usage) -> Result<(), Error> {
    details(walk, |key, value| match key {
        "cached_tokens" => usage.cached = value,
        "cache_write_tokens" | "cache_creation_tokens" | "cache_creation_input_tokens" => {
            usage.cache_write = value;
        }
        "audio_tokens" => usage.audio_prompt = value,
        "image_tokens" => usage.image_prompt = value,
        "video_tokens" => usage.video_prompt = value,
        _ => {}
    })
}

fn completion_details(walk: &mut Walker<'_>, usage: &mut Usage) -> Result<(), Error> {
    details(walk, |key, value| match key {
        "reasoning_tokens" => usage.reasoning = Some(value),
        "audio_tokens" => usage.audio_completion = value,
        "image_tokens" => usage.image_completion = value,
        _ => {}
    })
}

fn details(walk: &mut Walker<'_>, mut take: impl FnMut(&str, u64)) -> Result<(), Error> {
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| ());
    }
    walk.object(|walk, key| {
        if let Some(value) = count(walk)? {
            take(&key, value);
        }
        Ok(())
    })
}

/// A count of tokens; `None` for anything else. Some providers write `12.0`.
fn count(walk: &mut Walker<'_>) -> Result<Option<u64>, Error> {
    if walk.peek()? != Type::Number {
        walk.skip()?;
        return Ok(None);
    }
    let number = walk.number()?;
    let whole = number
        .split_once('.')
        .filter(|(_, rest)| rest.bytes().all(|b| b == b'0'));
    Ok(whole.map_or(number, |(whole, _)| whole).parse().ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn whatever_is_reported_the_prompt_holds_what_was_cached_and_written(
            counts in prop::collection::vec(prop_oneof![0..5000_u64, any::<u64>()], 6), is_extra: bool,
        ) {
            let [prompt, completion, cached, hit, written, reasoning] = counts.try_into().unwrap();
            let report = json!({
                "prompt_tokens": prompt, "completion_tokens": completion, "prompt_cache_hit_tokens": hit,
                "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
                "completion_tokens_details": {"reasoning_tokens": reasoning},
            });
            let text = report.to_string();
            let mut walk = Walker::new(text.as_bytes()).unwrap();
            let usage = read(&mut walk, is_extra).unwrap().unwrap();
            prop_assert_eq!(usage.prompt, prompt);
            prop_assert!(usage.cached.checked_add(usage.cache_write).is_some_and(|sum| sum <= prompt));
            prop_assert!(usage.reasoning.unwrap() <= usage.completion);
        }
    }
}
