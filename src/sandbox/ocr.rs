//! Reads documents. Each page has its number and names its document.

use serde_json::{Value, json};

/// The pages of a document if the request names none.
const ALL_PAGES: [u64; 2] = [0, 1];

/// The maximum characters of a document's address that its pages repeat.
const MAX_NAME_CHARS: usize = 400;

/// Returns the reply in the convention's shape, or `None` without a document.
pub(super) fn read(request: &Value) -> Option<Value> {
    let document = request.get("document")?;
    let image = document.get("image_url");
    let image = image.map(|image| image.get("url").unwrap_or(image));
    let address = image.or_else(|| document.get("document_url"))?.as_str()?;
    // Each page repeats the address, so data URLs and long addresses are cut.
    let name = address.split(',').next().unwrap_or_default();
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    let pages: Vec<u64> = match request.get("pages").and_then(Value::as_array) {
        Some(named) => named.iter().filter_map(Value::as_u64).collect(),
        None if image.is_some() => vec![0],
        None => ALL_PAGES.to_vec(),
    };
    let page = |index: &u64| {
        json!({
            "index": index,
            "markdown": format!("# Page {index}\n\nof {name}"),
            "images": [],
            "dimensions": {"dpi": 200, "height": 2200, "width": 1700},
        })
    };
    let annotates = ["document_annotation_format", "bbox_annotation_format"];
    let annotates = annotates
        .iter()
        .any(|key| request.get(key).is_some_and(Value::is_object));
    Some(json!({
        "pages": pages.iter().map(page).collect::<Value>(),
        "model": request.get("model"),
        "document_annotation": annotates.then_some("{}"),
        "usage_info": {"pages_processed": pages.len(), "doc_size_bytes": address.len()},
    }))
}
