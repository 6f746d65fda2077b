-- +goose Up

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

WITH RECURSIVE n (part) AS (SELECT 0 UNION ALL SELECT part + 1 FROM n WHERE part < 255)
INSERT INTO parts (part, since, data)
SELECT part, 0, (
    SELECT unhex(coalesce(group_concat(
        printf('%016X%08X%08X', key, min(max(expires, 0), 4294967295), length(data)) || hex(data), ''), ''))
    FROM usage WHERE key BETWEEN part << 56 AND (part << 56) + 0xFFFFFFFFFFFFFF)
FROM n;

DROP TABLE usage;
