// Package plans keeps the newest plans of a live cluster's services.
//
// It plans a service again when the service or what is known of the nodes changed, remembers the hints that were planned
// where another writer removed them, and answers which hints an endpoint should carry. It asks no API server.
package plans
