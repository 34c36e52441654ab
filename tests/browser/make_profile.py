# Writes pprof profiles whose content a test knows: gzipped profile.proto, by hand.
import gzip
import random


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(nr, value):
    if isinstance(value, int):
        return varint(nr << 3) + varint(value)
    return varint(nr << 3 | 2) + varint(len(value)) + value


class Profile:
    def __init__(self, types, default=None):
        self.texts = {'': 0}
        self.functions = {}
        self.modules = {}
        self.files = {}
        self.languages = {}
        self.head = b''.join(field(1, field(1, self.text(n)) + field(2, self.text(u))) for n, u in types)
        self.tail = field(14, self.text(default or types[-1][0]))
        self.samples = []

    def text(self, text):
        """text: str, or bytes where it is no UTF-8."""
        return self.texts.setdefault(text, len(self.texts))

    def module(self, path):
        return self.modules.setdefault(path, len(self.modules) + 1)

    def function(self, name, module='/usr/bin/made', file=None, language=None):
        """name: None for code that has no name."""
        key = (name and self.text(name), self.module(module))
        if file:
            self.files[key] = self.text(file)
        if language:
            self.languages[key] = self.text(language)
        return self.functions.setdefault(key, len(self.functions) + 1)

    def sample(self, stack, values, **labels):
        """stack: function ids, innermost first. labels: texts or numbers."""
        message = field(1, b''.join(map(varint, stack))) + field(2, b''.join(map(varint, values)))
        for key, value in labels.items():
            what = field(3, value) if isinstance(value, int) else field(2, self.text(value))
            message += field(3, field(1, self.text(key)) + what)
        self.samples.append(field(2, message))

    def comment(self, text):
        self.tail += field(13, self.text(text))

    def write(self, path):
        parts = [self.head] + self.samples
        for (name, module), nr in self.functions.items():
            line = field(4, field(1, nr)) if name else b''
            parts.append(field(4, field(1, nr) + field(2, module) + field(3, 0x1000 * nr) + line))
            if name:
                parts.append(field(5, field(1, nr) + field(2, name) + field(3, name) + field(4, self.files.get((name, module), 0)) +
                                   field(15, self.languages.get((name, module), 0))))
        for path_of, nr in self.modules.items():
            parts.append(field(3, field(1, nr) + field(2, 0x1000) + field(3, 1 << 40) + field(5, self.text(path_of))))
        parts.append(self.tail)
        parts += [field(6, text if isinstance(text, bytes) else text.encode()) for text in self.texts]
        with gzip.open(path, 'wb', 1) as file:
            file.write(b''.join(parts))


def many_stacks(path, nr, seed=1):
    """nr distinct stacks of 8 to 60 functions out of 4,000 in 20 modules."""
    rng = random.Random(seed)
    profile = Profile([('samples', 'count'), ('task-clock', 'nanoseconds')])
    functions = [profile.function('ns%d::function_%d' % (i % 37, i), '/usr/lib/libmade%d.so' % (i % 20)) for i in range(4000)]
    seen = set()
    stack = [functions[0]]
    while len(seen) < nr:
        # A walk up and down: neighbours share their callers, as in real programs.
        del stack[max(1, len(stack) - rng.randrange(1, 9)):]
        depth = rng.randrange(8, 60)
        while len(stack) < depth and rng.random() < 0.93:
            stack.append(functions[(stack[-1] * 7 + rng.randrange(12)) % 4000])
        key = tuple(stack)
        if key in seen:
            continue
        seen.add(key)
        weight = 1 + int(rng.paretovariate(1.2))
        profile.sample(stack[::-1], [weight, weight * 1003009], pid=100, tid=100 + len(seen) % 8, process='made', thread='worker')
    profile.write(path)
