-- When the last of an hour's calls ended: a plan's window may begin within the hour.
ALTER TABLE spent ADD COLUMN last_at BIGINT NOT NULL DEFAULT 0;
UPDATE spent SET last_at = first_at;
