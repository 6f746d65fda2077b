package postgres

// Check returns an error if url, with the variables and files of PostgreSQL in the
// environment, does not say how to connect: if a parameter is malformed, or a file with a
// certificate cannot be read. It does not connect. The error does not have the password.
func Check(url string) error {
	_, err := parse(url)
	return err
}
