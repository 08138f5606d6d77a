//! `usage` of a response. Source: docs/model-gateway.md 2.7.

use crate::json::Object;
use crate::models::metadata::write_cost_basis;
use crate::models::usage::Settlement;

/// About how many bytes [`write_usage`] writes.
pub(super) const USAGE_CAPACITY: usize = 700;

/// Writes the tokens and the cost.
pub(super) fn write_usage(settlement: &Settlement, out: &mut Vec<u8>) {
    let usage = &settlement.usage;
    let details = |object: &mut Object<'_>, key, images: u64, all: u64| {
        object.object(key, |details| {
            details.number("image_tokens", images.min(all));
            details.number("text_tokens", all.saturating_sub(images));
        });
    };
    let mut object = Object::open(out);
    object.number("input_tokens", usage.prompt);
    object.number("output_tokens", usage.completion);
    object.number("total_tokens", usage.total());
    details(
        &mut object,
        "input_tokens_details",
        usage.image_prompt,
        usage.prompt,
    );
    details(
        &mut object,
        "output_tokens_details",
        usage.image_completion,
        usage.completion,
    );
    match &settlement.cost {
        Some(cost) => {
            object.value("cost", |out| cost.total.write(out));
            object.value("cost_details", |out| cost.details.write(out));
        }
        None => object.raw("cost", "null"),
    }
    if usage.is_api_equivalent {
        write_cost_basis(&mut object);
    }
    if usage.estimated {
        object.text("info", "estimated");
    }
    object.close();
}
