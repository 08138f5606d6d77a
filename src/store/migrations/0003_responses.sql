-- Responses that clients have asked to be kept, until they expire. `input` are the items of the request with those of the responses
-- before it, `response` is what the client got; both are sealed.
CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    status TEXT NOT NULL,
    is_background BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    input {BYTEA|BLOB} NOT NULL,
    response {BYTEA|BLOB} NOT NULL
);
CREATE INDEX responses_of_time ON responses (expires_at);

-- How many an organization has, and their bytes: their bounds are judged without reading them all.
CREATE TABLE response_totals (
    organization_id TEXT PRIMARY KEY,
    responses BIGINT NOT NULL,
    bytes BIGINT NOT NULL
){| WITHOUT ROWID};

-- Responses that are made in the background, until they end. The request is sealed in `secret`.
CREATE TABLE response_jobs (
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
);
CREATE INDEX response_jobs_of_organization ON response_jobs (organization_id, is_open);
CREATE INDEX response_jobs_due ON response_jobs (due_at);
