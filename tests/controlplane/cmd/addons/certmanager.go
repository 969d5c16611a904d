package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	crca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	crselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // registers itself
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // registers itself
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// certManagerControllers are those which issue certificates from self-signed
// and CA issuers; ACME and the like need a network.
var certManagerControllers = []string{
	issuers.ControllerName,
	clusterissuers.ControllerName,
	trigger.ControllerName,
	keymanager.ControllerName,
	requestmanager.ControllerName,
	approver.ControllerName,
	crca.CRControllerName,
	crselfsigned.CRControllerName,
	issuing.ControllerName,
	readiness.ControllerName,
	revisionmanager.ControllerName,
}

// runCertManager runs cert-manager's controllers and its CA injector. Its own
// webhook is not a public package; the CRDs' schemas still apply.
func runCertManager(ctx context.Context, o *options, ready func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(certManagerControllers)+1)

	synced, err := startControllers(ctx, o, failed)
	if err != nil {
		return err
	}
	injector, err := newInjector(ctx, o.config)
	if err != nil {
		return fmt.Errorf("cainjector: %w", err)
	}
	go func() { failed <- ended(ctx, "cainjector", injector.Start(ctx)) }()

	go func() {
		synced()
		if injector.GetCache().WaitForCacheSync(ctx) {
			if err := ready(); err != nil {
				failed <- err
			}
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// startControllers returns a function which waits for the controllers' caches.
func startControllers(ctx context.Context, o *options, failed chan<- error) (synced func(), err error) {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         o.kubeconfig,
		KubernetesAPIQPS:   o.config.QPS,
		KubernetesAPIBurst: o.config.Burst,
		IssuerOptions: controller.IssuerOptions{
			// Where the CA secrets of ClusterIssuers are.
			ClusterResourceNamespace: "cert-manager",
		},
	})
	if err != nil {
		return nil, err
	}
	running := map[string]controller.Interface{}
	for _, name := range certManagerControllers {
		construct, ok := controller.Known()[name]
		if !ok {
			return nil, fmt.Errorf("cert-manager has no controller %q", name)
		}
		if running[name], err = construct(factory); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	shared, err := factory.Build()
	if err != nil {
		return nil, err
	}
	for name, c := range running {
		go func() { failed <- ended(ctx, name, c.Run(5, ctx)) }()
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return func() {
		shared.SharedInformerFactory.WaitForCacheSync(ctx.Done())
		shared.KubeSharedInformerFactory.WaitForCacheSync(ctx.Done())
	}, nil
}

func newInjector(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	config = rest.CopyConfig(config)
	// It becomes the field manager; without it the injector's writes are refused.
	config.UserAgent = "cert-manager-cainjector"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kscheme.AddToScheme, api.AddToScheme, apiext.AddToScheme, apireg.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	return mgr, cainjector.RegisterAllInjectors(ctx, mgr, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	})
}

// ended makes an error of a controller's return while it should be running.
func ended(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("ended by itself")
	}
	return fmt.Errorf("%s: %w", name, err)
}
