// Package ululelimit tests the engines of package ratelimit/ululelimit on ulule's
// stores, the one in memory and the one in Redis. The tests are not beside that
// package, because its users would then see miniredis and a version of go-redis in
// their module graphs.
package ululelimit
