-- The sums of a key, a member or a plan ("scope") in its current periods, as text. A limit is judged by this row alone.
CREATE TABLE limit_counters (
    organization_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    sums TEXT NOT NULL,
    PRIMARY KEY (organization_id, scope)
);

-- How much of an hour is in the counters. Processes of the version before add to hours and know no counters, so what they
-- add is found by the difference.
ALTER TABLE spent ADD COLUMN counted_nano BIGINT NOT NULL DEFAULT 0;
ALTER TABLE spent ADD COLUMN counted_rest BIGINT NOT NULL DEFAULT 0;
-- They also join past hours into the hour -1, which therefore is not counted. What was joined until now is still to be
-- counted once; what is not counted is not joined.
UPDATE spent SET hour = -2 WHERE hour = -1;
CREATE INDEX spent_uncounted ON spent (organization_id, hour)
    WHERE hour <> -1 AND (cost_nano <> counted_nano OR cost_rest <> counted_rest);
{CREATE FUNCTION keep_uncounted_spent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER spent_keeps_uncounted BEFORE DELETE ON spent FOR EACH ROW
    WHEN (OLD.hour <> -1 AND (OLD.cost_nano <> OLD.counted_nano OR OLD.cost_rest <> OLD.counted_rest))
    EXECUTE FUNCTION keep_uncounted_spent();|CREATE TRIGGER spent_keeps_uncounted BEFORE DELETE ON spent
    WHEN OLD.hour <> -1 AND (OLD.cost_nano <> OLD.counted_nano OR OLD.cost_rest <> OLD.counted_rest)
BEGIN
    SELECT RAISE(IGNORE);
END;}

-- The least number of a migration that a process has to know to work with these tables. An older process refuses them.
ALTER TABLE store_state ADD COLUMN needs_migration BIGINT NOT NULL DEFAULT 0;
