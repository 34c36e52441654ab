/*
 * An agent for the java command that samples as profilers do which ask HotSpot itself: AsyncGetCallTrace(), an exported
 * function, called by the handler of SIGPROF, with the events of JVMTI on that it needs. Built and run by `agct`.
 *
 * At the end it writes one line to the file that is its option: samples in Java threads that are not the compilers',
 * of these with a stack, and the rest by HotSpot's reason.
 */
#include <dlfcn.h>
#include <jvmti.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>

enum { MAX_FRAMES = 2048, NR_REASONS = 12, INTERVAL_US = 1000 };

struct frame {
	jint line;
	jmethodID method;
};

struct trace {
	JNIEnv *env;
	jint nr_frames; /* or a reason, not above 0 */
	struct frame *frames;
};

static JavaVM *vm;
static void (*get_trace)(struct trace *trace, jint max_frames, void *context);
static _Atomic long nr_with_stack, nr_others, nr_reasons[NR_REASONS];
static char output[4096];

static void on_signal(int signo, siginfo_t *info, void *context)
{
	static __thread struct frame frames[MAX_FRAMES];
	struct trace trace = {.frames = frames};
	char name[16] = "";

	(void)signo;
	(void)info;
	/* The compilers' threads are threads of Java, too, and have no Java frames. */
	prctl(PR_GET_NAME, name);
	if (strstr(name, "Compiler") || (*vm)->GetEnv(vm, (void **)&trace.env, JNI_VERSION_1_6) != JNI_OK) {
		nr_others++;
		return;
	}
	get_trace(&trace, MAX_FRAMES, context);
	if (trace.nr_frames > 0)
		nr_with_stack++;
	else if (trace.nr_frames > -NR_REASONS)
		nr_reasons[-trace.nr_frames]++;
}

/* So that methods have the numbers that traces are made of. */
static void JNICALL on_class(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
	jint nr;
	jmethodID *methods;

	(void)env;
	(void)thread;
	if ((*jvmti)->GetClassMethods(jvmti, class, &nr, &methods) == JVMTI_ERROR_NONE)
		(*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
}

static void JNICALL on_load(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
	(void)jvmti;
	(void)env;
	(void)thread;
	(void)class;
}

static void JNICALL on_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	const struct itimerval interval = {{0, INTERVAL_US}, {0, INTERVAL_US}};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	jint nr;
	jclass *classes;

	(*jvmti)->GetLoadedClasses(jvmti, &nr, &classes);
	for (jint i = 0; i < nr; i++)
		on_class(jvmti, env, thread, classes[i]);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &interval, NULL);
}

static void JNICALL on_end(jvmtiEnv *jvmti, JNIEnv *env)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	FILE *file = fopen(output, "w");
	long nr = nr_with_stack;

	(void)jvmti;
	(void)env;
	setitimer(ITIMER_PROF, &never, NULL);
	/* 0: no Java frames, as in the compilers' threads. */
	for (int i = 1; i < NR_REASONS; i++)
		nr += nr_reasons[i];
	if (!file)
		return;
	fprintf(file, "%ld samples, %ld with a stack, without one by reason:", nr, (long)nr_with_stack);
	for (int i = 1; i < NR_REASONS; i++)
		if (nr_reasons[i])
			fprintf(file, " -%d: %ld", i, (long)nr_reasons[i]);
	fprintf(file, "; besides %ld in other threads, %ld without Java frames\n", (long)nr_others,
		(long)nr_reasons[0]);
	fclose(file);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *machine, char *options, void *reserved)
{
	static const jvmtiEvent events[] = {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_CLASS_LOAD,
					    JVMTI_EVENT_CLASS_PREPARE};
	jvmtiEventCallbacks callbacks = {
		.VMInit = on_start, .VMDeath = on_end, .ClassLoad = on_load, .ClassPrepare = on_class};
	jvmtiEnv *jvmti;

	(void)reserved;
	vm = machine;
	snprintf(output, sizeof(output), "%s", options ? options : "/dev/null");
	get_trace = (void (*)(struct trace *, jint, void *))dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
	if (!get_trace || (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK)
		return JNI_ERR;
	(*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks));
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL);
	return JNI_OK;
}
