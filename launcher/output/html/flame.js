// A flame graph (callers below) or an icicle (callers above) on a canvas. Only what is at least half a pixel wide is drawn,
// and only the rows in sight: its cost is that of the picture, not of the tree.

const ROW = 20;
const PRINTED = 45; // rows on a page of paper
const FONT = '12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';

class Flame {
	// look: {label(frame), color(frame, node), mark(frame, node), describe(node), colors, isPseudo, isInlined}
	// on: {hover(node), zoom(node), pick(frame), focus(node)}
	constructor(container, look, on) {
		this.container = container;
		this.sizer = container.querySelector('.flame-size');
		this.canvas = container.querySelector('canvas');
		this.look = look;
		this.on = on;
		this.isUp = false;
		this.byWeight = true;
		this.root = 0;
		this.focused = -1;
		this.hovered = -1;
		this.matches = null;
		this.rows = [];
		this.listen();
		new ResizeObserver(() => this.draw()).observe(container);
	}

	listen() {
		const at = (event) => {
			const box = this.canvas.getBoundingClientRect();
			return this.hit(event.clientX - box.left, event.clientY - box.top);
		};
		this.container.addEventListener('scroll', () => this.draw());
		this.canvas.addEventListener('pointermove', (event) => this.hover(at(event)));
		this.canvas.addEventListener('pointerleave', () => this.hover(-1));
		this.canvas.addEventListener('click', (event) => {
			const node = at(event);
			if (node < 0)
				return;
			this.focused = node;
			this.zoom(node);
		});
		const pick = (event) => {
			const node = at(event);
			if (node <= 0)
				return;
			event.preventDefault();
			this.on.pick(this.tree.frame[node]);
		};
		this.canvas.addEventListener('dblclick', pick);
		this.canvas.addEventListener('contextmenu', pick);
		this.canvas.addEventListener('keydown', (event) => this.key(event));
		this.canvas.addEventListener('focus', () => {
			if (this.focused < 0)
				this.focused = this.root;
			this.draw();
		});
		this.canvas.addEventListener('blur', () => this.draw());
	}

	// weights: of each node, all below it included.
	setTree(tree, weights, keepZoom) {
		this.tree = tree;
		this.weights = weights;
		this.place();
		if (!keepZoom || this.root >= tree.n || !weights[this.root]) {
			this.root = 0;
			this.focused = -1;
		}
		this.hovered = -1;
		this.draw();
		if (!keepZoom)
			this.toRoot();
	}

	setUp(isUp) {
		this.isUp = isUp;
		this.draw();
		this.toRoot();
	}

	setOrder(byWeight) {
		this.byWeight = byWeight;
		if (!this.tree)
			return;
		this.place();
		this.draw();
	}

	toRoot() {
		this.container.scrollTop = this.isUp ? this.container.scrollHeight : 0;
		this.draw();
	}

	// Where each node begins, in units of weight. Brothers stand by name as they come, or the heaviest first.
	place() {
		const {tree, weights} = this;
		const start = this.start = new Float64Array(tree.n);
		const next = new Float64Array(tree.n);
		if (!this.byWeight) {
			for (let i = 1; i < tree.n; i++) {
				const parent = tree.parent[i];
				start[i] = next[parent];
				next[i] = start[i];
				next[parent] += weights[i];
			}
			return;
		}
		const children = [];
		for (let i = 0; i < tree.n; i++) {
			if (!weights[i]) {
				i = tree.end[i] - 1;
				continue;
			}
			children.length = 0;
			for (let k = i + 1; k < tree.end[i]; k = tree.end[k])
				if (weights[k])
					children.push(k);
			if (children.length > 1)
				children.sort((a, b) => weights[b] - weights[a] || a - b);
			let at = start[i];
			for (const child of children) {
				start[child] = at;
				at += weights[child];
			}
		}
	}

	zoom(node) {
		this.root = node;
		this.draw();
		this.toRoot();
		this.on.zoom(node);
		this.say(node);
	}

	// The nodes that are wide enough to be seen, by row; row 0 is the root of all, its ancestors fill theirs.
	visible(width) {
		const {tree, weights, start, root} = this;
		const rows = [];
		for (let i = root; ; i = tree.parent[i]) {
			rows[tree.depth[i]] = [[i, 0, width]];
			if (!i)
				break;
		}
		const scale = weights[root] ? width / weights[root] : 0;
		const base = tree.depth[root];
		for (let i = root + 1; i < tree.end[root]; i++) {
			const w = weights[i] * scale;
			if (w < 0.5) {
				i = tree.end[i] - 1;
				continue;
			}
			const x = (start[i] - start[root]) * scale;
			(rows[tree.depth[i]] = rows[tree.depth[i]] || []).push([i, x, w]);
		}
		this.base = base;
		return rows;
	}

	draw() {
		if (!this.tree || !this.container.clientWidth)
			return;
		const width = this.container.clientWidth;
		this.rows = this.visible(width);
		const height = this.rows.length * ROW;
		if (document.documentElement.classList.contains('print')) {
			this.full = height;
			this.paint(width, Math.min(height, PRINTED * ROW), this.isUp ? Math.max(0, height - PRINTED * ROW) : 0);
			return;
		}
		this.full = Math.max(height, this.isUp ? this.container.clientHeight : 0);
		const seen = Math.max(1, Math.min(this.container.clientHeight || ROW, Math.max(height, ROW)));
		this.sizer.style.height = `${this.full}px`;
		this.paint(width, this.isUp ? Math.max(seen, this.container.clientHeight) : seen, this.container.scrollTop);
	}

	// Draw the rows between top and top + height of the whole picture.
	paint(width, height, top) {
		this.canvas.style.width = `${width}px`;
		const context = sized(this.canvas, width, height);
		context.font = FONT;
		context.textBaseline = 'middle';
		this.charWidth = context.measureText('mmmmmmmmmm').width / 10;
		this.top = top;
		for (let row = 0; row < this.rows.length; row++) {
			const y = this.rowTop(row);
			if (y + ROW < 0 || y > height)
				continue;
			for (const [node, x, w] of this.rows[row] || [])
				this.paintNode(context, node, x, y, w, row < this.base);
		}
	}

	rowTop(row) {
		return (this.isUp ? this.full - (row + 1) * ROW : row * ROW) - this.top;
	}

	paintNode(context, node, x, y, w, isAncestor) {
		const frame = this.tree.frame[node];
		const colors = this.look.colors;
		const isMatch = this.matches && frame >= 0 && this.matches[frame];
		const isDimmed = (this.matches && !isMatch) || isAncestor;
		const left = x + (w > 3 ? 0.5 : 0);
		const wide = Math.max(w - (w > 3 ? 1 : 0), 0.5);
		context.globalAlpha = isDimmed ? 0.4 : 1;
		context.fillStyle = css(this.look.color(frame, node));
		context.fillRect(left, y + 0.5, wide, ROW - 1.5);
		if (frame >= 0 && this.look.isPseudo(frame) && w > 4)
			this.hatch(context, left, y, wide);
		context.globalAlpha = isDimmed && !isAncestor ? 0.6 : 1;
		if (w > 3 * this.charWidth)
			this.paintText(context, frame, node, x, y, w, isMatch);
		context.globalAlpha = 1;
		if (frame >= 0 && this.look.isInlined(frame) && w > 8)
			this.outline(context, left, y, wide, 1, [2, 3]);
		if (isMatch && w >= 2)
			this.outline(context, left, y, wide, 2, []);
		if (node === this.hovered)
			this.outline(context, left, y, wide, 1, []);
		if (node === this.focused && document.activeElement === this.canvas)
			this.outline(context, left, y, wide, 3, []);
	}

	paintText(context, frame, node, x, y, w, isMatch) {
		const room = Math.floor((w - 8) / this.charWidth);
		const mark = this.look.mark(frame, node);
		let text = mark + (frame < 0 ? this.look.rootLabel : this.look.label(frame));
		if (text.length > room)
			text = room > 1 ? `${text.slice(0, room - 1)}…` : '';
		context.font = isMatch ? `bold ${FONT}` : FONT;
		context.fillStyle = css(this.look.colors.text);
		context.fillText(text, x + 4, y + ROW / 2 + 0.5);
	}

	hatch(context, x, y, w) {
		context.save();
		context.beginPath();
		context.rect(x, y + 0.5, w, ROW - 1.5);
		context.clip();
		context.strokeStyle = css(this.look.colors.text);
		context.globalAlpha *= 0.18;
		context.lineWidth = 1;
		for (let at = x - ROW; at < x + w; at += 7) {
			context.moveTo(at, y + ROW);
			context.lineTo(at + ROW, y);
		}
		context.stroke();
		context.restore();
	}

	outline(context, x, y, w, line, dash) {
		context.save();
		context.setLineDash(dash);
		context.strokeStyle = css(this.look.colors.text);
		context.globalAlpha = dash.length ? 0.45 : 1;
		context.lineWidth = line;
		context.strokeRect(x + line / 2, y + 0.5 + line / 2, Math.max(w - line, 0.5), ROW - 1.5 - line);
		context.restore();
	}

	hit(x, y) {
		const down = y + this.top;
		const row = Math.floor((this.isUp ? this.full - down : down) / ROW);
		for (const [node, left, width] of this.rows[row] || [])
			if (x >= left && x < left + width)
				return node;
		return -1;
	}

	hover(node) {
		if (node === this.hovered)
			return;
		this.hovered = node;
		this.canvas.style.cursor = node >= 0 ? 'pointer' : 'default';
		this.draw();
		this.on.hover(node);
	}

	// ---- keys ----

	children(node) {
		const found = [];
		for (let k = node + 1; k < this.tree.end[node]; k = this.tree.end[k])
			if (this.weights[k])
				found.push(k);
		return found.sort((a, b) => this.start[a] - this.start[b]);
	}

	brother(node, step) {
		if (!node)
			return node;
		const family = this.children(this.tree.parent[node]);
		return family[family.indexOf(node) + step] ?? node;
	}

	move(event) {
		const node = Math.max(this.focused, 0);
		const heaviest = () => this.children(node).reduce((best, k) => (best < 0 || this.weights[k] > this.weights[best] ? k : best), -1);
		const deeper = () => (heaviest() < 0 ? node : heaviest());
		switch (event.key) {
		case 'ArrowUp': return this.isUp ? deeper() : this.tree.parent[node];
		case 'ArrowDown': return this.isUp ? this.tree.parent[node] : deeper();
		case 'ArrowLeft': return this.brother(node, -1);
		case 'ArrowRight': return this.brother(node, 1);
		case 'Home': return 0;
		default: return -1;
		}
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (event.key === 'Enter' || event.key === ' ') {
			this.zoom(Math.max(this.focused, 0));
		} else if ((event.key === 'c' || event.key === 'C') && this.focused > 0) {
			this.on.pick(this.tree.frame[this.focused]);
		} else if ((event.key === 'Escape' || event.key === 'Backspace') && this.root) {
			this.zoom(event.key === 'Escape' ? 0 : this.tree.parent[this.root]);
		} else {
			const node = this.move(event);
			if (node < 0)
				return;
			this.focus(node);
		}
		event.preventDefault();
		event.stopPropagation();
	}

	// A node outside of what is zoomed to, or too narrow to be seen in it, is zoomed out for.
	focus(node) {
		const {tree} = this;
		this.focused = node;
		while (this.root && (node < this.root || node >= tree.end[this.root]))
			this.root = tree.parent[this.root];
		this.draw();
		const y = this.rowTop(tree.depth[node]);
		if (y < 0 || y + ROW > this.container.clientHeight)
			this.container.scrollTop += y - this.container.clientHeight / 2;
		this.draw();
		this.on.hover(node);
		this.say(node);
	}

	say(node) {
		this.on.focus(node);
	}
}
