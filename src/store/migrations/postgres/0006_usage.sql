-- The sums of calls by the hour in which they ended (unix milliseconds / 3,600,000). They are kept for good.
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
);

-- The table "ledger" keeps the calls of earlier versions until they are old enough to be deleted. Nothing is added to
-- it any more. A count that no call has must not stop the sum.
INSERT INTO usage_hours
SELECT organization_id, at / 3600000, key_id, model, provider, outcome, COUNT(*),
    CAST(SUM(LEAST(prompt_tokens, 1000000000000)) AS BIGINT),
    CAST(SUM(LEAST(cached_tokens, 1000000000000)) AS BIGINT),
    CAST(SUM(LEAST(cache_write_tokens, 1000000000000)) AS BIGINT),
    CAST(SUM(LEAST(completion_tokens, 1000000000000)) AS BIGINT),
    CAST(SUM(LEAST(reasoning_tokens, 1000000000000)) AS BIGINT),
    CAST(SUM(LEAST(web_searches, 1000000000000)) AS BIGINT),
    CAST(SUM(LEAST(cost_nano, 9007199254740992)) AS BIGINT),
    CAST(SUM(cost_rest) AS BIGINT)
FROM ledger
GROUP BY organization_id, at / 3600000, key_id, model, provider, outcome;

-- Single calls, packed: those that a process stored at once. "ids" are 16 bytes each, and no id is stored twice. The
-- times are those at which the first and the last of them began and ended, in unix milliseconds. An id holds the time
-- at which its call began.
CREATE TABLE call_batches (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner TEXT NOT NULL,
    began_first BIGINT NOT NULL,
    began_last BIGINT NOT NULL,
    ended_first BIGINT NOT NULL,
    ended_last BIGINT NOT NULL,
    ids BYTEA NOT NULL,
    calls BYTEA NOT NULL
);
CREATE INDEX call_batches_began ON call_batches (began_last, began_first);
CREATE INDEX call_batches_ended ON call_batches (ended_last, ended_first);

-- Processes whose journal may still exist, and when the last call ended that they stored.
CREATE TABLE journal_owners (
    owner TEXT PRIMARY KEY,
    ended_last BIGINT NOT NULL
);

-- Packed bytes do not get smaller.
ALTER TABLE call_batches ALTER COLUMN ids SET STORAGE EXTERNAL;
ALTER TABLE call_batches ALTER COLUMN calls SET STORAGE EXTERNAL;
