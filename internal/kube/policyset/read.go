package policyset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewReader makes a client that reads all that a set is made of from the cluster that config leads to. It does not ask which
// kinds there are: of one that the cluster does not have the answer is NotFound.
//
// Errors: a config that no client can be made of.
func NewReader(config *rest.Config) (client.Reader, error) {
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	plain := rest.CopyConfig(config)
	plain.ContentType, plain.AcceptContentTypes = runtime.ContentTypeJSON, "" // all that API servers speak of such kinds
	c, err := client.New(plain, client.Options{Scheme: s, Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	return c, nil
}
