// Command jobset runs JobSet's controllers and webhooks as its own main does, but without leader election and
// cluster-internal certificates: its webhooks listen on a free port of loopback.
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"
	"sigs.k8s.io/yaml"
)

func main() {
	kubeconfig := flag.String("kubeconfig-file", "", "kubeconfig of an administrator")
	files := flag.String("files", "", "directory with JobSet's webhook manifests")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), *kubeconfig, *files); err != nil {
		fmt.Fprintln(os.Stderr, "jobset:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, files string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent, config.QPS, config.Burst = "jobset", 500, 1000
	scheme := runtime.NewScheme()
	utilruntime.Must(kscheme.AddToScheme(scheme))
	utilruntime.Must(jobset.AddToScheme(scheme))
	server, err := listen()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: server,
	})
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr); err != nil {
		return err
	}
	if err := register(ctx, mgr, filepath.Join(files, "webhook"), server); err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	return mgr.Start(ctx)
}

func setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := controllers.SetupJobSetIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.SetupPodIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	sets := controllers.NewJobSetReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorderFor("jobset"))
	if err := sets.SetupWithManager(mgr); err != nil {
		return err
	}
	pods := controllers.NewPodReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorderFor("pod"))
	if err := pods.SetupWithManager(mgr); err != nil {
		return err
	}
	ofSets, err := webhooks.NewJobSetWebhook(mgr.GetClient())
	if err != nil {
		return err
	}
	if err := ofSets.SetupWebhookWithManager(mgr); err != nil {
		return err
	}
	return webhooks.NewPodWebhook(mgr.GetClient()).SetupWebhookWithManager(mgr)
}

// server is controller-runtime's, on a port that is open from the beginning.
type server struct {
	*webhook.DefaultServer
	listener net.Listener
	caBundle []byte
}

func listen() (*server, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "jobset webhook"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
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
		NextProtos:   []string{"http/1.1"},
	})
	if err != nil {
		return nil, err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &server{DefaultServer: &webhook.DefaultServer{}, listener: listener, caBundle: ca}, nil
}

// Start replaces DefaultServer's.
func (s *server) Start(ctx context.Context) error {
	srv := &http.Server{Handler: s.WebhookMux(), ReadHeaderTimeout: 30 * time.Second}
	go func() {
		<-ctx.Done()
		srv.Close()
	}()
	if err := srv.Serve(s.listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// StartedChecker replaces DefaultServer's: the port is open all the time.
func (s *server) StartedChecker() healthz.Checker { return healthz.Ping }

// register creates JobSet's webhook configurations, with the patches that its kustomization applies, reached at our port.
func register(ctx context.Context, mgr ctrl.Manager, dir string, s *server) error {
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return err
	}
	manifests, err := os.ReadFile(filepath.Join(dir, "manifests.yaml"))
	if err != nil {
		return err
	}
	for _, doc := range bytes.Split(manifests, []byte("\n---\n")) {
		doc = bytes.TrimPrefix(bytes.TrimSpace(doc), []byte("---\n"))
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			return err
		}
		var made client.Object
		switch kind.Kind {
		case "MutatingWebhookConfiguration":
			m := &admission.MutatingWebhookConfiguration{}
			err = patched(doc, filepath.Join(dir+"-patches", "mutating-patch.yaml"), m)
			for i := range m.Webhooks {
				s.redirect(&m.Webhooks[i].ClientConfig)
			}
			made = m
		case "ValidatingWebhookConfiguration":
			v := &admission.ValidatingWebhookConfiguration{}
			err = patched(doc, filepath.Join(dir+"-patches", "validating-patch.yaml"), v)
			for i := range v.Webhooks {
				s.redirect(&v.Webhooks[i].ClientConfig)
			}
			made = v
		default:
			err = fmt.Errorf("unexpected kind %q", kind.Kind)
		}
		if err != nil {
			return err
		}
		made.SetName("jobset-" + made.GetName())
		if err := c.Create(ctx, made); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) redirect(c *admission.WebhookClientConfig) {
	url := "https://" + s.listener.Addr().String()
	if c.Service != nil && c.Service.Path != nil {
		url += *c.Service.Path
	}
	*c = admission.WebhookClientConfig{URL: &url, CABundle: s.caBundle}
}

// patched applies a JSON patch file to a document and decodes the result.
func patched(doc []byte, file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if b, err = yaml.YAMLToJSON(b); err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(b)
	if err != nil {
		return err
	}
	if doc, err = yaml.YAMLToJSON(doc); err != nil {
		return err
	}
	if doc, err = patch.Apply(doc); err != nil {
		return err
	}
	return yaml.Unmarshal(doc, into)
}
