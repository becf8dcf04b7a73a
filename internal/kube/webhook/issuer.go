package webhook

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret, besides those of every TLS Secret.
const (
	authorityCert = "ca.crt" // the certificates of all authorities that are to be trusted, newest first
	authorityKey  = "ca.key" // the key of the newest
)

const (
	// clockSkew is how far a client's clock may be behind: certificates begin that much before they are made.
	clockSkew = time.Hour
	// authorityLimit bounds the list of trusted authorities. More than two happen only where something keeps on breaking
	// the Secret.
	authorityLimit = 4
)

// issuer decides which certificates to make, and makes them. It is given the time.
type issuer struct {
	options *Options
	hosts   []string
}

func newIssuer(o *Options) *issuer { return &issuer{options: o, hosts: o.hosts()} }

// step is the Secret's next content.
type step struct {
	data map[string][]byte
	why  string    // what was made; empty: the data are those that were there
	next time.Time // when there will be something to do
}

// step reads a Secret's data and makes what is missing, broken or near its end.
//
// An authority is replaced in two steps, so that no call is refused meanwhile: first the new one is trusted besides the
// old one, which goes on being served; after PublishDelay a certificate of the new one is served. The old one is
// trusted until it ends.
func (i *issuer) step(data map[string][]byte, now time.Time) (step, error) {
	s := step{data: maps.Clone(data)}
	if s.data == nil {
		s.data = make(map[string][]byte)
	}
	authorities := parseAuthorities(data[authorityCert], now)
	signer, err := readAuthority(authorities, data[authorityKey], now)
	if err != nil || !signer.cert.NotAfter.Add(-i.options.CAValidity/3).After(now) {
		if signer, err = newAuthority(now.Add(-clockSkew), now.Add(i.options.CAValidity)); err != nil {
			return step{}, err
		}
		authorities = append([][]byte{signer.certPEM}, authorities...)
		s.why = "a new authority"
	}
	authorities = authorities[:min(len(authorities), authorityLimit)]
	s.data[authorityCert], s.data[authorityKey] = bytes.Join(authorities, nil), signer.keyPEM

	trusted := signer.cert.NotBefore.Add(clockSkew + i.options.PublishDelay)
	ends, current := i.serving(data, authorities, now)
	due := ends.Add(-i.options.Validity / 3)
	if current != 0 && due.After(trusted) {
		due = trusted
	}
	if current < 0 || (!trusted.After(now) && !due.After(now)) {
		ends = now.Add(i.options.Validity)
		cert, key, err := signer.issue(i.hosts, now.Add(-clockSkew), ends)
		if err != nil {
			return step{}, err
		}
		s.data[corev1.TLSCertKey], s.data[corev1.TLSPrivateKeyKey] = cert, key
		s.why = "a new certificate"
		due = ends.Add(-i.options.Validity / 3)
	} else if due.Before(trusted) {
		due = trusted
	}
	s.next = signer.cert.NotAfter.Add(-i.options.CAValidity / 3)
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
	return !slices.ContainsFunc(i.hosts, func(host string) bool {
		return verify(authority, cert, key, x509.VerifyOptions{DNSName: host, CurrentTime: now}) != nil
	})
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
