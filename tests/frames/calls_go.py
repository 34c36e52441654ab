"""Judges the stacks of a profile of a program by Go, taken at any moment, by the calls in its code.

usage: calls_go.py PROGRAM PROFILE [outside]
prints: N stacks judged, N wrong, N without a root, and some of them
Wrong: no call is before a return address, or a direct call of another function. Without a root: the outermost function is
none that goroutines or threads begin with. Frames in other objects end what is judged of a stack, and so do those that a
signal interrupted. Exit status 1: less than 98 % of the stacks are right, or less than 98 % have a root. From outside a
process (then less than 95 %), what is on a goroutine's stack cannot be read while the thread is on another one: there the
function that leaves it may be missing, and stacks of C functions end.
"""
import collections
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
import pprof  # noqa: E402

ROOTS = ('runtime.goexit', 'runtime.mstart', 'runtime.mcall', 'runtime.rt0_go', '_start', 'start_thread', 'clone3', '__clone', '__clone3')
# Below these no call is: a signal came, or the runtime interrupted the function.
INTERRUPTED = ('__restore_rt', 'runtime.sigreturn', 'runtime.sigreturn__sigaction', 'runtime.sigpanic', 'runtime.asyncPreempt')
PREEMPTS = {'runtime.gopreempt_m', 'runtime.preemptPark'}
# What goes on by a jump: the function that it goes to is not the one that is called.
JUMPS = ('runtime.morestack', 'runtime.systemstack', 'runtime.mcall', 'runtime.sigpanic', 'runtime.reflectcall')

LEAVES = (' does not call runtime.systemstack', ' does not call runtime.morestack')
IN_C = ' < runtime.asmcgocall < | <'


class Program:
    def __init__(self, path):
        with open(path, 'rb') as f:
            self.data = f.read()
        shoff, = struct.unpack_from('<Q', self.data, 40)
        size, nr = struct.unpack_from('<HH', self.data, 58)
        phoff, = struct.unpack_from('<Q', self.data, 32)
        nr_phdr, = struct.unpack_from('<H', self.data, 56)
        self.segments = []
        for i in range(nr_phdr):
            kind, flags, offset, vaddr, _, filesz = struct.unpack_from('<IIQQQQ', self.data, phoff + 56 * i)
            if kind == 1 and flags & 1:
                self.segments.append((vaddr, filesz, offset))
        assert size == 64 and nr and shoff
        self.names = {}
        for line in subprocess.run(['nm', path], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL).stdout.splitlines():
            words = line.split(None, 2)
            if len(words) == 3 and words[1] in 'tT':
                self.names[self.place(int(words[0], 16))] = words[2]

    def place(self, address):
        """Where it is in the file."""
        for vaddr, filesz, offset in self.segments:
            if vaddr <= address < vaddr + filesz:
                return offset + address - vaddr
        return None

    def call(self, ra):
        """None: no call is before it; 0: one through a register or memory; else the place of what is called."""
        before = self.data[ra - 7:ra]
        if before[2] == 0xe8:
            return ra + struct.unpack('<i', before[3:])[0]
        for nr in (2, 3, 4, 6, 7):
            if before[7 - nr] == 0xff and before[8 - nr] & 0x38 == 0x10:
                return 0
        return None


def judge(program, frames):
    """'': right, else what is wrong. frames: (name, place in the file, in the program), innermost first."""
    for (callee, _, _), (caller, ra, inside) in zip(frames, frames[1:]):
        if caller in ROOTS or not inside or callee in INTERRUPTED:
            return ''
        target = program.call(ra + 1)
        if target is None:
            return 'no call in %s, below %s' % (caller, callee)
        called = program.names.get(target, callee).replace('.abi0', '')
        if called != callee and '.' in callee and not called.startswith(JUMPS):
            return '%s does not call %s' % (caller, callee)
    return ''


def main():
    program, name = Program(sys.argv[1]), os.path.basename(sys.argv[1])
    profile = pprof.Profile(sys.argv[2])
    judged, bad = 0, collections.Counter()
    for stack, addresses, objects, count in zip(profile.samples, profile.addresses, profile.objects, profile.counts):
        names = stack[1]
        if names[0].startswith('['):
            continue
        frames = []
        for function, address, (module, add) in zip(names, addresses, objects):
            if frames and frames[-1][1] == address + add:
                frames.pop()  # an inlined call
            frames.append((function, address + add, os.path.basename(module) == name))
        judged += count
        wrong = judge(program, frames)
        if wrong:
            bad['wrong: ' + wrong] += count
        # What preempts a goroutine leaves it to other threads.
        if names[-1] not in ROOTS and not (names[-1] == 'runtime.morestack' and PREEMPTS.intersection(names)):
            bad['without a root: ' + ' < '.join(names[-3:] + ['|'] + names[:3])] += count
    is_outside = sys.argv[3:] == ['outside']
    if is_outside:
        for text in [text for text in bad if text.endswith(LEAVES) or text.startswith('without a root') and IN_C in text]:
            del bad[text]
    kinds = [sum(n for text, n in bad.items() if text.startswith(kind)) for kind in ('wrong', 'without')]
    print('%d stacks judged, %d wrong, %d without a root' % (judged, *kinds))
    for text, n in bad.most_common(10):
        print('%6d %s' % (n, text))
    return 1 if max(kinds) > judged / (20 if is_outside else 50) or not judged else 0


sys.exit(main())
