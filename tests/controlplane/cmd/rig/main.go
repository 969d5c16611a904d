// Command rig holds a whole Kubernetes control plane in one binary: each
// component is started as `rig <component> <its own flags>`, and `rig up`
// starts them all together.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"rolegate.dev/tests/controlplane/internal/ipv6alone"
	"rolegate.dev/tests/controlplane/internal/sakubeconfig"
	"rolegate.dev/tests/controlplane/internal/up"
)

const usage = `usage: rig COMMAND [flags]

  up               start a control plane and stay in the foreground (rig up --help)
  sa-kubeconfig    write a kubeconfig which acts as a service account
  ipv6-alone       run a command in a new network namespace without IPv4
  kubectl          Kubernetes' own command line

  etcd | kube-apiserver | kube-scheduler | kube-controller-manager | kwok
                   one component, with its own flags`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	name := os.Args[1]
	// The components parse os.Args themselves and some (kubectl) look at it
	// while they build their command, so it has to be rewritten first.
	os.Args = append([]string{name}, os.Args[2:]...)

	switch name {
	case "up":
		os.Exit(up.Main(os.Args[1:]))
	case "sa-kubeconfig":
		os.Exit(sakubeconfig.Main(os.Args[1:]))
	case "ipv6-alone":
		os.Exit(ipv6alone.Main(os.Args[1:]))
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	case "kube-controller-manager":
		run(kcm.NewControllerManagerCommand())
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	case "kwok":
		os.Exit(runKwok())
	case "-h", "--help", "help":
		fmt.Println(usage)
	default:
		fmt.Fprintf(os.Stderr, "rig: unknown command %q\n\n%s\n", name, usage)
		os.Exit(2)
	}
}

func run(c *cobra.Command) { os.Exit(cli.Run(c)) }
