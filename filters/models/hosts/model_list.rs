//! Where hosts list what they offer.

use crate::models::routing::MappingWire;

/// A list of models of a host.
#[derive(Clone, Copy, Debug)]
pub struct ModelList {
    /// The path and the query behind its base URL.
    pub path: &'static str,
    /// The base URL where the operator wrote none, in which `{region}` stands for the region; `None`: that of the host.
    pub base_url: Option<&'static str>,
    /// The member of a reply that names the next page, and the parameter that asks for it; `None`: one page has all.
    pub next_page: Option<[&'static str; 2]>,
    /// The wires whose models it has; empty: all.
    pub wires: &'static [MappingWire],
    /// What an account has to be allowed; empty: nothing beside calls.
    pub right: &'static str,
}

/// The lists of a host.
#[derive(Clone, Copy, Debug)]
pub struct ModelLists {
    pub lists: &'static [ModelList],
    /// Whether the first list that answers has everything. Otherwise each has a part.
    pub first_suffices: bool,
    /// What helps a mapping whose model is on no list.
    pub absent_cure: &'static str,
}

impl ModelList {
    /// Returns a list of one page behind the host's base URL, which every key may read.
    pub(super) const fn at(path: &'static str) -> Self {
        Self {
            path,
            base_url: None,
            next_page: None,
            wires: &[],
            right: "",
        }
    }

    /// Returns the base URL of the list, if it has another than the host, in a region.
    pub fn base_url_in(&self, region: &str) -> Option<String> {
        self.base_url.map(|url| url.replace("{region}", region))
    }

    /// Returns whether it has the models of a wire.
    pub fn covers(&self, wire: Option<MappingWire>) -> bool {
        self.wires.is_empty() || wire.is_some_and(|wire| self.wires.contains(&wire))
    }
}

impl ModelLists {
    /// No list.
    pub(super) const NONE: Self = Self::each(&[]);

    /// Returns lists of which each has a part, of a catalogue that is wrong where they differ.
    pub(super) const fn each(lists: &'static [ModelList]) -> Self {
        Self {
            lists,
            first_suffices: false,
            absent_cure: "correct their names in the catalogue, or take them out",
        }
    }

    /// Returns whether enough lists have answered to say that a model of a wire is on none; `answered` says it of each list.
    pub fn can_miss(&self, wire: Option<MappingWire>, answered: &[bool]) -> bool {
        let lists = self.lists.iter().zip(answered);
        let mut covering = lists.filter(|(list, _)| list.covers(wire)).peekable();
        match (covering.peek().is_none(), self.first_suffices) {
            (true, _) => false,
            (false, true) => covering.any(|(_, answered)| *answered),
            (false, false) => covering.all(|(_, answered)| *answered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProviderKind;
    use super::*;

    #[test]
    fn a_model_is_missed_only_where_the_lists_of_its_wire_have_answered() {
        let bedrock = &ProviderKind::Bedrock.host().model_lists;
        assert!(bedrock.can_miss(None, &[true, true, true]));
        assert!(!bedrock.can_miss(Some(MappingWire::Chat), &[true, false, true]));
        let azure = &ProviderKind::Azure.host().model_lists;
        assert!(azure.can_miss(None, &[false, true]));
        assert!(!azure.can_miss(None, &[false, false]));
        let vertex = &ProviderKind::Vertex.host().model_lists;
        let of = |wire| vertex.can_miss(Some(wire), &[true, false]);
        let wires = [
            MappingWire::Gemini,
            MappingWire::Messages,
            MappingWire::Chat,
        ];
        assert_eq!(wires.map(of), [true, false, false]);
        assert!(!ModelLists::NONE.can_miss(None, &[]));
    }

    #[test]
    fn only_https_hosts_of_the_cloud_have_lists_of_their_own() {
        for list in ProviderKind::Bedrock.host().model_lists.lists {
            let url = list.base_url_in("eu-west-1");
            assert_eq!(
                url.as_deref(),
                Some("https://bedrock.eu-west-1.amazonaws.com")
            );
        }
    }
}
