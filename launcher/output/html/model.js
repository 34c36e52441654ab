// The data of the page: its tables, and what is computed from them for a choice of event, threads and time.
//
// A tree is arrays over nodes in the order that csink_calltree_finish gives: a node comes before all below it, and
// end[i] is the first node after them. Node 0 is the root, which has no frame (-1).

function treeFromDepths(depths, frames) {
	const n = depths.length + 1;
	const tree = {
		n,
		frame: new Int32Array(n).fill(-1),
		parent: new Int32Array(n),
		depth: new Int32Array(n),
		end: new Int32Array(n),
	};
	const open = [0];
	for (let i = 1; i < n; i++) {
		const depth = depths[i - 1];
		while (open.length > depth)
			tree.end[open.pop()] = i;
		tree.frame[i] = frames[i - 1];
		tree.depth[i] = depth;
		tree.parent[i] = open[open.length - 1];
		open.push(i);
	}
	while (open.length)
		tree.end[open.pop()] = n;
	return tree;
}

function readModel(text) {
	const data = JSON.parse(text);
	const moments = data.moments;
	let now = 0;
	const times = Float64Array.from(moments.time_us, (delta) => (now += delta));
	const rows = (from) => ({
		group: Int32Array.from(from.group),
		node: Int32Array.from(from.node),
		values: data.types.map((_, t) => Float64Array.from(from.values[t])),
	});
	return {
		title: data.title,
		sides: data.sides,
		isDiff: data.sides.length > 1,
		types: data.types,
		type: data.type,
		frames: data.frames,
		nrFrames: data.frames.name.length,
		texts: data.texts,
		tree: treeFromDepths(data.nodes.depth, data.nodes.frame),
		groups: data.groups,
		samples: rows(data.samples),
		moments: rows(moments),
		times,
		parallelism: moments.parallelism ? Float64Array.from(moments.parallelism, (p) => p / 100) : null,
		lastTime: times.length ? times[times.length - 1] : 0,
		moduleOf: (frame) => data.texts[data.frames.module[frame]],
		fileOf: (frame) => data.texts[data.frames.file[frame]],
		isPseudo: (frame) => (data.frames.flags[frame] & 1) !== 0,
		isInlined: (frame) => (data.frames.flags[frame] & 2) !== 0,
		isInterpreted: (frame) => (data.frames.flags[frame] & 4) !== 0,
		languageOf: (frame) => data.texts[data.frames.language[frame]],
		hasLanguages: data.frames.language.some((language) => language),
	};
}

// Add up what is chosen. choice: {type, groups: null or Uint8Array, span: null or [from, to] in us}.
// Returns {self, total} of each node, each a list with one array a side.
function addUp(model, choice) {
	const n = model.tree.n;
	const sides = model.sides.map(() => new Float64Array(n));
	const scale = model.sides.map((side) => 1 / side.runs);
	const add = (rows, from, to) => {
		const values = rows.values[choice.type];
		for (let i = from; i < to; i++) {
			const group = rows.group[i];
			if (choice.groups && !choice.groups[group])
				continue;
			const side = model.groups[group].side;
			sides[side][rows.node[i]] += values[i] * scale[side];
		}
	};
	if (!choice.span)
		add(model.samples, 0, model.samples.node.length);
	const from = choice.span ? lowerBound(model.times, choice.span[0]) : 0;
	const to = choice.span ? lowerBound(model.times, choice.span[1]) : model.times.length;
	add(model.moments, from, to);
	const totals = sides.map((self) => sumUp(model.tree, self));
	return {self: sides, total: totals};
}

function lowerBound(sorted, value) {
	let low = 0;
	let high = sorted.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Below a node everything is numbered higher: one pass from the end adds each to its caller.
function sumUp(tree, self) {
	const total = Float64Array.from(self);
	for (let i = tree.n - 1; i > 0; i--)
		total[tree.parent[i]] += total[i];
	return total;
}

// Self and total of each function; a recursive one counts once a stack.
function addUpFunctions(model, sums) {
	const tree = model.tree;
	const result = sums.self.map(() => ({
		self: new Float64Array(model.nrFrames),
		total: new Float64Array(model.nrFrames),
	}));
	const insideUntil = new Int32Array(model.nrFrames);
	for (let i = 1; i < tree.n; i++) {
		const frame = tree.frame[i];
		const isOutermost = i >= insideUntil[frame];
		if (isOutermost)
			insideUntil[frame] = tree.end[i];
		for (let s = 0; s < result.length; s++) {
			result[s].self[frame] += sums.self[s][i];
			if (isOutermost)
				result[s].total[frame] += sums.total[s][i];
		}
	}
	return result;
}

// Merges paths of frames into a tree; finish() puts it in order.
class TreeBuilder {
	constructor(rootFrame, nrFrames, nrSides) {
		this.width = nrFrames;
		this.frame = [rootFrame];
		this.parent = [0];
		this.children = [[]];
		this.self = Array.from({length: nrSides}, () => [0]);
		this.known = new Map();
	}

	child(parent, frame) {
		const key = parent * this.width + frame;
		let node = this.known.get(key);
		if (node === undefined) {
			node = this.frame.length;
			this.known.set(key, node);
			this.frame.push(frame);
			this.parent.push(parent);
			this.children.push([]);
			this.children[parent].push(node);
			for (const self of this.self)
				self.push(0);
		}
		return node;
	}

	finish(names) {
		const n = this.frame.length;
		const depths = [];
		const frames = [];
		const order = new Int32Array(n);
		const pending = [[0, 0]];
		while (pending.length) {
			const [node, depth] = pending.pop();
			order[node] = depths.length;
			depths.push(depth);
			frames.push(this.frame[node]);
			const children = this.children[node];
			children.sort((a, b) => (names[this.frame[a]] < names[this.frame[b]] ? 1 : -1));
			for (const child of children)
				pending.push([child, depth + 1]);
		}
		const tree = treeFromDepths(depths.slice(1), frames.slice(1));
		tree.frame[0] = this.frame[0];
		const self = this.self.map((values) => {
			const sorted = new Float64Array(n);
			values.forEach((value, node) => (sorted[order[node]] = value));
			return sorted;
		});
		return {tree, sums: {self, total: self.map((values) => sumUp(tree, values))}};
	}
}

// What a function calls, and who calls it: of its outermost calls, which hold the recursive ones.
function buildSandwich(model, sums, frame) {
	const tree = model.tree;
	const callees = new TreeBuilder(frame, model.nrFrames, sums.self.length);
	const callers = new TreeBuilder(frame, model.nrFrames, sums.self.length);
	const copies = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++) {
		if (tree.frame[i] !== frame)
			continue;
		if (sums.total.some((total) => total[i] !== 0)) {
			copies[i] = 0;
			for (let k = i; k < tree.end[i]; k++) {
				if (sums.total.every((total) => total[k] === 0)) {
					k = tree.end[k] - 1;
					continue;
				}
				if (k > i)
					copies[k] = callees.child(copies[tree.parent[k]], tree.frame[k]);
				sums.self.forEach((self, s) => (callees.self[s][copies[k]] += self[k]));
			}
			let at = 0;
			for (let k = tree.parent[i]; k > 0; k = tree.parent[k])
				at = callers.child(at, tree.frame[k]);
			sums.total.forEach((total, s) => (callers.self[s][at] += total[i]));
		}
		i = tree.end[i] - 1;
	}
	return {callers: callers.finish(model.frames.name), callees: callees.finish(model.frames.name)};
}

// A search: words that are all in a function's name or module, or /a regular expression/. null: nothing is looked for.
function compileSearch(model, text) {
	const words = text.trim();
	if (!words)
		return null;
	let test;
	const asPattern = /^\/(.+)\/?$/.exec(words);
	if (asPattern) {
		try {
			const pattern = new RegExp(asPattern[1].replace(/\/$/, ''), 'i');
			test = (name) => pattern.test(name);
		} catch {
			return {matches: new Uint8Array(model.nrFrames), error: 'not a regular expression'};
		}
	} else {
		const parts = words.toLowerCase().split(/\s+/);
		test = (name) => parts.every((part) => name.toLowerCase().includes(part));
	}
	const matches = new Uint8Array(model.nrFrames);
	for (let i = 0; i < model.nrFrames; i++)
		matches[i] = test(`${model.frames.name[i]} ${baseName(model.moduleOf(i))}`) ? 1 : 0;
	return {matches, error: ''};
}

// How much of a tree is at or below frames that match.
function matchedWeight(tree, total, matches) {
	let sum = 0;
	for (let i = 1; i < tree.n; i++) {
		if (!matches[tree.frame[i]])
			continue;
		sum += total[i];
		i = tree.end[i] - 1;
	}
	return sum;
}
