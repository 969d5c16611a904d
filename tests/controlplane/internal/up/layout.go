package up

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// layout knows the files in DIR.
type layout struct {
	dir  string
	lock *os.File
}

const lockName = ".rig-lock"

// ours are the entries which a run creates; nothing else in DIR is ever touched.
var ours = []string{"cluster.json", "kubectl", "kubeconfig", "etcd", "pki", "conf", "ready"}

func (l *layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

func (l *layout) log(component string) string { return l.path("log", component+".log") }

// openLayout takes DIR for this run. The lock goes away with the process, so a
// DIR left by a killed run is recognised and cleared, and one in use is refused.
func openLayout(dir string) (*layout, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &layout{dir: dir}
	if _, err := os.Stat(l.path(lockName)); len(entries) > 0 && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not empty and was not made by rig up", dir)
	}
	if l.lock, err = os.OpenFile(l.path(lockName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(l.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%s is in use by another rig up", dir)
	}
	l.remove(true)
	for _, d := range []string{"etcd", "pki", "conf", "ready", "log"} {
		if err := os.MkdirAll(l.path(d), 0o700); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// remove deletes what a run created; logs only if asked.
func (l *layout) remove(logs bool) {
	for _, name := range ours {
		os.RemoveAll(l.path(name))
	}
	if logs {
		os.RemoveAll(l.path("log"))
	}
}

// close ends the run's hold on DIR and removes DIR if nothing is left in it.
func (l *layout) close(keep, keepLogs bool) {
	if !keep {
		l.remove(!keepLogs)
		if !keepLogs {
			os.Remove(l.path(lockName))
			os.Remove(l.dir)
		}
	}
	l.lock.Close()
}
