//! Scopes: the permissions of an MCP client's token.

/// A part of the MCP server that a person may open to a client.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// `models`: calls of models.
    Models,
    /// `decisions`: feature flags.
    Decisions,
    /// `limits:read`: limits and their remainders.
    LimitsRead,
    /// `account:read`: credit, usage and the key.
    AccountRead,
}

impl Scope {
    /// All scopes, in the order of metadata and of the consent page.
    pub const ALL: [Self; 4] = [
        Self::Models,
        Self::Decisions,
        Self::LimitsRead,
        Self::AccountRead,
    ];

    /// Returns the scope of a name, such as `limits:read`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }

    /// Returns the name in requests, tokens and metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Models => "models",
            Self::Decisions => "decisions",
            Self::LimitsRead => "limits:read",
            Self::AccountRead => "account:read",
        }
    }

    /// Returns the permission for people: the end of a sentence that begins "the client may".
    pub const fn permits(self) -> &'static str {
        match self {
            Self::Models => "call models, at the cost of the key’s organization",
            Self::Decisions => "read feature flags, decide them and override them",
            Self::LimitsRead => "see rate limits and what is left of them",
            Self::AccountRead => "see the credit, the usage and the limits of the key",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_scope_is_found_by_its_name_alone() {
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(scope));
        }
        for name in ["", "Models", "models ", "models decisions", "limits", "*"] {
            assert_eq!(Scope::parse(name), None, "{name}");
        }
        let permits: BTreeSet<&str> = Scope::ALL.into_iter().map(Scope::permits).collect();
        assert_eq!(permits.len(), Scope::ALL.len());
    }
}
