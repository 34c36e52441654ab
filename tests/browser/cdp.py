# A browser without a screen, driven over the DevTools protocol through two pipes, and TAP. Used by the *.t beside it.
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

DEADLINE = 120  # seconds, for anything: a machine under load is slow, and a hang is a failure


class Tap:
    def __init__(self):
        self.nr = self.failed = 0

    def ok(self, passed, name, why=''):
        self.nr += 1
        print('%sok %d - %s' % ('' if passed else 'not ', self.nr, name), flush=True)
        if not passed:
            self.failed += 1
            for line in str(why).splitlines():
                print('#   ' + line, file=sys.stderr)
        return passed

    def same(self, got, want, name):
        return self.ok(got == want, name, 'got:  %r\nwant: %r' % (got, want))

    def near(self, got, want, name, tolerance=1e-6):
        return self.ok(abs(got - want) <= tolerance * max(abs(want), 1e-12), name, 'got:  %r\nwant: %r' % (got, want))

    def has(self, text, part, name):
        return self.ok(part in text, name, '%r is not in: %s' % (part, text))

    def note(self, text):
        print('# ' + text, flush=True)

    def done(self):
        print('1..%d' % self.nr)
        sys.exit(self.failed != 0)


class Browser:
    def __init__(self):
        program = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'chrome-headless-shell', 'google-chrome'))), None)
        if not program:
            raise SystemExit('no chromium: scripts/install-deps export')
        self.directory = tempfile.mkdtemp(prefix='countersink-browser.')
        ours, theirs = os.pipe(), os.pipe()
        words = [program, '--headless', '--disable-gpu', '--hide-scrollbars', '--no-first-run', '--disable-extensions',
                 '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-sandbox',
                 '--disable-dev-shm-usage', '--user-data-dir=' + self.directory, '--remote-debugging-pipe', 'about:blank']
        # The browser reads commands from descriptor 3 and answers on 4, whatever numbers the pipes have here.
        shell = 'exec "$@" 3<&%d 4>&%d' % (ours[0], theirs[1])
        self.log = open(os.path.join(self.directory, 'log'), 'w')
        self.process = subprocess.Popen(['bash', '-c', shell, 'bash'] + words, stdout=self.log, stderr=self.log,
                                        pass_fds=(ours[0], theirs[1]), start_new_session=True)
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.from_ = ours[1], theirs[0]
        self.buffer = b''
        self.last = 0
        self.answers = {}
        self.events = []

    def close(self):
        try:
            self.send('Browser.close')
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def read(self, timeout):
        ready, _, _ = select.select([self.from_], [], [], timeout)
        if not ready:
            return
        part = os.read(self.from_, 1 << 20)
        if not part:
            self.log.flush()
            raise RuntimeError('the browser is gone: ' + open(self.log.name).read()[-2000:])
        *messages, self.buffer = (self.buffer + part).split(b'\0')
        for message in map(json.loads, messages):
            if 'id' in message:
                self.answers[message['id']] = message
            else:
                self.events.append(message)

    def send(self, method, session=None, **params):
        self.last += 1
        message = {'id': self.last, 'method': method, 'params': params}
        if session:
            message['sessionId'] = session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + DEADLINE
        while self.last not in self.answers:
            self.read(1)
            if time.monotonic() > until:
                raise RuntimeError(method + ' was not answered')
        answer = self.answers.pop(self.last)
        if 'error' in answer:
            raise RuntimeError('%s: %s' % (method, answer['error']))
        return answer['result']


class Page:
    def __init__(self, browser, width=1280, height=800):
        self.browser = browser
        target = browser.send('Target.createTarget', url='about:blank')['targetId']
        self.target = target
        self.session = browser.send('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.send(domain + '.enable')
        self.size(width, height)

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def size(self, width, height, ratio=1):
        self.send('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=ratio, mobile=False)

    def events(self, *methods):
        return [e['params'] for e in self.browser.events if e.get('sessionId') == self.session and e['method'] in methods]

    def open(self, url, ready):
        self.browser.events = [e for e in self.browser.events if e.get('sessionId') != self.session]
        self.send('Page.navigate', url=url)
        self.wait(ready)

    def run(self, script):
        result = self.send('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError('%s\n%s' % (script, json.dumps(result['exceptionDetails'])[:2000]))
        return result['result'].get('value')

    def wait(self, script):
        until = time.monotonic() + DEADLINE
        while True:
            try:
                if self.run(script):
                    return
            except RuntimeError:
                pass
            if time.monotonic() > until:
                raise RuntimeError('never came true: ' + script)
            time.sleep(0.02)

    def settle(self):
        """Until what was asked for is drawn: two frames, for a change may wait for the next one."""
        self.run('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')

    def mouse(self, kind, x, y, buttons=0, clicks=1):
        self.send('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left' if kind != 'mouseMoved' or buttons else 'none',
                  buttons=buttons, clickCount=clicks)

    def click(self, x, y, clicks=1):
        self.mouse('mouseMoved', x, y)
        for nr in range(1, clicks + 1):
            self.mouse('mousePressed', x, y, 1, nr)
            self.mouse('mouseReleased', x, y, 0, nr)
        self.settle()

    def click_on(self, selector):
        box = self.run('(() => { const b = document.querySelector(%s).getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()'
                       % json.dumps(selector))
        self.click(*box)

    def drag(self, x1, y1, x2, y2):
        self.mouse('mouseMoved', x1, y1)
        self.mouse('mousePressed', x1, y1, 1)
        for step in range(1, 6):
            self.mouse('mouseMoved', x1 + (x2 - x1) * step / 5, y1 + (y2 - y1) * step / 5, 1)
        self.mouse('mouseReleased', x2, y2, 0)
        self.settle()

    CODES = {'Enter': 13, 'Escape': 27, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40, 'Tab': 9, 'Backspace': 8,
             'Home': 36, 'End': 35}

    def key(self, key, shift=False):
        text = key if len(key) == 1 else '\r' if key == 'Enter' else ''
        code = self.CODES.get(key) or ord(key.upper())
        params = dict(key=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0)
        self.send('Input.dispatchKeyEvent', type='keyDown' if text else 'rawKeyDown', text=text, **params)
        self.send('Input.dispatchKeyEvent', type='keyUp', **params)
        self.settle()

    def type(self, text):
        self.send('Input.insertText', text=text)
        self.settle()

    def scheme(self, scheme, media=''):
        self.send('Emulation.setEmulatedMedia', media=media, features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        self.settle()

    def shot(self, path):
        self.settle()
        data = self.send('Page.captureScreenshot', format='png')['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))
