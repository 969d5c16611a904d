// Command podgroupcontroller is KAI's, but that it opens no port for metrics: its own flag for that is read and not used, and
// the default is a port on all addresses.
package main

import (
	"flag"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/NVIDIA/KAI-scheduler/cmd/podgroupcontroller/app"
)

func main() {
	server.DefaultBindAddress = "0"
	options := app.InitOptions(nil)
	config := ctrl.GetConfigOrDie()
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := app.Run(options, config, ctrl.SetupSignalHandler()); err != nil {
		ctrl.Log.Error(err, "ended")
		os.Exit(1)
	}
}
