-- What an organization has spent lately is found without its history; hours that no limit looks at are found by age.
CREATE INDEX spent_of_organization ON spent (organization_id, hour);
CREATE INDEX spent_of_hour ON spent (hour);

-- The number of times that a process has stored calls. Who reads what was spent learns with it which calls are included.
ALTER TABLE journal_owners ADD COLUMN posts BIGINT NOT NULL DEFAULT 0;
