// Work for node: code that gets compiled and thrown away, threads, children, timers, files, a server.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { spawn, spawnSync, execFileSync } = require('child_process');
const crypto = require('crypto');
const http = require('http');
const zlib = require('zlib');

function numbers(n) {
  let sum = 0;
  for (let i = 1; i < n; i++) sum = (sum * 31 + (i % 7 ? i : i / 3)) % 1000003;
  return sum;
}

// Types that change make the optimised code unusable: it is thrown away and made anew.
function shapes(n) {
  const kinds = [i => ({ a: i }), i => ({ b: '' + i, a: i }), i => ({ a: i + 0.5 }), i => [i], i => ({ a: [i] })];
  let length = 0;
  for (let i = 0; i < n; i++) length += JSON.stringify(kinds[(i / 1000 | 0) % kinds.length](i)).length;
  return length;
}

// Functions that are made and thrown away, on deep stacks, among collections and moved objects.
function evaluated(n, depth) {
  if (depth) return 1 + evaluated(n, depth - 1);
  let sum = 0;
  for (let i = 0; i < n; i++) {
    const f = eval(`(function same(x) { let s = ${i}; for (let k = 0; k < 50; k++) s = (s * 31 + x) % 1009; return s; })`);
    sum = (sum + [3, 1, 2].map(f).sort((a, b) => a - b)[i % 3] + 'abc'.replace(/[ab]/g, c => c + i).length) % 1000003;
  }
  return sum;
}

async function main() {
  console.log('numbers', numbers(3e6).toFixed(3), 'shapes', shapes(200000), 'evaluated', evaluated(3000, 100));
  const workers = [1, 2, 3].map(n => new Promise((resolve, reject) => {
    const w = new Worker(__filename, { workerData: n });
    w.on('message', resolve);
    w.on('error', reject);
  }));
  console.log('workers', await Promise.all(workers));
  console.log('child', execFileSync('sh', ['-c', 'echo from a shell']).toString().trim());
  console.log('status', spawnSync('sh', ['-c', 'exit 5']).status, spawnSync('sh', ['-c', 'kill -9 $$']).signal);
  console.log('missing', spawnSync('/nowhere/nothing').error.code);
  const node = spawn(process.execPath, ['-e', 'console.log(process.argv0.length > 0); process.exit(9)']);
  console.log('node', await new Promise(r => node.on('close', code => r(code))));
  const big = Buffer.alloc(3e6, 'some text that can be packed ');
  const packed = await Promise.all([1, 6, 9].map(level => new Promise((r, e) =>
    zlib.deflate(big, { level }, (err, out) => err ? e(err) : r(out)))));
  console.log('packed', packed.map(p => crypto.createHash('sha1').update(p).digest('hex').slice(0, 8)));
  const keys = await Promise.all([1, 2, 3, 4].map(n => new Promise((r, e) =>
    crypto.pbkdf2('secret', 'salt' + n, 20000, 16, 'sha256', (err, key) => err ? e(err) : r(key.toString('hex'))))));
  console.log('keys', keys);
  const server = http.createServer((q, a) => a.end('answer to ' + q.url)).listen(0, '127.0.0.1');
  await new Promise(r => server.on('listening', r));
  const texts = [];
  for (let i = 0; i < 200; i++)
    texts.push(new Promise((r, e) => http.get({ port: server.address().port, path: '/' + i, agent: false }, a => {
      let text = '';
      a.on('data', d => text += d).on('end', () => r(text));
    }).on('error', e)));
  console.log('answers', new Set(await Promise.all(texts)).size);
  server.close();
  process.once('SIGUSR2', () => { console.log('signal'); process.exit(6); });
  process.kill(process.pid, 'SIGUSR2');
  setTimeout(() => {}, 10000);
}

if (isMainThread) main();
else parentPort.postMessage(numbers(1e6 * workerData).toFixed(3) + ' ' + shapes(30000) + ' ' + evaluated(1000, 50));
