"""A reader of gzipped pprof that is not ours: just what the tests ask of a profile. Source: pprof's profile.proto."""
import gzip

import protobuf


class Profile:
    """samples: (CPU ns, [functions, innermost first], {label: text or number}); facts: {key: [texts]}.
    lines: of each sample, [(function, file, line), innermost first]; addresses: those of the same; objects: (file,
    what to add to an address for the place in it); counts: its first value, how often it was taken."""

    def __init__(self, path):
        with gzip.open(path) as f:
            data = f.read()
        raw = {n: [] for n in range(1, 15)}
        for number, value in protobuf.fields(data):
            raw.setdefault(number, []).append(value)
        self.strings = [s.decode('utf-8', 'replace') for s in raw[6]]
        functions, files = {}, {}
        for message in raw[5]:
            fields = dict(protobuf.fields(message))
            functions[fields.get(1, 0)] = self.strings[fields.get(2, 0)]
            files[fields.get(1, 0)] = self.strings[fields.get(4, 0)]
        locations, lines, addresses, objects = {}, {}, {}, {}
        mappings = {}
        for message in raw[3]:
            fields = dict(protobuf.fields(message))
            mappings[fields.get(1, 0)] = (self.strings[fields.get(5, 0)], fields.get(4, 0) - fields.get(2, 0))
        for message in raw[4]:
            number, address, mapping, names, places = 0, 0, 0, [], []
            for field, value in protobuf.fields(message):
                if field == 1:
                    number = value
                elif field == 2:
                    mapping = value
                elif field == 3:
                    address = value
                elif field == 4:
                    line = dict(protobuf.fields(value))
                    names.append(functions.get(line.get(1, 0), '?'))
                    places.append((names[-1], files.get(line.get(1, 0), ''), line.get(2, 0)))
            locations[number] = names or ['?']
            lines[number] = places or [('?', '', 0)]
            addresses[number] = [address] * len(lines[number])
            objects[number] = [mappings.get(mapping, ('', 0))] * len(lines[number])
        types = [dict(protobuf.fields(message)) for message in raw[1]]
        units = [self.strings[t.get(2, 0)] for t in types]
        column = units.index('nanoseconds') if 'nanoseconds' in units else 0
        self.samples = [self._sample(message, column, locations) for message in raw[2]]
        stacks = [[n for field, value in protobuf.fields(message) if field == 1 for n in protobuf.numbers([value])] for message in raw[2]]
        self.lines = [sum((lines.get(n, []) for n in stack), []) for stack in stacks]
        self.addresses = [sum((addresses.get(n, []) for n in stack), []) for stack in stacks]
        self.objects = [sum((objects.get(n, []) for n in stack), []) for stack in stacks]
        self.counts = [next((next(protobuf.numbers([value])) for field, value in protobuf.fields(message) if field == 2), 0) for message in raw[2]]
        self.facts = {}
        for message in raw[13]:
            for number in protobuf.numbers([message]):
                key, _, text = self.strings[number].partition(': ')
                self.facts.setdefault(key, []).append(text)

    def _sample(self, message, column, locations):
        stack, values, labels = [], [], {}
        for field, value in protobuf.fields(message):
            if field == 1:
                for number in protobuf.numbers([value]):
                    stack += locations.get(number, ['?'])
            elif field == 2:
                values += protobuf.numbers([value])
            elif field == 3:
                label = dict(protobuf.fields(value))
                labels[self.strings[label.get(1, 0)]] = (self.strings[label[2]] if label.get(2) else label.get(3, 0))
        return values[column], stack, labels

    def total(self):
        return sum(ns for ns, _, _ in self.samples)

    def in_function(self, name):
        """CPU time under a function, what it called included."""
        return sum(ns for ns, stack, _ in self.samples if name in stack)

    def with_label(self, key, text):
        return sum(ns for ns, _, labels in self.samples if labels.get(key) == text)

    def processes(self):
        return {labels['pid'] for _, _, labels in self.samples if 'pid' in labels}
