package service

import (
	"time"

	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// observeDates reports when operations are removed, and when the certificate expires, by
// the settings in force.
func (p *startup) observeDates() error {
	return p.observer.ObserveDates(observe.Dates{
		Sunsets: func() map[string]time.Time {
			sunsets := make(map[string]time.Time)
			if r := p.running.Load(); r != nil {
				for operation, d := range r.settings.Load().Deprecations {
					if !d.Sunset.IsZero() {
						sunsets[operation] = d.Sunset
					}
				}
			}
			return sunsets
		},
		Certificate: func() time.Time {
			if r := p.running.Load(); r != nil {
				return r.pets.CertificateExpires()
			}
			return time.Time{}
		},
	})
}
