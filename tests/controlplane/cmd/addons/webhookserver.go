package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// webhookServer is controller-runtime's server except that it listens on a free
// loopback port from the beginning, and makes its own certificate.
type webhookServer struct {
	*webhook.DefaultServer
	listener net.Listener
	caBundle []byte
}

func newWebhookServer() (*webhookServer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "addons webhook"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(10 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		// LeaderWorkerSet's own main serves HTTP/1.1 only, too.
		NextProtos: []string{"http/1.1"},
	})
	if err != nil {
		return nil, err
	}
	return &webhookServer{
		DefaultServer: &webhook.DefaultServer{},
		listener:      listener,
		caBundle:      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// url is the server's address without a path.
func (s *webhookServer) url() string { return "https://" + s.listener.Addr().String() }

// Start replaces DefaultServer's.
func (s *webhookServer) Start(ctx context.Context) error {
	srv := &http.Server{Handler: s.WebhookMux(), ReadHeaderTimeout: 30 * time.Second}
	go func() {
		<-ctx.Done()
		srv.Close()
	}()
	if err := srv.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// StartedChecker replaces DefaultServer's: the port is open all the time.
func (s *webhookServer) StartedChecker() healthz.Checker { return healthz.Ping }
