package webhook

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// authorityName is what the certificate authority is called.
const authorityName = "weir-webhook-ca"

// keyBits is the size of RSA keys, which every client can verify.
const keyBits = 2048

// authority is a certificate authority with its key.
type authority struct {
	cert            *x509.Certificate
	key             *rsa.PrivateKey
	certPEM, keyPEM []byte
}

// newAuthority makes an authority that signs itself.
func newAuthority(begins, ends time.Time) (*authority, error) {
	template := newTemplate(authorityName, begins, ends)
	template.Subject.Organization = []string{"weir"}
	template.DNSNames = []string{authorityName}
	template.KeyUsage |= x509.KeyUsageCertSign
	template.IsCA = true
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	a := &authority{cert: template, key: key, keyPEM: encodeKey(key)}
	if a.certPEM, err = a.sign(template, &key.PublicKey); err != nil {
		return nil, err
	}
	a.cert, err = parseCertificate(a.certPEM)
	return a, err
}

// readAuthority gives the newest of a list of authorities with its key, if they are of use.
func readAuthority(list [][]byte, key []byte, now time.Time) (*authority, error) {
	if len(list) == 0 {
		return nil, errors.New("no authority")
	}
	if err := verify(list[0], list[0], key, x509.VerifyOptions{DNSName: authorityName, CurrentTime: now}); err != nil {
		return nil, err
	}
	cert, err := parseCertificate(list[0])
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(key)
	private, err := x509.ParsePKCS1PrivateKey(block.Bytes) // a block it is: verify has matched it with the certificate
	if err != nil {
		return nil, fmt.Errorf("read the authority's key: %w", err)
	}
	return &authority{cert: cert, key: private, certPEM: list[0], keyPEM: key}, nil
}

// issue makes a certificate for a server with the given names, and its key, in PEM.
func (a *authority) issue(hosts []string, begins, ends time.Time) (cert, private []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate's key: %w", err)
	}
	template := newTemplate(hosts[0], begins, ends)
	template.SerialNumber = big.NewInt(1)
	template.DNSNames = hosts
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	cert, err = a.sign(template, &key.PublicKey)
	return cert, encodeKey(key), err
}

func newTemplate(name string, begins, ends time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(0), Subject: pkix.Name{CommonName: name}, NotBefore: begins, NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, BasicConstraintsValid: true,
	}
}

// sign gives the certificate of a template in PEM.
func (a *authority) sign(template *x509.Certificate, public *rsa.PublicKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func encodeKey(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// verify tells why a certificate with its key is of no use to clients that trust an authority; nil if it is.
func verify(authority, cert, key []byte, o x509.VerifyOptions) error {
	root, err := parseCertificate(authority)
	if err != nil {
		return fmt.Errorf("read the authority: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	o.Roots = x509.NewCertPool()
	o.Roots.AddCert(root)
	_, err = pair.Leaf.Verify(o)
	return err
}
