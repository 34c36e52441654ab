/*
 * Numbers of descriptors that we remember are closed only while they are what they were: in a child of a fork, after
 * the program has closed them, and where a child shares its parent's table.
 */
#include <sched.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "include/countersink/reserve.h"
#include "preload/core/own_fd.h"
#include "tests/unit/pmc_target.h"

#define NR_PMCS 4
#define NR_FILES 12

static csink_pmc_id_t ours[NR_PMCS];
static int nr_fds_without; /* PMCs */

static void start_all(void)
{
	for (int i = 0; i < NR_PMCS; i++) {
		ours[i] = allocate(0);
		csink_pmc_start(ours[i]);
	}
}

static void release_all(void)
{
	for (int i = 0; i < NR_PMCS; i++)
		csink_pmc_release(ours[i]);
}

static void close_all_files(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

/* Files of every kind that may get a number of ours; eventfds have the same inode as perf events. */
static int open_file(int i)
{
	return i % 3 ? open("/dev/null", O_RDONLY) : eventfd(0, 0);
}

/* How many of the files that took our numbers are gone after it. */
static int files_lost_by(void (*act)(void))
{
	struct stat before[NR_FILES], after;
	int fds[NR_FILES], lost = 0;

	close_all_files();
	for (int i = 0; i < NR_FILES; i++) {
		fds[i] = open_file(i);
		fstat(fds[i], &before[i]);
	}
	act();
	for (int i = 0; i < NR_FILES; i++)
		lost += fstat(fds[i], &after) || after.st_ino != before[i].st_ino;
	return lost;
}

static void ask_state(void)
{
	csink_pmc_state(ours[0]);
}

static int child_with_files(void)
{
	return files_lost_by(ask_state);
}

static void *ask_and_allocate(void *arg)
{
	csink_pmc_id_t pmc = allocate(0);

	*(bool *)arg = csink_pmc_state(pmc) == CSINK_PMC_ALLOCATED && !csink_pmc_release(pmc);
	return NULL;
}

/* All of them are the first ones in the child. */
static int child_with_threads(void)
{
	bool good[8] = {false};
	pthread_t threads[8];
	int nr = 0;

	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, ask_and_allocate, &good[i]);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		nr += good[i];
	}
	return nr != 8 || nr_open_fds() != nr_fds_without;
}

static int same_process_with_files(void)
{
	start_all();
	return files_lost_by(release_all);
}

/* Another event of the program's own, under a number that was ours. */
static int child_with_events(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int fds[NR_FILES], lost = 0;

	close_all_files();
	for (int i = 0; i < NR_FILES; i++)
		fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	ask_state();
	for (int i = 0; i < NR_FILES; i++)
		lost += fcntl(fds[i], F_GETFD) < 0;
	return lost;
}

static int child_closes_its_copies(void)
{
	ask_state();
	return nr_open_fds() != nr_fds_without;
}

static int closed_by_the_program(void)
{
	struct csink_pmc_value value;
	char reason[400];
	int err;

	start_all();
	close_all_files();
	err = csink_pmc_read(ours[0], &value);
	csink_pmc_reason(reason, sizeof(reason));
	if (err != -EBADF || strncmp(reason, "EBADF: ", 7))
		return 1;
	csink_pmc_stop(ours[0]);
	return csink_pmc_start(ours[0]) != -EBADF || csink_pmc_state(ours[0]) != CSINK_PMC_STOPPED;
}

/* A child with the parent's own table: what it closes is closed there. Its memory is a copy. */
static int parent_of_sharing_child(void)
{
	int before, after, status = 0;
	pid_t pid;

	start_all();
	before = nr_open_fds();
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		ask_state();
		syscall(SYS_exit_group, 0);
	}
	waitpid(pid, &status, 0);
	after = nr_open_fds();
	return status || before != after || csink_pmc_stop(ours[0]);
}

/* Pid 1 of a new namespace, below pid 1: the same number is another process. */
static int namespace_init(void)
{
	csink_pmc_id_t pmc;
	pid_t pid;
	int status = 1;

	if (unshare(CLONE_NEWPID))
		return 77;
	pid = fork();
	if (!pid) {
		pmc = allocate(0);
		if (unshare(CLONE_NEWPID))
			_exit(77);
		pid = fork();
		if (!pid)
			_exit(csink_pmc_state(pmc) != -ESRCH);
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static struct csink_reserve reservation;

static void release_reservation(void)
{
	csink_reserve_release(&reservation);
}

static int reservation_closed(void)
{
	int lost = files_lost_by(release_reservation);

	return lost || reservation.fd != -1;
}

static int reservation_not_held(void)
{
	close_all_files();
	for (int i = 0; i < NR_FILES; i++)
		open_file(i);
	return csink_reserve_confirm(&reservation) != -EBADF || csink_reserve_verify(&reservation) != -EBADF;
}

static void reservations(void)
{
	char path[] = "/tmp/csink-own-fd-XXXXXX";
	struct csink_reserve_config config;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int fd = mkstemp(path);

	csink_reserve_config_init(&config);
	config.lock_file = path;
	config.timeout_ns = 1000000;
	is_num(csink_reserve_acquire(&reservation, &config), 0, "a reservation is acquired");
	in_child(reservation_closed, 0, "a child that has other files under its number loses none by the release");
	in_child(reservation_not_held, 0, "confirm and verify: EBADF, the lock file is not open any more");
	ok(!fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type == F_RDLCK, "the parent's lock has stayed");
	csink_reserve_release(&reservation);
	close(fd);
	unlink(path);
}

int main(void)
{
	nr_fds_without = nr_open_fds();
	start_all();
	in_child(child_with_files, 0, "fork, closefrom, 12 files: csink_pmc_state in the child closes none of them");
	in_child(child_with_events, 0, "csink_pmc_state in a forked child closes no event of its own");
	in_child(child_closes_its_copies, 0, "a child's inherited copies that are still open are closed");
	in_child(child_with_threads, 0, "inherited copies are closed once by eight threads of the child");
	in_child(same_process_with_files, 0, "csink_pmc_release closes no file of the process itself");
	in_child(closed_by_the_program, 0, "EBADF of read and start, where the program closed them");
	in_child(parent_of_sharing_child, 0,
		 "a child that shares the table (CLONE_FILES) closes nothing of its parent's");
	if (geteuid())
		skip("a child that has its parent's pid, in another namespace", "needs root");
	else
		in_child(namespace_init, 0, "a child that has its parent's pid, in another namespace");
	is_num(csink_pmc_stop(ours[0]), 0, "the parent's PMCs can be used after all children's calls");
	release_all();
	reservations();
	return done();
}
