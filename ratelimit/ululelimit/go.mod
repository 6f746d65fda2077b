module github.com/animalstore/gatehouse/ratelimit/ululelimit

go 1.26.0

require (
	github.com/animalstore/gatehouse v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/redis/go-redis/v9 v9.0.4
	github.com/ulule/limiter/v3 v3.11.2
)

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/animalstore/gatehouse => ../..
