/* Our signals, kept out of the program's sight. */
#ifndef CSINK_INJECT_SIGNALS_H
#define CSINK_INJECT_SIGNALS_H

/**
 * Make csink_sample_handler the handler of a signal; what the program had set is kept as its wish.
 * Returns 0 or -errno. Idempotent. Context: init, thread.
 */
int csink_signal_install(int signo);

/** Give the kernel the program's own wishes about our signals, as exec passes them on; and take that back. Context: thread,
 * paused (csink_thread_pause). */
void csink_signals_before_exec(void);
void csink_signals_exec_failed(void);

#endif
