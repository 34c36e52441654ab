// Children by fork() and spawn(), worker threads; all print the same line.
//
// usage: jobs.js [deep DEPTH SECONDS]      deep: works so many frames deep instead, SECONDS of CPU time
'use strict';
const { fork, execFileSync } = require('child_process');
const { Worker, isMainThread, parentPort } = require('worker_threads');

function inChild(ms) { return busy(ms); }
function inWorker(ms) { return busy(ms); }
function inMain(ms) { return busy(ms); }

function busy(ms) {
	const start = process.cpuUsage().user;
	let sum = 0;
	while (process.cpuUsage().user - start < ms * 1000)
		for (let i = 0; i < 100000; i++)
			sum = (sum * 31 + i) | 0;
	return 'worked';
}

function deep(n, seconds) { return n > 1 ? deep(n - 1, seconds) + 1 : busy(1000 * seconds).length; }

async function main() {
	console.log(inMain(200));
	const worker = new Worker(__filename);
	console.log(await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)));
	const child = fork(__filename, ['child']);
	console.log(await new Promise(resolve => child.on('message', resolve)));
	process.stdout.write(execFileSync(process.execPath, [__filename, 'print']));
}

if (!isMainThread)
	parentPort.postMessage(inWorker(200));
else if (process.argv[2] === 'deep')
	deep(Number(process.argv[3]), Number(process.argv[4]));
else if (process.argv[2] === 'child')
	process.send(inChild(200));
else if (process.argv[2] === 'print')
	console.log(inChild(100));
else
	main();
