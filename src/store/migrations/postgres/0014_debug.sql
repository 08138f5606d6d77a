-- 1: requests with the key may ask why their providers were chosen.
ALTER TABLE api_keys ADD COLUMN debug BIGINT NOT NULL DEFAULT 0 CHECK (debug IN (0, 1));
