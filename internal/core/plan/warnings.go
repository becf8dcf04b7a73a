package plan

import "github.com/weir-lb/weir/internal/core/reason"

// warnings names what a person should know whatever the mode decided.
func (p *prepared) warnings(outcome) []reason.Reason { return nil }
