// Package policies reads load-balancing policies, and what they refer to, from Kubernetes objects, and writes rules as objects.
//
// Its conversions are total: any object gives a value, and what is wrong with it is a Problem with the field's path. The package
// asks no API server: package policyset does.
package policies
