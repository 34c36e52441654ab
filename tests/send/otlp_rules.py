#!/usr/bin/python3 -B
"""A strict reader of OTLP's profiles: v1development of opentelemetry-proto 1.10 to 1.11, written from the fields' numbers. What the
protocol leaves to the sender's care, and a server may take amiss later, is refused at once.

usage: otlp_rules.py [--1.9] FILE  print "accepted", or the first rule that is broken; --1.9: by the numbers of 1.8 and 1.9
       otlp_rules.py --show FILE   print what a test compares: service, types with totals, counts
       otlp_rules.py --table       for each rule, a request that breaks it: a line each, "ok" or "not ok"
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
from protobuf import encode, signed, varint  # noqa: E402

# Of each message: field number -> (name, kind). A kind in brackets may come several times; "ints" is a packed list.
SCHEMA = {
    'request': {1: ('resource_profiles', ['resource_profiles']), 2: ('dictionary', 'dictionary')},
    'resource_profiles': {1: ('resource', 'resource'), 2: ('scopes', ['scope_profiles']), 3: ('schema_url', 'str')},
    'resource': {1: ('attributes', ['key_value']), 2: ('dropped', 'int')},
    'scope_profiles': {1: ('scope', 'scope'), 2: ('profiles', ['profile']), 3: ('schema_url', 'str')},
    'scope': {1: ('name', 'str'), 2: ('version', 'str'), 3: ('attributes', ['key_value']), 4: ('dropped', 'int')},
    'key_value': {1: ('key', 'str'), 2: ('value', 'any')},
    'any': {1: ('text', 'str'), 2: ('bool', 'int'), 3: ('number', 'int')},
    'dictionary': {1: ('mappings', ['mapping']), 2: ('locations', ['location']), 3: ('functions', ['function']), 4: ('links', ['link']),
                   5: ('strings', ['str']), 6: ('attributes', ['attribute']), 7: ('stacks', ['stack'])},
    'mapping': {1: ('start', 'int'), 2: ('limit', 'int'), 3: ('offset', 'int'), 4: ('file', 'int'), 5: ('attributes', 'ints')},
    'location': {1: ('mapping', 'int'), 2: ('address', 'int'), 3: ('lines', ['line']), 4: ('attributes', 'ints')},
    'line': {1: ('function', 'int'), 2: ('line', 'int'), 3: ('column', 'int')},
    'function': {1: ('name', 'int'), 2: ('system_name', 'int'), 3: ('file', 'int'), 4: ('start_line', 'int')},
    'link': {1: ('trace', 'bytes'), 2: ('span', 'bytes')},
    'attribute': {1: ('key', 'int'), 2: ('value', 'any'), 3: ('unit', 'int')},
    'stack': {1: ('locations', 'ints')},
    'profile': {1: ('type', 'value_type'), 2: ('samples', ['sample']), 3: ('time', 'fixed64'), 4: ('duration', 'int'),
                5: ('period_type', 'value_type'), 6: ('period', 'int'), 7: ('id', 'bytes'), 8: ('dropped', 'int'),
                9: ('payload_format', 'str'), 10: ('payload', 'bytes'), 11: ('attributes', 'ints')},
    'value_type': {1: ('type', 'int'), 2: ('unit', 'int')},
    'sample': {1: ('stack', 'int'), 2: ('attributes', 'ints'), 3: ('link', 'int'), 4: ('values', 'ints'), 5: ('times', 'fixed64s')},
}
SAMPLE_1_9 = {1: ('stack', 'int'), 2: ('values', 'ints'), 3: ('attributes', 'ints'), 4: ('link', 'int'), 5: ('times', 'fixed64s')}
WIRES = {'int': 0, 'fixed64': 1}


class Broken(Exception):
    pass


def demand(holds, rule):
    if not holds:
        raise Broken(rule)


def read_value(kind, data, at, wire):
    demand(wire == WIRES.get(kind, 2), 'a field of another kind')
    if kind == 'int':
        return varint(data, at)
    if kind == 'fixed64':
        return int.from_bytes(data[at:at + 8], 'little'), at + 8
    size, at = varint(data, at)
    demand(at + size <= len(data), 'a field is longer than its message')
    part, after = data[at:at + size], at + size
    if kind == 'ints':
        out, at = [], 0
        while at < len(part):
            number, at = varint(part, at)
            out.append(number)
        return out, after
    if kind == 'fixed64s':
        return [int.from_bytes(part[k:k + 8], 'little') for k in range(0, size, 8)], after
    if kind == 'str':
        try:
            return part.decode('utf-8'), after
        except UnicodeDecodeError:
            raise Broken('a string is no UTF-8') from None
    return part if kind == 'bytes' else read(kind, part), after


def read(name, data):
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        demand(key >> 3 in SCHEMA[name], 'a field that %s does not have' % name)
        field, kind = SCHEMA[name][key >> 3]
        value, at = read_value(kind[0] if isinstance(kind, list) else kind, data, at, key & 7)
        if isinstance(kind, list):
            out.setdefault(field, []).append(value)
        else:
            demand(field not in out, 'a field of %s twice' % name)
            out[field] = value
    return out


class Used:
    """Which elements of the dictionary's tables something names."""

    def __init__(self, dictionary):
        self.tables = dictionary
        self.seen = {name: {0} for name, _ in SCHEMA['dictionary'].values()}

    def name(self, table, index):
        demand(index < len(self.tables[table]), 'an index beyond the %s' % table)
        self.seen[table].add(index)

    def attributes(self, indexes):
        for index in indexes:
            demand(index, 'an attribute that is none')
            self.name('attributes', index)
        keys = [self.tables['attributes'][index].get('key', 0) for index in indexes]
        demand(len(set(keys)) == len(keys), 'two attributes of one key')

    def value_type(self, value_type):
        demand(value_type.get('type') and value_type.get('unit'), 'a type without name or unit')
        self.name('strings', value_type['type'])
        self.name('strings', value_type['unit'])


def check_tables(d):
    for name, kind in SCHEMA['dictionary'].values():
        demand(d.get(name), 'no element 0 of the %s' % name)
        demand(not d[name][0], 'element 0 of the %s is not zero' % name)
        demand(len({repr(one) for one in d[name]}) == len(d[name]), 'an element of the %s twice' % name)


def check_references(d, used):
    for m in d['mappings']:
        used.name('strings', m.get('file', 0))
        used.attributes(m.get('attributes', []))
    for location in d['locations']:
        used.name('mappings', location.get('mapping', 0))
        for line in location.get('lines', []):
            demand(line.get('function'), 'a line without a function')
            used.name('functions', line['function'])
    for f in d['functions']:
        for field in ('name', 'system_name', 'file'):
            used.name('strings', f.get(field, 0))
    for a in d['attributes'][1:]:
        demand(a.get('key') and len(a.get('value', {})) == 1, 'an attribute without key or value')
        used.name('strings', a['key'])
        used.name('strings', a.get('unit', 0))
    for stack in d['stacks']:
        for location in stack.get('locations', []):
            demand(location, 'a frame that is no location')
            used.name('locations', location)


def check_profile(p, used):
    used.value_type(p.get('type', {}))
    used.value_type(p.get('period_type', {}))
    demand(p.get('duration'), 'no duration')
    demand(len(p.get('id', b'')) == 16 and any(p['id']), 'an id that is none')
    identities = set()
    for s in p.get('samples', []):
        demand(len(s.get('values', [])) == 1, 'a sample has not one value')
        used.name('stacks', s.get('stack', 0))
        used.attributes(s.get('attributes', []))
        used.name('links', s.get('link', 0))
        identity = (s.get('stack', 0), tuple(sorted(s.get('attributes', []))), s.get('link', 0))
        demand(identity not in identities, 'two samples of one identity')
        identities.add(identity)


def check(request):
    d = request.get('dictionary')
    demand(d, 'no dictionary')
    check_tables(d)
    used = Used(d)
    ids = []
    for resource_profiles in request.get('resource_profiles', []):
        attributes = resource_profiles.get('resource', {}).get('attributes', [])
        keys = [a.get('key') for a in attributes]
        demand(len(set(keys)) == len(keys), 'two attributes of one key')
        demand(any(a.get('key') == 'service.name' and a['value'].get('text') for a in attributes), 'no service.name')
        for scope in resource_profiles.get('scopes', []):
            for p in scope.get('profiles', []):
                check_profile(p, used)
                ids.append(p['id'])
    demand(ids, 'no profile')
    demand(len(set(ids)) == len(ids), 'two profiles of one id')
    check_references(d, used)
    for name, seen in used.seen.items():
        demand(len(seen) == len(d[name]), 'an orphan of the %s' % name)


def verdict(data):
    try:
        check(read('request', data))
    except Broken as broken:
        return str(broken)
    return 'accepted'


def show(data):
    request = read('request', data)
    d = request['dictionary']
    for resource_profiles in request['resource_profiles']:
        for a in resource_profiles['resource']['attributes']:
            print(a['key'], a['value'].get('text'))
        for p in resource_profiles['scopes'][0]['profiles']:
            total = sum(signed(value) for s in p.get('samples', []) for value in s['values'])
            print('%s/%s %d' % (d['strings'][p['type']['type']], d['strings'][p['type']['unit']], total))
            print('time', p.get('time', 0), 'id', p['id'].hex())
    print('attributes', ' '.join(sorted({d['strings'][a['key']] for a in d['attributes'][1:]})))


# ---- the rules themselves ----

def packed(nr, *values):
    return encode(nr, bytes(values))


def any_text(text):
    return encode(2, encode(1, text))


PARTS = {  # of a request that is accepted; each can be replaced
    'mappings': [b'', encode(2, 4096) + encode(4, 3)],
    'locations': [b'', encode(1, 1) + encode(2, 16) + encode(3, encode(1, 1) + encode(2, 7))],
    'functions': [b'', encode(1, 4)],
    'links': [b''],
    'strings': [b'', b'cpu', b'nanoseconds', b'/bin/made', b'main', b'phase'],
    'attributes': [b'', encode(1, 5) + any_text(b'start')],
    'stacks': [b'', packed(1, 1)],
    'samples': [encode(1, 1) + packed(2, 1) + packed(4, 9), encode(1, 1) + packed(4, 8)],
    'resource': encode(1, encode(1, b'service.name') + any_text(b'made')),
    'type': encode(1, 1) + encode(2, 2),
    'period': encode(1, 1) + encode(2, 2),
    'id': b'0123456789abcdef',
    'duration': 5,
    'profiles': 1,
}


def made(**parts):
    p = dict(PARTS, **parts)
    profile = encode(1, p['type']) + b''.join(encode(2, s) for s in p['samples']) + encode(5, p['period']) + encode(7, p['id'])
    profile += encode(4, p['duration']) if p['duration'] else b''
    scope = encode(1, encode(1, b'made')) + encode(2, profile) * p['profiles']
    tables = b''.join(encode(nr, one) for nr, (name, _) in SCHEMA['dictionary'].items() for one in p[name])
    return encode(1, encode(1, p['resource']) + encode(2, scope)) + encode(2, tables)


def more(name, *ones):
    return {name: PARTS[name] + list(ones)}


TABLE = [('nothing', made(), 'accepted')]
TABLE += [('no element 0', made(**{name: PARTS[name][1:]}), 'no element 0 of the links' if name == 'links' else
           'element 0 of the %s is not zero' % name) for name, _ in SCHEMA['dictionary'].values()]
TABLE += [('one twice', made(**more(name, PARTS[name][-1])), 'an element of the %s twice' % name)
          for name, _ in SCHEMA['dictionary'].values()]
TABLE += [
    ('a mapping for nothing', made(**more('mappings', encode(2, 8192))), 'an orphan of the mappings'),
    ('a location for nothing', made(**more('locations', encode(2, 17))), 'an orphan of the locations'),
    ('a function for nothing', made(**more('functions', encode(1, 3))), 'an orphan of the functions'),
    ('a string for nothing', made(**more('strings', b'more')), 'an orphan of the strings'),
    ('an attribute for nothing', made(**more('attributes', encode(1, 5) + any_text(b'x'))), 'an orphan of the attributes'),
    ('a stack for nothing', made(**more('stacks', packed(1, 1, 1))), 'an orphan of the stacks'),
    ('a link for nothing', made(**more('links', encode(1, b'x'))), 'an orphan of the links'),
    ('a sample twice', made(**more('samples', encode(1, 1) + packed(4, 8))), 'two samples of one identity'),
    ('a sample without a value', made(samples=[encode(1, 1)]), 'a sample has not one value'),
    ('a sample of two values', made(samples=[encode(1, 1) + packed(4, 8, 9)]), 'a sample has not one value'),
    ('a stack that is not there', made(samples=[encode(1, 7) + packed(4, 8)]), 'an index beyond the stacks'),
    ('an attribute that is not there', made(samples=[encode(1, 1) + packed(2, 9) + packed(4, 8)]), 'an index beyond the attributes'),
    ('two attributes of one key', made(attributes=PARTS['attributes'] + [encode(1, 5) + any_text(b'x')],
                                       samples=[encode(1, 1) + packed(2, 1, 2) + packed(4, 8)]), 'two attributes of one key'),
    ('a frame that is none', made(stacks=[b'', packed(1, 0)]), 'a frame that is no location'),
    ('no period', made(period=b''), 'a type without name or unit'),
    ('no duration', made(duration=0), 'no duration'),
    ('no id', made(id=bytes(16)), 'an id that is none'),
    ('a short id', made(id=b'7'), 'an id that is none'),
    ('a profile twice', made(profiles=2), 'two profiles of one id'),
    ('no profile', made(profiles=0), 'no profile'),
    ('no service', made(resource=b''), 'no service.name'),
    ('a service without a name', made(resource=encode(1, encode(1, b'service.name') + any_text(b''))), 'no service.name'),
    ('bad UTF-8', made(strings=[b'\xff' if s == b'main' else s for s in PARTS['strings']]), 'a string is no UTF-8'),
    ('a field that is none', made() + encode(3, 1), 'a field that request does not have'),
    ('a field of another kind', encode(1, 1), 'a field of another kind'),
    # As 1.8 and 1.9 number a sample's fields: readers by today's numbers take its values for attributes, without an error.
    ('a sample of 1.9', made(samples=[encode(1, 1) + packed(2, 1)]), 'a sample has not one value'),
    ('a sample of 1.9 with attributes', made(samples=[encode(1, 1) + packed(2, 9) + packed(3, 1)]), 'a field of another kind'),
]


def main():
    if sys.argv[1] == '--table':
        for what, data, want in TABLE:
            got = verdict(data)
            print('ok' if got == want else 'not ok (%s)' % got, '%s: %s' % (what, want))
        return
    data = open(sys.argv[-1], 'rb').read()
    if sys.argv[1] == '--1.9':
        SCHEMA['sample'] = SAMPLE_1_9
    if sys.argv[1] == '--show':
        show(data)
    else:
        print(verdict(data))


main()
