CREATE TABLE _sqlx_migrations (
    version bigint NOT NULL,
    description text NOT NULL,
    installed_on timestamp with time zone DEFAULT now() NOT NULL,
    success boolean NOT NULL,
    checksum bytea NOT NULL,
    execution_time bigint NOT NULL
);
CREATE TABLE account_changes (
    revision bigint NOT NULL,
    kind text NOT NULL,
    id text NOT NULL
);
CREATE TABLE api_keys (
    id text NOT NULL,
    project_id text NOT NULL,
    label text NOT NULL,
    hash bytea NOT NULL,
    last_four text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    terms text,
    member_id text,
    debug bigint DEFAULT 0 NOT NULL,
    CONSTRAINT api_keys_debug_check CHECK ((debug = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE TABLE balances (
    organization_id text NOT NULL,
    version bigint NOT NULL,
    settled text NOT NULL,
    shortfall text NOT NULL
);
CREATE TABLE call_batches (
    id bigint NOT NULL,
    owner text NOT NULL,
    began_first bigint NOT NULL,
    began_last bigint NOT NULL,
    ended_first bigint NOT NULL,
    ended_last bigint NOT NULL,
    ids bytea NOT NULL,
    calls bytea NOT NULL
);
ALTER TABLE ONLY call_batches ALTER COLUMN ids SET STORAGE EXTERNAL;
ALTER TABLE ONLY call_batches ALTER COLUMN calls SET STORAGE EXTERNAL;
ALTER TABLE call_batches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME call_batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE credit_grants (
    id text NOT NULL,
    organization_id text NOT NULL,
    amount text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE journal_owners (
    owner text NOT NULL,
    ended_last bigint NOT NULL,
    posts bigint DEFAULT 0 NOT NULL
);
CREATE TABLE leases (
    organization_id text NOT NULL,
    owner text NOT NULL,
    amount text NOT NULL,
    turn bigint DEFAULT 0 NOT NULL,
    taken text DEFAULT '0'::text NOT NULL
);
CREATE TABLE ledger (
    id text NOT NULL,
    at bigint NOT NULL,
    organization_id text NOT NULL,
    project_id text NOT NULL,
    key_id text NOT NULL,
    member_id text,
    request_id text NOT NULL,
    model text NOT NULL,
    provider text NOT NULL,
    upstream_model text NOT NULL,
    region text,
    funding text NOT NULL,
    outcome text NOT NULL,
    prompt_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    web_searches bigint NOT NULL,
    is_estimated bigint NOT NULL,
    is_premium bigint NOT NULL,
    is_stream bigint NOT NULL,
    is_priced bigint NOT NULL,
    cost_nano bigint NOT NULL,
    cost_rest bigint NOT NULL,
    parts text NOT NULL,
    reserved text NOT NULL,
    charged text NOT NULL,
    shortfall text NOT NULL,
    attempts bigint NOT NULL,
    duration_ms bigint NOT NULL,
    first_event_ms bigint
);
CREATE TABLE ledger_processes (
    owner text NOT NULL,
    seen_at bigint NOT NULL
);
CREATE TABLE limit_leases (
    organization_id text NOT NULL,
    scope text NOT NULL,
    owner text NOT NULL,
    amount text NOT NULL,
    stored text NOT NULL
);
CREATE TABLE members (
    id text NOT NULL,
    organization_id text NOT NULL,
    name text NOT NULL,
    budget text,
    created_at bigint NOT NULL
);
CREATE TABLE oauth_answers (
    id text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE oauth_clients (
    id text NOT NULL,
    metadata text NOT NULL,
    secret_hash bytea NOT NULL,
    created_at bigint NOT NULL,
    used_at bigint NOT NULL,
    revoked_at bigint
);
CREATE TABLE oauth_codes (
    hash bytea NOT NULL,
    client_id text NOT NULL,
    key_id text NOT NULL,
    authorization_request text NOT NULL,
    expires_at bigint NOT NULL,
    grant_id text NOT NULL
);
CREATE TABLE oauth_grants (
    id text NOT NULL,
    client_id text NOT NULL,
    key_id text NOT NULL,
    scopes text NOT NULL,
    resource text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    generation bigint NOT NULL,
    rotated_at bigint NOT NULL
);
CREATE TABLE oauth_revocations (
    id text NOT NULL,
    revoked_at bigint NOT NULL
);
CREATE TABLE organizations (
    id text NOT NULL,
    name text NOT NULL,
    plan text NOT NULL,
    status text NOT NULL,
    created_at bigint NOT NULL,
    plan_since bigint DEFAULT 0 NOT NULL,
    held_at bigint,
    CONSTRAINT organizations_plan_check CHECK ((plan = ANY (ARRAY['none'::text, 'lite'::text, 'pro'::text, 'max'::text]))),
    CONSTRAINT organizations_status_check CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text])))
);
CREATE TABLE projects (
    id text NOT NULL,
    organization_id text NOT NULL,
    name text NOT NULL,
    mode text NOT NULL,
    cache_ttl_s bigint,
    status text NOT NULL,
    created_at bigint NOT NULL,
    experiments text,
    CONSTRAINT projects_cache_ttl_s_check CHECK (((cache_ttl_s >= 0) AND (cache_ttl_s <= '4294967295'::bigint))),
    CONSTRAINT projects_mode_check CHECK ((mode = ANY (ARRAY['platform'::text, 'byok'::text, 'hybrid'::text]))),
    CONSTRAINT projects_status_check CHECK ((status = ANY (ARRAY['active'::text, 'archived'::text])))
);
CREATE TABLE prompt_labels (
    prompt_id text NOT NULL,
    label text NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE prompt_versions (
    prompt_id text NOT NULL,
    version bigint NOT NULL,
    content text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE prompts (
    id text NOT NULL,
    organization_id text NOT NULL,
    project_id text,
    name text NOT NULL,
    last_version bigint NOT NULL
);
CREATE TABLE provider_keys (
    id text NOT NULL,
    organization_id text NOT NULL,
    provider text NOT NULL,
    label text NOT NULL,
    sealed bytea NOT NULL,
    last_four text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE spent (
    organization_id text NOT NULL,
    key_id text NOT NULL,
    hour bigint NOT NULL,
    funding text NOT NULL,
    is_premium bigint NOT NULL,
    member_id text NOT NULL,
    first_at bigint NOT NULL,
    cost_nano bigint NOT NULL,
    cost_rest bigint NOT NULL,
    last_at bigint DEFAULT 0 NOT NULL
);
CREATE TABLE store_state (
    one bigint NOT NULL,
    revision bigint NOT NULL,
    pepper_mark bytea,
    CONSTRAINT store_state_one_check CHECK ((one = 1))
);
CREATE TABLE usage_hours (
    organization_id text NOT NULL,
    hour bigint NOT NULL,
    key_id text NOT NULL,
    model text NOT NULL,
    provider text NOT NULL,
    outcome text NOT NULL,
    requests bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    web_searches bigint NOT NULL,
    cost_nano bigint NOT NULL,
    cost_rest bigint NOT NULL
);
CREATE TABLE variation_hours (
    organization_id text NOT NULL,
    hour bigint NOT NULL,
    project_id text NOT NULL,
    flag text NOT NULL,
    rule text NOT NULL,
    variation text NOT NULL,
    outcome text NOT NULL,
    duration_step bigint NOT NULL,
    requests bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cost_nano bigint NOT NULL,
    cost_rest bigint NOT NULL
);
CREATE TABLE video_jobs (
    id text NOT NULL,
    organization_id text NOT NULL,
    project_id text NOT NULL,
    key_id text NOT NULL,
    member_id text NOT NULL,
    request_id text NOT NULL,
    funding text NOT NULL,
    is_premium bigint NOT NULL,
    reserved text NOT NULL,
    ordered text NOT NULL,
    state text NOT NULL,
    secret bytea NOT NULL,
    created_at bigint NOT NULL,
    is_open bigint NOT NULL,
    due_at bigint NOT NULL,
    claimed_by text NOT NULL,
    claimed_until bigint NOT NULL
);
ALTER TABLE ONLY _sqlx_migrations
    ADD CONSTRAINT _sqlx_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY account_changes
    ADD CONSTRAINT account_changes_pkey PRIMARY KEY (revision, kind, id);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY balances
    ADD CONSTRAINT balances_pkey PRIMARY KEY (organization_id);
ALTER TABLE ONLY call_batches
    ADD CONSTRAINT call_batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY credit_grants
    ADD CONSTRAINT credit_grants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY journal_owners
    ADD CONSTRAINT journal_owners_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (organization_id, owner);
ALTER TABLE ONLY ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ledger_processes
    ADD CONSTRAINT ledger_processes_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY limit_leases
    ADD CONSTRAINT limit_leases_pkey PRIMARY KEY (organization_id, scope, owner);
ALTER TABLE ONLY members
    ADD CONSTRAINT members_organization_id_name_key UNIQUE (organization_id, name);
ALTER TABLE ONLY members
    ADD CONSTRAINT members_pkey PRIMARY KEY (id);
ALTER TABLE ONLY oauth_answers
    ADD CONSTRAINT oauth_answers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);
ALTER TABLE ONLY oauth_codes
    ADD CONSTRAINT oauth_codes_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_grants
    ADD CONSTRAINT oauth_grants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY oauth_revocations
    ADD CONSTRAINT oauth_revocations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY organizations
    ADD CONSTRAINT organizations_name_key UNIQUE (name);
ALTER TABLE ONLY organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY projects
    ADD CONSTRAINT projects_organization_id_name_key UNIQUE (organization_id, name);
ALTER TABLE ONLY projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);
ALTER TABLE ONLY prompt_labels
    ADD CONSTRAINT prompt_labels_pkey PRIMARY KEY (prompt_id, label);
ALTER TABLE ONLY prompt_versions
    ADD CONSTRAINT prompt_versions_pkey PRIMARY KEY (prompt_id, version);
ALTER TABLE ONLY prompts
    ADD CONSTRAINT prompts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY provider_keys
    ADD CONSTRAINT provider_keys_organization_id_provider_label_key UNIQUE (organization_id, provider, label);
ALTER TABLE ONLY provider_keys
    ADD CONSTRAINT provider_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY spent
    ADD CONSTRAINT spent_pkey PRIMARY KEY (organization_id, key_id, hour, funding, is_premium, member_id);
ALTER TABLE ONLY store_state
    ADD CONSTRAINT store_state_pkey PRIMARY KEY (one);
ALTER TABLE ONLY usage_hours
    ADD CONSTRAINT usage_hours_pkey PRIMARY KEY (organization_id, hour, key_id, model, provider, outcome);
ALTER TABLE ONLY variation_hours
    ADD CONSTRAINT variation_hours_pkey PRIMARY KEY (organization_id, hour, project_id, flag, rule, variation, outcome, duration_step);
ALTER TABLE ONLY video_jobs
    ADD CONSTRAINT video_jobs_pkey PRIMARY KEY (id);
CREATE INDEX api_keys_of_member ON api_keys USING btree (member_id);
CREATE INDEX api_keys_of_project ON api_keys USING btree (project_id);
CREATE INDEX call_batches_began ON call_batches USING btree (began_last, began_first);
CREATE INDEX call_batches_ended ON call_batches USING btree (ended_last, ended_first);
CREATE INDEX credit_grants_of_organization ON credit_grants USING btree (organization_id);
CREATE INDEX ledger_at ON ledger USING btree (at);
CREATE INDEX ledger_of_organization ON ledger USING btree (organization_id, at);
CREATE INDEX limit_leases_of_process ON limit_leases USING btree (owner);
CREATE INDEX oauth_clients_used ON oauth_clients USING btree (used_at, created_at);
CREATE INDEX oauth_codes_expiry ON oauth_codes USING btree (expires_at);
CREATE INDEX oauth_grants_expiry ON oauth_grants USING btree (expires_at);
CREATE INDEX oauth_grants_of_client ON oauth_grants USING btree (client_id);
CREATE UNIQUE INDEX prompts_of_organization ON prompts USING btree (organization_id, name) WHERE (project_id IS NULL);
CREATE UNIQUE INDEX prompts_of_project ON prompts USING btree (project_id, name) WHERE (project_id IS NOT NULL);
CREATE INDEX spent_of_hour ON spent USING btree (hour);
CREATE INDEX spent_of_organization ON spent USING btree (organization_id, hour);
CREATE INDEX video_jobs_due ON video_jobs USING btree (due_at);
CREATE INDEX video_jobs_of_key ON video_jobs USING btree (key_id, id);
CREATE INDEX video_jobs_of_organization ON video_jobs USING btree (organization_id, is_open);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id);
ALTER TABLE ONLY credit_grants
    ADD CONSTRAINT credit_grants_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);
ALTER TABLE ONLY limit_leases
    ADD CONSTRAINT limit_leases_owner_fkey FOREIGN KEY (owner) REFERENCES ledger_processes(owner) ON DELETE CASCADE;
ALTER TABLE ONLY members
    ADD CONSTRAINT members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);
ALTER TABLE ONLY projects
    ADD CONSTRAINT projects_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);
ALTER TABLE ONLY prompt_labels
    ADD CONSTRAINT prompt_labels_prompt_id_fkey FOREIGN KEY (prompt_id) REFERENCES prompts(id);
ALTER TABLE ONLY prompt_labels
    ADD CONSTRAINT prompt_labels_prompt_id_version_fkey FOREIGN KEY (prompt_id, version) REFERENCES prompt_versions(prompt_id, version);
ALTER TABLE ONLY prompt_versions
    ADD CONSTRAINT prompt_versions_prompt_id_fkey FOREIGN KEY (prompt_id) REFERENCES prompts(id);
ALTER TABLE ONLY prompts
    ADD CONSTRAINT prompts_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);
ALTER TABLE ONLY prompts
    ADD CONSTRAINT prompts_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id);
ALTER TABLE ONLY provider_keys
    ADD CONSTRAINT provider_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);
INSERT INTO store_state (one, revision) VALUES (1, 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (1, 'accounts', true, '\x8b3a81ffe3de0a4a572dea5fa655a94bf95ee1f73ad0f0a75600fd5a803361ae30109db7052ae9b91fbf538eb575de32', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (2, 'money', true, '\x5635fe7ac5c4f668b19c02c23a86d5d4355f9279634812878e974ccb40092758770ed24e70efdd693977b2cb1874d686', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (3, 'ledger', true, '\x81fb0c63e09130ab885a0094ee93fe727cf9f8f2cd668e4b8f961b61ad4bc686a2a46dfc87cbd14587dc62c918c3a443', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (4, 'turns', true, '\xbbc20a64b4d0ba566674cd859437d6caa95b668932853202d4fef931ec5a1544cb6d9192ee852d9d53a64029269a081c', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (5, 'spent until', true, '\x9bf12e44cb13e4e760911b80c5e3f8789d2ca1f08d3e880c35c2e9d9e23dc49af6c6df1c0e1b30a0945dde4c8c3b37a9', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (6, 'usage', true, '\xf0d10c4950290181350fe00818737573536b5dc2cca00b0202fac9130b3d11f15d992b292fd5c38f75f58bc13811be5f', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (7, 'spent members', true, '\x8570ccec43af50d2fa4e55febc55698ddd93531222d2839d5d089f89ae6ddfad131cb5b8d7b5a6df8d3b273166b7d9ce', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (8, 'account changes', true, '\x559856d665d0027d545594fa460bf3c0cc920b3bb5d069d08f41810844185f5e3e9d8162e23d584a705f4b26e05f96e0', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9, 'spent hours', true, '\x12e5f183dc43380ff5bc984c230bc36acbd18e5c1d541a5226c8f064b50305feac9147d26c8c7d64dce1459e5bb45a17', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (10, 'limit leases', true, '\xad4f740fa7c23139e5211123d1b095b6afa54932350b16d88be7fa74e568672a2f0466ca51c2ac06bf5d288f04a41eaf', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (11, 'held', true, '\x53e2b7bf6887a9a431fdd95f05008b690323dc96247f0d248974e90d21b29ca520ff106f5828b23ccc4e0b5f53077bf1', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (12, 'prompts', true, '\xfc5c7fc734ae974452dab11fa609702feae3f666272efb2a4993c07ff631a0ece9d5e62ba68f48427348dd5fb218d3be', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (13, 'experiments', true, '\x262ca39f1df5df7c5b84dd098ba20923bddc4515b97ce98b5b066b3d3c8971cbffe310a9f97c0221df4bb9b17aad5988', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (14, 'debug', true, '\xcfea0d82a2bbbfe4b2847b8c169f6d3d0947b9be822885f01cbf1bdb756d666e184a420cbae41bf085807ddf3b1e280e', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (15, 'variations', true, '\x324e1a49081eb6cc67de3b13426caf0188f8155e92a69ca8c49d9f22a627b046028caf8b75f01ed4d83f4d797e28c750', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (16, 'video jobs', true, '\xcc611936ada4864020c17d3f4f34fbbc0ea912d17ee29e9f375408064220f3baaf87ff7920c087aed57f7f283e109a58', 0);
INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (17, 'oauth', true, '\x8d16bc792fb50d24cd7aae73c57c3596a7fddd528c01689dd6f58b2da70cbbc694a2a099ec242ea87e75081d9510b505', 0);
