-- The API keys of package sqlkeys, for SQLite 3.38 or later. Instants are microseconds since
-- 1970 in UTC. Only the SHA-256 of a key is stored. The quotas belong to a custom plan, the
-- limits are quotas of the key alone; both are arrays of texts in JSON.
CREATE TABLE IF NOT EXISTS keys (
    id        TEXT    NOT NULL PRIMARY KEY,
    digest    BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    last_four TEXT    NOT NULL CHECK (length(last_four) = 4),
    name      TEXT    NOT NULL,
    owner     TEXT    NOT NULL CHECK (owner <> ''),
    plan      TEXT    NOT NULL CHECK (plan <> ''),
    quotas    TEXT    NOT NULL CHECK (json_type(quotas) = 'array'),
    created   INTEGER NOT NULL,
    expires   INTEGER,
    revoked   INTEGER,
    limits    TEXT NOT NULL DEFAULT '[]' CHECK (json_type(limits) = 'array'),
    last_used INTEGER
) STRICT;
