"""Guests that put themselves under seccomp while they are profiled."""
from harness import Failure, Guest


def guest(name, way, warning, **rest):
    rest.setdefault('hot', {'guest_work': 15, 'confined_work': 40})
    rest.setdefault('facts', {'warning': warning} if warning else None)
    return Guest('seccomp: ' + name, ['{T}/guest_seccomp', way], hz=2000, **rest)


STRICT = "entered seccomp's strict mode: .* not in the profile"

WORK = ['{T}/guest_memory', 'work']


def caged(name, how, calls, argv=WORK, inside=True, **rest):
    """Under a filter that was there before: before the launcher, or (not inside) before the program alone."""
    cage = ['{T}/static_cage', how, calls]
    rest.setdefault('hot', {'guest_work': 50})
    if inside:
        return Guest('seccomp: inherited, ' + name, argv, wrap=cage, **rest)
    return Guest('seccomp: inherited, ' + name, cage + argv, **rest)


def shell_alone(profile, directory):
    """What the shell started is profiled, and the children that tried its filter are not named."""
    for key in ('unprofiled', 'outside'):
        named = profile.facts.get(key, [])
        if any('guest_memory' in text for text in named):
            raise Failure('%s: %s' % (key, named))
    if not any('sh' in text for text in profile.facts.get('outside', [])):
        raise Failure('outside: %s' % profile.facts.get('outside'))


NO_PERF = {'engine': 'timer.*a seccomp filter kills processes that call perf_event_open'}
# The library leaves such a program alone; below the static program that has the filter, the kernel samples it.
OUTSIDE = {'outside': 'guest_memory'}
UNKNOWN = {'timer': {'hot': {}, 'facts': {'unprofiled': 'guest_memory'}}}
# What the service manager's usual set of calls leaves out, and more.
SERVICE = 'perf_event_open,process_vm_readv,memfd_create,socket'
SHELL = ['sh', '-c', '{T}/guest_memory work; echo $?']

GUESTS = [
    *[caged('%s for perf_event_open' % word, how, 'perf_event_open', engines=('auto',), runs=2, facts=NO_PERF)
      for how, word in (('kill', 'killing'), ('trap', 'SIGSYS'))],
    caged('killing for perf_event_open, and no launcher', 'kill', 'perf_event_open', engines=('auto',), runs=2, facts=NO_PERF,
          alone=True),
    caged('killing as for a service, and no launcher', 'kill', SERVICE, engines=('auto',), facts=NO_PERF, alone=True),
    caged('killing for what can be left out', 'kill', 'process_vm_readv,memfd_create,socket,timer_create',
          engines=('sigtrap', 'signal')),
    caged('refusing, as a container does', 'refuse', SERVICE, engines=('auto',), facts={'engine': 'timer'}),
    caged('refusing, children that the kernel reaps', 'refuse', 'perf_event_open', argv=['{T}/guest_processes', 'unwaited'],
          engines=('auto',), hot={'child_work': 40}, facts={'engine': 'timer'}),
    caged('refusing, and no launcher', 'refuse', SERVICE, engines=('auto',), facts={'engine': 'timer'}, alone=True),
    caged('killing, by somebody unseen', 'kill', 'perf_event_open', inside=False, engines=('auto', 'timer'),
          unused='may kill', facts=OUTSIDE, by_engine=UNKNOWN),
    caged('killing for what nothing can be done without', 'kill', 'prctl,fcntl,ftruncate', inside=False,
          unused='would kill', facts=OUTSIDE, by_engine=UNKNOWN),
    caged('killing, a shell and what it starts', 'kill', SERVICE, argv=SHELL, inside=False, engines=('auto',), runs=2,
          facts=NO_PERF, check=shell_alone),
    guest('strict mode', 'strict', STRICT),
    guest('strict mode, and no way to end', 'strict_return', STRICT),
    guest('a filter that kills for all but a few calls', 'kill', 'filter that kills for'),
    guest('a filter that refuses all but a few calls', 'refuse', None, facts={'note': 'filter that refuses'}),
    guest('a filter that kills for what profilers do, then threads and children', 'live_on', 'filter that kills for',
          hot={'guest_work': 10, 'confined_work': 25}),
    guest('a filter that kills for coming back from a handler', 'no_handlers', 'kills for rt_sigreturn.*not sampled',
          hot={'guest_work': 15}),
    guest('a filter that refuses what profilers do', 'mild', None, hot={'guest_work': 10, 'confined_work': 30},
          facts={'note': 'filter that refuses perf_event_open'}),
    guest('filters that the kernel does not take', 'fails', None, hot={'guest_work': 15, 'confined_work': 50}),
    guest('execs that fail under a filter', 'fail_to_exec', 'filter that kills for perf_event_open',
          hot={'guest_work': 8, 'confined_work': 20, 'work_after_exec': 40}),
    guest('system calls that are sent to the program as signals', 'dispatch', None, hot={'guest_work': 15}, runs=2),
    guest('no time stamp counter', 'no_tsc', None, hot={'guest_work': 15, 'confined_work': 50}),
]
