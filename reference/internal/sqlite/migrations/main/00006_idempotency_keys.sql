-- +goose Up

CREATE TABLE idempotency_keys (
    owner       TEXT    NOT NULL CHECK (owner <> ''),
    key         TEXT    NOT NULL CHECK (key <> ''),
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    pet         INTEGER NOT NULL REFERENCES pets (id) ON DELETE CASCADE,
    at          INTEGER NOT NULL, -- microseconds since 1970 in UTC
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

-- For those that have expired, and for a pet that is deleted.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);
CREATE INDEX idempotency_keys_by_pet ON idempotency_keys (pet);
