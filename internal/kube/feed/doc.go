// Package feed keeps the newest state of a live cluster: Services, EndpointSlices and Nodes, watched and converted.
//
// It publishes nothing before all of them were listed, then a new State soon after each change; a change of one service
// makes that service anew and leaves the rest as it was, pointers included. It decides nothing and writes nothing.
package feed
