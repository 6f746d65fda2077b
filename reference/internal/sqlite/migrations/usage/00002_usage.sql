-- +goose Up

-- "PETU": marks the file as the limiter state of this program.
PRAGMA application_id = 0x50455455;

CREATE TABLE header (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    data BLOB NOT NULL
) STRICT;

-- Data is many records, one after the other: of each the key (8 bytes), the
-- expiry in Unix seconds (4 bytes), the length of its data (4 bytes), all in
-- big-endian order, and the data. No data: the key was forgotten.

-- part is the first byte of the keys of its records, which are all that there
-- were after the change since.
CREATE TABLE parts (
    part  INTEGER PRIMARY KEY CHECK (part BETWEEN 0 AND 255),
    since INTEGER NOT NULL,
    data  BLOB    NOT NULL
) STRICT;

-- What each save has changed, in the order of the numbers.
CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    data   BLOB    NOT NULL
) STRICT;
