CREATE TABLE audit (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- 400 days, as in audit.rs.
    IF TG_OP = 'DELETE' AND OLD.time <= EXTRACT(EPOCH FROM clock_timestamp()) * 1000 - 34560000000 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON audit
FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
