//! Retired names. These words are not the words of the field, or they stood for several things at once. Every one
//! of these things has a name of the field now.

/// The beginning of a path, and the names that definitions in these files must not have, separated by spaces.
pub type Retired = (&'static str, &'static str);

/// Structs, enums, traits, unions and type aliases.
pub const TYPES: &[Retired] = &[
    (
        "",
        "Asked Chosen Doubled Ended Envelope Fetched Fold Found Given Gone Heart House Kept Kindred Ladder Lines \
         Lookups Organs Own OwnKey OwnKeys Patience Place Presented Published Rhythm Seat Settled Short Situation \
         Sticky Taken Teller Tellers Ticket Told TurnedAway Turns Want Who Whose Written",
    ),
    ("src/", "Answer Answers Choice Flags Gateway Watch"),
    ("src/accounts/", "Accounts"),
    ("src/app/", "Row"),
    ("src/config/", "Origin"),
    ("src/config/checked", "Kind"),
    (
        "src/decisions/",
        "Copies Events Flying Follower Hashing Known Listener Loaded Notices Predictor Projects SegmentEvents \
         Shelf Turn",
    ),
    (
        "src/graph/",
        "Alone Behind Cache Collecting Flight Nothing Outcome",
    ),
    ("src/ledger/", "Account Adopted Files NewCall Open"),
    ("src/limits/", "Counters Shared"),
    ("src/models/", "Keys Step Upstream"),
    ("src/proxy/", "Heads Held Open Slot Wait"),
    ("src/store/ledger/", "Change"),
    ("filters/accounts/", "Accounts Key Terms"),
    (
        "filters/decisions/",
        "Activated Body Decided Members Pairs Question",
    ),
    ("filters/fault", "Kind"),
    ("filters/graph/credentials/", "Class Proof"),
    ("filters/ledger/", "Parts Reached"),
    ("filters/limits/", "Key"),
    (
        "filters/models/",
        "Alike Attempted Compatible Encoded Family",
    ),
    ("filters/models/chat/", "Call"),
    ("filters/models/fronts/", "Members Stream"),
    ("filters/models/request", "Request"),
    ("filters/models/routing/", "Metrics Outcome"),
    ("filters/models/wires/", "Provider"),
    ("filters/money/", "Bounds Parts Reached"),
];

/// Modules.
pub const MODULES: &[Retired] = &[(
    "",
    "adopt alike choice copies envelope fold gateway held house kept kindred learn lend notices organs \
     place predictor retired seal seat shelf spoken storing ticket told truth turned_away upstreams watch worst \
     written",
)];

/// Functions and methods. A conversion is `from_x`, `to_x`, `into_x` or `as_str`.
pub const FUNCTIONS: &[Retired] = &[
    (
        "",
        "begin_anew bills_anyway from_where give_back give_length give_up has_left in_vain is_for_nobody_else \
         is_gone is_late is_ours is_own last_words look_up lose may_keep midway of only_reads output_bound put \
         seat spoken truth unheard word worst",
    ),
    ("filters/decisions/", "as_agent held kept"),
    ("src/limits/", "alone"),
    ("src/models/", "envelope keyed keyless steps verdict"),
];

/// Constants and statics. These names lack the noun or the unit.
pub const CONSTANTS: &[Retired] = &[
    (
        "",
        "AT_LEAST BATCH BEAT BEHIND CONFIRM EXACT GATHER GIVEN_UP GROUP IDLE IN_A_ROW KEPT LAST_WORD LAST_WORDS \
         LATE LINGER LONGEST LOOK LOOKS LOOKUP_EVERY LOOK_EVERY LOOK_UP MOST MOST_TOKENS NOTE_EVERY OTHER_KEYS \
         PATIENCE READ_ON SILENCE SPARE_WITHIN SPOOL_EVERY STALL SWEEP_EVERY TICK UNACCOUNTED",
    ),
    ("src/", "OURS"),
];
