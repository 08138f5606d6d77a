-- OAuth of the MCP server. Units: unix milliseconds. A client is registered, or its id is the URL of its metadata document;
-- `metadata` is JSON. `secret_hash` is empty if it has no secret. `used_at` is when it last got a grant; 0: never.
CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    metadata TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX oauth_clients_used ON oauth_clients (used_at, created_at);
-- Pages that a person has answered, so that each counts once.
CREATE TABLE oauth_answers (
    id TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
-- Codes by their hash. `authorization_request` is JSON: what was asked for. `grant_id` is empty until the code is used; `-`: it
-- was, in vain.
CREATE TABLE oauth_codes (
    hash BLOB PRIMARY KEY,
    client_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    authorization_request TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    grant_id TEXT NOT NULL
);
CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);
-- What persons have allowed. `generation` counts the refresh tokens; only the last one is good. Nothing of a token is stored.
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
