"""A pool of Python processes: one prepares, two work on unequal parts, one adds up. UNIT is the length of a unit of work, in
us; FUNCTION is made a fifth faster: processes.py UNIT [FUNCTION]
"""
import multiprocessing
import sys

UNIT, FASTER = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ''
ROUNDS_US = 40


def rounds(units, name):
    return int(units * UNIT * ROUNDS_US * (0.8 if name == FASTER else 1))


def prepare():
    x = 1
    for _ in range(rounds(60, 'prepare')):
        x = x * 5 & 0xffff
    return x


def work_long(_):
    x = 1
    for _ in range(rounds(120, 'work_long')):
        x = x * 5 & 0xffff
    return x


def work_short(_):
    x = 1
    for _ in range(rounds(60, 'work_short')):
        x = x * 5 & 0xffff
    return x


def add_up():
    x = 1
    for _ in range(rounds(40, 'add_up')):
        x = x * 5 & 0xffff
    return x


def main():
    with multiprocessing.get_context('fork').Pool(2) as pool:
        for _ in range(2):
            x = prepare()
            results = [pool.apply_async(work, (x,)) for work in (work_long, work_short)]
            for result in results:
                result.get()
            add_up()
        pool.close()
        pool.join()


if __name__ == '__main__':
    main()
