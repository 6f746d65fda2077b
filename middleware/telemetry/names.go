package telemetry

import (
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Bounds of attribute values. The names of plans and the windows of quotas come from
// settings and stored keys, so there may be more of them than a backend should hold.
// With maxPairs no counter has more than 2000 series, where an SDK of OpenTelemetry
// begins to merge them.
const (
	maxPlans      = 100
	maxWindows    = 50
	maxPairs      = maxPlans * ratelimit.MaxQuotas // of a plan and a window
	maxOperations = 100

	other = "other" // stands for all further values
)

// windowName returns the word for a window, or its duration in seconds, as in the text
// form of a quota. The length of a smooth quota has a minus sign.
func windowName(window time.Duration) string {
	if window == ratelimit.PerDay(1).In(time.UTC).Window {
		return "local-day" // beside the day of a fixed length
	}
	if window < 0 {
		return "smooth-" + windowName(-window)
	}
	_, name, _ := strings.Cut(ratelimit.Quota{Limit: 1, Window: window}.String(), "/")
	return name
}
