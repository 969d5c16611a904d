/* Shifts the time of day of one process by the seconds in a file. Monotonic clocks stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
	const char *name = getenv("CLOCK_OFFSET");
	char text[32] = {0};
	int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0)
		return 0;
	long length = read(file, text, sizeof text - 1);
	close(file);
	return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int failed = real(clock, time);
	if (!failed && clock == CLOCK_REALTIME)
		time->tv_sec += offset();
	return failed;
}
