// Package balance is the control loop of one service port on one client: from counters to the share of each group of
// endpoints, and to the endpoints that are ejected.
//
// A data plane applies endpoints, steps the loop ten times a second with what it counted, and follows the Decision. The
// loop does not see requests, so that it serves every data plane: one that picks an endpoint for each request, one in the
// kernel, or a load report. Counters that a data plane does not have are zero. The package reads no clock and starts no
// goroutine: time and randomness are arguments; equal histories give equal decisions.
package balance
