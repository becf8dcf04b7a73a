package demo

import (
	"context"
	"errors"
)

func startAgents(context.Context, *layout, string, *agentOptions) (fleet, error) {
	return nil, errors.New("TODO")
}
