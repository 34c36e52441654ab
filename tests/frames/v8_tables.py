"""What a version of V8 does not export, from the program of node itself (not stripped): the operands of its bytecodes, as
launcher/collect/v8_positions.c has them, and of the operations of optimized code's states, as preload/agent/interp/v8_lines.c
has them.

usage: v8_tables.py NODE          prints both, to be copied
       v8_tables.py NODE SOURCE   status 1 if the project's sources there have others, 2 if the program has no such symbols
"""
import os
import re
import struct
import subprocess
import sys

FIXED = 6  # as in v8_positions.c


def content(program, name):
    """The bytes of a variable, by the end of its symbol's name."""
    symbols = subprocess.run(['nm', '-S', program], capture_output=True, text=True, check=False).stdout
    found = [line.split() for line in symbols.splitlines() if line.endswith(name)]
    if not found or len(found[0]) != 4:
        print('%s has no symbol %s: is it stripped?' % (program, name), file=sys.stderr)
        sys.exit(2)
    address, size = int(found[0][0], 16), int(found[0][1], 16)
    sections = subprocess.run(['readelf', '-SW', program], capture_output=True, text=True, check=True).stdout
    for line in sections.splitlines():
        fields = line.split(']')[-1].split()
        if len(fields) > 4 and fields[1] == 'PROGBITS':
            start, offset, length = (int(field, 16) for field in fields[2:5])
            if start <= address < start + length:
                with open(program, 'rb') as file:
                    file.seek(offset + address - start)
                    return file.read(size)
    sys.exit('%s: %s is in no section' % (program, name))


def bytecodes(program):
    """A letter each: V8 has the size of each alone, and behind the two prefixes."""
    sizes = content(program, 'Bytecodes14kBytecodeSizesE')
    nr, letters = len(sizes) // 3, ''
    for one, two, four in zip(sizes[:nr], sizes[nr:2 * nr], sizes[2 * nr:]):
        scaled = two - one
        if four != one + 3 * scaled or not 0 <= scaled < FIXED or not 1 + scaled <= one <= scaled + 4:
            sys.exit('%s: sizes of a bytecode are %d, %d and %d' % (program, one, two, four))
        letters += chr(ord('a') + FIXED * (one - 1 - scaled) + scaled)
    return letters


def operations(program):
    counts = content(program, 'TranslationOpcodeOperandCountENS0_17TranslationOpcodeEE6counts')
    digits = [str(count) for count in struct.unpack('<%dI' % (len(counts) // 4), counts)]
    if max(map(len, digits)) > 1:
        sys.exit('%s: an operation has more than nine operands' % program)
    return ''.join(digits)


def read(source, name):
    with open(os.path.join(source, name), encoding='utf-8') as file:
        return re.sub(r'"\s*"', '', file.read())  # texts that are continued


def digits_in_agent(source, version):
    """What the agent's sources have for a version: its row, or the macro in it, leads to a macro with the digits."""
    agent = read(source, 'preload/agent/interp/v8_lines.c').replace('\\\n', ' ')
    row = re.search(r'\{\.major = %s,\s*\.minor = %s,[^}]*\}' % version, agent)
    text = row.group(0) if row else ''
    if 'SINCE_13' in text:
        text = re.search(r'#define SINCE_13 (.*)', agent).group(1)
    macro = re.search(r'OPERATIONS\((\w+)\)', text)
    return re.search(r'#define %s "(\d+)"' % macro.group(1), agent).group(1) if macro else None


def main():
    program = sys.argv[1]
    version = subprocess.run([program, '-p', 'process.versions.v8'], capture_output=True, text=True, check=True).stdout
    major, minor = version.split('.')[:2]
    letters, digits = bytecodes(program), operations(program)
    if len(sys.argv) < 3:
        print('%s.%s' % (major, minor), letters, digits, sep='\n')
        return
    row = '{%s << 16 | %s, "%s"}' % (major, minor, letters)
    wrong = [] if row in re.sub(r'\s+', ' ', read(sys.argv[2], 'launcher/collect/v8_positions.c')) else ['bytecodes']
    if digits != digits_in_agent(sys.argv[2], (major, minor)):
        wrong.append('operations')
    if wrong:
        sys.exit('V8 %s.%s: the sources have other %s' % (major, minor, ' and '.join(wrong)))


main()
