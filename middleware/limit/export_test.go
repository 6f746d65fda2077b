package limit

// ForgetMade makes the next limit the first one of the process.
func ForgetMade() { made.Store(0) }
