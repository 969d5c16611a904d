package up

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// ledger is a file where whoever runs many control planes adds up what they
// cost: lines of test, subject and number, separated by tabs. Its lock is
// shared by all control planes that run, so that one who asks for it alone
// waits until the last of them has written.
type ledger struct{ file *os.File }

// openLedger opens the file named by ROLEGATE_LEDGER.
func openLedger() (*ledger, error) {
	path := os.Getenv("ROLEGATE_LEDGER")
	if path == "" {
		return &ledger{}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("ROLEGATE_LEDGER: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); err != nil {
		return nil, fmt.Errorf("ROLEGATE_LEDGER: lock %s: %w", path, err)
	}
	return &ledger{file}, nil
}

// write says what each component took, on standard error and in the file, if
// there is one.
// orphan says that whoever started the control plane does not wait for its
// end, and so does not count its time.
func (l *ledger) write(s *supervisor, orphan bool) {
	var said []string
	var all time.Duration
	lines := &strings.Builder{}
	for _, name := range s.names() {
		spent := s.spent(name)
		all += spent
		said = append(said, fmt.Sprintf("%s %.1f s", name, spent.Seconds()))
		fmt.Fprintf(lines, "-\tcpu %s\t%.2f\n", name, spent.Seconds())
	}
	if orphan {
		fmt.Fprintf(lines, "-\torphaned\t%.2f\n", all.Seconds())
	}
	if l.file != nil {
		progress("processor time: %s", strings.Join(said, ", "))
		// One write: lines of others do not come between.
		fmt.Fprint(l.file, lines.String())
		l.file.Close()
	}
}
