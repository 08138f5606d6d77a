-- The number of a lease's last change, and what that brought: one whose answer was lost is made again and happens once.
ALTER TABLE leases ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN taken TEXT NOT NULL DEFAULT '0';

-- Rows that are too old are found by their time.
CREATE INDEX ledger_at ON ledger (at);
