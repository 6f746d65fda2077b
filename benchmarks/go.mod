module github.com/animalstore/gatehouse/benchmarks

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/animalstore/gatehouse v0.0.0
	github.com/animalstore/gatehouse/ratelimit/redislimit v0.0.0
	github.com/animalstore/gatehouse/ratelimit/redisrate v0.0.0
	github.com/animalstore/gatehouse/ratelimit/ululelimit v0.0.0
	github.com/didip/tollbooth/v8 v8.0.1
	github.com/go-chi/httprate v0.16.1
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/google/go-cmp v0.7.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/sethvargo/go-limiter v0.7.1
	github.com/throttled/throttled/v2 v2.15.0
	github.com/ulule/limiter/v3 v3.11.2
	golang.org/x/sys v0.49.0
	golang.org/x/time v0.16.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-pkgz/expirable-cache/v3 v3.0.0 // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
)

replace (
	github.com/animalstore/gatehouse => ../
	github.com/animalstore/gatehouse/ratelimit/redislimit => ../ratelimit/redislimit
	github.com/animalstore/gatehouse/ratelimit/redisrate => ../ratelimit/redisrate
	github.com/animalstore/gatehouse/ratelimit/ululelimit => ../ratelimit/ululelimit
)

// Only the tests of modernc.org/sqlite import it, and module proxies may lack this
// version of it.
exclude github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50
