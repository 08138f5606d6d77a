-- Jobs that make videos. What an open one may cost is held by a lease of its own, whose owner is `job:` and its id, and
-- counts as spent for the limits of its key. `ordered` and `state` are JSON. `due_at` is when something has to be done:
-- its provider is asked, or its callback told; 0: nothing. Until `claimed_until` only `claimed_by` does it. Units: unix
-- milliseconds.
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
