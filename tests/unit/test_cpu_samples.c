/* Samples of CPUs after the end of a process's events: to which process they belong. */
#include "launcher/attach/cpu_samples.h"
#include "tests/unit/tap.h"

#define MS 1000000ULL

int main(void)
{
	struct csink_outside_process processes[] = {
		{.pid = 7, .end_ns = 100 * MS}, {.pid = 5, .end_ns = 300 * MS}, {.pid = 7, .end_ns = 200 * MS},
		{.pid = 9, .end_ns = 0},        {.pid = 5, .end_ns = 50 * MS},
	};
	struct csink_outside out = {.processes = processes, .nr_processes = 5};
	struct csink_cpu_samples cpus = {.period_ns = 5 * MS};

	csink_cpu_samples_give_ends(&cpus, &out);
	is_num(processes[0].ending_ns, 0, "without samples no process has one");
	csink_cpu_samples_note_bare(&cpus, 7, 150 * MS);
	csink_cpu_samples_note_bare(&cpus, 7, 200 * MS);
	csink_cpu_samples_note_bare(&cpus, 7, 201 * MS);
	csink_cpu_samples_note_bare(&cpus, 7, 99 * MS);
	csink_cpu_samples_note_bare(&cpus, 5, 49 * MS);
	csink_cpu_samples_note_bare(&cpus, 5, 20000 * MS);
	csink_cpu_samples_note_bare(&cpus, 6, 250 * MS);
	csink_cpu_samples_note_bare(&cpus, 9, 250 * MS);
	csink_cpu_samples_note_bare(&cpus, 1, 250 * MS);
	csink_cpu_samples_note_bare(&cpus, 12, 250 * MS);
	csink_cpu_samples_give_ends(&cpus, &out);
	is_num(processes[0].ending_ns, 5 * MS, "a sample is of the process that ended before it");
	is_num(processes[2].ending_ns, 10 * MS, "and of the last that had its PID");
	is_num(processes[1].ending_ns + processes[4].ending_ns, 0,
	       "one from before the end, or from long after it, is of no process that has ended");
	is_num(processes[3].ending_ns, 0, "a process that has not ended has none");
	ok(!csink_cpu_samples_has(&cpus, 0), "without events no id is one of them");
	csink_cpu_samples_free(&cpus);
	return done();
}
