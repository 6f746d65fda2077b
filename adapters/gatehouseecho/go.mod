module github.com/animalstore/gatehouse/adapters/gatehouseecho

go 1.26.0

require (
	github.com/animalstore/gatehouse v0.0.0
	github.com/labstack/echo/v5 v5.4.4
)

require golang.org/x/time v0.15.0 // indirect

replace github.com/animalstore/gatehouse => ../..
