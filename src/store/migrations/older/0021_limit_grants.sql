-- All that a process was granted of a limit, the number of its last change, and since when calls are of the lease. What it holds
-- is what was granted less what of it is "stored"; "amount" says so to processes of the version before, which grant nothing.
ALTER TABLE limit_leases ADD COLUMN granted TEXT NOT NULL DEFAULT '0';
ALTER TABLE limit_leases ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;
ALTER TABLE limit_leases ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
