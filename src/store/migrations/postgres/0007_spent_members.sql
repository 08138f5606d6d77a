-- A key may belong to another member within an hour. What it has spent until then stays with the member it had.
-- Empty: the key had no owner.
UPDATE spent SET member_id = '' WHERE member_id IS NULL;
ALTER TABLE spent ALTER COLUMN member_id SET NOT NULL;
ALTER TABLE spent DROP CONSTRAINT spent_pkey;
ALTER TABLE spent ADD PRIMARY KEY (organization_id, key_id, hour, funding, is_premium, member_id);
