package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
)

var web = topology.ServiceName{Namespace: "shop", Name: "web"}

// decide makes a decision about shop/web from slices in the form "have>want have>want", one per endpoint: the zones that
// it is hinted for, one letter each, and those that the plan wants; - for none. Versions are those of the slices.
func decide(t *testing.T, versions map[string]int, texts ...string) *plans.Decision {
	t.Helper()
	svc := &topology.Service{ServiceName: web, Mode: topology.ModeBalanced}
	p := plan.Plan{Family: topology.IPv4, Mode: topology.ModeBalanced}
	r := &feed.Record{Name: web, Managed: true, Service: svc}
	for i, text := range texts {
		name := fmt.Sprintf("s%d", i+1)
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: web.Namespace, Name: name, UID: types.UID("uid-" + name),
				ResourceVersion: strconv.Itoa(max(versions[name], 1)),
				Annotations:     map[string]string{api.AnnotationHints: string(topology.ModeBalanced)},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		}
		for j, word := range strings.Fields(text) {
			have, want, ok := strings.Cut(word, ">")
			if !ok {
				t.Fatalf("%q: want HAVE>WANT", word)
			}
			addr := netip.AddrFrom4([4]byte{10, 0, byte(i), byte(j)})
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{addr.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, Hints: spelt(have),
			})
			e := topology.Endpoint{Addr: addr, Ports: []topology.EndpointPort{{Protocol: topology.TCP, Port: 80}}}
			if want != "-" {
				p.Hinted = true
				for _, z := range want {
					e.Hints.Zones = append(e.Hints.Zones, topology.Zone(z))
				}
			}
			p.Endpoints = append(p.Endpoints, e)
		}
		r.Slices = append(r.Slices, s)
	}
	return &plans.Decision{Record: r, Plans: []plan.Plan{p}}
}

func spelt(zones string) *discoveryv1.EndpointHints {
	if zones == "-" {
		return nil
	}
	h := new(discoveryv1.EndpointHints)
	for _, z := range zones {
		h.ForZones = append(h.ForZones, discoveryv1.ForZone{Name: string(z)})
	}
	return h
}

// store is a store with one page.
type store struct{ d *plans.Decision }

func (b *store) Lookup(topology.ServiceName) (*plans.Decision, bool) { return b.d, b.d != nil }

// cluster is an API server that knows the versions of slices, and nothing of what is in them. It refuses a patch that is
// not pinned to the present version, and, before it looks at that, whatever it is told to refuse.
type cluster struct {
	mu       sync.Mutex
	versions map[string]int
	refuse   map[string]error // by slice
	patched  []string         // in order
	onPatch  func()
	hang     time.Duration // before a patch is looked at
}

func newCluster(d *plans.Decision) *cluster {
	c := &cluster{versions: map[string]int{}, refuse: map[string]error{}, onPatch: func() {}}
	for _, s := range d.Record.Slices {
		c.versions[s.Name], _ = strconv.Atoi(s.ResourceVersion)
	}
	return c
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.versions[key.Name]
	if !ok {
		return apierrors.NewNotFound(discoveryv1.Resource("endpointslices"), key.Name)
	}
	obj.SetResourceVersion(strconv.Itoa(v))
	return nil
}

func (c *cluster) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	time.Sleep(c.hang)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onPatch()
	if err := ctx.Err(); err != nil {
		return err
	}
	resource, name := discoveryv1.Resource("endpointslices"), obj.GetName()
	if err := c.refuse[name]; err != nil {
		return err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	var ops []hints.Op
	if err := json.Unmarshal(data, &ops); err != nil {
		return err
	}
	v, ok := c.versions[name]
	switch {
	case !ok:
		return apierrors.NewNotFound(resource, name)
	case len(ops) < 2 || ops[0].Path != "/metadata/resourceVersion":
		return apierrors.NewBadRequest("the patch is not pinned")
	case ops[0].Value != strconv.Itoa(v):
		return apierrors.NewConflict(resource, name, nil)
	}
	c.versions[name]++
	c.patched = append(c.patched, name)
	obj.SetResourceVersion(strconv.Itoa(c.versions[name]))
	return nil
}

// misfit is the answer to a patch that cannot be applied.
func misfit() error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "", "", 0, false)
}

func (c *cluster) sorted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.patched))
}
