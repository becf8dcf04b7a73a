// Package ops is what every long-running weir command needs around its work: a logger, a metrics registry, an admin
// HTTP server with health checks, and an orderly start and stop of the command's parts.
//
// It promises that whatever it starts has an owner that waits for it. It decides nothing about traffic and knows no
// other room of weir; a command hands it values and functions.
package ops
