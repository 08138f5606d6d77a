-- What has changed accounts, an entry for each change of each thing, and nothing else. `before` and `after` are JSON: the fields
-- that a change has changed; NULL: the thing was not there, or is gone. `hash` covers the entry and the hash of the entry before,
-- so the numbers have no gaps. Entries are never changed or deleted.
CREATE TABLE audit_log (
    number BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    name TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    organization TEXT NOT NULL,
    before TEXT,
    after TEXT,
    hash TEXT NOT NULL
);
CREATE INDEX audit_log_of_organization ON audit_log (organization_id, number);
CREATE INDEX audit_log_of_actor ON audit_log (actor, number);
CREATE INDEX audit_log_of_kind ON audit_log (kind, number);
CREATE INDEX audit_log_of_action ON audit_log (action, number);
{CREATE FUNCTION keep_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_log_keeps_rows BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION keep_audit_log();
CREATE TRIGGER audit_log_keeps_all BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_log();|CREATE TRIGGER audit_log_keeps_changed BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
CREATE TRIGGER audit_log_keeps_deleted BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- INSERT OR REPLACE deletes without a trigger.
CREATE TRIGGER audit_log_keeps_replaced BEFORE INSERT ON audit_log
    WHEN EXISTS (SELECT 1 FROM audit_log WHERE number = NEW.number)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;}
