package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/kube/hints"
)

// patchTimeout bounds one patch with all that client-go does for it: an API server gives up on a request after 60 s at
// the latest, and on the admission webhooks of others after 30 s.
const patchTimeout = 30 * time.Second

// apiClient is what a slice is patched through. Reads must come from the API server, not from a cache.
type apiClient interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// apply does the edit to the slice in the cluster if that still is the version which the edit was made from, and gives
// its new version.
//
// Errors: one that isStale if it is another version by now, or gone; else what the API server says. A 422 can mean either:
// the API server applies a patch to what it has before it compares versions, and a patch does not fit an object that has
// lost endpoints or hints since. So can a 409, which admission controls of others give for reasons of their own. So after
// either the version is read.
func (e *edit) apply(ctx context.Context, c apiClient) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	data, err := pinned(e.slice.ResourceVersion, e.ops)
	if err != nil {
		return "", fmt.Errorf("spell the patch of EndpointSlice %s/%s: %w", e.slice.Namespace, e.slice.Name, err)
	}
	answer := bare(e.slice) // the answer comes without the endpoints, which may be a thousand
	err = c.Patch(ctx, answer, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(api.FieldManager))
	switch {
	case apierrors.IsInvalid(err) && e.isPast(ctx, c):
		err = apierrors.NewConflict(discoveryv1.Resource("endpointslices"), e.slice.Name, err)
	case apierrors.IsConflict(err) && !e.isPast(ctx, c):
		err = refusedError{err}
	}
	if err != nil {
		return "", fmt.Errorf("patch EndpointSlice %s/%s: %w", e.slice.Namespace, e.slice.Name, err)
	}
	return answer.ResourceVersion, nil
}

// pinned spells the patch of one version of an object. The first operation writes the version that the API server is to
// find: with another one it answers 409 and changes nothing. (A "test" would give 422, as a patch that is wrong does.) No
// two objects ever have the same version, so an object that was made anew under the same name is refused, too.
func pinned(version string, ops []hints.Op) ([]byte, error) {
	pin := hints.Op{Op: "replace", Path: "/metadata/resourceVersion", Value: version}
	return json.Marshal(append([]hints.Op{pin}, ops...))
}

// bare gives an object that names the slice and holds metadata only.
func bare(s *discoveryv1.EndpointSlice) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
	}
}

// isStale tells that a patch was refused because the slice is not the one any more which the patch was made from.
func isStale(err error) bool {
	var refused refusedError
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !errors.As(err, &refused)
}

// refusedError is a 409 although the slice is still the version that was patched: no newer one will come through the
// watch, so the patch has to be tried again.
type refusedError struct{ error }

func (r refusedError) Unwrap() error { return r.error }

// isPast tells whether the cluster has another version of the slice by now, or none.
func (e *edit) isPast(ctx context.Context, c apiClient) bool {
	found := bare(e.slice)
	err := c.Get(ctx, client.ObjectKeyFromObject(found), found)
	return apierrors.IsNotFound(err) || err == nil && found.ResourceVersion != e.slice.ResourceVersion
}
