package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rig etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl ...")
		os.Exit(2)
	}
	name := os.Args[1]
	args := append([]string{name}, os.Args[2:]...)
	var c *cobra.Command
	switch name {
	case "etcd":
		etcdmain.Main(args)
		return
	case "kube-apiserver":
		c = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		c = kcm.NewControllerManagerCommand()
	case "kube-scheduler":
		c = scheduler.NewSchedulerCommand()
	case "kubectl":
		c = kubectl.NewDefaultKubectlCommand()
	case "kwok":
		c = kwok.NewCommand(context.Background())
	}
	os.Args = args
	os.Exit(cli.Run(c))
}
