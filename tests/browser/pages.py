# What the tests of the pages share: where things are, a directory for files that ends with the test, and what each page must keep.
import json
import os
import tempfile

from cdp import Tap

SRC = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('BUILD', SRC + '/build')
SHOTS = BUILD + '/browser'
COUNTERSINK = BUILD + '/bin/countersink'
tap = Tap()
directory = tempfile.TemporaryDirectory(prefix='countersink-page.')
os.makedirs(SHOTS, exist_ok=True)
for name in [name for name in os.environ if name.startswith('COUNTERSINK_')]:
    del os.environ[name]


def path(name):
    return os.path.join(directory.name, name)


def text(page, selector):
    return page.run('document.querySelector(%s).textContent' % json.dumps(selector))


def no_complaints(page, name):
    tap.same([e for e in page.events('Runtime.exceptionThrown', 'Log.entryAdded')], [], name + ': no error, no violation of the content security policy')
    requests = [e['request']['url'] for e in page.events('Network.requestWillBeSent')]
    tap.same([url for url in requests if not url.startswith('file://')], [], name + ': the page makes no request to the network')
    tap.same(len(requests), 1, name + ': the page is one file')
