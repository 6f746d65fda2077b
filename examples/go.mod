module github.com/animalstore/gatehouse/examples

go 1.26.0

require github.com/animalstore/gatehouse v0.0.0

replace github.com/animalstore/gatehouse => ../
