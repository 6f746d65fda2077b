// Package contract checks responses against the promises of the service: those in its
// OpenAPI document, through a library, and those for all responses that an OpenAPI
// document cannot express. Tests send their requests through a [Client], which checks
// each response that it gets.
package contract
