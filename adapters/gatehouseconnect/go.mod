module github.com/animalstore/gatehouse/adapters/gatehouseconnect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/animalstore/gatehouse v0.0.0
	github.com/google/go-cmp v0.7.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261026165753-2ffab32bce7e
	google.golang.org/protobuf v1.36.12
)

replace github.com/animalstore/gatehouse => ../..
