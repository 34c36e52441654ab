"""What the demo profiles: sums up a web server's log of 80,000 requests, the same on each run.

usage: demo-log.py FOLDED: writes a line for each client, method and page, in the format of folded stacks
"""
import sys

METHODS = ("GET", "GET", "GET", "PUT", "POST")
KNOWN = ["index", "contact", "download", "documentation", "impressum", "license", "changelog", "sitemap"]


class Random:
    def __init__(self, seed):
        self.seed = seed

    def draw(self, below):
        self.seed = (self.seed * 1103515245 + 12345) % 2147483648
        return self.seed // 65536 % below


def make_log(nr):
    draw = Random(7).draw
    for i in range(nr):
        page = f"page/{draw(5000)}"
        if not i % 8:
            page = KNOWN[draw(8)]
            at = draw(len(page))
            page = page[:at] + page[at + draw(2) :]
        yield f"10.0.{draw(4)}.{draw(250)} {METHODS[draw(5)]} {page} {draw(100000)}"


def distance(word, other):
    """How many letters have to be added, taken away or changed."""
    costs = list(range(len(other) + 1))
    for letter in word:
        before = costs[0]
        costs[0] = before + 1
        for i, wanted in enumerate(other, 1):
            cost = before if letter == wanted else before + 1
            before = costs[i]
            if before < cost:
                cost = before + 1
            if costs[i - 1] < cost:
                cost = costs[i - 1] + 1
            costs[i] = cost
    return costs[-1]


def nearest(page):
    """The page that a client meant."""
    return min(KNOWN, key=lambda known: distance(page, known))


def add_up(log):
    clients, folded = {}, {}
    for line in log:
        client, method, page, us = line.split()
        if not page.startswith("page/"):
            page = nearest(page)
        stack = f"{client};{method};/{page}"
        folded[stack] = folded.get(stack, 0) + int(us)
        clients[client] = clients.get(client, 0) + int(us)
    return clients, folded


def main():
    clients, folded = add_up(make_log(80000))
    for client in sorted(clients, key=clients.get)[-3:]:
        print(f"{clients[client] / 1e6:.1f} s for {client}")
    with open(sys.argv[1], "w", encoding="ascii") as file:
        for stack in sorted(folded):
            print(stack, folded[stack], file=file)


main()
