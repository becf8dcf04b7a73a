// Package status publishes what became of services: conditions and events on the Service, and metrics.
//
// It says something when something changed, and then once. It decides nothing: what it says is what the plans' reasons
// and the writer's errors say. A Service that asks for no distribution gets neither conditions nor events.
package status
