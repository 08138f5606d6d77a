-- Amounts are plain decimals as text: exact, where a float or 64 bits are not.

-- From when the cycles of the organization's plan are counted, in unix milliseconds.
ALTER TABLE organizations ADD COLUMN plan_since BIGINT NOT NULL DEFAULT 0;
UPDATE organizations SET plan_since = created_at;

-- People and services whose keys share a budget; no budget: any amount.
CREATE TABLE members (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    budget TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, name)
);

-- What a key may spend and whom it may reach, as JSON; none: everything.
ALTER TABLE api_keys ADD COLUMN terms TEXT;
ALTER TABLE api_keys ADD COLUMN member_id TEXT REFERENCES members (id);

-- Platform credit as it was given. Nothing is ever taken out of here: what was used is in the ledger.
CREATE TABLE credit_grants (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    amount TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX credit_grants_of_organization ON credit_grants (organization_id);

-- The callers' own upstream keys, sealed under a key derived from the store's secret, bound to the row's id.
CREATE TABLE provider_keys (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    provider TEXT NOT NULL,
    label TEXT NOT NULL,
    sealed BLOB NOT NULL,
    last_four TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, provider, label)
);
