// Package mesh reads the load-balancing documents of a mesh, which no API server takes: type MeshLoadBalancing, as the
// specification has it, and type MeshLoadBalancingStrategy, as it was shipped.
//
// Parse turns one document into policy rules, one for each of its destinations, and tells what is wrong with it by field,
// in the document's own spelling. It decides only what the words mean; whether their values make sense is the business of
// package policy. A document with anything that is not understood is refused whole: half a policy is none. The package
// knows neither files nor lines nor YAML: it is given JSON.
package mesh
