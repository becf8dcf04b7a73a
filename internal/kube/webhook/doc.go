// Package webhook keeps a service's hints on its EndpointSlices while others write them: a mutating admission webhook that
// puts the plan's hints on the incoming object, and the certificates that it is served with.
//
// It never denies a write and never asks the API server while one waits: what it does not know it leaves alone, and the
// controller mends it later. It decides no hints and has no side effects.
package webhook
