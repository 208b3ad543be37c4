-- Snapshots that a tenant may keep; NULL has no limit.
ALTER TABLE tenants ADD COLUMN snapshots BIGINT;

-- Snapshots of tenants. Those of one that is deleted are of a tenant `#ID` until they are deleted, too.
CREATE TABLE snapshots (
    tenant TEXT NOT NULL,
    -- As the tenant calls it.
    name TEXT NOT NULL,
    -- The session whose files they are.
    session TEXT NOT NULL,
    -- What the engine calls it; NULL while it is made.
    image TEXT UNIQUE,
    -- Until when it is made at most.
    deadline BIGINT,
    created BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);
