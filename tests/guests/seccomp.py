"""Guests that put themselves under seccomp while they are profiled."""
from harness import Guest


def guest(name, way, warning, **rest):
    rest.setdefault('hot', {'guest_work': 15, 'confined_work': 40})
    rest.setdefault('facts', {'warning': warning} if warning else None)
    return Guest('seccomp: ' + name, ['{T}/guest_seccomp', way], hz=2000, **rest)


STRICT = "entered seccomp's strict mode: .* not in the profile"

GUESTS = [
    guest('strict mode', 'strict', STRICT),
    guest('strict mode, and no way to end', 'strict_return', STRICT),
    guest('a filter that kills for all but a few calls', 'kill', 'filter that punishes'),
    guest('a filter that refuses all but a few calls', 'refuse', None, facts={'note': 'filter that refuses'}),
    guest('a filter that kills for what profilers do, then threads and children', 'live_on', 'filter that punishes',
          hot={'guest_work': 10, 'confined_work': 25}),
    guest('a filter that kills for coming back from a handler', 'no_handlers', 'punishes rt_sigreturn.*not sampled',
          hot={'guest_work': 15}),
    guest('a filter that refuses what profilers do', 'mild', None, hot={'guest_work': 10, 'confined_work': 30},
          facts={'note': 'filter that refuses perf_event_open'}),
    guest('filters that the kernel does not take', 'fails', None, hot={'guest_work': 15, 'confined_work': 50}),
    guest('no time stamp counter', 'no_tsc', None, hot={'guest_work': 15, 'confined_work': 50}),
]
