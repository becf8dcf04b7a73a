package webhook

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret, besides those of every TLS Secret.
const (
	authorityCert = "ca.crt" // the certificates of all authorities that are to be trusted, newest first
	authorityKey  = "ca.key" // the key of the newest
)

const (
	authorityName = "weir-webhook-ca"
	// clockSkew is how far a client's clock may be behind: certificates begin that much before they are made.
	clockSkew = time.Hour
	// authorityLimit bounds the list of trusted authorities. More than two happen only where somebody keeps on breaking
	// the Secret.
	authorityLimit = 4
)

// issuer decides which certificates to make, and has cert-controller make and prove them. It is told the time.
//
// That library can also keep the Secret and the configuration itself. It would then read every Secret of the namespace
// and every webhook configuration of the cluster, end the process where it may not, want the Secret to exist and to be
// mounted, and trust a new authority only from the moment on that it serves with it. See ADR-0013.
type issuer struct {
	options *Options
	hosts   []string
	library *rotator.CertRotator
	usages  []x509.ExtKeyUsage
}

func newIssuer(o *Options) *issuer {
	i := &issuer{options: o, hosts: o.hosts(), usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	i.library = &rotator.CertRotator{
		CAName: authorityName, CAOrganization: "weir",
		DNSName: i.hosts[0], ExtraDNSNames: i.hosts[1:], ExtKeyUsages: &i.usages,
	}
	return i
}

// step is the Secret's next content.
type step struct {
	data map[string][]byte
	why  string    // what was made; empty: the data are those that were there
	next time.Time // when there will be something to do
}

// step looks at a Secret's data and makes what is missing, broken or near its end.
//
// An authority is replaced in two steps, so that no call is refused meanwhile: first the new one is trusted besides the
// old one, which goes on being served; after the time to settle a certificate of the new one is served. The old one is
// trusted until it ends.
func (i *issuer) step(data map[string][]byte, now time.Time) (step, error) {
	s := step{data: maps.Clone(data)}
	if s.data == nil {
		s.data = make(map[string][]byte)
	}
	authorities := parseAuthorities(data[authorityCert], now)
	signer, err := i.signer(authorities, data[authorityKey], now)
	if err != nil || !signer.Cert.NotAfter.Add(-i.options.CAValidity/3).After(now) {
		if signer, err = i.library.CreateCACert(now.Add(-clockSkew), now.Add(i.options.CAValidity)); err != nil {
			return step{}, err
		}
		authorities = append([][]byte{signer.CertPEM}, authorities...)
		s.why = "a new authority"
	}
	authorities = authorities[:min(len(authorities), authorityLimit)]
	s.data[authorityCert], s.data[authorityKey] = bytes.Join(authorities, nil), signer.KeyPEM

	settled := signer.Cert.NotBefore.Add(clockSkew + i.options.Settle)
	ends, current := i.serving(data, authorities, now)
	due := ends.Add(-i.options.Validity / 3)
	if current != 0 && due.After(settled) {
		due = settled
	}
	if current < 0 || (!settled.After(now) && !due.After(now)) {
		ends = now.Add(i.options.Validity)
		cert, key, err := i.library.CreateCertPEM(signer, now.Add(-clockSkew), ends)
		if err != nil {
			return step{}, err
		}
		s.data[corev1.TLSCertKey], s.data[corev1.TLSPrivateKeyKey] = cert, key
		s.why = "a new certificate"
		due = ends.Add(-i.options.Validity / 3)
	} else if due.Before(settled) {
		due = settled
	}
	s.next = signer.Cert.NotAfter.Add(-i.options.CAValidity / 3)
	if due.Before(s.next) {
		s.next = due
	}
	return s, nil
}

// serving gives when the data's certificate ends, and the index of the authority that it is of; -1 when it is not valid
// for every host now.
func (i *issuer) serving(data map[string][]byte, authorities [][]byte, now time.Time) (time.Time, int) {
	cert, key := data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
	parsed, err := parseCertificate(cert)
	if err != nil {
		return time.Time{}, -1
	}
	for n, authority := range authorities {
		if i.isValid(authority, cert, key, now) {
			return parsed.NotAfter, n
		}
	}
	return time.Time{}, -1
}

func (i *issuer) isValid(authority, cert, key []byte, now time.Time) bool {
	for _, host := range i.hosts {
		if ok, err := rotator.ValidCert(authority, cert, key, host, &i.usages, now); !ok || err != nil {
			return false
		}
	}
	return true
}

// signer gives the newest authority with its key, if they are of use.
func (i *issuer) signer(authorities [][]byte, key []byte, now time.Time) (*rotator.KeyPairArtifacts, error) {
	if len(authorities) == 0 {
		return nil, errors.New("no authority")
	}
	if _, err := rotator.ValidCert(authorities[0], authorities[0], key, authorityName, nil, now); err != nil {
		return nil, err
	}
	cert, err := parseCertificate(authorities[0])
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(key)
	private, err := x509.ParsePKCS1PrivateKey(block.Bytes) // a block it is: ValidCert has matched it with the certificate
	if err != nil {
		return nil, fmt.Errorf("read the authority's key: %w", err)
	}
	return &rotator.KeyPairArtifacts{Cert: cert, Key: private, CertPEM: authorities[0], KeyPEM: key}, nil
}

// parseAuthorities gives the authorities of a list that can be read and have not ended, each as PEM, in their order.
func parseAuthorities(list []byte, now time.Time) [][]byte {
	var good [][]byte
	for {
		var block *pem.Block
		if block, list = pem.Decode(list); block == nil {
			return good
		}
		one := pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})
		if c, err := parseCertificate(one); err == nil && c.IsCA && c.NotAfter.After(now) {
			good = append(good, one)
		}
	}
}

// parseCertificate reads the first certificate of PEM data.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no PEM data")
	}
	return x509.ParseCertificate(block.Bytes)
}
