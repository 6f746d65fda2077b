-- +goose Up

-- Instants are microseconds since 1970 in UTC. Only the SHA-256 of a key is
-- kept.
CREATE TABLE keys (
    id        TEXT    NOT NULL PRIMARY KEY,
    digest    BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    last_four TEXT    NOT NULL CHECK (length(last_four) = 4),
    name      TEXT    NOT NULL,
    owner     TEXT    NOT NULL CHECK (owner <> ''),
    plan      TEXT    NOT NULL CHECK (plan <> ''),
    quotas    TEXT    NOT NULL CHECK (json_type(quotas) = 'array'),
    created   INTEGER NOT NULL,
    expires   INTEGER,
    revoked   INTEGER
) STRICT;
