//! What may cost more than the bound, and why.

/// What a reader may take beyond the bound.
#[derive(Clone, Copy, Default)]
pub struct Allowance {
    /// Memory, whatever the input.
    pub bytes: u64,
    /// Memory for each byte of the input.
    pub per_byte: u64,
    /// CPU time, whatever the input. Units: nanoseconds.
    pub ns: f64,
    /// By how much longer twice the bytes may take, in times of half.
    pub growth: f64,
}

struct Exception {
    /// How the names of the readers begin.
    names: &'static str,
    allowance: Allowance,
    /// Why it is bounded all the same.
    #[expect(dead_code, reason = "for who reads the table")]
    reason: &'static str,
}

const MIB: u64 = 1 << 20;
/// A value of a tree takes 72 bytes, in a list that has doubled twice that again, and a comma and a digit name one.
const TREE: u64 = 64;
/// A slice of a text takes 16 bytes, a brace and a comma name one.
const SLICES: u64 = 24;

const EXCEPTIONS: [Exception; 23] = [
    Exception {
        names: "embeddings: lengths of texts",
        allowance: Allowance {
            bytes: 0,
            per_byte: 0,
            ns: 1e8,
            growth: 0.0,
        },
        reason: "the tokenizer is a library, whose time grows with the text alone: on a busy machine a run of spaces takes 0.35 µs a byte",
    },
    Exception {
        names: "chats: key of the response cache",
        allowance: Allowance {
            bytes: MIB,
            per_byte: 16,
            ns: 0.0,
            growth: 0.0,
        },
        reason: "members are sorted by name before they are hashed: a list of slices",
    },
    Exception {
        names: "chats: Contents",
        allowance: Allowance {
            bytes: 26 * MIB,
            per_byte: 32,
            ns: 5e7,
            growth: 0.0,
        },
        reason: "schemas have at most 32,768 values with references inlined, and a request at most 20,000 parts and calls and \
            10,000 messages",
    },
    Exception {
        names: "chats: ",
        allowance: Allowance {
            bytes: 0,
            per_byte: 32,
            ns: 0.0,
            growth: 0.0,
        },
        reason: "a message of thirty bytes takes 1 KiB while it is written, and a request has at most 20,000 parts and calls and \
            10,000 messages; a schema that is closed has at most 32,768 values",
    },
    Exception {
        names: "contents: ",
        allowance: Allowance {
            bytes: 0,
            per_byte: 64,
            ns: 0.0,
            growth: 0.0,
        },
        reason: "a content of thirty bytes takes 2 KiB while it is written, and a request has at most 200,000 parts and 100,000 contents; \
            a schema that is closed has at most 32,768 values",
    },
    Exception {
        names: "responses: ",
        allowance: Allowance {
            bytes: 0,
            per_byte: 48,
            ns: 0.0,
            growth: 0.0,
        },
        reason: "an item of thirty bytes takes 1 KiB while it is written, and a request has at most 100,000 items, 200,000 parts \
            and 4,096 tools",
    },
    tree(
        "contexts of OFREP",
        "a body has at most 256 KiB (`limits.body_bytes.decisions`)",
    ),
    tree(
        "bodies of decisions",
        "a body has at most 256 KiB (`limits.body_bytes.decisions`)",
    ),
    tree(
        "batches of decisions",
        "a body has at most 1 MiB (`limits.body_bytes.batch`)",
    ),
    tree(
        "segments",
        "the operator's own service answers, of at most 1 MiB",
    ),
    tree(
        "predictions",
        "the operator's own service answers, of at most 1 MiB",
    ),
    tree(
        "datafiles",
        "the operator's own datafile: its conditions are trees",
    ),
    tree(
        "sets of keys",
        "the operator's own issuer answers, of at most 1 MiB",
    ),
    tree(
        "requests for tokens",
        "a body has at most 256 KiB (`limits.body_bytes.decisions`)",
    ),
    tree("metadata of clients", "a document has at most 32 KiB"),
    tree(
        "messages",
        "the bound of bodies of the Model Context Protocol holds",
    ),
    tree("refusals", "64 KiB of a refusal are kept"),
    tree(
        "replies: Contents, videos",
        "a reply of a job has at most 4 MiB, of a provider that the operator chose",
    ),
    tree(
        "replies: Contents",
        "whole replies of this provider hold trees of calls, and what they say of their sources",
    ),
    slices("replies: Messages", "blocks are slices of the reply"),
    slices("replies: Responses", "items are slices of the reply"),
    slices(
        "replies: Compatible",
        "items of lists are slices of the reply",
    ),
    slices("replies: ", "items of lists are slices of the reply"),
];

/// What becomes a tree, and is bounded otherwise.
const fn tree(names: &'static str, reason: &'static str) -> Exception {
    let allowance = Allowance {
        bytes: 0,
        per_byte: TREE,
        ns: 0.0,
        // That of a megabyte is larger than the caches, which half of it shares with fewer.
        growth: 0.5,
    };
    Exception {
        names,
        allowance,
        reason,
    }
}

/// What becomes a list of slices.
const fn slices(names: &'static str, reason: &'static str) -> Exception {
    let allowance = Allowance {
        bytes: 0,
        per_byte: SLICES,
        ns: 0.0,
        growth: 0.0,
    };
    Exception {
        names,
        allowance,
        reason,
    }
}

/// Returns what a reader may take beyond the bound.
pub fn allowance(name: &str) -> Allowance {
    let found = EXCEPTIONS
        .iter()
        .find(|exception| name.starts_with(exception.names));
    found.map_or_else(Allowance::default, |exception| exception.allowance)
}
