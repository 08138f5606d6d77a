-- A key may belong to another member within an hour. What it has spent until then stays with the member it had.
CREATE TABLE spent_by_member (
    organization_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    funding TEXT NOT NULL,
    is_premium BIGINT NOT NULL,
    -- Empty: the key had no owner.
    member_id TEXT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cost_rest BIGINT NOT NULL,
    PRIMARY KEY (organization_id, key_id, hour, funding, is_premium, member_id)
);
INSERT INTO spent_by_member
SELECT organization_id, key_id, hour, funding, is_premium, COALESCE(member_id, ''), first_at, last_at, cost_nano, cost_rest
FROM spent;
DROP TABLE spent;
ALTER TABLE spent_by_member RENAME TO spent;
