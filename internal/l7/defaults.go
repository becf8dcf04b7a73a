package l7

// DefaultLimits are the Limits of a zero value, spelled out.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

// DefaultTimeouts are the Timeouts of a zero value, spelled out.
func DefaultTimeouts() Timeouts { return Timeouts{}.withDefaults() }

// DefaultRetry is the Retry of a zero value, spelled out.
func DefaultRetry() Retry { return Retry{}.withDefaults() }
