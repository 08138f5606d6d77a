//! Tools that a provider runs by itself, and the members of tools that only some providers know.
//! Source: docs/model-gateway.md 2.4.

use super::Findings;
use crate::json::Walker;
use crate::models::check::read::{
    Limit, array, boolean, limit, object_of_set, one_of, required, string,
};
use crate::models::check::reject::Reject;
use crate::models::parameter::Parameter;
use crate::models::request::SearchNeeds;

/// The members of a tool of any type.
pub(super) const TOOL: [&str; 12] = [
    "type",
    "function",
    "allowed_callers",
    "defer_loading",
    "cache_control",
    "tool_search_type",
    "name",
    "user_location",
    "search_context_size",
    "max_uses",
    "allowed_domains",
    "blocked_domains",
];

/// What a tool holds beside its function.
#[derive(Default)]
pub(super) struct HostedTool {
    pub(super) has_breakpoint: bool,
    defers: bool,
    names_callers: bool,
    has_search_type: bool,
    max_uses: Option<Limit>,
    options: Vec<Parameter>,
}

impl HostedTool {
    /// Reads a member other than those of a function.
    pub(super) fn member(&mut self, walk: &mut Walker<'_>, key: &str) -> Result<(), Reject> {
        match key {
            "defer_loading" => self.defers = boolean(walk)?,
            "allowed_callers" => self.names_callers = strings(walk)? > 0,
            "tool_search_type" => {
                let kind = string(walk)?.unescaped();
                if !kind.starts_with("tool_search_tool") {
                    let shown: String = kind.chars().take(40).collect();
                    return Err(Reject::rule(format!(
                        "is {shown:?}; accepted is a name that begins with `tool_search_tool`"
                    )));
                }
                self.has_search_type = true;
            }
            "user_location" => {
                object_of_set(
                    walk,
                    &["city", "region", "country", "timezone"],
                    |walk, _| string(walk).map(|_| ()),
                )?;
                self.options.push(Parameter::SearchLocation);
            }
            "search_context_size" => {
                one_of(walk, &["low", "medium", "high"])?;
                self.options.push(Parameter::SearchContextSize);
            }
            "max_uses" => {
                self.max_uses = Some(limit(walk)?);
                self.options.push(Parameter::SearchMaxUses);
            }
            "allowed_domains" | "blocked_domains" => {
                let parameter = match key {
                    "allowed_domains" => Parameter::AllowedDomains,
                    _ => Parameter::BlockedDomains,
                };
                if strings(walk)? > 0 {
                    self.options.push(parameter);
                }
            }
            _ => _ = string(walk)?,
        }
        Ok(())
    }

    /// Notes the tool, once its type is known.
    pub(super) fn note(self, kind: &str, found: &mut Findings) -> Result<(), Reject> {
        let at = found.tools;
        found.tools += 1;
        if kind == "function" {
            return self.note_function(at, found);
        }
        found.is_special = true;
        if self.defers {
            let said = "is true for a tool that the provider runs; accepted is true for functions";
            return Err(Reject::rule(said).within("defer_loading"));
        }
        if kind == "tool_search" {
            found.has_tool_search = true;
            found.asked.set.insert(Parameter::ToolSearch);
            let accepted = "a name that begins with `tool_search_tool`";
            return required(
                self.has_search_type.then_some(()),
                "tool_search_type",
                accepted,
            );
        }
        if found.search_tool.is_some() {
            let said = "is a second `web_search` tool; accepted is one";
            return Err(Reject::rule(said).within("type"));
        }
        found.search_tool = Some(SearchNeeds {
            is_tool: true,
            is_demanded: false,
            max_uses: self.max_uses.as_ref().map(|limit| limit.count),
        });
        // Without a bound a provider would search as often as it likes: it is told the one that is reserved.
        let odd = self
            .max_uses
            .filter(|limit| limit.number < f64::from(u32::MAX));
        found.needs.odd_max_uses = odd.and_then(|limit| limit.odd);
        found.search_options = self.options.into_iter().collect();
        Ok(())
    }

    fn note_function(self, at: usize, found: &mut Findings) -> Result<(), Reject> {
        found.is_special |= self.defers || self.names_callers;
        if self.names_callers {
            found.asked.set.insert(Parameter::AllowedCallers);
        }
        if !self.defers {
            return Ok(());
        }
        if self.has_breakpoint {
            let said = "is true beside `cache_control`; accepted is one of them";
            return Err(Reject::rule(said).within("defer_loading"));
        }
        found.deferred.get_or_insert(at);
        Ok(())
    }
}

/// What holds between tools.
pub(super) fn check_together(found: &Findings) -> Result<(), Reject> {
    match found.deferred {
        Some(at) if !found.has_tool_search => {
            let said = "is true, but `tools` holds no `tool_search` tool; accepted is false";
            Err(Reject::rule(said).within("defer_loading").within_item(at))
        }
        _ => Ok(()),
    }
}

/// Notes the web search that flag, tool and choice ask for together. The choice `none` asks for none.
pub(super) fn note_search(found: &mut Findings) -> Result<(), Reject> {
    if found.demands_search && found.search_tool.is_none() {
        let said = "demands a search, but `tools` holds no `web_search` tool; accepted is `auto` or `none`";
        return Err(Reject::rule(said).within("tool_choice"));
    }
    if found.calls_nothing {
        return Ok(());
    }
    let by_flag = found.search_flag.then(SearchNeeds::default);
    found.needs.web_search = found.search_tool.or(by_flag).map(|search| SearchNeeds {
        is_demanded: found.demands_search,
        ..search
    });
    if found.needs.web_search.is_some() {
        found.asked.set.insert(Parameter::WebSearch);
        found.asked.set = found.asked.set.union(found.search_options);
    }
    if found.demands_search {
        found.asked.set.insert(Parameter::ToolChoice);
    }
    Ok(())
}

fn strings(walk: &mut Walker<'_>) -> Result<usize, Reject> {
    array(walk, |walk, _| string(walk).map(|_| ()))
}
