-- The API keys of package sqlkeys. Only the SHA-256 of a key is stored. The quotas are those
-- of a custom plan, the limits are quotas of the key alone.
CREATE TABLE IF NOT EXISTS keys (
    id        text   COLLATE "C" NOT NULL PRIMARY KEY,
    digest    bytea  NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    last_four text   COLLATE "C" NOT NULL CHECK (octet_length(last_four) = 4),
    name      text   COLLATE "C" NOT NULL,
    owner     text   COLLATE "C" NOT NULL CHECK (owner <> ''),
    plan      text   COLLATE "C" NOT NULL CHECK (plan <> ''),
    quotas    text[] COLLATE "C" NOT NULL,
    limits    text[] COLLATE "C" NOT NULL,
    created   timestamptz NOT NULL,
    expires   timestamptz,
    revoked   timestamptz,
    last_used timestamptz
);
