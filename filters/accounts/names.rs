//! Names of organizations, projects, members and provider keys, and labels of keys.

/// The maximum length of a name, in characters.
const MAX_CHARS: usize = 128;

/// Checks a name, or a label, which may be empty.
///
/// Errors: what is wrong with it, to be written behind its kind or its text.
pub fn check_account_name(name: &str, may_be_empty: bool) -> Result<(), &'static str> {
    if name.is_empty() && !may_be_empty {
        Err("is empty")
    } else if name.trim() != name {
        Err("begins or ends with a space")
    } else if name.chars().any(char::is_control) {
        Err("has a control character")
    } else if name.chars().count() > MAX_CHARS {
        Err("has more than 128 characters")
    } else {
        Ok(())
    }
}
