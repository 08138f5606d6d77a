-- What is granted is one sum and the grants that are not in it: `granted` has those with `is_summed` = 1. An earlier version
-- adds up all grants.
ALTER TABLE balances ADD COLUMN granted TEXT NOT NULL DEFAULT '0';
ALTER TABLE credit_grants ADD COLUMN is_summed BIGINT NOT NULL DEFAULT 0;
CREATE INDEX credit_grants_to_sum ON credit_grants (organization_id) WHERE is_summed = 0;

-- Sums of hours before this one are those of whole days, in the row of the day's first hour.
ALTER TABLE store_state ADD COLUMN usage_days_before BIGINT NOT NULL DEFAULT 0;
CREATE INDEX usage_hours_to_join ON usage_hours (hour) WHERE hour % 24 <> 0;
CREATE INDEX variation_hours_to_join ON variation_hours (hour) WHERE hour % 24 <> 0;
