//! The usage of a transcript, in the convention's two forms.

use crate::json::{Object, write_number};
use crate::models::usage::Settlement;
use crate::money::Unit;

/// Writes the members of `usage`: the seconds where the provider tells them, else the tokens.
pub(super) fn write(settlement: &Settlement, out: &mut Object<'_>) {
    let usage = &settlement.usage;
    let ms = usage.units.get(Unit::InputTime);
    if ms > 0 {
        out.text("type", "duration");
        out.value("seconds", |out| write_seconds(ms, out));
    } else {
        out.text("type", "tokens");
        out.number("input_tokens", usage.prompt);
        out.object("input_token_details", |details| {
            let text = usage.prompt.saturating_sub(usage.audio_prompt);
            details.number("text_tokens", text);
            details.number("audio_tokens", usage.audio_prompt);
        });
        out.number("output_tokens", usage.completion);
        out.number("total_tokens", usage.total());
    }
    if usage.estimated {
        out.text("info", "estimated");
    }
}

/// Returns the object.
pub(super) fn object(settlement: &Settlement) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    write(settlement, &mut object);
    object.close();
    out
}

/// Writes milliseconds as seconds, with decimals only where they say something.
fn write_seconds(ms: u64, out: &mut Vec<u8>) {
    write_number(ms / 1000, out);
    let rest = ms % 1000;
    if rest > 0 {
        let decimals = format!(".{rest:03}");
        out.extend_from_slice(decimals.trim_end_matches('0').as_bytes());
    }
}
