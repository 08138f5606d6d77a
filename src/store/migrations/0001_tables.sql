-- Where the databases differ, braces have the text of PostgreSQL, a bar, and the text of SQLite.
--
-- Times are unix milliseconds. Hours are these divided by 3,600,000. Amounts are plain decimals as text: exact, where a float
-- or 64 bits are not. Sums of costs are two integers, 1e-9 USD and 1e-18 USD below that, so that SQL adds them exactly.

-- One row. Every change of an account raises `revision`. `pepper_mark` is the mark of the pepper that hashed the keys. A process
-- has to know the migration `needs_migration` to work with these tables. Usage before the hour `usage_days_before` is in
-- sums of whole days, in the row of the day's first hour.
CREATE TABLE store_state (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    revision BIGINT NOT NULL,
    pepper_mark {BYTEA|BLOB},
    needs_migration BIGINT NOT NULL DEFAULT 0,
    usage_days_before BIGINT NOT NULL DEFAULT 0
);
INSERT INTO store_state (one, revision) VALUES (1, 0);

-- The cycles of the plan are counted from `plan_since`. Since `held_at` the organization is held for review, and its keys are
-- refused; NULL: it is not held.
CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL CHECK (plan IN ('none', 'lite', 'pro', 'max')),
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    created_at BIGINT NOT NULL,
    plan_since BIGINT NOT NULL DEFAULT 0,
    held_at BIGINT
);

-- `experiments` is the SDK key of the datafile whose flags the project's requests may name as models; NULL: none.
CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('platform', 'byok', 'hybrid')),
    cache_ttl_s BIGINT CHECK (cache_ttl_s BETWEEN 0 AND 4294967295),
    status TEXT NOT NULL CHECK (status IN ('active', 'archived')),
    created_at BIGINT NOT NULL,
    experiments TEXT,
    UNIQUE (organization_id, name)
);

-- People and services whose keys share a budget; NULL: any amount.
CREATE TABLE members (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    budget TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, name)
);

-- No column has the text of a key: `hash` is its HMAC-SHA256 under the pepper. `terms` is JSON: what the key may spend and
-- whom it may reach; NULL: everything. `debug` = 1: its requests may ask why their providers were chosen.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    label TEXT NOT NULL,
    hash {BYTEA|BLOB} NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    terms TEXT,
    member_id TEXT REFERENCES members (id),
    debug BIGINT NOT NULL DEFAULT 0 CHECK (debug IN (0, 1))
);
-- The keys of a project or of a member are read page by page, in the order of their ids.
CREATE INDEX api_keys_of_project_by_id ON api_keys (project_id, id);
CREATE INDEX api_keys_of_member_by_id ON api_keys (member_id, id);

-- What each revision has changed: the id of an organization, project, member or key, or of the organization whose credit or
-- provider keys it changed. Servers follow it. A revision without a row, because it is too old, makes them read everything
-- again.
CREATE TABLE account_changes (
    revision BIGINT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (revision, kind, id)
);

-- The callers' own upstream keys, encrypted under a key derived from the store's secret, bound to the row's id.
CREATE TABLE provider_keys (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    provider TEXT NOT NULL,
    label TEXT NOT NULL,
    sealed {BYTEA|BLOB} NOT NULL,
    last_four TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, provider, label)
);

-- Platform credit as it was given. `balances.granted` is the sum of the grants with `is_summed` = 1. Processes of the version
-- before add up all grants.
CREATE TABLE credit_grants (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    amount TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    is_summed BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX credit_grants_of_organization ON credit_grants (organization_id);
CREATE INDEX credit_grants_to_sum ON credit_grants (organization_id) WHERE is_summed = 0;

-- What calls have taken out of an organization's credit. Every change of a balance or a lease first raises `version`, so two of
-- them wait for each other.
CREATE TABLE balances (
    organization_id TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    settled TEXT NOT NULL,
    shortfall TEXT NOT NULL,
    granted TEXT NOT NULL DEFAULT '0'
);

-- Processes that hold leases, and when they last wrote here.
CREATE TABLE ledger_processes (
    owner TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- What a running process holds of a balance, to spend without queries. `turn` is the number of the last change and `taken` its
-- result: a change whose answer was lost is repeated and happens once.
CREATE TABLE leases (
    organization_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    amount TEXT NOT NULL,
    turn BIGINT NOT NULL DEFAULT 0,
    taken TEXT NOT NULL DEFAULT '0',
    PRIMARY KEY (organization_id, owner)
);

-- What a running process holds of the limits of a key, a member or a plan ("scope"), to spend without queries: all that it was
-- granted, less what of it is stored. `amount` says so to processes of the version before, which grant nothing. `turn` is the
-- number of the last change.
CREATE TABLE limit_leases (
    organization_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    owner TEXT NOT NULL REFERENCES ledger_processes (owner) ON DELETE CASCADE,
    amount TEXT NOT NULL,
    stored TEXT NOT NULL,
    granted TEXT NOT NULL DEFAULT '0',
    turn BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, scope, owner)
);
CREATE INDEX limit_leases_of_process ON limit_leases (owner);

-- The sums of a key, a member or a plan ("scope") in its current periods, as text. A limit is judged by this row alone.
CREATE TABLE limit_counters (
    organization_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    sums TEXT NOT NULL,
    PRIMARY KEY (organization_id, scope)
);

-- What keys have spent, by the hour; -1 has the hours that were joined. `member_id` is the member that the key had then; empty:
-- none. `counted_nano` and `counted_rest` say how much of it is in the counters. Processes of the version before add to hours
-- and know no counters, so the difference is what they have added.
CREATE TABLE spent (
    organization_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    funding TEXT NOT NULL,
    is_premium BIGINT NOT NULL,
    member_id TEXT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL{ DEFAULT 0|},
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    counted_nano BIGINT NOT NULL DEFAULT 0,
    counted_rest BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, key_id, hour, funding, is_premium, member_id)
);
CREATE INDEX spent_of_organization ON spent (organization_id, hour);
CREATE INDEX spent_of_hour ON spent (hour);
CREATE INDEX spent_uncounted ON spent (organization_id, hour)
    WHERE hour <> -1 AND (cost_nano <> counted_nano OR cost_rest <> counted_rest);
-- Such processes also join hours. What is not counted is not joined.
{CREATE FUNCTION keep_uncounted_spent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER spent_keeps_uncounted BEFORE DELETE ON spent FOR EACH ROW
    WHEN (OLD.hour <> -1 AND (OLD.cost_nano <> OLD.counted_nano OR OLD.cost_rest <> OLD.counted_rest))
    EXECUTE FUNCTION keep_uncounted_spent();|CREATE TRIGGER spent_keeps_uncounted BEFORE DELETE ON spent
    WHEN OLD.hour <> -1 AND (OLD.cost_nano <> OLD.counted_nano OR OLD.cost_rest <> OLD.counted_rest)
BEGIN
    SELECT RAISE(IGNORE);
END;}

-- Single calls, packed: those that a process stored at once. `ids` are 16 bytes each; the store has no id twice. The times are
-- those at which the first and the last of them began and ended. An id has the time at which its call began.
CREATE TABLE call_batches (
    id {BIGINT GENERATED ALWAYS AS IDENTITY|INTEGER} PRIMARY KEY,
    owner TEXT NOT NULL,
    began_first BIGINT NOT NULL,
    began_last BIGINT NOT NULL,
    ended_first BIGINT NOT NULL,
    ended_last BIGINT NOT NULL,
    ids {BYTEA|BLOB} NOT NULL,
    calls {BYTEA|BLOB} NOT NULL
);
CREATE INDEX call_batches_began ON call_batches (began_last, began_first);
CREATE INDEX call_batches_ended ON call_batches (ended_last, ended_first);
-- A start that brings the journal of a process looks among the calls of that process for those that are stored already.
CREATE INDEX call_batches_of_owner ON call_batches (owner, began_last, began_first);
{-- Packed bytes do not get smaller.
ALTER TABLE call_batches ALTER COLUMN ids SET STORAGE EXTERNAL;
ALTER TABLE call_batches ALTER COLUMN calls SET STORAGE EXTERNAL;
|}
-- Processes whose journal may still exist, when the last call ended that they stored, and how many times they stored calls. A
-- reader of what was spent learns from `posts` which calls are included.
CREATE TABLE journal_owners (
    owner TEXT PRIMARY KEY,
    ended_last BIGINT NOT NULL,
    posts BIGINT NOT NULL DEFAULT 0
);

-- Single calls as the first versions stored them, until they are old enough to be deleted. Nothing adds to it.
CREATE TABLE ledger (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    organization_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    member_id TEXT,
    request_id TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    upstream_model TEXT NOT NULL,
    region TEXT,
    funding TEXT NOT NULL,
    outcome TEXT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    web_searches BIGINT NOT NULL,
    is_estimated BIGINT NOT NULL,
    is_premium BIGINT NOT NULL,
    is_stream BIGINT NOT NULL,
    is_priced BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    parts TEXT NOT NULL,
    reserved TEXT NOT NULL,
    charged TEXT NOT NULL,
    shortfall TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    first_event_ms BIGINT
);
CREATE INDEX ledger_of_organization ON ledger (organization_id, at);
CREATE INDEX ledger_at ON ledger (at);

-- The sums of calls by the hour in which they ended, for good.
CREATE TABLE usage_hours (
    organization_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    outcome TEXT NOT NULL,
    requests BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    web_searches BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    PRIMARY KEY (organization_id, hour, key_id, model, provider, outcome)
){| WITHOUT ROWID};
CREATE INDEX usage_hours_to_join ON usage_hours (hour) WHERE hour % 24 <> 0;

-- The same of the calls of experiments, failed ones too, also by how long they took: steps of durations, of which eight make
-- twice the time.
CREATE TABLE variation_hours (
    organization_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    project_id TEXT NOT NULL,
    flag TEXT NOT NULL,
    rule TEXT NOT NULL,
    variation TEXT NOT NULL,
    outcome TEXT NOT NULL,
    duration_step BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    PRIMARY KEY (organization_id, hour, project_id, flag, rule, variation, outcome, duration_step)
){| WITHOUT ROWID};
CREATE INDEX variation_hours_to_join ON variation_hours (hour) WHERE hour % 24 <> 0;

-- Jobs that make videos. A lease of its own, whose owner is `job:` and its id, holds what an open one may cost, which counts as
-- spent for the limits of its key. `ordered` and `state` are JSON. At `due_at` its provider is asked or its callback told; 0:
-- never. Until `claimed_until` only `claimed_by` does it.
CREATE TABLE video_jobs (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    funding TEXT NOT NULL,
    is_premium BIGINT NOT NULL,
    reserved TEXT NOT NULL,
    ordered TEXT NOT NULL,
    state TEXT NOT NULL,
    secret {BYTEA|BLOB} NOT NULL,
    created_at BIGINT NOT NULL,
    is_open BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL
){| WITHOUT ROWID};
CREATE INDEX video_jobs_of_key ON video_jobs (key_id, id);
CREATE INDEX video_jobs_of_organization ON video_jobs (organization_id, is_open);
CREATE INDEX video_jobs_due ON video_jobs (due_at);

-- Prompts of a project, or of all projects of an organization. A prompt that was removed keeps its row, so that the number of a
-- version never means another text.
CREATE TABLE prompts (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    project_id TEXT REFERENCES projects (id),
    name TEXT NOT NULL,
    last_version BIGINT NOT NULL
);
CREATE UNIQUE INDEX prompts_of_organization ON prompts (organization_id, name) WHERE project_id IS NULL;
CREATE UNIQUE INDEX prompts_of_project ON prompts (project_id, name) WHERE project_id IS NOT NULL;

-- `content` is JSON. It never changes.
CREATE TABLE prompt_versions (
    prompt_id TEXT NOT NULL REFERENCES prompts (id),
    version BIGINT NOT NULL,
    content TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (prompt_id, version)
);

CREATE TABLE prompt_labels (
    prompt_id TEXT NOT NULL REFERENCES prompts (id),
    label TEXT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (prompt_id, label),
    FOREIGN KEY (prompt_id, version) REFERENCES prompt_versions (prompt_id, version)
);

-- Clients of the MCP server's OAuth. A client is registered, or its id is the URL of its metadata document; `metadata` is JSON.
-- `secret_hash` is empty if it has no secret. At `used_at` it last got a grant; 0: never.
CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    metadata TEXT NOT NULL,
    secret_hash {BYTEA|BLOB} NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX oauth_clients_used ON oauth_clients (used_at, created_at);

-- Consent pages that a person has answered, so that each counts once.
CREATE TABLE oauth_answers (
    id TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

-- Codes by their hash. `authorization_request` is JSON. `grant_id` is empty until the code is used; `-`: it was used without
-- success.
CREATE TABLE oauth_codes (
    hash {BYTEA|BLOB} PRIMARY KEY,
    client_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    authorization_request TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    grant_id TEXT NOT NULL
);
CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);

-- What persons have allowed. `generation` counts the refresh tokens; only the last one is good. No column has a token.
CREATE TABLE oauth_grants (
    id TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    resource TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    rotated_at BIGINT NOT NULL
);
CREATE INDEX oauth_grants_of_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_expiry ON oauth_grants (expires_at);

-- Grants and clients that were revoked, by id, until no access token of theirs can be good.
CREATE TABLE oauth_revocations (
    id TEXT PRIMARY KEY,
    revoked_at BIGINT NOT NULL
);
