# usage: ending.py; prints: done
# A thread runs C code without the interpreter's lock, below calls of Python, while the interpreter ends: its state and
# its frames are freed then, and their memory is filled with what is no address.
import ctypes
import hashlib
import os
import sys
import threading
import time
import types

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


class Last:
    def __del__(self, malloc=libc.malloc, memset=libc.memset, now=time.process_time, write=os.write):
        for size in [*range(200, 1400, 8)] * 8:
            memset(malloc(size), 0x41, size)
        end = now() + 0.3
        while now() < end:
            pass
        write(1, b"done\n")


def work(depth, starts):
    if depth:
        return work(depth - 1, starts)
    starts.set()
    return hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1 << 30)


module = types.ModuleType("last")
module.last = Last()
sys.modules["last"] = module
del module
starts = threading.Event()
threading.Thread(target=work, args=(5, starts), daemon=True).start()
starts.wait()
