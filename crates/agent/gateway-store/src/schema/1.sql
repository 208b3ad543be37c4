-- Times are milliseconds since 1970 by the clock of the database.
-- What makes the engine's names of sessions hard to guess: one row.
CREATE TABLE gateway_secret (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    secret TEXT NOT NULL
);

CREATE TABLE tenants (
    name TEXT PRIMARY KEY,
    running BIGINT,
    cpu_millis BIGINT,
    memory_bytes BIGINT,
    starts_per_minute BIGINT,
    -- JSON lists of texts; NULL allows all.
    images TEXT,
    classes TEXT,
    largest_factor BIGINT,
    -- Seconds.
    longest_life BIGINT,
    longest_idle BIGINT,
    disabled BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL
);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (name),
    label TEXT NOT NULL,
    -- SHA-256 of the whole key, as hexadecimal digits.
    hash TEXT NOT NULL,
    -- Its first characters, for people.
    start TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT,
    revoked BIGINT,
    used BIGINT
);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    runtime TEXT,
    image TEXT,
    cpu_millis BIGINT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'running', 'paused', 'ended')),
    gateway TEXT NOT NULL,
    -- When a reservation is over that nobody renews.
    deadline BIGINT,
    created BIGINT NOT NULL,
    started BIGINT,
    ended BIGINT,
    changed BIGINT NOT NULL,
    reason TEXT
);
CREATE UNIQUE INDEX sessions_live ON sessions (tenant, session) WHERE state <> 'ended';
CREATE INDEX sessions_of_runtime ON sessions (runtime);
CREATE INDEX sessions_by_time ON sessions (tenant, created);
CREATE INDEX sessions_by_end ON sessions (ended);
