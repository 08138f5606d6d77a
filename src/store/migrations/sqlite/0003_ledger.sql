-- One row per call that was answered or cut short. Its id is ours; a second row of one id is never written.
-- The whole cost is kept as two integers, so that sums are exact: 1e-9 USD, and 1e-18 USD below that. Parts and what
-- was charged are plain decimals as text.
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

-- What calls have taken out of the credit of an organization. The version is raised first of all in every change of
-- a balance or a lease, so that two of them wait for each other.
CREATE TABLE balances (
    organization_id TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    settled TEXT NOT NULL,
    shortfall TEXT NOT NULL
);

-- What running processes hold back of a balance, to spend without asking.
CREATE TABLE leases (
    organization_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    amount TEXT NOT NULL,
    PRIMARY KEY (organization_id, owner)
);

-- Processes that hold leases, and when they last wrote here, in unix milliseconds.
CREATE TABLE ledger_processes (
    owner TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- What keys spent, by the hour (unix milliseconds / 3,600,000). It outlives the rows of the ledger.
CREATE TABLE spent (
    organization_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    funding TEXT NOT NULL,
    is_premium BIGINT NOT NULL,
    member_id TEXT,
    first_at BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    PRIMARY KEY (organization_id, key_id, hour, funding, is_premium)
);
