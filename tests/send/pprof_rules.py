#!/usr/bin/python3 -B
"""What Pyroscope and Parca demand of a pprof profile, restated as rules (of the versions of 2026-08-21 and 2026-07-27).

usage: pprof_rules.py FILE        print "PYROSCOPE: verdict" and "PARCA: verdict": "accepted", or the first rule that is broken
       pprof_rules.py --show FILE print what a test compares: types, totals, labels, comments, and counts
       pprof_rules.py --table     for each rule, a profile that breaks it and the verdict: a line each, "ok" or "not ok"
"""
import gzip
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
from protobuf import Message, encode, numbers, signed  # noqa: E402


class Profile:
    def __init__(self, data):
        self.size = len(data)
        top = Message(data)
        self.raw_strings = top.get(6, [])
        self.strings = [s.decode('utf-8', 'replace') for s in self.raw_strings]
        self.types = [(self.text(t.one(1)), self.text(t.one(2))) for t in top.messages(1)]
        self.samples = top.messages(2)
        self.mapping_ids = [m.one(1) for m in top.messages(3)]
        self.locations = top.messages(4)
        self.functions = top.messages(5)
        period = Message(top.one(11, b''))
        self.period_type = (self.text(period.one(1)), self.text(period.one(2)))
        self.time, self.duration = top.one(9), top.one(10)
        self.comments = [self.text(n) for n in numbers(top.get(13, []))]

    def text(self, index):
        return self.strings[index]

    def labels(self, sample):
        """(name, text or None) of each label of a sample."""
        return [(self.text(label.one(1)), self.text(label.one(2)) if label.one(2) else None) for label in sample.messages(3)]


def common(p):
    try:
        for text in p.raw_strings:
            text.decode('utf-8')
    except UnicodeDecodeError:
        return 'a string is no UTF-8'
    if not p.types:
        return 'no sample type'
    locations, functions = {l.one(1) for l in p.locations}, {f.one(1) for f in p.functions}
    if 0 in locations or 0 in functions:
        return 'id 0'
    for s in p.samples:
        if not set(numbers(s.get(1, []))) <= locations:
            return 'a sample names a location that is not there'
        if len(list(numbers(s.get(2, [])))) != len(p.types):
            return 'a sample has not one value of each type'
    for location in p.locations:
        if location.one(2) not in set(p.mapping_ids) | {0}:
            return 'a location names a mapping that is not there'
        if not {line.one(1) for line in location.messages(4)} <= functions:
            return 'a location names a function that is not there'
    return None


def pyroscope(p):
    for name, _ in p.types:
        if '-' in name:
            return 'sample type contains -'
    if not p.period_type[0] or not p.period_type[1]:
        return 'no period type: the metric has no name'
    if p.size > 4 << 20:
        return 'more than 4 MiB unpacked'
    if len(p.samples) > 16000:
        return 'more than 16,000 samples'
    names = set()
    for s in p.samples:
        labels = p.labels(s)
        names |= {name for name, _ in labels}
        if len(labels) > 100:
            return 'more than 100 labels of a sample'
    if len(names) > 30:
        return 'more than 30 names of labels'
    for name in names:
        if not re.fullmatch('[a-zA-Z_][a-zA-Z0-9_]*', name):
            return 'a name of a label that is none'
    return common(p)


def parca(p):
    for name, unit in p.types:
        selector = ':'.join(('countersink', name, unit) + p.period_type + (('delta',) if p.duration else ()))
        if not re.fullmatch('[a-zA-Z_:][a-zA-Z0-9_:]*', selector):
            return 'no selector: ' + selector
        if len(selector.split(':')) not in (5, 6) or '' in selector.split(':'):
            return 'not five or six parts: ' + selector
        if not p.duration:
            return 'not of a time'
    for ids in (p.mapping_ids, [l.one(1) for l in p.locations], [f.one(1) for f in p.functions]):
        if ids != list(range(1, len(ids) + 1)):
            return 'ids are not 1, 2, 3...'
    for s in p.samples:
        names = [name for name, _ in p.labels(s)]
        if len(names) != len(set(names)):
            return 'two labels of one name'
    return common(p)


def read(path):
    data = open(path, 'rb').read()
    return Profile(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)


def show(p):
    for k, (name, unit) in enumerate(p.types):
        total = sum(signed(list(numbers(s.get(2, [])))[k]) for s in p.samples)
        print('%s/%s %d' % (name, unit, total))
    print('period %s/%s' % p.period_type)
    labels = {label for s in p.samples for label in p.labels(s)}
    print('labels', ' '.join(sorted({name for name, _ in labels})))
    print('series', len({tuple(sorted(l for l in p.labels(s) if l[1] is not None)) for s in p.samples}))
    identities = [(tuple(numbers(s.get(1, []))), repr(s.get(3))) for s in p.samples]
    print('samples twice', len(identities) - len(set(identities)))
    print('comments', len(p.comments))


# ---- the rules themselves ----

def made(types=((1, 2),), period=(1, 2), strings=(b'', b'cpu', b'nanoseconds', b'f', b'one', b'two'), labels=((4, 5),), location=1,
         function=1, named=1, duration=5, nr=1, padding=0):
    """A profile that both accept, but for what is given."""
    label = b''.join(encode(3, encode(1, key) + encode(2, text)) for key, text in labels)
    sample = encode(2, encode(1, bytes([named])) + encode(2, bytes([7] * len(types))) + label)
    out = b''.join(encode(1, encode(1, name) + encode(2, unit)) for name, unit in types) + sample * nr
    out += encode(4, encode(1, location) + encode(4, encode(1, function))) + encode(5, encode(1, function) + encode(2, 3))
    out += b''.join(encode(6, text) for text in strings) + (encode(6, b'x' * padding) if padding else b'')
    out += encode(10, duration) if duration else b''
    return out + (encode(11, encode(1, period[0]) + encode(2, period[1])) if period else b'')


MANY = (b'', b'cpu', b'nanoseconds', b'f') + tuple(b'l%d' % i for i in range(120))
CLOCK = (b'', b'task-clock', b'nanoseconds', b'f', b'one', b'two')
TABLE = [  # what is wrong, the profile, Pyroscope's verdict, Parca's
    ('nothing', made(), 'accepted', 'accepted'),
    ('a dash in a type', made(strings=CLOCK), 'sample type contains -', 'no selector: .*'),
    ('a dash in the period alone', made(strings=(b'', b'cpu', b'nanoseconds', b'f', b'one', b'task-clock'), period=(5, 2)),
     'accepted', 'no selector: .*task-clock.*'),
    ('a colon in a type', made(strings=(b'', b'a:b', b'nanoseconds', b'f', b'one', b'two')), 'accepted', 'not five or six parts.*'),
    ('no period', made(period=None), 'no period type.*', 'not five or six parts.*'),
    ('no duration', made(duration=0), 'accepted', 'not of a time'),
    ('bad UTF-8', made(strings=(b'', b'cpu', b'nanoseconds', b'\xff', b'one', b'two')), 'a string is no UTF-8', 'a string is no UTF-8'),
    ('location id 0', made(location=0, named=0), 'id 0', 'ids are not.*'),
    ('function id 0', made(function=0), 'id 0', 'ids are not.*'),
    ('ids with a gap', made(location=2, named=2), 'accepted', 'ids are not.*'),
    ('a location that is missing', made(named=9), 'a sample names.*', 'a sample names.*'),
    ('a label twice', made(labels=((4, 5), (4, 5))), 'accepted', 'two labels of one name'),
    ('a dash in a label', made(strings=(b'', b'cpu', b'nanoseconds', b'f', b'on-e', b'two')), 'a name of a label.*', 'accepted'),
    ('31 names of labels', made(strings=MANY, labels=[(4 + i, 4) for i in range(31)]), 'more than 30 names.*', 'accepted'),
    ('101 labels', made(strings=MANY, labels=[(4 + i, 4) for i in range(101)]), 'more than 100 labels.*', 'accepted'),
    ('16,001 samples', made(nr=16001), 'more than 16,000 samples', 'accepted'),
    ('4 MiB and more', made(padding=4 << 20), 'more than 4 MiB.*', 'accepted'),
    ('no type', made(types=()), 'no sample type', 'no sample type'),
]


def main():
    if sys.argv[1] == '--table':
        for what, data, *wanted in TABLE:
            for name, rules, want in zip(('Pyroscope', 'Parca'), (pyroscope, parca), wanted):
                got = rules(Profile(data)) or 'accepted'
                print('ok' if re.fullmatch(want, got) else 'not ok (%s)' % got, '%s: %s: %s' % (name, what, want))
        return
    p = read(sys.argv[-1])
    if sys.argv[1] == '--show':
        show(p)
        return
    print('PYROSCOPE:', pyroscope(p) or 'accepted')
    print('PARCA:', parca(p) or 'accepted')


main()
