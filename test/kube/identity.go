package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Users that Kubernetes itself knows and has roles for.
const (
	userAdmin             = "admin"
	groupMasters          = "system:masters"
	userControllerManager = "system:kube-controller-manager"
	userProxy             = "system:kube-proxy"
)

// BuiltIn is the user as which kube-controller-manager writes EndpointSlices.
const BuiltIn = "system:serviceaccount:kube-system:endpointslice-controller"

// authority signs the certificates of one cluster.
type authority struct {
	folder      string // holds ca.pem
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB, folder string) *authority {
	tb.Helper()
	a := &authority{folder: folder}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		tb.Fatal(err)
	}
	a.certificate = certificate(pkix.Name{CommonName: "test cluster"})
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	a.certificate.KeyUsage = x509.KeyUsageCertSign
	if err := a.issue("ca", a.certificate, a.key); err != nil {
		tb.Fatal(err)
	}
	return a
}

func certificate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour), // longer than any test
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

// server writes the certificate of a server on loopback that has these names, too, as the files name.pem and name.key.
func (a *authority) server(name string, dnsNames ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := certificate(pkix.Name{CommonName: name})
	c.DNSNames = append(dnsNames, "localhost")
	c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.issue(name, c, key)
}

// user writes the client certificate of a user as the files name.pem and name.key.
func (a *authority) user(name string, subject pkix.Name) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return a.issue(name, certificate(subject), key)
}

// issue signs a certificate and writes it and its key.
func (a *authority) issue(name string, c *x509.Certificate, key *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key of %s: %w", name, err)
	}
	if err := writePEM(a.path(name+".pem"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writePEM(a.path(name+".key"), "PRIVATE KEY", secret)
}

func (a *authority) path(name string) string { return filepath.Join(a.folder, name) }

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// Kubeconfig gives a file with which a client is user, by a client certificate, and of these groups. It works in the
// namespace of a Proxy too.
func (c *Cluster) Kubeconfig(user string, groups ...string) string {
	c.tb.Helper()
	name := "user-" + strings.NewReplacer(":", "-", "/", "-").Replace(user)
	path := filepath.Join(c.folder, name+".kubeconfig")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := c.authority.user(name, pkix.Name{CommonName: user, Organization: groups}); err != nil {
		c.tb.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: c.URL(), CertificateAuthority: c.authority.path("ca.pem")}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.authority.path(name + ".pem"), ClientKey: c.authority.path(name + ".key"),
	}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: user}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		c.tb.Fatal(err)
	}
	return path
}

// AdminKubeconfig gives the file of a user who may do everything.
func (c *Cluster) AdminKubeconfig() string {
	c.tb.Helper()
	return c.Kubeconfig(userAdmin, groupMasters)
}

// ServiceAccountKubeconfig gives the file of a client that the API server takes for a ServiceAccount. It may do what the
// roles in the cluster let it, and no more.
func (c *Cluster) ServiceAccountKubeconfig(namespace, name string) string {
	c.tb.Helper()
	return c.Kubeconfig("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// ServerCertificate gives the files of a certificate, and of its key, for a server that the API server calls as the Service.
// CA signs it.
func (c *Cluster) ServerCertificate(namespace, service string) (certificate, key string) {
	c.tb.Helper()
	dnsName := service + "." + namespace + ".svc"
	if err := c.authority.server(dnsName, dnsName); err != nil {
		c.tb.Fatal(err)
	}
	return c.authority.path(dnsName + ".pem"), c.authority.path(dnsName + ".key")
}

// CA is the certificate of the cluster's authority, in PEM.
func (c *Cluster) CA() []byte {
	c.tb.Helper()
	text, err := os.ReadFile(c.authority.path("ca.pem"))
	if err != nil {
		c.tb.Fatal(err)
	}
	return text
}

// Token gives a bearer token of a ServiceAccount that is in the cluster.
func (c *Cluster) Token(namespace, name string) string {
	c.tb.Helper()
	request, err := c.Client.CoreV1().ServiceAccounts(namespace).
		CreateToken(c.tb.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.tb.Fatalf("make a token of the ServiceAccount %s/%s: %v", namespace, name, err)
	}
	return request.Status.Token
}
