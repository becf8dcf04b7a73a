package agent

import (
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// The labels that say where a node is: a node has them even if nobody told its labels.
const (
	labelZone     = policy.DefaultZoneKey
	labelHostname = "kubernetes.io/hostname"
)

// annotationWeight is the annotation of a pod that says how much it takes, relative to the others of its service:
// api.AnnotationWeight.
const annotationWeight = "weir.dev/weight"

// maxWeight bounds the weight of an endpoint: a ring or table has no room for larger differences.
const maxWeight = 1000

// maxHashKey bounds what an endpoint is hashed by, in bytes: a ring hashes it up to eight million times. Names and the values
// of labels are shorter; an annotation may have a quarter of a MiB.
const maxHashKey = 256

// identify fills in what an endpoint of a pool is hashed by and how much it takes.
func (b *builder) identify(w *wantedPool, t *pick.Target, e *topology.Endpoint) {
	pod, key := b.policies.PodOf(e), w.policy.EndpointHashKey
	if key.Type == policy.HashKeyPodName {
		_, t.HashKey, _ = strings.Cut(e.Pod, "/")
	}
	if pod == nil {
		return
	}
	switch key.Type {
	case policy.HashKeyPodName:
		t.HashKey = pod.Name
	case policy.HashKeyLabel:
		t.HashKey = pod.Labels[key.Key]
	case policy.HashKeyAnnotation:
		t.HashKey = pod.Annotations[key.Key]
	default: // the address
	}
	if len(t.HashKey) > maxHashKey {
		t.HashKey = ""
	}
	text, ok := pod.Annotations[annotationWeight]
	if !ok {
		return
	}
	weight, err := strconv.ParseUint(text, 10, 32)
	if err != nil || weight == 0 || weight > maxWeight {
		b.note(w.key.service, reason.New(reason.WeightRefused, pod.Namespace+"/"+pod.Name, text))
		return
	}
	t.Weight = uint32(weight)
}
