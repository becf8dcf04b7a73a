package clusters

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The limits of what a further API server can make weir do.
const (
	requestsPerSecond = 5
	// maxList bounds a list and maxEvent one event of a watch, in bytes: far above maxSlices slices of 100 endpoints, and above the
	// largest object that etcd stores.
	maxList  = 32 << 20
	maxEvent = 4 << 20
)

// ParseKubeconfig makes a client's config of the current context of a kubeconfig that somebody else may have written.
//
// Errors: anything that would run a program, read a file of this machine, or leave the server's word unproved is refused, in any
// context.
func ParseKubeconfig(data []byte) (*rest.Config, error) {
	parsed, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	for name, user := range parsed.AuthInfos {
		if err := checkUser(user); err != nil {
			return nil, fmt.Errorf("user %q of the kubeconfig: %w", name, err)
		}
	}
	for name, cluster := range parsed.Clusters {
		if err := checkCluster(cluster); err != nil {
			return nil, fmt.Errorf("cluster %q of the kubeconfig: %w", name, err)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = requestsPerSecond, requestsPerSecond
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // events end with a line end
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	return config, nil
}

func checkUser(u *clientcmdapi.AuthInfo) error {
	switch {
	case u.Exec != nil:
		return errors.New("exec runs a program: want a token or a client certificate")
	case u.AuthProvider != nil:
		return errors.New("auth-provider is not served: want a token or a client certificate")
	case u.TokenFile != "":
		return errors.New("tokenFile names a file: want token")
	case u.ClientCertificate != "":
		return errors.New("client-certificate names a file: want client-certificate-data")
	case u.ClientKey != "":
		return errors.New("client-key names a file: want client-key-data")
	default:
		return nil
	}
}

func checkCluster(c *clientcmdapi.Cluster) error {
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Scheme != "https" || server.Host == "":
		return fmt.Errorf("server is %q: want https://HOST:PORT", c.Server)
	case c.CertificateAuthority != "":
		return errors.New("certificate-authority names a file: want certificate-authority-data")
	case c.InsecureSkipTLSVerify:
		return errors.New("insecure-skip-tls-verify lets anybody answer: want certificate-authority-data")
	case c.ProxyURL != "":
		return errors.New("proxy-url is not served")
	default:
		return nil
	}
}

// bounded keeps an API server from sending its client elsewhere, and from sending more than anything takes.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the API server redirects (%s): redirects are not followed", response.Status)
	}
	body := &boundedBody{ReadCloser: response.Body, most: maxList}
	if r.URL.Query().Has("watch") {
		body.most, body.isStream = maxEvent, true
	}
	response.Body = body
	return response, nil
}

// boundedBody ends with an error after most bytes; of a stream, after most bytes without a line end.
type boundedBody struct {
	io.ReadCloser

	most, read int
	isStream   bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += n
	if b.isStream {
		for i := n - 1; i >= 0; i-- {
			if p[i] == '\n' {
				b.read = n - 1 - i
				break
			}
		}
	}
	if b.read > b.most {
		return 0, fmt.Errorf("the API server's answer exceeds %d bytes", b.most)
	}
	return n, err
}
