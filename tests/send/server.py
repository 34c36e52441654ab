#!/usr/bin/python3 -B
"""A server that fails on purpose: it starts on loopback, runs a command, answers its requests, and ends with the command.

usage: server.py [--tls CERT KEY] [--closed | --opens FILE] ANSWER... -- COMMAND [ARGUMENT]...

In the command's arguments and environment, @ADDRESS@ is the server's HOST:PORT. --closed: nothing listens there; --opens: not
before there is that FILE. Each request gets
the next ANSWER; one for which none is left gets 599. An ANSWER is a status, with these behind it, each after a colon:
  retry=SECONDS  Retry-After           date=SECONDS  Retry-After, as a date       to=URL  Location
  say=TEXT       the body              bytes=HEX     the body                     echo    the body: the request's headers
  cut            half of the body, then the end of the connection               phrase=TEXT    behind the status
  keep           the connection stays open for another request                  file=NAME      the body
  then=FILE      the answer comes once there is that file; the request is in got/ before
  all            this answer is for all requests from now on
or a word: "gone" closes the connection without an answer, "half" does so in the middle of the request's body, "silent" never answers,
"shut" closes it before TLS or a request is read.
Of request N, files got/N.line, N.headers, N.body and N.peer (the connection's port) are left; got/N.leaks has what of the file secrets stands in a command line.
Exit status: the command's.
"""
import email.utils
import os
import socket
import ssl
import subprocess
import sys
import threading
import time


def read_request(stream, stop_in_body):
    line = stream.readline().decode('latin-1').rstrip('\r\n')
    headers = {}
    if not line:
        return None
    text = ''
    while True:
        header = stream.readline().decode('latin-1')
        if header in ('\r\n', '\n', ''):
            break
        text += header.replace('\r', '')
        name, _, value = header.partition(':')
        headers[name.lower()] = value.strip()
    length = int(headers.get('content-length', 0))
    return line, text, stream.read(length // 2 if stop_in_body else length)


def leaks():
    """Secrets that stand in the command line of a process of this test, which runs in its own directory."""
    if not os.path.exists('secrets'):
        return ''
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.readlink('/proc/%s/cwd' % pid) != os.getcwd():
                continue
            line = open('/proc/%s/cmdline' % pid, 'rb').read()
        except OSError:
            continue
        found += [pid + ' ' + line.replace(b'\0', b' ').decode('latin-1') for secret in open('secrets', 'rb').read().split() if secret in line]
    return '\n'.join(found)


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def answer(connection, what, headers):
    status, *more = what.split(':')
    out, body, cut, keep, phrase = '', b'', False, 'keep' in more, None
    for one in more:
        name, _, value = one.partition('=')
        if name == 'retry':
            out += 'Retry-After: %s\r\n' % value
        elif name == 'date':
            out += 'Retry-After: %s\r\n' % email.utils.formatdate(time.time() + int(value), usegmt=True)
        elif name == 'to':
            out += 'Location: %s\r\n' % value.replace('%3A', ':')
        elif name == 'bytes':
            body = bytes.fromhex(value)
        elif name == 'file':
            body = open(value, 'rb').read()
        elif name == 'phrase':
            phrase = value
        elif name == 'then':
            wait_for(value)
        elif name not in ('keep', 'all'):
            body = headers.encode() if name == 'echo' else b'x' * 100 if name == 'cut' else value.encode()
        cut |= name == 'cut'
    phrases = {'200': 'OK', '422': 'Unprocessable Entity', '503': 'Service Unavailable', '401': 'Unauthorized'}
    phrase = phrase or phrases.get(status, 'Other')
    out += '' if keep else 'Connection: close\r\n'
    head = 'HTTP/1.1 %s %s\r\n%sContent-Length: %d\r\n\r\n' % (status, phrase, out, len(body))
    connection.sendall(head.encode() + (body[:len(body) // 2] if cut else body))


class Server:
    def __init__(self, answers, tls, is_closed, opens):
        self.answers, self.nr, self.context = answers, 0, None
        self.socket = socket.socket()
        self.socket.bind(('127.0.0.1', 0))
        self.address = '127.0.0.1:%d' % self.socket.getsockname()[1]
        self.ended, self.lock = threading.Event(), threading.Lock()
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        if not is_closed:
            if not opens:
                self.socket.listen(16)
            threading.Thread(target=self.serve, args=(opens,), daemon=True).start()

    def serve(self, opens):
        if opens:
            wait_for(opens)
            self.socket.listen(16)
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, connection):
        try:
            if self.answers[:1] == ['shut']:
                self.answers = self.answers[1:]
            else:
                if self.context:
                    connection = self.context.wrap_socket(connection, server_side=True)
                with connection.makefile('rb') as stream:
                    while self.answer_next(connection, stream):
                        pass
        except OSError:
            pass
        connection.close()

    def answer_next(self, connection, stream):
        """Whether the connection stays open."""
        what = self.answers[0] if self.answers else '599'
        request = read_request(stream, what == 'half')
        if not request:
            return False
        with self.lock:
            what = self.answers[0] if self.answers else '599'
            self.nr += 1
            self.keep(*request, connection.getpeername())
            if 'all' not in what.split(':'):
                self.answers = self.answers[1:]
        if what == 'silent':
            self.ended.wait()
        elif what not in ('gone', 'half'):
            answer(connection, what, request[1])
        return 'keep' in what.split(':')

    def keep(self, line, headers, body, peer):
        for name, content in (('headers', headers), ('leaks', leaks()), ('peer', '%s:%d\n' % peer)):
            with open('got/%d.%s' % (self.nr, name), 'w', encoding='utf-8') as file:
                file.write(content)
        with open('got/%d.body' % self.nr, 'wb') as file:
            file.write(body)
        with open('got/%d.line' % self.nr, 'w', encoding='utf-8') as file:
            file.write(line + '\n')


def main():
    args, tls, is_closed, opens = sys.argv[1:], None, False, None
    if args[0] == '--tls':
        tls, args = args[1:3], args[3:]
    if args[0] == '--closed':
        is_closed, args = True, args[1:]
    if args[0] == '--opens':
        opens, args = args[1], args[2:]
    at = args.index('--')
    subprocess.run(['rm', '-rf', 'got'], check=True)
    os.mkdir('got')
    server = Server(args[:at], tls, is_closed, opens)
    environment = {name: value.replace('@ADDRESS@', server.address) for name, value in os.environ.items()}
    command = [word.replace('@ADDRESS@', server.address) for word in args[at + 1:]]
    status = subprocess.run(command, env=environment).returncode
    server.ended.set()
    sys.exit(status)


main()
