package up

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// stopDeadline is how long a component gets to end by itself.
const stopDeadline = 5 * time.Second

// spawner starts processes from one OS thread that lives as long as the
// launcher: the kernel sends the parent-death signal when the *thread* that
// started the child ends, and Go would be free to end any other thread.
type spawner struct{ requests chan func() }

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for f := range s.requests {
			f()
		}
	}()
	return s
}

// child is one running process.
type child struct {
	cmd      *exec.Cmd
	done     chan struct{} // closed when the process has ended
	expected atomic.Bool   // set before it is told to end
	spent    time.Duration // processor time, known when done is closed
}

// start runs argv with its output appended to logPath. exited is called when
// the process ends without having been told to.
func (s *spawner) start(argv []string, logPath string, exited func(error)) (*child, error) {
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A Ctrl-C at the terminal goes to the launcher only, which then stops
		// the components in order.
		Setpgid: true,
	}
	result := make(chan error)
	s.requests <- func() { result <- cmd.Start() }
	if err := <-result; err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		err := cmd.Wait()
		if state := cmd.ProcessState; state != nil {
			c.spent = state.UserTime() + state.SystemTime()
		}
		close(c.done)
		if !c.expected.Load() {
			if err == nil {
				err = fmt.Errorf("exit status 0")
			}
			exited(err)
		}
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// signal is for signals which do not end the process (SIGSTOP, SIGCONT).
func (c *child) signal(sig syscall.Signal) error { return c.cmd.Process.Signal(sig) }

// kill ends the process at once and waits for it.
func (c *child) kill() {
	c.expected.Store(true)
	c.cmd.Process.Kill()
	<-c.done
}

// stop ends the process in its own way, or after the deadline by force.
func (c *child) stop() {
	c.expected.Store(true)
	c.cmd.Process.Signal(syscall.SIGTERM)
	// A component which was paused on purpose would not see it.
	c.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-c.done:
	case <-time.After(stopDeadline):
		c.kill()
	}
}
