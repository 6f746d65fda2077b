// Package plans simulates clients under the penalty of docs/PLANS.md, and compares the
// page with what they experience.
package plans
