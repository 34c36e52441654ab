"""Guests with untracked threads: they are counted, and the report names them."""
from harness import Guest


def guest(name, way, warning, **rest):
    return Guest('coverage: ' + name, ['{T}/guest_untracked', way], hot={'guest_work': 20}, facts={'warning': warning},
                 **rest)


GUESTS = [
    guest('threads by clone(2), there to the end', 'raw', r'2 threads \(guest_untracked\).* were not sampled: 0\.'),
    guest('a thread by clone(2) that has ended', 'ended', r'0\.0\d+ s of CPU time were spent by threads'),
    Guest('coverage: threads older than the library', ['{T}/guest_untracked', 'late', '{LIB}'],
          plain=['{T}/guest_untracked', 'late'], late=True, hot={'guest_work': 15},
          facts={'warning': r'2 threads are older than the library \(older\): not sampled'}),
]
