package adminapi

import (
	"time"
)

// An AuditEntry is one entry of the audit log.
type AuditEntry struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	From   string    `json:"from,omitempty"`
	Action string    `json:"action"`
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
}

// An AuditLog is the answer of GET /audit.
type AuditLog struct {
	Entries []AuditEntry `json:"entries"`
}
