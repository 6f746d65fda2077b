package service

import (
	"fmt"

	"github.com/animalstore/gatehouse/reference/internal/config"
)

// A SettingError says that a setting asks for something that there is not, however
// often it is tried.
type SettingError struct{ Err error }

func (e SettingError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e SettingError) Unwrap() error { return e.Err }

// problem returns an error about a setting, with where it was given, in the form
// that package config has.
func problem(c *config.Config, setting, format string, args ...any) error {
	at := setting
	if where := c.Where(setting); where != "default" {
		at = where + ": " + setting
	}
	return fmt.Errorf(at+": "+format, args...)
}
