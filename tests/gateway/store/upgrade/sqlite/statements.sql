-- register
INSERT INTO ledger_processes (owner, seen_at) VALUES ($1, CAST(unixepoch('subsec') * 1000 AS INTEGER)) ON CONFLICT
(owner) DO UPDATE SET seen_at = excluded.seen_at

-- drop_own_leases
DELETE FROM leases WHERE owner = $1

-- heartbeat
UPDATE ledger_processes SET seen_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE owner = $1

-- unregister
DELETE FROM ledger_processes WHERE owner = $1

-- expire_processes
DELETE FROM ledger_processes WHERE owner <> $1 AND seen_at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - $2
RETURNING owner

-- count_processes
SELECT COUNT(*) FROM ledger_processes

-- lock_balances
INSERT INTO balances (organization_id, version, settled, shortfall) SELECT value ->> 0, 1, '0', '0' FROM
jsonb_each($1) AS rows WHERE 1 = 1 ON CONFLICT (organization_id) DO UPDATE SET version = balances.version + 1
RETURNING organization_id, settled, shortfall

-- read_accounts
WITH wanted AS (SELECT value ->> 0 AS wanted_id FROM jsonb_each($1) AS rows) SELECT organization_id, 'granted' AS
part, amount FROM wanted CROSS JOIN credit_grants WHERE organization_id = wanted_id UNION ALL SELECT
organization_id, 'leased' AS part, amount FROM wanted CROSS JOIN leases WHERE organization_id = wanted_id UNION ALL
SELECT organization_id, 'settled' AS part, settled AS amount FROM wanted CROSS JOIN balances WHERE organization_id =
wanted_id UNION ALL SELECT organization_id, 'shortfall' AS part, shortfall AS amount FROM wanted CROSS JOIN balances
WHERE organization_id = wanted_id

-- read_leases
SELECT organization_id, amount, turn, taken FROM (SELECT value ->> 0 AS id FROM jsonb_each($1) AS rows) AS r CROSS
JOIN leases WHERE organization_id = r.id AND owner = $2

-- write_leases
INSERT INTO leases (organization_id, owner, amount, turn, taken) SELECT value ->> 0, $2, value ->> 1, CAST(value ->>
2 AS BIGINT), value ->> 3 FROM jsonb_each($1) AS rows WHERE 1 = 1 ON CONFLICT (organization_id, owner) DO UPDATE SET
amount = excluded.amount, turn = excluded.turn, taken = excluded.taken

-- shrink_leases
UPDATE leases SET amount = r.amount FROM (SELECT value ->> 0 AS id, value ->> 1 AS amount FROM jsonb_each($1) AS
rows) AS r WHERE leases.organization_id = r.id AND leases.owner = $2

-- write_balances
UPDATE balances SET settled = r.settled, shortfall = r.shortfall FROM (SELECT value ->> 0 AS id, value ->> 1 AS
settled, value ->> 2 AS shortfall FROM jsonb_each($1) AS rows) AS r WHERE balances.organization_id = r.id

-- read_limits
SELECT organization_id, scope, owner, amount, stored FROM (SELECT value ->> 0 AS id, value ->> 1 AS wanted FROM
jsonb_each($1) AS rows) AS r CROSS JOIN limit_leases WHERE organization_id = r.id AND scope = r.wanted

-- write_limits
INSERT INTO limit_leases (organization_id, scope, owner, amount, stored) SELECT value ->> 0, value ->> 1, $2, value
->> 2, value ->> 3 FROM jsonb_each($1) AS rows WHERE 1 = 1 ON CONFLICT (organization_id, scope, owner) DO UPDATE SET
amount = excluded.amount, stored = excluded.stored

-- lock_journal
INSERT INTO journal_owners (owner, ended_last, posts) VALUES ($1, $2, 1) ON CONFLICT (owner) DO UPDATE SET posts =
journal_owners.posts + 1, ended_last = CASE WHEN excluded.ended_last > journal_owners.ended_last THEN
excluded.ended_last ELSE journal_owners.ended_last END

-- posts
SELECT posts FROM journal_owners WHERE owner = $1

-- stored_ids
SELECT ids FROM call_batches WHERE began_last >= $1 AND began_first <= $2

-- stored_rows
SELECT l.id FROM (SELECT value ->> 0 AS id FROM jsonb_each($1) AS rows) r CROSS JOIN ledger l WHERE l.id = r.id

-- add_spent
INSERT INTO spent (organization_id, key_id, hour, funding, is_premium, member_id, first_at, last_at, cost_nano,
cost_rest) SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS BIGINT), value ->> 3, CAST(value ->> 4 AS BIGINT),
value ->> 5, CAST(value ->> 6 AS BIGINT), CAST(value ->> 7 AS BIGINT), CAST(value ->> 8 AS BIGINT), CAST(value ->> 9
AS BIGINT) FROM jsonb_each($1) AS rows WHERE 1 = 1 ON CONFLICT (organization_id, key_id, hour, funding, is_premium,
member_id) DO UPDATE SET last_at = CASE WHEN excluded.last_at > spent.last_at THEN excluded.last_at ELSE
spent.last_at END, cost_nano = spent.cost_nano + excluded.cost_nano, cost_rest = spent.cost_rest +
excluded.cost_rest

-- add_hours
INSERT INTO usage_hours (organization_id, hour, key_id, model, provider, outcome, requests, prompt_tokens,
cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, web_searches, cost_nano, cost_rest) SELECT
value ->> 0, CAST(value ->> 1 AS BIGINT), value ->> 2, value ->> 3, value ->> 4, value ->> 5, CAST(value ->> 6 AS
BIGINT), CAST(value ->> 7 AS BIGINT), CAST(value ->> 8 AS BIGINT), CAST(value ->> 9 AS BIGINT), CAST(value ->> 10 AS
BIGINT), CAST(value ->> 11 AS BIGINT), CAST(value ->> 12 AS BIGINT), CAST(value ->> 13 AS BIGINT), CAST(value ->> 14
AS BIGINT) FROM jsonb_each($1) AS rows WHERE 1 = 1 ON CONFLICT (organization_id, hour, key_id, model, provider,
outcome) DO UPDATE SET requests = usage_hours.requests + excluded.requests, prompt_tokens =
usage_hours.prompt_tokens + excluded.prompt_tokens, cached_tokens = usage_hours.cached_tokens +
excluded.cached_tokens, cache_write_tokens = usage_hours.cache_write_tokens + excluded.cache_write_tokens,
completion_tokens = usage_hours.completion_tokens + excluded.completion_tokens, reasoning_tokens =
usage_hours.reasoning_tokens + excluded.reasoning_tokens, web_searches = usage_hours.web_searches +
excluded.web_searches, cost_nano = usage_hours.cost_nano + excluded.cost_nano, cost_rest = usage_hours.cost_rest +
excluded.cost_rest

-- insert_calls
INSERT INTO call_batches (owner, began_first, began_last, ended_first, ended_last, ids, calls) VALUES ($1, $2, $3,
$4, $5, $6, $7)

-- read_spent
SELECT key_id, member_id, funding, is_premium, first_at, last_at, cost_nano, cost_rest FROM spent WHERE
organization_id = $1 AND hour >= $2 UNION ALL SELECT key_id, member_id, funding, is_premium, MIN(first_at) AS
first_at, MAX(last_at) AS last_at, CAST(SUM(cost_nano) AS BIGINT) AS cost_nano, CAST(SUM(cost_rest) AS BIGINT) AS
cost_rest FROM spent WHERE organization_id = $1 AND hour < $2 GROUP BY key_id, member_id, funding, is_premium UNION
ALL SELECT '' AS key_id, NULL AS member_id, '' AS funding, 0 AS is_premium, 0 AS first_at, 0 AS last_at, posts AS
cost_nano, 0 AS cost_rest FROM journal_owners WHERE owner = $3 ORDER BY first_at

-- join_past_spent
DELETE FROM spent WHERE (organization_id, key_id, hour, funding, is_premium, member_id) IN (SELECT organization_id,
key_id, hour, funding, is_premium, member_id FROM spent WHERE hour > $1 AND hour < $2 ORDER BY hour LIMIT $3)
RETURNING organization_id, key_id, funding, is_premium, member_id, first_at, last_at, cost_nano, cost_rest

-- delete_old_calls
DELETE FROM call_batches WHERE id IN (SELECT id FROM call_batches b LEFT JOIN journal_owners j ON j.owner = b.owner
WHERE b.ended_last < $1 AND (j.owner IS NULL OR (b.owner = $2 AND b.ended_last < $3)) LIMIT $4)

-- delete_old_rows
DELETE FROM ledger WHERE id IN (SELECT id FROM ledger WHERE at < $1 ORDER BY at LIMIT $2)

-- forget_journal
DELETE FROM journal_owners WHERE owner = $1
