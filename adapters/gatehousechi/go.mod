module github.com/animalstore/gatehouse/adapters/gatehousechi

go 1.26.0

require (
	github.com/animalstore/gatehouse v0.0.0
	github.com/go-chi/chi/v5 v5.5.0
)

replace github.com/animalstore/gatehouse => ../..
