#!/usr/bin/python3 -B
"""Check the signature of a request that server.py has kept, by AWS's Signature Version 4.

usage: sigv4.py GOT_PREFIX SECRET REGION      print "valid", or what is wrong
"""
import hashlib
import hmac
import re
import sys


def verdict(line, headers, body, secret, region):
    method, target, _ = line.split()
    found = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})',
                         headers.get('authorization', ''))
    if not found:
        return 'no signature: ' + headers.get('authorization', 'none')
    _, date, signed_region, signed, signature = found.groups()
    names = signed.split(';')
    if signed_region != region or names != sorted(names):
        return 'another region, or names out of order'
    if not {'host', 'x-amz-date', 'x-amz-content-sha256'} <= set(names):
        return 'a header is not signed that must be: ' + signed
    if 'x-amz-security-token' in headers and 'x-amz-security-token' not in names:
        return 'the token is not signed'
    digest = headers['x-amz-content-sha256']
    if digest not in ('UNSIGNED-PAYLOAD', hashlib.sha256(body).hexdigest()):
        return 'another body: ' + digest
    path, _, query = target.partition('?')
    canonical = '\n'.join([method, path, query] + ['%s:%s' % (name, headers[name]) for name in names] + ['', signed, digest])
    scope = '%s/%s/s3/aws4_request' % (date, region)
    text = '\n'.join(['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ('AWS4' + secret).encode()
    for part in (date, region, 's3', 'aws4_request'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return 'valid' if hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == signature else 'another signature'


def main():
    prefix, secret, region = sys.argv[1:]
    headers = {}
    for header in open(prefix + '.headers', encoding='utf-8'):
        name, _, value = header.partition(':')
        headers[name.lower()] = value.strip()
    print(verdict(open(prefix + '.line', encoding='utf-8').read(), headers, open(prefix + '.body', 'rb').read(), secret, region))


main()
