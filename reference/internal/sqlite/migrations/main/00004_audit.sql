-- +goose Up

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
