CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time BIGINT NOT NULL,
    tenant TEXT,
    key_id TEXT,
    action TEXT NOT NULL,
    target TEXT,
    address TEXT,
    result TEXT NOT NULL,
    detail TEXT
);
CREATE INDEX audit_of_tenant ON audit (tenant, id);
CREATE INDEX audit_by_time ON audit (time);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- 400 days, as in audit.rs.
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
WHEN OLD.time > CAST(unixepoch('subsec') * 1000 AS INTEGER) - 34560000000
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
