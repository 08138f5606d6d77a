-- The time since which the organization is held for review: its keys are refused. NULL: it is not held.
ALTER TABLE organizations ADD COLUMN held_at BIGINT;
