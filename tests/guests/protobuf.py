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
    at, end = 0, len(data)
    while at < end:
        key, at = data[at], at + 1 # most numbers have one byte: profiles have millions
        if key > 127:
            key, at = varint(data, at - 1)
        if key & 7 == 0:
            value, at = data[at], at + 1
            if value > 127:
                value, at = varint(data, at - 1)
        elif key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], 'little'), at + 8
        elif key & 7 == 2:
            size, at = data[at], at + 1
            if size > 127:
                size, at = varint(data, at - 1)
            if at + size > end:
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
        else:
            yield from packed(value)


def packed(data):
    """The numbers of a packed field."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        if byte < 128:
            numbers.append(value | byte << shift)
            value = shift = 0
        else:
            value |= (byte & 127) << shift
            shift += 7
    if shift:
        raise ValueError('a number is cut')
    return numbers


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
