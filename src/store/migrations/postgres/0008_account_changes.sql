-- What each revision has changed: the id of an organization, project, member or key, or of the organization whose credit
-- or provider keys it changed. Servers follow it. A revision without a row here, because it is too old or an earlier
-- version made it, makes them read everything again.
CREATE TABLE account_changes (
    revision BIGINT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (revision, kind, id)
);

-- A change of a member reads the keys of that member.
CREATE INDEX api_keys_of_member ON api_keys (member_id);
