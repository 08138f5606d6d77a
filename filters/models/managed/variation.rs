//! The variation of a flag, as a request is filled with it.

use std::sync::Arc;

use crate::fault::{Fault, FaultKind, quoted};
use crate::fault_code::FaultCode;
use crate::json::{Type, Walker};
use crate::ledger::ExperimentNames;
use crate::models::prompts::prompt::PromptParameter;
use crate::models::prompts::reference::PromptReference;

/// The prefix of a model string that names a flag.
pub const FLAG_PREFIX: &str = "@flag/";

/// What a flag says for a user.
#[derive(Clone, Debug)]
pub struct DecidedVariation {
    pub names: Arc<ExperimentNames>,
    /// Its variables: key, value as JSON.
    pub variables: Vec<(Box<str>, Box<str>)>,
}

/// A variation whose variables are told apart.
#[derive(Clone, Debug)]
pub struct Variation {
    pub names: Arc<ExperimentNames>,
    pub model: Option<Box<str>>,
    pub prompt: Option<PromptReference>,
    pub parameters: Vec<PromptParameter>,
    /// All others, as JSON: values for variables of the prompt.
    pub variables: Vec<(Box<str>, Box<str>)>,
}

impl Variation {
    /// Tells the variables apart: `model`, `prompt`, members of a request, and all others. Null says nothing, and neither does
    /// an empty text where the request has a field, because every variation has a value for every variable of its flag.
    ///
    /// Errors: 400 naming a variable of another type.
    pub fn read(decided: DecidedVariation, is_field: impl Fn(&str) -> bool) -> Result<Self, Fault> {
        let mut variation = Self {
            names: decided.names,
            model: None,
            prompt: None,
            parameters: Vec::new(),
            variables: Vec::new(),
        };
        for (key, json) in decided.variables {
            let is_of_request = matches!(&*key, "model" | "prompt") || is_field(&key);
            if &*json == "null" || is_of_request && &*json == "\"\"" {
                continue;
            }
            match &*key {
                "model" => variation.model = Some(variation.text(&key, &json, "a model id")?),
                "prompt" => {
                    let accepted = "NAME, NAME@LABEL or NAME@VERSION of a managed prompt";
                    let text = variation.text(&key, &json, accepted)?;
                    let reference = PromptReference::parse(&text);
                    variation.prompt = Some(reference.ok_or_else(|| {
                        let said = format!("is {:?}; accepted is {accepted}", quoted(&text));
                        variation.names.fault(&key, &said)
                    })?);
                }
                _ if is_of_request => variation.parameters.push(PromptParameter { key, json }),
                _ => variation.variables.push((key, json)),
            }
        }
        Ok(variation)
    }

    fn text(&self, key: &str, json: &str, accepted: &str) -> Result<Box<str>, Fault> {
        match Walker::over(json).string() {
            Ok(text) => Ok(text.unescaped().into()),
            Err(_) => {
                let said = format!("is {}; accepted is {accepted}", type_of(json).as_str());
                Err(self.names.fault(key, &said))
            }
        }
    }
}

fn type_of(json: &str) -> Type {
    Walker::over(json).peek().unwrap_or(Type::Null)
}

/// Returns the fault of a flag that decides nothing: 404.
pub fn no_flag(flag: &str, said: &str) -> Fault {
    let message = format!("the flag {:?} {said}", quoted(flag));
    Fault::new(FaultKind::NotFound, message)
        .with_code(FaultCode::FlagNotFound)
        .with_param("model")
}
