-- What running processes hold of the limits of a key, a member or a plan ("scope"), to spend without asking, and how
-- much of what they have spent since is stored. A row stays as long as its process, so what it says is stored never
-- falls. It goes with the process, whoever removes that.
CREATE TABLE limit_leases (
    organization_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    owner TEXT NOT NULL REFERENCES ledger_processes (owner) ON DELETE CASCADE,
    amount TEXT NOT NULL,
    stored TEXT NOT NULL,
    PRIMARY KEY (organization_id, scope, owner)
);
CREATE INDEX limit_leases_of_process ON limit_leases (owner);
