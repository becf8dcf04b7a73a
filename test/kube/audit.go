package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Write is a request to change an EndpointSlice, a Service, a Service's status or a load-balancing policy that the API server
// has answered.
type Write struct {
	User     string
	Agent    string // the client's user agent
	Verb     string // create, update, patch, delete, …
	Resource string // endpointslices, services, services/status, loadbalancingpolicies
	Object   string // namespace/name
	Code     int    // of the answer
	At       time.Time
}

// audit is how far the audit log was read.
type audit struct {
	mu     sync.Mutex
	offset int64
	writes []Write
}

// Writes gives all writes since the cluster started, whoever asked for them and however they were answered, in the order
// of the answers. A write that changes nothing is among them. It only reads what is new since it was asked before.
//
// Source: the API server's audit log.
func (c *Cluster) Writes() []Write {
	c.tb.Helper()
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	file, err := os.Open(c.auditPath())
	if err != nil {
		c.tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(file, c.audit.offset, math.MaxInt64-c.audit.offset))
	if err != nil {
		c.tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // being written
		}
		w, err := parseWrite(line)
		if err != nil {
			c.tb.Fatal(err)
		}
		c.audit.writes = append(c.audit.writes, w)
		c.audit.offset += int64(len(line))
	}
	return slices.Clone(c.audit.writes)
}

func parseWrite(line string) (Write, error) {
	var event struct {
		Verb           string
		UserAgent      string
		User           struct{ Username string }
		ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
		ResponseStatus struct{ Code int }
		StageTimestamp time.Time
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		return Write{}, fmt.Errorf("read the audit log: %w", err)
	}
	o := event.ObjectRef
	w := Write{
		User: event.User.Username, Agent: event.UserAgent, Verb: event.Verb, Resource: o.Resource,
		Object: o.Namespace + "/" + o.Name, Code: event.ResponseStatus.Code, At: event.StageTimestamp,
	}
	if o.Subresource != "" {
		w.Resource += "/" + o.Subresource
	}
	return w, nil
}

func (c *Cluster) auditPath() string { return filepath.Join(c.folder, "audit.log") }

func (c *Cluster) writeAuditPolicy() string {
	c.tb.Helper()
	return c.write("audit.yaml", `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: discovery.k8s.io, resources: [endpointslices]}
  - {group: "", resources: [services, services/status]}
  - {group: weir.dev, resources: [loadbalancingpolicies]}
- level: None
`)
}
