-- The sums of calls of sessions by the hour in which they ended, for 30 days. Sessions and agents have the ids that the client gave
-- them; empty: none. Of an hour that has too many of them the others are summed under empty ids.
CREATE TABLE session_hours (
    organization_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    parent_agent_id TEXT NOT NULL,
    requests BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    PRIMARY KEY (organization_id, hour, key_id, session_id, agent_id, parent_agent_id)
){| WITHOUT ROWID};
CREATE INDEX session_hours_of_hour ON session_hours (hour);
