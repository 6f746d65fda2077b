module github.com/animalstore/gatehouse/adapters/gatehouseecho

go 1.26.0

require (
	github.com/animalstore/gatehouse v0.0.0
	github.com/labstack/echo/v5 v5.4.4
)

require (
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace github.com/animalstore/gatehouse => ../..
