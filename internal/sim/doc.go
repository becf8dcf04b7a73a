// Package sim plays scenarios through the code that the agent runs, plan, route, balance, pick, overflow and
// health, in virtual time.
//
// One event loop, no goroutine, no clock, one seeded generator for each actor: the same scenario, strategy and seed give
// the same bytes. Its results are those of a model, not of a cluster.
package sim
