//! What a provider does with each parameter of a request: one table per mapping.
//!
//! A wire has a table, a provider's configuration changes it, and so does a mapping of the catalogue. Planning leaves
//! out the mappings that refuse what a request asks for; a wire reads the table where it encodes a request.

use std::borrow::Cow;

use super::parameters_file::{Outside, WrittenParameters};
use crate::models::parameter::{AskedParameters, Parameter, ParameterSet};

/// The table of one mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    dropped: ParameterSet,
    refused: ParameterSet,
    /// The same while the model reasons.
    dropped_with_reasoning: ParameterSet,
    refused_with_reasoning: ParameterSet,
    /// Sets of which a request may ask for one parameter.
    exclusive: Vec<ParameterSet>,
    /// Other names of members.
    names: Vec<(Parameter, Box<str>)>,
    bounds: Vec<(Parameter, Bounds)>,
}

/// The numbers that a provider takes, or how many items of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub min: f64,
    pub max: f64,
    /// What happens to other numbers.
    pub outside: Outside,
}

/// What becomes of a parameter that a request has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Treatment {
    /// It goes out as it is.
    Pass,
    /// It goes out as this number.
    Number(f64),
    /// It does not go out.
    Drop,
}

impl Parameters {
    /// The table that passes everything.
    pub const PLAIN: &'static Self = &Self::plain();

    /// Returns the table that passes everything.
    pub const fn plain() -> Self {
        Self {
            dropped: ParameterSet::EMPTY,
            refused: ParameterSet::EMPTY,
            dropped_with_reasoning: ParameterSet::EMPTY,
            refused_with_reasoning: ParameterSet::EMPTY,
            exclusive: Vec::new(),
            names: Vec::new(),
            bounds: Vec::new(),
        }
    }

    /// Returns the table of a wire that is not of OpenAI's family.
    ///
    /// Dropped are wishes without which the answer is of the same kind; what would change its kind is refused.
    pub fn of_another_convention() -> Self {
        Self::plain()
            .without(
                &[
                    Parameter::SafetyIdentifier,
                    Parameter::PromptCacheKey,
                    Parameter::PromptCacheRetention,
                    Parameter::PromptCacheOptions,
                    Parameter::SensitiveWordCheck,
                    Parameter::Store,
                    Parameter::Metadata,
                    Parameter::Prediction,
                    Parameter::MessageName,
                    Parameter::ImageDetail,
                    Parameter::ImageQuality,
                    Parameter::ImageModeration,
                    Parameter::ImageSeed,
                    Parameter::ToolSearch,
                    Parameter::AllowedCallers,
                ],
                &[
                    Parameter::LogitBias,
                    Parameter::Logprobs,
                    Parameter::TopLogprobs,
                    Parameter::Verbosity,
                    Parameter::Effort,
                    Parameter::Modalities,
                    Parameter::Audio,
                    Parameter::Functions,
                    Parameter::FunctionCall,
                    Parameter::ImageAspectRatio,
                    Parameter::ImageSize,
                    Parameter::ImageCount,
                    Parameter::VendorSafeguards,
                ],
            )
            .without_image_options()
    }

    /// Returns this table without what only an API of images has words for.
    #[must_use]
    pub fn without_image_options(self) -> Self {
        let options = Parameter::ALL.into_iter();
        let options: Vec<Parameter> = options
            .filter(|parameter| parameter.is_of_images() && *parameter != Parameter::ImageStyle)
            .collect();
        self.without(&[Parameter::ImageStyle], &options)
    }

    /// Returns this table with these parameters dropped and those refused.
    #[must_use]
    pub fn without(mut self, dropped: &[Parameter], refused: &[Parameter]) -> Self {
        self.dropped = self.dropped.union(dropped.iter().copied().collect());
        self.refused = self.refused.union(refused.iter().copied().collect());
        self
    }

    /// Returns this table with the changes that a configuration or a catalogue writes.
    #[must_use]
    pub fn with(&self, written: &WrittenParameters) -> Self {
        let mut table = self.clone();
        for parameter in written.pass.iter().copied() {
            table.forget(parameter);
        }
        for parameter in written.drop.iter().copied() {
            table.forget(parameter);
            table.dropped.insert(parameter);
        }
        for parameter in written.refuse.iter().copied() {
            table.forget(parameter);
            table.refused.insert(parameter);
        }
        for parameter in written.drop_with_reasoning.iter().copied() {
            table.refused_with_reasoning.remove(parameter);
            table.dropped_with_reasoning.insert(parameter);
        }
        for parameter in written.refuse_with_reasoning.iter().copied() {
            table.dropped_with_reasoning.remove(parameter);
            table.refused_with_reasoning.insert(parameter);
        }
        for group in &written.exclusive {
            table.exclusive.push(group.iter().copied().collect());
        }
        for (parameter, name) in &written.rename {
            table.names.retain(|(named, _)| named != parameter);
            table.names.push((*parameter, name.as_str().into()));
        }
        for (parameter, bounds) in &written.bounds {
            table.bounds.retain(|(bounded, _)| bounded != parameter);
            let bounds = Bounds {
                min: bounds.min.unwrap_or(f64::NEG_INFINITY),
                max: bounds.max.unwrap_or(f64::INFINITY),
                outside: bounds.outside.unwrap_or_default(),
            };
            table.bounds.push((*parameter, bounds));
        }
        table
    }

    /// Takes a parameter out of all sets.
    fn forget(&mut self, parameter: Parameter) {
        self.dropped.remove(parameter);
        self.refused.remove(parameter);
        self.dropped_with_reasoning.remove(parameter);
        self.refused_with_reasoning.remove(parameter);
        self.exclusive.retain(|group| !group.contains(parameter));
    }

    /// Checks what a request asks for; `reasons`: the model reasons while it answers.
    ///
    /// Errors: the first parameter that is refused, and why.
    pub fn check(
        &self,
        asked: &AskedParameters,
        reasons: bool,
    ) -> Result<(), (Parameter, Cow<'static, str>)> {
        if let Some(parameter) = asked.set.intersection(self.refused).iter().next() {
            return Err((parameter, takes_no(parameter)));
        }
        if reasons
            && let refused = asked.set.intersection(self.refused_with_reasoning)
            && let Some(parameter) = refused.iter().next()
        {
            let reason = format!("{} while it reasons", takes_no(parameter));
            return Err((parameter, reason.into()));
        }
        for group in &self.exclusive {
            let both = asked.set.intersection(*group);
            if both.len() > 1
                && let Some(parameter) = both.iter().last()
            {
                let names: Vec<&str> = both.iter().map(Parameter::as_str).collect();
                let reason = format!("takes only one of `{}`", names.join("` and `"));
                return Err((parameter, reason.into()));
            }
        }
        self.check_bounds(asked)
    }

    fn check_bounds(&self, asked: &AskedParameters) -> Result<(), (Parameter, Cow<'static, str>)> {
        for (parameter, bounds) in &self.bounds {
            if bounds.outside == Outside::Refuse
                && let Some(number) = asked.number(*parameter)
                && !(bounds.min..=bounds.max).contains(&number)
            {
                let name = parameter.as_str();
                let reason = match (bounds.min.is_finite(), bounds.max.is_finite()) {
                    _ if *parameter == Parameter::StrictTools => {
                        format!("takes at most {} strict functions", bounds.max)
                    }
                    (true, true) => {
                        format!("takes `{name}` from {} to {}", bounds.min, bounds.max)
                    }
                    (true, false) => format!("takes `{name}` of at least {}", bounds.min),
                    _ => format!("takes `{name}` of at most {}", bounds.max),
                };
                return Err((*parameter, reason.into()));
            }
        }
        Ok(())
    }

    /// Returns what becomes of a parameter that a request has; `reasons`: the model reasons while it answers.
    ///
    /// A refused parameter that planning has let through asks for nothing, so it is dropped, unless it says what holds
    /// without it, such as the choice of tools `none`.
    pub fn treat(&self, parameter: Parameter, asked: &AskedParameters, reasons: bool) -> Treatment {
        let mut left_out = self.dropped.union(self.refused);
        if reasons {
            left_out = left_out
                .union(self.dropped_with_reasoning)
                .union(self.refused_with_reasoning);
        }
        let is_beside_another = |group: &ParameterSet| {
            group.contains(parameter)
                && !asked.set.contains(parameter)
                && !asked.set.intersection(*group).is_empty()
        };
        let is_left_out = left_out.contains(parameter) && !parameter.is_essential();
        if is_left_out || self.exclusive.iter().any(is_beside_another) {
            return Treatment::Drop;
        }
        let mut bounds = self.bounds.iter();
        let Some((_, bounds)) = bounds.find(|(bounded, _)| *bounded == parameter) else {
            return Treatment::Pass;
        };
        match asked.number(parameter) {
            Some(number) if number < bounds.min => Treatment::Number(bounds.min),
            Some(number) if number > bounds.max => Treatment::Number(bounds.max),
            _ => Treatment::Pass,
        }
    }

    /// Returns the name that the provider has for a member of the request.
    pub fn name(&self, parameter: Parameter) -> &str {
        let mut names = self.names.iter();
        names
            .find(|(named, _)| *named == parameter)
            .map_or(parameter.as_str(), |(_, name)| name)
    }

    /// Returns whether a parameter is dropped whatever a request asks for besides.
    pub fn drops(&self, parameter: Parameter) -> bool {
        self.dropped.contains(parameter)
    }

    /// Returns whether a parameter acts: it is neither dropped nor refused, at least while the model does not reason.
    pub fn supports(&self, parameter: Parameter) -> bool {
        !self.dropped.union(self.refused).contains(parameter)
    }
}

/// Returns the reason of a refusal.
fn takes_no(parameter: Parameter) -> Cow<'static, str> {
    match parameter {
        Parameter::Tools => "takes no function tools".into(),
        Parameter::ToolChoice => "forces no tool call".into(),
        Parameter::VendorSafeguards => "runs no safeguards".into(),
        Parameter::TokenInputs => "takes texts, not tokens".into(),
        Parameter::ToolResultMedia => "takes no images, audio or files in results of tools".into(),
        _ => format!("takes no `{}`", parameter.as_str()).into(),
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
