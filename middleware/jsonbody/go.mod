module github.com/animalstore/gatehouse/middleware/jsonbody

go 1.26.0

require (
	github.com/animalstore/gatehouse v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1
)

replace github.com/animalstore/gatehouse => ../..
