"""python_work.py SECONDS: seventeen kinds of work in turn, for so many seconds of CPU time; what recordings are measured on."""
import ast, base64, bz2, collections, csv, decimal, fractions, hashlib, heapq, io, itertools, json, pickle, random, re
import sqlite3, struct, sys, textwrap, time, zlib
import xml.etree.ElementTree as tree

random.seed(1)
TEXT = " ".join("%s%d" % (random.choice(["alpha", "beta", "gamma"]), n) for n in range(2000))
ROWS = [{"id": n, "name": "item %d" % n, "price": n * 1.25, "tags": ["a", "b", str(n)]} for n in range(300)]


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def recursion():
    return fib(17)


def documents():
    return json.loads(json.dumps(ROWS))


def patterns():
    return len(re.findall(r"(\w+?)(\d+)\b", TEXT)) + len(re.sub(r"[aeiou](\w)", r"\1", TEXT))


def compression():
    return zlib.decompress(zlib.compress(TEXT.encode() * 3)) and bz2.compress(TEXT.encode())


def sorting():
    return sorted((random.random() for _ in range(3000)), key=lambda x: -x)


def decimals():
    with decimal.localcontext() as context:
        context.prec = 60
        return sum(decimal.Decimal(n).sqrt() / 7 for n in range(1, 200))


def exceptions():
    caught = 0
    for n in range(1500):
        try:
            [][n]
        except IndexError:
            caught += 1
    return caught


def classes():
    point = collections.namedtuple("point", "x y z")
    points = [point(n, n + 1, n + 2) for n in range(1500)]
    return sum(p.x * p.y + p.z for p in points)


def hashes():
    return [hashlib.sha256(TEXT.encode()).hexdigest(), hashlib.md5(TEXT.encode()).hexdigest()] * 5


def pickles():
    return pickle.loads(pickle.dumps(ROWS))


def tables():
    out = io.StringIO()
    writer = csv.DictWriter(out, ["id", "name", "price", "tags"])
    writer.writerows(ROWS)
    out.seek(0)
    return list(csv.DictReader(out))


def databases():
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a, b)")
    db.executemany("insert into t values (?, ?)", ((n, n * 7 % 100) for n in range(1500)))
    return db.execute("select b, sum(a), group_concat(a) from t group by b order by 2").fetchall()


def markup():
    root = tree.Element("root")
    for row in ROWS:
        tree.SubElement(root, "item", name=row["name"]).text = str(row["price"])
    return tree.fromstring(tree.tostring(root)).findall("./item")


def syntax():
    source = "\n".join("def f%d(a, b=%d):\n    return [a * x + b for x in range(a) if x %% 3]" % (n, n) for n in range(30))
    return compile(ast.parse(source), "made", "exec")


def heaps():
    heap = []
    for n in range(2000):
        heapq.heappush(heap, (n * 7919 % 2003, n))
    return [heapq.heappop(heap) for _ in range(2000)]


def numbers():
    return sum((fractions.Fraction(1, n) for n in range(1, 120)), fractions.Fraction(0)) + sum(
        a * b % 7 for a, b in itertools.product(range(60), range(60)))


def texts():
    wrapped = textwrap.wrap(TEXT[:3000], 70)
    packed = b"".join(struct.pack("<Id", n, n / 3) for n in range(1000))
    return base64.b64encode(packed), "".join(reversed("\n".join(wrapped))).title().split()


KINDS = [recursion, documents, patterns, compression, sorting, decimals, exceptions, classes, hashes, pickles, tables,
         databases, markup, syntax, heaps, numbers, texts]
assert len(KINDS) == 17
rounds = 0
while time.process_time() < float(sys.argv[1]):
    for kind in KINDS:
        kind()
    rounds += 1
print(rounds, "rounds")
