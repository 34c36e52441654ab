"""A reader of gzipped pprof that is not ours: just what the tests ask of a profile. Source: pprof's profile.proto."""
import gzip

import protobuf


class Profile:
    """samples: (CPU ns, [functions, innermost first], {label: text or number}); facts: {key: [texts]}.
    lines: of each sample, [(function, file, line), innermost first]; addresses: those of the same; objects: (file,
    what to add to an address for the place in it); counts: its first value, how often it was taken.
    What is not asked for is not made: profiles have 40,000 stacks of 60 frames."""

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
        locations, lines, addresses, objects = self._of = {}, {}, {}, {}
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
        self._column = units.index('nanoseconds') if 'nanoseconds' in units else 0
        self._raw = [self._sample(message) for message in raw[2]]
        self.counts = [values[0] if values else 0 for _, values, _ in self._raw]
        self.facts = {}
        for message in raw[13]:
            for number in protobuf.numbers([message]):
                key, _, text = self.strings[number].partition(': ')
                self.facts.setdefault(key, []).append(text)

    @staticmethod
    def _sample(message):
        """Its locations, values and labels, of which each is a message."""
        stack, values, labels = [], [], []
        for field, value in protobuf.fields(message):
            if field == 1:
                stack += protobuf.numbers([value])
            elif field == 2:
                values += protobuf.numbers([value])
            elif field == 3:
                labels.append(value)
        return stack, values, labels

    def _labels(self, messages):
        labels = {}
        for message in messages:
            label = dict(protobuf.fields(message))
            labels[self.strings[label.get(1, 0)]] = (self.strings[label[2]] if label.get(2) else label.get(3, 0))
        return labels

    def __getattr__(self, name):
        if name not in ('samples', 'lines', 'addresses', 'objects'):
            raise AttributeError(name)
        names, lines, addresses, objects = self._of
        if name == 'samples':
            value = [(values[self._column], [at for n in stack for at in names.get(n, ['?'])], self._labels(labels))
                     for stack, values, labels in self._raw]
        else:
            of = {'lines': lines, 'addresses': addresses, 'objects': objects}[name]
            value = [[at for n in stack for at in of.get(n, ())] for stack, _, _ in self._raw]
        setattr(self, name, value)
        return value

    def total(self):
        return sum(ns for ns, _, _ in self.samples)

    def in_function(self, name):
        """CPU time under a function, what it called included."""
        return sum(ns for ns, stack, _ in self.samples if name in stack)

    def with_label(self, key, text):
        return sum(ns for ns, _, labels in self.samples if labels.get(key) == text)

    def processes(self):
        return {labels['pid'] for _, _, labels in self.samples if 'pid' in labels}
