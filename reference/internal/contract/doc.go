// Package contract holds responses against what the service has promised: its
// OpenAPI document, through a library, and what holds for every response and no
// document can say. Tests send their requests through a [Client], which checks
// each response that it gets.
package contract
