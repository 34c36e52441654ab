// Waits in two functions, and works in two processes of node's cluster; prints: done
'use strict';
const { execFileSync } = require('child_process');
const cluster = require('cluster');

function waitsForTime() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100); }

function waitsForChild() { execFileSync('sleep', ['0.2']); }

function worksInCluster() {
	let sum = 0;
	for (let i = 0; i < 5e7; i++)
		sum = (sum * 31 + i) | 0;
	return sum;
}

if (cluster.isPrimary) {
	let ended = 0;

	waitsForTime();
	waitsForChild();
	cluster.on('exit', () => {
		if (++ended === 2)
			console.log('done');
	});
	cluster.fork();
	cluster.fork();
} else {
	worksInCluster();
	process.exit(0);
}
