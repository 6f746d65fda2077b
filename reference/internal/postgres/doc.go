// Package postgres stores the data of the service in a PostgreSQL database, which any
// number of servers share.
//
//	s, err := postgres.Open(ctx, "postgres://petstore@db.example/petstore", postgres.Options{})
//	…
//	defer s.Close()
//	pet, err := s.CreatePet(ctx, store.NewPet{Name: "Rex", CategoryID: 1})
package postgres
