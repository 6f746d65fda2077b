// Package engines compares the guide to the engines, docs/ENGINES.md, with the engines.
package engines
