// The timeline: the weight over time of what is chosen, a lane for each of the busiest threads, below them how many threads
// of the whole run ran at once, and a brush over all that limits everything else to a span of time. Pointer: drag to select, drag the span or its edges, double click to clear.
// Keys: arrows move the span, with Shift its end; Enter begins one, Escape clears it.

const CHART = 56;
const LANE = 14;
const MAX_LANES = 6;
const AXIS = 16;

class Timeline {
	constructor(section, model, colors, onSpan) {
		this.section = section;
		this.canvas = section.querySelector('canvas');
		this.model = model;
		this.colors = colors;
		this.onSpan = onSpan;
		this.span = null;
		this.last = Math.max(model.lastTime, 1) * 1.0001;
		this.listen();
		new ResizeObserver(() => this.refresh()).observe(section);
	}

	setChoice(type, groups) {
		this.type = type;
		this.groups = groups;
		this.refresh();
	}

	refresh() {
		const width = this.section.clientWidth;
		if (!width || this.type === undefined)
			return;
		this.width = width;
		this.count();
		this.draw();
	}

	// Weight by column: of all, and of each thread. Columns hold a few samples each, where there are enough of them.
	count() {
		const {model, last} = this;
		const bins = this.bins = Math.max(1, Math.min(Math.floor(this.width / 2), Math.max(40, Math.floor(model.times.length / 4))));
		const all = this.all = new Float64Array(bins);
		const values = model.moments.values[this.type];
		const threads = new Map();
		for (let i = 0; i < model.times.length; i++) {
			const group = model.moments.group[i];
			if (this.groups && !this.groups[group])
				continue;
			const bin = Math.min(bins - 1, Math.floor(model.times[i] / last * bins));
			let thread = threads.get(group);
			if (!thread)
				threads.set(group, thread = {group, sum: 0, bins: new Float64Array(bins)});
			all[bin] += values[i];
			thread.bins[bin] += values[i];
			thread.sum += values[i];
		}
		this.lanes = [...threads.values()].sort((a, b) => b.sum - a.sum);
		this.nrThreads = this.lanes.length;
		this.lanes = this.nrThreads > 1 ? this.lanes.slice(0, MAX_LANES) : [];
		this.countParallelism();
		this.height = CHART + (this.lanes.length + (this.parallel ? 1 : 0)) * LANE + AXIS;
		this.names = this.lanes.map((lane) => groupName(model.groups[lane.group]));
		const longest = this.names.reduce((most, name) => Math.max(most, name.length), 0);
		this.left = this.lanes.length ? Math.min(longest * 6.2 + 10, this.width / 4) : 0;
		this.plotWidth = this.width - this.left;
	}

	// By column: the mean number of threads that ran, of all samples. null: one thread, or not known.
	countParallelism() {
		const {model, last, bins} = this;
		this.parallel = null;
		if (!model.parallelism || this.lanes.length < 2)
			return;
		const nr = new Float64Array(bins);
		const time = new Float64Array(bins);
		model.times.forEach((at, i) => {
			if (!model.parallelism[i])
				return;
			const bin = Math.min(bins - 1, Math.floor(at / last * bins));
			nr[bin]++;
			time[bin] += 1 / model.parallelism[i];
		});
		this.parallel = nr.map((n, bin) => (n ? n / time[bin] : 0));
	}

	toX(time) {
		return this.left + time / this.last * this.plotWidth;
	}

	draw() {
		const style = getComputedStyle(document.documentElement);
		const ink = style.getPropertyValue('--ink');
		const accent = style.getPropertyValue('--accent');
		const context = sized(this.canvas, this.width, this.height);
		context.font = '11px system-ui, sans-serif';
		this.drawChart(context, accent);
		this.drawLanes(context, ink, accent);
		this.drawParallelism(context, ink, accent);
		this.drawAxis(context, style.getPropertyValue('--dim'));
		this.drawSpan(context, ink, style.getPropertyValue('--veil'));
		this.describe();
	}

	drawChart(context, accent) {
		const most = this.all.reduce((a, b) => Math.max(a, b), 0) || 1;
		context.fillStyle = accent;
		const wide = this.plotWidth / this.bins;
		for (let i = 0; i < this.bins; i++) {
			const h = this.all[i] / most * (CHART - 6);
			context.fillRect(this.left + i * wide, CHART - h, Math.max(wide - (wide > 4 ? 1 : 0), 1), h);
		}
		context.globalAlpha = 0.35;
		context.fillRect(this.left, CHART - 0.5, this.plotWidth, 0.5);
		context.globalAlpha = 1;
	}

	drawLanes(context, ink, accent) {
		const most = this.lanes.reduce((high, lane) => lane.bins.reduce((a, b) => Math.max(a, b), high), 0) || 1;
		const wide = this.plotWidth / this.bins;
		this.lanes.forEach((lane, nr) => {
			const y = CHART + nr * LANE;
			context.fillStyle = ink;
			context.fillText(this.names[nr], 0, y + LANE - 3, this.left - 8);
			context.fillStyle = accent;
			for (let i = 0; i < this.bins; i++) {
				if (!lane.bins[i])
					continue;
				context.globalAlpha = 0.25 + 0.75 * lane.bins[i] / most;
				context.fillRect(this.left + i * wide, y + 2, Math.max(wide - (wide > 4 ? 1 : 0), 1), LANE - 3);
			}
			context.globalAlpha = 1;
		});
	}

	drawParallelism(context, ink, accent) {
		if (!this.parallel)
			return;
		const most = this.parallel.reduce((a, b) => Math.max(a, b), 1);
		const y = CHART + this.lanes.length * LANE;
		const wide = this.plotWidth / this.bins;
		context.fillStyle = ink;
		context.fillText(`at once: 1 to ${most.toFixed(1)}`, 0, y + LANE - 3, this.left - 8);
		context.fillStyle = accent;
		this.parallel.forEach((value, i) => {
			const h = value / most * (LANE - 3);
			if (value)
				context.fillRect(this.left + i * wide, y + LANE - 1 - h, Math.max(wide - (wide > 4 ? 1 : 0), 1), h);
		});
	}

	drawAxis(context, dim) {
		const y = this.height - AXIS;
		const raw = this.last / Math.max(2, this.plotWidth / 110);
		const power = 10 ** Math.floor(Math.log10(raw));
		const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
		context.fillStyle = dim;
		for (let t = 0; t <= this.last; t += step) {
			const x = this.toX(t);
			context.fillRect(x, y, 1, 4);
			if (x < this.width - 50)
				context.fillText(formatTick(t, step), x + 3, y + 12);
		}
	}

	drawSpan(context, ink, veil) {
		if (!this.span)
			return;
		const [from, to] = this.span.map((t) => this.toX(t));
		const bottom = this.height - AXIS;
		context.fillStyle = veil;
		context.fillRect(this.left, 0, from - this.left, bottom);
		context.fillRect(to, 0, this.width - to, bottom);
		context.fillStyle = ink;
		for (const x of [from, to]) {
			context.fillRect(x - 1, 0, 2, bottom);
			context.fillRect(x - 3, CHART / 2 - 9, 6, 18);
		}
	}

	describe() {
		const whole = formatValue(this.last, 'microseconds');
		const text = this.span ? `${formatValue(this.span[0], 'microseconds')} to ${formatValue(this.span[1], 'microseconds')} of ${whole}`
			: `all of ${whole}`;
		this.canvas.setAttribute('aria-valuemax', String(Math.round(this.last)));
		this.canvas.setAttribute('aria-valuenow', String(Math.round(this.span ? this.span[0] : 0)));
		this.canvas.setAttribute('aria-valuetext', text);
		const more = this.nrThreads > MAX_LANES ? `; lanes: the busiest ${MAX_LANES} of ${this.nrThreads} threads` : '';
		byId('span').textContent = this.span ? `Selected: ${text}` : `Drag to select a span of time${more}`;
		byId('clear-span').hidden = !this.span;
	}

	setSpan(span) {
		if (span) {
			const [a, b] = span.map((t) => Math.round(Math.max(0, Math.min(this.last, t))));
			span = [Math.min(a, b), Math.max(a, b)];
			if (span[1] - span[0] < this.last / this.plotWidth)
				span = null;
		}
		this.span = span;
		this.draw();
		this.onSpan(span);
	}

	// ---- pointer and keys ----

	listen() {
		const time = (event) => {
			const box = this.canvas.getBoundingClientRect();
			return Math.max(0, Math.min(1, (event.clientX - box.left - this.left) / this.plotWidth)) * this.last;
		};
		const near = 6;
		this.canvas.addEventListener('pointerdown', (event) => {
			if (event.button)
				return;
			const at = time(event);
			const grip = near / this.plotWidth * this.last;
			const [from, to] = this.span || [NaN, NaN];
			// The edge that stays, or the distance to the span's ends while it moves.
			if (Math.abs(at - from) < grip)
				this.drag = {anchor: to};
			else if (Math.abs(at - to) < grip)
				this.drag = {anchor: from};
			else if (at > from && at < to)
				this.drag = {offset: at - from, length: to - from, anchor: at};
			else
				this.drag = {anchor: at};
			this.canvas.setPointerCapture(event.pointerId);
		});
		this.canvas.addEventListener('pointermove', (event) => {
			if (!this.drag)
				return;
			const at = time(event);
			if (this.drag.length) {
				const from = Math.max(0, Math.min(this.last - this.drag.length, at - this.drag.offset));
				this.setSpan([from, from + this.drag.length]);
			} else {
				this.setSpan([this.drag.anchor, at]);
			}
		});
		const end = () => (this.drag = null);
		this.canvas.addEventListener('pointerup', end);
		this.canvas.addEventListener('pointercancel', end);
		this.canvas.addEventListener('dblclick', () => this.setSpan(null));
		this.canvas.addEventListener('keydown', (event) => this.key(event));
	}

	key(event) {
		const step = this.last / (event.ctrlKey ? 200 : 20);
		const direction = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
		if (event.key === 'Enter' && !this.span) {
			this.setSpan([0, this.last / 4]);
		} else if (event.key === 'Escape' && this.span) {
			this.setSpan(null);
		} else if (direction) {
			const [from, to] = this.span || [0, this.last / 4];
			if (!this.span)
				this.setSpan([from, to]);
			else if (event.shiftKey)
				this.setSpan([from, Math.max(from + step / 4, to + direction * step)]);
			else if (from + direction * step >= -1e-6 && to + direction * step <= this.last + 1e-6)
				this.setSpan([from + direction * step, to + direction * step]);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}

// "name 123", or what is known of it.
function groupName(group) {
	if (!group.tid && !group.thread)
		return group.process ? `${group.process}, no thread` : 'no process';
	const name = group.thread || group.process || 'thread';
	return group.tid ? `${name} ${group.tid}` : group.pid ? `${name} ${group.pid}` : name;
}
