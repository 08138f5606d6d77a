CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
CREATE TABLE store_state (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    revision BIGINT NOT NULL,
    pepper_mark BLOB
);
CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL CHECK (plan IN ('none', 'lite', 'pro', 'max')),
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    created_at BIGINT NOT NULL
, plan_since BIGINT NOT NULL DEFAULT 0, held_at BIGINT);
CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('platform', 'byok', 'hybrid')),
    cache_ttl_s BIGINT CHECK (cache_ttl_s BETWEEN 0 AND 4294967295),
    status TEXT NOT NULL CHECK (status IN ('active', 'archived')),
    created_at BIGINT NOT NULL, experiments TEXT,
    UNIQUE (organization_id, name)
);
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    label TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
, terms TEXT, member_id TEXT REFERENCES members (id), debug BIGINT NOT NULL DEFAULT 0 CHECK (debug IN (0, 1)));
CREATE INDEX api_keys_of_project ON api_keys (project_id);
CREATE TABLE members (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    budget TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, name)
);
CREATE TABLE credit_grants (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    amount TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX credit_grants_of_organization ON credit_grants (organization_id);
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
CREATE TABLE balances (
    organization_id TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    settled TEXT NOT NULL,
    shortfall TEXT NOT NULL
);
CREATE TABLE leases (
    organization_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    amount TEXT NOT NULL, turn BIGINT NOT NULL DEFAULT 0, taken TEXT NOT NULL DEFAULT '0',
    PRIMARY KEY (organization_id, owner)
);
CREATE TABLE ledger_processes (
    owner TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);
CREATE INDEX ledger_at ON ledger (at);
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
) WITHOUT ROWID;
CREATE TABLE call_batches (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    began_first BIGINT NOT NULL,
    began_last BIGINT NOT NULL,
    ended_first BIGINT NOT NULL,
    ended_last BIGINT NOT NULL,
    ids BLOB NOT NULL,
    calls BLOB NOT NULL
);
CREATE INDEX call_batches_began ON call_batches (began_last, began_first);
CREATE INDEX call_batches_ended ON call_batches (ended_last, ended_first);
CREATE TABLE journal_owners (
    owner TEXT PRIMARY KEY,
    ended_last BIGINT NOT NULL
, posts BIGINT NOT NULL DEFAULT 0);
CREATE TABLE "spent" (
    organization_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    funding TEXT NOT NULL,
    is_premium BIGINT NOT NULL,
    member_id TEXT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    PRIMARY KEY (organization_id, key_id, hour, funding, is_premium, member_id)
);
CREATE TABLE account_changes (
    revision BIGINT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (revision, kind, id)
);
CREATE INDEX api_keys_of_member ON api_keys (member_id);
CREATE INDEX spent_of_organization ON spent (organization_id, hour);
CREATE INDEX spent_of_hour ON spent (hour);
CREATE TABLE limit_leases (
    organization_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    owner TEXT NOT NULL REFERENCES ledger_processes (owner) ON DELETE CASCADE,
    amount TEXT NOT NULL,
    stored TEXT NOT NULL,
    PRIMARY KEY (organization_id, scope, owner)
);
CREATE INDEX limit_leases_of_process ON limit_leases (owner);
CREATE TABLE prompts (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    project_id TEXT REFERENCES projects (id),
    name TEXT NOT NULL,
    last_version BIGINT NOT NULL
);
CREATE UNIQUE INDEX prompts_of_organization ON prompts (organization_id, name) WHERE project_id IS NULL;
CREATE UNIQUE INDEX prompts_of_project ON prompts (project_id, name) WHERE project_id IS NOT NULL;
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
) WITHOUT ROWID;
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
    secret BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    is_open BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX video_jobs_of_key ON video_jobs (key_id, id);
CREATE INDEX video_jobs_of_organization ON video_jobs (organization_id, is_open);
CREATE INDEX video_jobs_due ON video_jobs (due_at);
CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    metadata TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX oauth_clients_used ON oauth_clients (used_at, created_at);
CREATE TABLE oauth_answers (
    id TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE TABLE oauth_codes (
    hash BLOB PRIMARY KEY,
    client_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    authorization_request TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    grant_id TEXT NOT NULL
);
CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);
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
CREATE TABLE oauth_revocations (
    id TEXT PRIMARY KEY,
    revoked_at BIGINT NOT NULL
);
INSERT INTO store_state (one, revision) VALUES (1, 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (1, 'accounts', 1, x'f2b660deb4b711df09f05734a481e4baa253f2f97627779caac1a156c86185ac06e8770df4b383a457cda8d09a418dcf', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (2, 'money', 1, x'426218cea507600107e147bcb594b5e4c4937ef6b4106bfb1a84008b3c36359f042f9e535409e759a4a4ad45735d4944', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (3, 'ledger', 1, x'81fb0c63e09130ab885a0094ee93fe727cf9f8f2cd668e4b8f961b61ad4bc686a2a46dfc87cbd14587dc62c918c3a443', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (4, 'turns', 1, x'bbc20a64b4d0ba566674cd859437d6caa95b668932853202d4fef931ec5a1544cb6d9192ee852d9d53a64029269a081c', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (5, 'spent until', 1, x'9bf12e44cb13e4e760911b80c5e3f8789d2ca1f08d3e880c35c2e9d9e23dc49af6c6df1c0e1b30a0945dde4c8c3b37a9', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (6, 'usage', 1, x'a1692aef404ea8fbe7968343c7a3d81ea2e67d71abd18289d434ba1a265df25cd60a269b65ca0effd3188562acd7b6e7', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (7, 'spent members', 1, x'8d73274abcf33fd14240e98ab71fe2ca7ec90187dcb42df06c94d0528e6d576780e4b740e85f1114464e74d11ba609fa', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (8, 'account changes', 1, x'559856d665d0027d545594fa460bf3c0cc920b3bb5d069d08f41810844185f5e3e9d8162e23d584a705f4b26e05f96e0', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9, 'spent hours', 1, x'12e5f183dc43380ff5bc984c230bc36acbd18e5c1d541a5226c8f064b50305feac9147d26c8c7d64dce1459e5bb45a17', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (10, 'limit leases', 1, x'ad4f740fa7c23139e5211123d1b095b6afa54932350b16d88be7fa74e568672a2f0466ca51c2ac06bf5d288f04a41eaf', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (11, 'held', 1, x'53e2b7bf6887a9a431fdd95f05008b690323dc96247f0d248974e90d21b29ca520ff106f5828b23ccc4e0b5f53077bf1', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (12, 'prompts', 1, x'fc5c7fc734ae974452dab11fa609702feae3f666272efb2a4993c07ff631a0ece9d5e62ba68f48427348dd5fb218d3be', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (13, 'experiments', 1, x'262ca39f1df5df7c5b84dd098ba20923bddc4515b97ce98b5b066b3d3c8971cbffe310a9f97c0221df4bb9b17aad5988', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (14, 'debug', 1, x'cfea0d82a2bbbfe4b2847b8c169f6d3d0947b9be822885f01cbf1bdb756d666e184a420cbae41bf085807ddf3b1e280e', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (15, 'variations', 1, x'd0ac75ad31da0dc59522bcc4ade8cc88989ef6bd1451d89377406fcc2eda34642474d7cf2436eac67b59e9cd79f9efe0', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (16, 'video jobs', 1, x'7cb5f022a2563ea968b385af9fdac4eacde22763444cbe56a21413bf3121811ee75adae03e65bc6bfcac9a8eb40c458e', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (17, 'oauth', 1, x'f0aafe44a49ee52c50e10774c3d2a415978dcb583b03760bc651b9cef20b55c0de047ef070f3149eb257a354821014ac', 0);
