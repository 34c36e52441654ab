"""Protobuf, as far as the tests here need it: messages of numbers and bytes by their fields' numbers."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """Of a message: (number, value) each, bytes of what has a length."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], 'little'), at + 8
        elif key & 7 == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError('a field is longer than its message')
            value, at = data[at:at + size], at + size
        else:
            raise ValueError('wire type %d' % (key & 7))
        yield key >> 3, value


def numbers(values):
    """A repeated number, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            yield number


class Message(dict):
    def __init__(self, data):
        for nr, value in fields(data):
            self.setdefault(nr, []).append(value)

    def one(self, nr, default=0):
        return self.get(nr, [default])[-1]

    def messages(self, nr):
        return [Message(value) for value in self.get(nr, [])]


def signed(n):
    return n - (1 << 64) if n >> 63 else n


def encode(nr, value):
    def number(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes(out) + bytes([n])
    if isinstance(value, int):
        return number(nr << 3) + number(value)
    return number(nr << 3 | 2) + number(len(value)) + value
