module github.com/animalstore/gatehouse/ratelimit/ululelimit

go 1.26.0

require (
	github.com/animalstore/gatehouse v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/ulule/limiter/v3 v3.11.2
)

require (
	github.com/pkg/errors v0.9.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/animalstore/gatehouse => ../..
