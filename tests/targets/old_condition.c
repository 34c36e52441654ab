/*
 * As linked with a glibc before 2.3.2, on machines that have had one: a thread waits for a condition by the functions
 * of that time, for which a condition is a pointer. Prints how often it waited, and whether the memory behind the
 * pointer is as it was.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#define OLD(name) __asm__(".symver old_" #name ", pthread_cond_" #name "@GLIBC_2.2.5")
#else
#define OLD(name) __asm__(".set old_" #name ", pthread_cond_" #name)
#endif
int old_wait(void *condition, pthread_mutex_t *lock);
int old_timedwait(void *condition, pthread_mutex_t *lock, const struct timespec *until);
int old_signal(void *condition);
int old_init(void *condition, const pthread_condattr_t *attr);
OLD(init);
OLD(wait);
OLD(timedwait);
OLD(signal);

static struct {
	void *condition;
	unsigned char behind[sizeof(pthread_cond_t) - sizeof(void *)];
} old;
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static int turn;

static void *answer(void *arg)
{
	for (int i = 0; i < 40; i++) {
		pthread_mutex_lock(&the_lock);
		while (turn != 1)
			old_wait(&old, &the_lock);
		turn = 0;
		old_signal(&old);
		pthread_mutex_unlock(&the_lock);
	}
	return arg;
}

int main(void)
{
	struct timespec until = {.tv_sec = time(NULL) + 1000};
	int nr = 0, is_same = 1;
	pthread_t thread;

#if defined(__x86_64__)
	memset(old.behind, 0xaa, sizeof(old.behind));
#endif
	old_init(&old, NULL);
	pthread_create(&thread, NULL, answer, NULL);
	for (int i = 0; i < 40; i++) {
		pthread_mutex_lock(&the_lock);
		turn = 1;
		old_signal(&old);
		while (turn != 0)
			i % 2 ? old_wait(&old, &the_lock) : old_timedwait(&old, &the_lock, &until);
		nr++;
		pthread_mutex_unlock(&the_lock);
	}
	pthread_join(thread, NULL);
#if defined(__x86_64__)
	for (size_t i = 0; i < sizeof(old.behind); i++)
		is_same &= old.behind[i] == 0xaa;
#endif
	printf("%d waits, %s\n", nr, is_same ? "nothing else written" : "memory behind the condition is written");
	return 0;
}
