// Package balance is the control loop of one service port on one client: from counters to the share of each group of
// endpoints, and to the endpoints that sit out.
//
// A data plane applies endpoints, steps the loop ten times a second with what it counted, and follows the Decision. The
// loop does not see requests, so that it serves every data plane: one that picks an endpoint for each request, one in the
// kernel, or a load report. What a data plane does not know it leaves zero in the counters. The package knows no clock and
// starts no goroutine: it is told the time and given its randomness; equal histories give equal decisions.
package balance
