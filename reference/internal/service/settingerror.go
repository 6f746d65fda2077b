package service

// A SettingError is an error about a setting that a retry cannot fix.
type SettingError struct{ Err error }

func (e SettingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e SettingError) Unwrap() error { return e.Err }
