-- In which month a budget has spent last, in unix milliseconds; 0: it is the counter of another limit, which stays.
ALTER TABLE limit_counters ADD COLUMN last_month BIGINT NOT NULL DEFAULT 0;
CREATE INDEX limit_counters_of_budgets ON limit_counters (last_month) WHERE last_month > 0;

-- What people have said of budgets: what they granted beyond the limits, as the sums of periods, and since when one is paused. Of the
-- calls behind its end, how many were made since which time.
CREATE TABLE budget_states (
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    granted TEXT NOT NULL,
    paused_at BIGINT,
    grace_calls BIGINT NOT NULL DEFAULT 0,
    grace_since TEXT NOT NULL DEFAULT '',
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, name)
);

-- The tags of the call that has ordered a job, and the names of its budgets, as arrays of JSON; empty: none.
ALTER TABLE video_jobs ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE video_jobs ADD COLUMN budgets TEXT NOT NULL DEFAULT '';
ALTER TABLE response_jobs ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE response_jobs ADD COLUMN budgets TEXT NOT NULL DEFAULT '';

-- The sums of calls with tags by the hour in which they ended, for 30 days, as those of sessions. A call with two tags is in both.
CREATE TABLE tag_hours (
    organization_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    requests BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    PRIMARY KEY (organization_id, hour, key_id, tag)
){| WITHOUT ROWID};
CREATE INDEX tag_hours_of_hour ON tag_hours (hour);
