// Package sakubeconfig is `rig sa-kubeconfig`: a kubeconfig for a service account.
package sakubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"rolegate.dev/tests/controlplane/internal/kubeconfig"
)

type options struct {
	kubeconfig, namespace, name, out string
	duration                         time.Duration
}

// Main runs the command and returns the exit code.
func Main(args []string) int {
	var o options
	fs := pflag.NewFlagSet("rig sa-kubeconfig", pflag.ContinueOnError)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "administrator's kubeconfig")
	fs.StringVar(&o.namespace, "namespace", "default", "namespace of the service account")
	fs.StringVar(&o.name, "name", "", "service account")
	fs.StringVar(&o.out, "out", "", "file to write")
	fs.DurationVar(&o.duration, "duration", 24*time.Hour, "life of the token")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		return 2
	}
	if o.kubeconfig == "" || o.name == "" || o.out == "" {
		fmt.Fprintln(os.Stderr, "rig sa-kubeconfig: --kubeconfig, --name and --out are required")
		return 2
	}
	if err := write(o); err != nil {
		fmt.Fprintln(os.Stderr, "rig sa-kubeconfig:", err)
		return 1
	}
	return 0
}

// write asks for a token by TokenRequest, as a kubelet would for a pod.
func write(o options) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	seconds := int64(o.duration.Seconds())
	tr, err := client.CoreV1().ServiceAccounts(o.namespace).CreateToken(ctx, o.name, &authv1.TokenRequest{
		Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return kubeconfig.Write(o.out,
		kubeconfig.Cluster{Server: cfg.Host, CA: cfg.CAData},
		kubeconfig.User{Name: o.name, Token: tr.Status.Token}, o.namespace)
}
