-- +goose Up

-- "PETS": marks the file as a database of this program. A file without tables
-- or with this mark is opened, any other is left alone.
PRAGMA application_id = 0x50455453;

-- AUTOINCREMENT never gives an id a second time, even after the pet with the
-- largest one is deleted.
CREATE TABLE pets (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL CHECK (name <> ''),
    category_id INTEGER NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
) STRICT;

-- With all columns, so that a page of one status comes from the index alone. Without
-- them, each pet of the page would be looked for in the table, which takes the longer
-- the more pets there are.
CREATE INDEX pets_by_status ON pets (status, id, name, category_id);

-- Instants are microseconds since 1970 in UTC. Only the SHA-256 of a key is
-- kept. The limits are quotas of the key alone, in addition to those of its plan.
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
    revoked   INTEGER,
    limits    TEXT NOT NULL DEFAULT '[]' CHECK (json_type(limits) = 'array')
) STRICT;

CREATE TABLE deprecated_use (
    operation TEXT    NOT NULL,
    owner     TEXT    NOT NULL,
    count     INTEGER NOT NULL CHECK (count > 0),
    last      INTEGER NOT NULL, -- microseconds since 1970 in UTC
    PRIMARY KEY (operation, owner)
) STRICT, WITHOUT ROWID;

-- Instants are microseconds since 1970 in UTC.
CREATE TABLE audit (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL CHECK (actor <> ''),
    source TEXT    NOT NULL, -- the address that the request came from, or ''
    action TEXT    NOT NULL CHECK (action <> ''),
    target TEXT    NOT NULL CHECK (target <> ''),
    detail TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_by_time ON audit (at);

-- Days are numbered from 1970-01-01 UTC. The day comes first, because the rows of
-- today are written all the time, and those of the oldest day are removed.
CREATE TABLE daily_use (
    day     INTEGER NOT NULL,
    owner   TEXT    NOT NULL CHECK (owner <> ''),
    allowed INTEGER NOT NULL CHECK (allowed >= 0),
    denied  INTEGER NOT NULL CHECK (denied >= 0),
    PRIMARY KEY (day, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE deprecated_use_by_day (
    day       INTEGER NOT NULL,
    operation TEXT    NOT NULL,
    owner     TEXT    NOT NULL,
    count     INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (day, operation, owner)
) STRICT, WITHOUT ROWID;

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
