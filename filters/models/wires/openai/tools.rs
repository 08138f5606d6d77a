//! Tools with what this provider does not take left out. Source: docs/model-gateway.md 2.4.

use std::ops::Range;

use super::messages::{kept, without_member};
use super::request::walker;
use crate::fault::Fault;
use crate::json::{Error, Str, Walker};
use crate::models::parameter::Parameter;
use crate::models::request::RequestMember;
use crate::models::wires::splice::internal;
use crate::models::wires::splice::{Splice, span};
use crate::models::wires::wire::Target;

/// Writes the member `tools` without what belongs to other providers or is dropped, and with the provider's own search.
pub(super) fn rewrite(
    member: &RequestMember,
    target: &Target<'_>,
    search: Option<&str>,
    splice: &mut Splice<'_>,
) -> Result<(), Fault> {
    splice.new_bytes(b"\"tools\":[");
    let written = write_functions(member.value.clone(), target, splice).map_err(internal)?;
    if let Some(search) = search {
        splice.new_bytes(if written > 0 { b"," } else { b"" });
        splice.new_bytes(search.as_bytes());
    }
    splice.new_bytes(b"]");
    Ok(())
}

/// Writes the functions among the tools; returns how many there are.
fn write_functions(
    range: Range<usize>,
    target: &Target<'_>,
    splice: &mut Splice<'_>,
) -> Result<usize, Error> {
    let takes_strict = target.parameters.supports(Parameter::StrictTools);
    let (mut walk, base) = walker(splice, range);
    let mut written = 0;
    walk.array(|walk, _| {
        let kept = kept(splice, span(walk, base)?, target)?;
        let kind = kept.iter().find(|(key, _)| key == "type");
        let kind = kind.map(|(_, kind)| Walker::over(splice.text(kind.clone())).string());
        let kind = kind.transpose()?.map(Str::unescaped);
        if kind.as_deref() != Some("function") {
            return Ok(());
        }
        splice.new_bytes(if written > 0 { b",{" } else { b"{" });
        written += 1;
        for (at, (key, value)) in kept.into_iter().enumerate() {
            splice.write_name(&key, &mut (at == 0));
            match key.as_str() {
                "function" if !takes_strict => without_member(splice, value, "strict")?,
                _ => splice.slice(value),
            }
        }
        splice.new_bytes(b"}");
        Ok::<(), Error>(())
    })?;
    Ok(written)
}
