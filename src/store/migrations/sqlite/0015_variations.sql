-- The sums of the calls of experiments, failed ones too, by the hour in which they ended (unix milliseconds / 3,600,000)
-- and by how long they took: steps of durations, of which eight make twice the time. They are kept for good.
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
