//! Moderations: what wires need to know of a request.

/// What a front found in a request to judge texts and pictures.
#[derive(Clone, Copy, Debug)]
pub struct ModerationFacts {
    /// How many results the reply has to hold: one for each text of a list, else one.
    pub results: usize,
    /// Whether the input is a list of parts that are texts alone, which go out as one text: so every provider takes them.
    pub is_text_parts: bool,
}
