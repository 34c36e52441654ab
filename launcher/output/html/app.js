// The page: its state, and what follows from a change of it.

const app = {
	model: readModel(byId('data').textContent),
	view: 'flame',
	isUp: false,
	byWeight: true,
	byShare: false,   // of a comparison: shares of the whole, not values of a run
	widthSide: 0,     // the side whose values are the widths
	search: null,
	picked: -1,       // the function of callers and callees
	theme: 'auto',
	choice: {type: 0, groups: null, span: null},
};
const {model} = app;

// The two values of a comparison on one scale: shares, or as they are.
app.comparable = (base, now) => (app.byShare ? [base / (app.whole[0] || 1), now / (app.whole[1] || 1)] : [base, now]);
app.comparableWhole = () => (app.byShare ? 1 : Math.max(...app.whole) || 1);
app.colors = new Colors(model);

function announce(text) {
	byId('announce').textContent = text;
}

// ---- views ----

const sandwichSums = {callers: null, callees: null};

function makeFlame(id, sums) {
	const look = model.isDiff ? makeDiffLook(app, sums) : makeLook(app);
	const values = (node) => [sums().self.map((self) => self[node]), sums().total.map((total) => total[node])];
	return new Flame(byId(id), look, {
		hover: (node) => (node < 0 ? showDetails(null) : showDetails(describeFrame(app, flames[id].tree.frame[node], ...values(node)))),
		zoom: () => id === 'flame' && showPath(),
		pick: (frame) => pick(frame),
		focus: (node) => announce(describeFrame(app, flames[id].tree.frame[node], ...values(node)).filter(Boolean).join(', ')),
	});
}

const flames = {};
flames.flame = makeFlame('flame', () => app.sums);
flames.callers = makeFlame('callers', () => sandwichSums.callers);
flames.callees = makeFlame('callees', () => sandwichSums.callees);
flames.callers.isUp = true;

const table = new FunctionTable(byId('table'), {hoverFrame: (frame) => showDetails(describeFunction(frame))}, pick);
const threads = new ThreadChoice(model, byId('threads'), byId('threads-dialog'), () => {
	app.choice.groups = threads.groups();
	recount(true);
	if (timeline)
		timeline.setChoice(app.choice.type, app.choice.groups);
});
const timeline = model.times.length ? new Timeline(byId('timeline'), model, app.colors, (span) => {
	app.choice.span = span;
	later(() => recount(true));
}) : null;

// At most once a frame: a brush moves faster than a large tree is added up.
let waiting = null;
function later(what) {
	if (!waiting)
		requestAnimationFrame(() => {
			const next = waiting;
			waiting = null;
			next();
		});
	waiting = what;
}

function describeFunction(frame) {
	return describeFrame(app, frame, app.functions.map((side) => side.self[frame]), app.functions.map((side) => side.total[frame]));
}

function showDetails(texts) {
	const [name, place, values] = texts || defaultDetails();
	byId('detail-name').textContent = name;
	byId('detail-place').textContent = place;
	byId('detail-values').textContent = values;
}

function defaultDetails() {
	const root = flames.flame.root;
	const frame = flames.flame.tree.frame[root];
	return describeFrame(app, frame, app.sums.self.map((self) => self[root]), app.sums.total.map((total) => total[root]));
}

function showPath() {
	const {root, tree} = flames.flame;
	const steps = [];
	for (let i = root; i; i = tree.parent[i])
		steps.unshift(i);
	byId('unzoom').hidden = !root;
	byId('path').replaceChildren(...steps.slice(-6).map((node) => make('li', {}, make('button', {
		type: 'button', class: 'link', click: () => flames.flame.zoom(node),
	}, model.frames.name[tree.frame[node]]))));
	showDetails(null);
}

// ---- what is counted ----

function recount(keepZoom) {
	const started = performance.now();
	app.sums = addUp(model, app.choice);
	app.whole = app.sums.total.map((total) => total[0]);
	app.functions = addUpFunctions(model, app.sums);
	if (!keepZoom)
		app.colors.rankModules(app.functions);
	flames.flame.setTree(model.tree, app.sums.total[app.widthSide], keepZoom);
	showPath();
	showVerdict();
	showFound();
	app.isStale = {table: true, sandwich: true};
	refreshView();
	app.recountMs = performance.now() - started;
}

// Only the view in sight is brought up to date; the others when they are looked at.
function refreshView() {
	if (app.view === 'table' && app.isStale.table) {
		const matches = app.search && app.search.matches;
		const frames = [];
		for (let i = 0; i < model.nrFrames; i++)
			if ((!matches || matches[i]) && app.functions.some((side) => side.total[i]))
				frames.push(i);
		table.setColumns(tableColumns(app, app.functions), model.isDiff ? 'delta' : 'self');
		table.setRows(frames);
		app.isStale.table = false;
	}
	if (app.view === 'sandwich' && app.isStale.sandwich) {
		showSandwich();
		app.isStale.sandwich = false;
	}
}

function heaviest() {
	const self = app.functions[app.functions.length - 1].self;
	let best = -1;
	for (let i = 0; i < self.length; i++)
		if (!model.isPseudo(i) && (best < 0 || self[i] > self[best]))
			best = i;
	return best;
}

function showSandwich() {
	if (app.picked < 0)
		app.picked = heaviest();
	if (app.picked < 0)
		return;
	const {callers, callees} = buildSandwich(model, app.sums, app.picked);
	sandwichSums.callers = callers.sums;
	sandwichSums.callees = callees.sums;
	flames.callers.setTree(callers.tree, callers.sums.total[app.widthSide], false);
	flames.callees.setTree(callees.tree, callees.sums.total[app.widthSide], false);
	const [name, place, values] = describeFunction(app.picked);
	byId('sandwich-of').replaceChildren(make('strong', {}, name), make('span', {class: 'dim'}, place), make('span', {}, values));
}

function pick(frame) {
	if (frame < 0)
		return;
	app.picked = frame;
	app.isStale.sandwich = true;
	setView('sandwich');
	announce(`Callers and callees of ${model.frames.name[frame]}`);
}

function setView(view) {
	app.view = view;
	for (const tab of document.querySelectorAll('[role=tab]')) {
		const isIt = tab.id === `tab-${view}`;
		tab.setAttribute('aria-selected', String(isIt));
		tab.tabIndex = isIt ? 0 : -1;
		byId(tab.getAttribute('aria-controls')).hidden = !isIt;
	}
	refreshView();
	for (const flame of Object.values(flames))
		flame.draw();
	if (view === 'sandwich')
		flames.callers.toRoot();
	showDetails(null);
}

// ---- search ----

function setSearch(text) {
	app.search = compileSearch(model, text);
	for (const flame of Object.values(flames)) {
		flame.matches = app.search && app.search.matches;
		flame.draw();
	}
	app.isStale.table = true;
	showFound();
	refreshView();
}

function showFound() {
	const {search} = app;
	app.matched = search ? matchedWeight(model.tree, app.sums.total[app.widthSide], search.matches) : 0;
	let text = '';
	if (search && search.error)
		text = search.error;
	else if (search)
		text = `${plural(search.matches.reduce((sum, is) => sum + is, 0), 'function', 'functions')}, ${formatPercent(app.matched, app.whole[app.widthSide])}`;
	byId('found').textContent = text;
}

// ---- the head of the page ----

function fact(side, key) {
	const found = model.sides[side].facts.find(([name]) => name === key);
	return found ? found[1] : '';
}

function showVerdict() {
	const unit = model.types[app.choice.type].unit;
	const parts = [];
	if (model.isDiff) {
		parts.push(`${formatValue(app.whole[0], unit)} → ${formatValue(app.whole[1], unit)}, ${formatChange(...app.whole)}`);
	} else {
		parts.push(`${formatValue(app.whole[0], unit)} ${SCALES[unit] && unit !== 'count' ? 'of ' : ''}${model.types[app.choice.type].name}`);
		if (fact(0, 'wall_ns'))
			parts.push(`in ${formatValue(Number(fact(0, 'wall_ns')), 'nanoseconds')}`);
		for (const [key, one, many] of [['processes', 'process', 'processes'], ['threads', 'thread', 'threads']])
			if (fact(0, key))
				parts.push(plural(Number(fact(0, key)), one, many));
		if (fact(0, 'host'))
			parts.push(`on ${fact(0, 'host')}`);
	}
	if (app.choice.groups || app.choice.span)
		parts.push('(a part is selected)');
	byId('verdict').textContent = parts.join(' · ');
}

function fillTypes() {
	byId('type').replaceChildren(...model.types.map((type, index) => make('option', {value: String(index)}, type.name)));
	byId('type').value = String(app.choice.type);
	byId('type-field').hidden = model.types.length < 2;
}

// Allocations and waits for locks have no times: an empty timeline would look as if there were none.
function showTimeline() {
	const hasTimes = Boolean(timeline) && model.moments.values[app.choice.type].some((value) => value);
	byId('timeline').hidden = !hasTimes;
	if (!hasTimes && app.choice.span)
		timeline.setSpan(null);
}

function setType(type) {
	app.choice.type = type;
	threads.type = type;
	showTimeline();
	recount(false);
	if (timeline)
		timeline.setChoice(type, app.choice.groups);
}

function setWidthSide(side) {
	app.widthSide = side;
	showCompare();
	recount(true);
}

function setByShare(byShare) {
	app.byShare = byShare;
	showCompare();
	recount(true);
}

function showCompare() {
	if (!model.isDiff)
		return;
	const [base, now] = model.sides;
	const runs = (side) => (side.runs > 1 ? ` (${side.runs} runs)` : '');
	const option = (isOn, text, click) => make('button', {type: 'button', 'aria-pressed': String(isOn), click}, text);
	byId('compare').hidden = false;
	byId('compare').replaceChildren(
		make('p', {}, make('strong', {}, base.name), `${runs(base)} → `, make('strong', {}, now.name), `${runs(now)}: `,
			make('span', {class: 'legend grew'}, '▲ grew'), ' ', make('span', {class: 'legend shrank'}, '▼ shrank'),
			` since ${base.name}. `, app.widthSide ? `Widths are ${now.name}: what is gone has no width.` : `Widths are ${base.name}: what is new has no width.`),
		make('div', {class: 'switch', role: 'group', 'aria-label': 'Widths'},
			option(app.widthSide === 1, `Widths: ${now.name}`, () => setWidthSide(1)),
			option(app.widthSide === 0, `Widths: ${base.name}`, () => setWidthSide(0))),
		make('div', {class: 'switch', role: 'group', 'aria-label': 'What is compared'},
			option(!app.byShare, 'Values of a run', () => setByShare(false)),
			option(app.byShare, 'Shares of the whole', () => setByShare(true))));
}

// ---- theme and print ----

function applyTheme(forced) {
	const theme = forced || (app.theme === 'auto' ? (darkQuery.matches ? 'dark' : 'light') : app.theme);
	document.documentElement.dataset.theme = theme;
	app.colors.setTheme(theme);
	byId('theme').textContent = {auto: '◐', light: '☀', dark: '☾'}[app.theme];
	byId('theme').setAttribute('aria-label', `Theme: ${app.theme === 'auto' ? 'as the system' : app.theme}`);
	byId('theme').title = byId('theme').getAttribute('aria-label');
	for (const flame of Object.values(flames))
		flame.draw();
	if (timeline)
		timeline.refresh();
}

function nextTheme() {
	app.theme = {auto: 'light', light: 'dark', dark: 'auto'}[app.theme];
	applyTheme();
}

const PRINTED_ROWS = 60;

// On paper: light, the whole width, and the rows that would have to be scrolled to.
function beforePrint() {
	document.documentElement.classList.add('print');
	applyTheme('light');
	for (const flame of Object.values(flames))
		flame.draw();
	if (app.view === 'table')
		table.render(PRINTED_ROWS);
}

function afterPrint() {
	document.documentElement.classList.remove('print');
	applyTheme();
	table.render();
}

// ---- wiring ----

function setDirection(isUp) {
	app.isUp = isUp;
	byId('flame-up').setAttribute('aria-pressed', String(isUp));
	byId('flame-down').setAttribute('aria-pressed', String(!isUp));
	flames.flame.setUp(isUp);
}

function setOrder(byWeight) {
	app.byWeight = byWeight;
	byId('by-weight').setAttribute('aria-pressed', String(byWeight));
	byId('by-name').setAttribute('aria-pressed', String(!byWeight));
	for (const flame of Object.values(flames))
		flame.setOrder(byWeight);
}

function showHelp() {
	fillHelp(byId('help-dialog'), model);
	byId('help-dialog').showModal();
}

const VIEWS = ['flame', 'table', 'sandwich', 'facts'];

function onKey(event) {
	const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
	if (event.key === 'Escape' && event.target.id === 'search') {
		event.target.value = '';
		setSearch('');
		flames.flame.canvas.focus();
		return;
	}
	if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]'))
		return;
	const actions = {
		'/': () => byId('search').focus(),
		'?': showHelp,
		t: nextTheme,
		i: () => setDirection(!app.isUp),
		o: () => setOrder(!app.byWeight),
		Escape: () => flames.flame.root && flames.flame.zoom(0),
	};
	VIEWS.forEach((view, index) => (actions[index + 1] = () => setView(view)));
	const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
	if (!action)
		return;
	event.preventDefault();
	action();
}

function onTabKey(event) {
	const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
	if (!step)
		return;
	const next = VIEWS[(VIEWS.indexOf(app.view) + step + VIEWS.length) % VIEWS.length];
	setView(next);
	byId(`tab-${next}`).focus();
	event.preventDefault();
}

function wire() {
	byId('type').addEventListener('change', (event) => setType(Number(event.target.value)));
	byId('search').addEventListener('input', (event) => later(() => setSearch(event.target.value)));
	byId('theme').addEventListener('click', nextTheme);
	byId('help').addEventListener('click', showHelp);
	byId('flame-up').addEventListener('click', () => setDirection(true));
	byId('flame-down').addEventListener('click', () => setDirection(false));
	byId('by-weight').addEventListener('click', () => setOrder(true));
	byId('by-name').addEventListener('click', () => setOrder(false));
	byId('unzoom').addEventListener('click', () => flames.flame.zoom(0));
	byId('clear-span').addEventListener('click', () => timeline.setSpan(null));
	byId('help-dialog').addEventListener('click', (event) => event.target === event.currentTarget && event.target.close());
	for (const view of VIEWS)
		byId(`tab-${view}`).addEventListener('click', () => setView(view));
	document.querySelector('[role=tablist]').addEventListener('keydown', onTabKey);
	document.addEventListener('keydown', onKey);
	darkQuery.addEventListener('change', () => applyTheme());
	window.addEventListener('beforeprint', beforePrint);
	window.addEventListener('afterprint', afterPrint);
}

function start() {
	app.choice.type = model.type;
	app.widthSide = model.sides.length - 1;
	threads.type = model.type;
	byId('title').textContent = model.title;
	showTimeline();
	byId('facts').replaceChildren(...renderFacts(model));
	fillTypes();
	wire();
	recount(false);
	showCompare();
	applyTheme();
	if (timeline)
		timeline.setChoice(app.choice.type, null);
	setView('flame');
	app.readyMs = performance.now();
}

start();
// For tests and the curious: the state, and the parts that draw it.
window.countersink = {app, flames, table, threads, timeline, contrast};
