// Package hash has the hash functions that consistent hashing agrees on with other proxies: the same bytes give the same
// number here, in Envoy and in gRPC. They are fast and spread well; they are no protection against somebody who looks for
// collisions.
package hash
