-- +goose Up

-- "PETU": marks the file as the limiter state of this program.
PRAGMA application_id = 0x50455455;

CREATE TABLE header (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    data BLOB NOT NULL
) STRICT;

-- key is a 64-bit hash, read as a signed number; expires is in Unix seconds.
-- There is no index on it: keeping that up would cost more than looking for
-- what has expired now and then.
CREATE TABLE usage (
    key     INTEGER PRIMARY KEY,
    expires INTEGER NOT NULL,
    data    BLOB    NOT NULL CHECK (length(data) > 0)
) STRICT;
