-- Since `disabled_at` a key is disabled, which can be taken back; NULL: it is not.
ALTER TABLE api_keys ADD COLUMN disabled_at BIGINT;

-- Organizations that were deleted. A journal may bring a call of one at any time, which is set aside then.
CREATE TABLE deleted_organizations (
    id TEXT PRIMARY KEY,
    deleted_at BIGINT NOT NULL
){| WITHOUT ROWID};
{|
-- Organizations whose credit a command waits for: the server gives back what it has leased of it and does not use. With
-- PostgreSQL servers are told without a table.
CREATE TABLE return_requests (
    organization_id TEXT PRIMARY KEY,
    requested_at BIGINT NOT NULL
) WITHOUT ROWID;
}