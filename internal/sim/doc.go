// Package sim plays scenarios through the code that the agent runs, plan, pick, overflow and health, under virtual time.
//
// One event loop, no goroutine, no clock, one seeded generator for each actor: the same scenario, strategy and seed give
// the same bytes. It promises figures of a model, not of a cluster.
package sim
