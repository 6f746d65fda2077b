-- +goose Up

-- Quotas of the key alone, in addition to those of its plan.
ALTER TABLE keys ADD COLUMN limits TEXT NOT NULL DEFAULT '[]' CHECK (json_type(limits) = 'array');
