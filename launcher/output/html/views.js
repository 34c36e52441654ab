// How a frame looks, and its text, for one profile and for two that are compared.

// look of flame graphs; app: the page's state. Values are those of the chosen event.
function makeLook(app) {
	const {model, colors} = app;
	const look = {
		colors,
		rootLabel: 'all',
		label: (frame) => model.frames.name[frame],
		isPseudo: model.isPseudo,
		isInlined: model.isInlined,
		color: (frame) => colors.frame(frame),
		mark: () => '',
	};
	return look;
}

// The same over two sides: colours and marks say how much of a frame's base value came or went.
function makeDiffLook(app, sums) {
	const change = (node) => {
		const [base, now] = app.comparable(sums().total[0][node], sums().total[1][node]);
		const most = Math.max(Math.abs(base), Math.abs(now));
		if (!most)
			return 0;
		// What is little of the whole stays pale, however much of itself it changed.
		const weight = Math.min(1, Math.abs(now - base) / (0.01 * app.comparableWhole()));
		return (now - base) / most * Math.sqrt(weight);
	};
	return {
		...makeLook(app),
		color: (frame, node) => app.colors.change(change(node)),
		mark: (frame, node) => {
			const amount = change(node);
			return Math.abs(amount) < 0.02 ? '' : amount > 0 ? '▲ ' : '▼ ';
		},
	};
}

// [name, place, values] of a node or function, for the line below the graph and for what is read aloud.
function describeFrame(app, frame, self, total) {
	const {model} = app;
	const unit = model.types[app.choice.type].unit;
	if (frame < 0)
		return ['all', '', describeValues(app, self, total, unit)];
	const file = model.fileOf(frame);
	const line = model.frames.line[frame];
	const place = [
		model.moduleOf(frame) && baseName(model.moduleOf(frame)),
		file && (line ? `${file}:${line}` : file),
		model.isInlined(frame) && 'inlined',
		model.isPseudo(frame) && 'accounted, not sampled',
	].filter(Boolean).join(' · ');
	return [model.frames.name[frame], place, describeValues(app, self, total, unit)];
}

function describeValues(app, self, total, unit) {
	if (!app.model.isDiff)
		return `total ${formatValue(total[0], unit)} (${formatPercent(total[0], app.whole[0])}), self ${formatValue(self[0], unit)} (${formatPercent(self[0], app.whole[0])})`;
	const [base, now] = app.comparable(total[0], total[1]);
	const values = total.map((value, s) => `${app.model.sides[s].name}: ${formatValue(value, unit)} (${formatPercent(value, app.whole[s])})`);
	return `${values.join(' → ')}, ${formatChange(base, now)}${app.byShare ? ' by share' : ''}`;
}

function tableColumns(app, functions) {
	const {model} = app;
	const unit = model.types[app.choice.type].unit;
	const text = [
		{id: 'name', title: 'Function', isText: true, width: 'minmax(12em, 3fr)', value: (f) => model.frames.name[f].toLowerCase(),
			text: (f) => model.frames.name[f]},
		{id: 'module', title: 'Module', isText: true, width: 'minmax(6em, 1fr)', value: (f) => baseName(model.moduleOf(f)),
			text: (f) => baseName(model.moduleOf(f)) || '–'},
	];
	if (model.isDiff)
		return [...text, ...diffColumns(app, functions, unit)];
	const number = (id, title, values) => [
		{id, title, width: '7.2em', value: (f) => values[f], text: (f) => formatValue(values[f], unit)},
		{id: `${id}-share`, title: `${title} %`, width: '6.6em', value: (f) => values[f],
			text: (f) => formatPercent(values[f], app.whole[0]), bar: (f) => (app.whole[0] ? values[f] / app.whole[0] : 0)},
	];
	return [...text, ...number('self', 'Self', functions[0].self), ...number('total', 'Total', functions[0].total)];
}

function diffColumns(app, functions, unit) {
	const sides = app.model.sides;
	const comparable = (f, what) => app.comparable(functions[0][what][f], functions[1][what][f]);
	const share = app.byShare;
	const shown = (value, side) => (share ? formatPercent(value, app.whole[side]) : formatValue(value, unit));
	const delta = (f, what) => {
		const [base, now] = comparable(f, what);
		return now - base;
	};
	const signed = (value) => (share ? `${value > 0 ? '+' : value < 0 ? '−' : ''}${Math.abs(100 * value).toFixed(2)} pp` : formatSigned(value, unit));
	const change = (id, title, what) => ({id, title, width: '9.5em', value: (f) => Math.abs(delta(f, what)), text: (f) => {
		const value = delta(f, what);
		return `${value > 0 ? '▲ ' : value < 0 ? '▼ ' : ''}${signed(value)}`;
	}});
	return [
		{id: 'base', title: `Self: ${sides[0].name}`, width: '9em', value: (f) => functions[0].self[f], text: (f) => shown(functions[0].self[f], 0)},
		{id: 'now', title: `Self: ${sides[1].name}`, width: '9em', value: (f) => functions[1].self[f], text: (f) => shown(functions[1].self[f], 1)},
		change('delta', 'Change of self', 'self'),
		{id: 'ratio', title: 'In %', width: '6em', value: (f) => {
			const [base, now] = comparable(f, 'self');
			return base ? now / base : now ? Infinity : 0;
		}, text: (f) => formatChange(...comparable(f, 'self'))},
		change('delta-total', 'Change of total', 'total'),
	];
}

// The facts of a run as lists; keys as the profile has them, for people.
function renderFacts(model) {
	const known = {wall_ns: 'nanoseconds', user_ns: 'nanoseconds', sys_ns: 'nanoseconds', unwaited_ns: 'nanoseconds', maxrss_bytes: 'bytes'};
	return model.sides.map((side) => {
		const rows = side.facts.map(([key, value]) => [
			key.replace(/_(ns|bytes)$/, '').replaceAll('_', ' ') || 'comment',
			key in known ? formatValue(Number(value), known[key]) : value,
		]);
		if (side.time_ns !== '0')
			rows.unshift(['started', new Date(Number(BigInt(side.time_ns) / 1000000n)).toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC')]);
		if (side.runs > 1)
			rows.unshift(['runs', String(side.runs)]);
		return make('section', {}, ...(side.name ? [make('h2', {}, side.name)] : []),
			make('dl', {}, ...rows.flatMap(([key, value]) => [make('dt', {}, key), make('dd', {}, value)])));
	});
}

const KEYS = [
	['/', 'search functions; words must all match, or /pattern/'],
	['1 2 3 4', 'flame graph, functions, callers and callees, about'],
	['← → ↑ ↓', 'move between frames, or rows of the table'],
	['Enter', 'zoom to the frame; in the table: its callers and callees'],
	['Backspace, Esc', 'zoom out by one, or to the whole graph'],
	['C, double click', 'callers and callees of the frame'],
	['I', 'flame or icicle'],
	['O', 'order by weight or by name'],
	['T', 'theme: as the system, light, dark'],
	['?', 'this list'],
];

function fillHelp(dialog, model) {
	dialog.replaceChildren(
		make('div', {class: 'dialog-head'}, make('h2', {}, 'Keys and help'),
			make('button', {type: 'button', click: () => dialog.close()}, 'Close')),
		make('p', {}, 'Each box is a function; its width is what it and all that it calls cost. What touches it on one side called it, on ' +
			'the other it calls. A click zooms. ' + (model.isDiff
			? 'Orange with ▲ grew, blue with ▼ shrank, grey did not change.'
			: `A colour stands for a ${model.hasLanguages ? 'language, grey for native code' : 'module'}; hatched boxes are time that was accounted but not sampled; a dashed outline is an inlined function.`)),
		make('dl', {class: 'keys'}, ...KEYS.flatMap(([key, what]) => [make('dt', {}, key), make('dd', {}, what)])));
}
