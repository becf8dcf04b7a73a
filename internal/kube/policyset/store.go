package policyset

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/core/policy"
)

// store holds what the informers told, converted, until it is taken. It is safe for concurrent use.
type store struct {
	changed chan struct{} // has a value when there is something to take

	mu         sync.Mutex
	runs       map[kind]int // which watching of a kind counts; what is told by an earlier one is passed over
	unknown    map[kind]bool
	documents  map[documentKey]storedDocument
	pods       map[podName]*policy.Pod
	dirtyPods  map[podName]bool
	sorted     []policy.Pod // the pods when they were last taken; never written to again
	namespaces labelled
	nodes      labelled
}

// labelled are the labels of objects by name.
type labelled struct {
	all   map[string]policy.Labels
	taken map[string]policy.Labels // a copy of all, never written to; nil: all changed since
}

// storedDocument is a document with the watching that told of it.
type storedDocument struct {
	*document
	run int
}

type podName struct{ namespace, name string }

func newStore() *store {
	return &store{
		changed: make(chan struct{}, 1), runs: make(map[kind]int),
		unknown:   map[kind]bool{kindPolicy: true, kindHTTPRoute: true, kindGRPCRoute: true},
		documents: make(map[documentKey]storedDocument),
		pods:      make(map[podName]*policy.Pod), dirtyPods: make(map[podName]bool),
		namespaces: labelled{all: make(map[string]policy.Labels)}, nodes: labelled{all: make(map[string]policy.Labels)},
	}
}

// signal says that there is something to take.
func (s *store) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // it was said already
	}
}

// begin starts another watching of a kind. What the one before told stays until sweep.
func (s *store) begin(k kind) (run int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[k]++
	return s.runs[k]
}

// sweep forgets what this watching, which has told of all that is there, did not tell of.
func (s *store) sweep(k kind, run int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(k, func(d storedDocument) bool { return d.kind == k && d.run != run })
}

// clear forgets all of a kind: the cluster has it no more.
func (s *store) clear(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[k]++
	s.forgetLocked(k, func(d storedDocument) bool { return d.kind == k })
}

// forgetLocked ends in knowing all that there is of a kind.
func (s *store) forgetLocked(k kind, isGone func(storedDocument) bool) {
	before := len(s.documents)
	maps.DeleteFunc(s.documents, func(_ documentKey, d storedDocument) bool { return isGone(d) })
	if s.unknown[k] || len(s.documents) != before {
		s.signal()
	}
	delete(s.unknown, k)
}

func (s *store) setDocument(run int, d *document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[d.kind] != run {
		return
	}
	if before, ok := s.documents[d.documentKey]; ok && reflect.DeepEqual(before.document, d) { // as when its status was written
		d = before.document
	} else {
		s.signal()
	}
	s.documents[d.documentKey] = storedDocument{d, run}
}

func (s *store) dropDocument(run int, key documentKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[key.kind] == run {
		delete(s.documents, key)
		s.signal()
	}
}

// setPod takes a pod. Most changes of a pod are none for policies.
func (s *store) setPod(p *keptPod) {
	if p.isFinished {
		s.dropPod(p)
		return
	}
	name := podName{p.Namespace, p.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.pods[name]; ok && isSamePod(before, &p.pod) {
		return
	}
	s.pods[name] = &p.pod
	s.dirtyPods[name] = true
	s.signal()
}

func (s *store) dropPod(p *keptPod) {
	name := podName{p.Namespace, p.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pods[name]; ok {
		delete(s.pods, name)
		s.dirtyPods[name] = true
		s.signal()
	}
}

func (s *store) setNamespace(n *corev1.Namespace) { s.setLabels(&s.namespaces, n.Name, n.Labels) }

func (s *store) dropNamespace(n *corev1.Namespace) { s.dropLabels(&s.namespaces, n.Name) }

func (s *store) setNode(n *corev1.Node) { s.setLabels(&s.nodes, n.Name, n.Labels) }

func (s *store) dropNode(n *corev1.Node) { s.dropLabels(&s.nodes, n.Name) }

// setLabels takes the labels of an object. A node tells of its health all the time, and hardly ever of other labels.
func (s *store) setLabels(l *labelled, name string, labels policy.Labels) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := l.all[name]; ok && maps.Equal(before, labels) {
		return
	}
	l.all[name], l.taken = labels, nil
	s.signal()
}

func (s *store) dropLabels(l *labelled, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(l.all, name)
	l.taken = nil
	s.signal()
}

// take gives a copy that stays as it is.
func (l *labelled) take() map[string]policy.Labels {
	if l.taken == nil {
		l.taken = maps.Clone(l.all)
	}
	return l.taken
}

// take gives what there is.
func (s *store) take() objects {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := objects{namespaces: s.namespaces.take(), nodes: s.nodes.take(), unknown: maps.Clone(s.unknown)}
	for _, d := range s.documents {
		w.documents = append(w.documents, d.document)
	}
	slices.SortFunc(w.documents, compareDocuments)
	s.sortPodsLocked()
	w.pods = s.sorted
	return w
}

// sortPodsLocked makes a new sorted list of the last one and of the pods that changed since.
func (s *store) sortPodsLocked() {
	if len(s.dirtyPods) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(s.dirtyPods), func(a, b podName) int {
		if c := strings.Compare(a.namespace, b.namespace); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	before, next := s.sorted, make([]policy.Pod, 0, len(s.pods))
	for _, name := range names {
		at, found := slices.BinarySearchFunc(before, &policy.Pod{Namespace: name.namespace, Name: name.name},
			func(a policy.Pod, b *policy.Pod) int { return comparePods(&a, b) })
		next = append(next, before[:at]...)
		before = before[at:]
		if found {
			before = before[1:]
		}
		if now, ok := s.pods[name]; ok {
			next = append(next, *now)
		}
	}
	s.sorted, s.dirtyPods = append(next, before...), make(map[podName]bool)
}
