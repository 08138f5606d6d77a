-- One row: the revision that every change of an account raises, and the mark of the pepper that hashed the keys.
CREATE TABLE store_state (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    revision BIGINT NOT NULL,
    pepper_mark BLOB
);
INSERT INTO store_state (one, revision) VALUES (1, 0);

-- Times are unix milliseconds.
CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL CHECK (plan IN ('none', 'lite', 'pro', 'max')),
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    created_at BIGINT NOT NULL
);

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('platform', 'byok', 'hybrid')),
    cache_ttl_s BIGINT CHECK (cache_ttl_s BETWEEN 0 AND 4294967295),
    status TEXT NOT NULL CHECK (status IN ('active', 'archived')),
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, name)
);

-- The text of a key is in no column: hash is HMAC-SHA256 of it under the pepper.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    label TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_keys_of_project ON api_keys (project_id);
