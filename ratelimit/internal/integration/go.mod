module github.com/animalstore/gatehouse/ratelimit/internal/integration

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/animalstore/gatehouse v0.0.0
	github.com/animalstore/gatehouse/ratelimit/internal/redistest v0.0.0
	github.com/animalstore/gatehouse/ratelimit/redislimit v0.0.0
	github.com/animalstore/gatehouse/ratelimit/redisrate v0.0.0
	github.com/anishathalye/porcupine v1.3.1
	github.com/redis/go-redis/v9 v9.23.0
	github.com/ulule/limiter/v3 v3.11.2
)

require (
	github.com/go-redis/redis_rate/v10 v10.0.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
)

require (
	github.com/animalstore/gatehouse/ratelimit/ululelimit v0.0.0
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/animalstore/gatehouse => ../../..
	github.com/animalstore/gatehouse/ratelimit/internal/redistest => ../redistest
	github.com/animalstore/gatehouse/ratelimit/redislimit => ../../redislimit
)

replace github.com/animalstore/gatehouse/ratelimit/redisrate => ../../redisrate

replace github.com/animalstore/gatehouse/ratelimit/ululelimit => ../../ululelimit
