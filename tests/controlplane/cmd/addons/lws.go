package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	disaggv1 "sigs.k8s.io/lws/api/disaggregatedset/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/controllers"
	disagg "sigs.k8s.io/lws/pkg/controllers/disaggregatedset"
	"sigs.k8s.io/lws/pkg/webhooks"
	disaggwebhook "sigs.k8s.io/lws/pkg/webhooks/disaggregatedset"
)

// runLWS runs LeaderWorkerSet's controllers and webhooks, set up as its own
// main does it but without leader election and cluster-internal certificates.
func runLWS(ctx context.Context, o *options, ready func() error) error {
	config := rest.CopyConfig(o.config)
	config.UserAgent = "lws"
	server, err := newWebhookServer()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kscheme.AddToScheme, lwsv1.AddToScheme, disaggv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: server,
	})
	if err != nil {
		return err
	}
	if err := setupLWS(mgr); err != nil {
		return err
	}

	failed := make(chan error, 2)
	go func() { failed <- ended(ctx, "manager", mgr.Start(ctx)) }()
	go func() {
		err := registerWebhooks(ctx, config, filepath.Join(o.files, "webhook"), "lws-", server)
		if err == nil {
			err = answers(ctx, mgr)
		}
		if err == nil {
			err = ready()
		}
		if err != nil {
			failed <- ended(ctx, "webhooks", err)
		}
	}()
	return <-failed
}

func setupLWS(mgr ctrl.Manager) error {
	if err := controllers.SetupIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder("leaderworkerset")
	if err := controllers.NewLeaderWorkerSetReconciler(mgr.GetClient(), mgr.GetScheme(), recorder).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := controllers.NewPodReconciler(mgr.GetClient(), mgr.GetScheme(), recorder, nil).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := (&disagg.DisaggregatedSetReconciler{
		Client: mgr.GetClient(),
		Scheme: mgr.GetScheme(),
		Record: mgr.GetEventRecorder("disaggregatedset"),
	}).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := webhooks.SetupLeaderWorkerSetWebhook(mgr); err != nil {
		return err
	}
	if err := webhooks.NewPodWebhook(nil).Setup(mgr); err != nil {
		return err
	}
	return disaggwebhook.SetupDisaggregatedSetWebhook(mgr)
}

// answers waits until the API server has let a (dry-run) object pass all the
// webhooks: only then is it sure to know their configuration.
func answers(ctx context.Context, mgr ctrl.Manager) error {
	probe := &lwsv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: "addons-probe", Namespace: "default"},
		Spec: lwsv1.LeaderWorkerSetSpec{
			StartupPolicy: lwsv1.LeaderCreatedStartupPolicy,
			LeaderWorkerTemplate: lwsv1.LeaderWorkerTemplate{
				WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "none"}},
				}},
			},
		},
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		tried := probe.DeepCopy()
		if err := mgr.GetClient().Create(ctx, tried, client.DryRunAll); err != nil {
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				last = err
			}
			return false, nil
		}
		last = errors.New("admitted without the webhooks")
		// The mutating webhook's mark; the CRD itself has no such default.
		return tried.Spec.NetworkConfig != nil, nil
	})
	if err != nil {
		return fmt.Errorf("do not answer: %w (last answer: %v)", err, last)
	}
	return nil
}
