-- +goose Up

CREATE TABLE deprecated_use (
    operation TEXT    NOT NULL,
    owner     TEXT    NOT NULL,
    count     INTEGER NOT NULL CHECK (count > 0),
    last      INTEGER NOT NULL, -- microseconds since 1970 in UTC
    PRIMARY KEY (operation, owner)
) STRICT, WITHOUT ROWID;
