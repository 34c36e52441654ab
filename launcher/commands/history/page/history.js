// The page of `countersink history --html`: a chart for each figure and function, the change points with what moved under
// each and the commands that confirm it. Texts of the history become text nodes, never markup.

const data = JSON.parse(document.getElementById('data').textContent);
const WIDTH = 1000, HEIGHT = 150, LEFT = 56, RIGHT = 10, TOP = 14, BOTTOM = 20;
const state = {case: 0, change: -1, series: -1, point: -1};

function draw(tag, attributes, ...children) {
	const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
	for (const [key, value] of Object.entries(attributes))
		element.setAttribute(key, value);
	element.append(...children);
	return element;
}

const isWorse = (series, ratio) => series.more ? ratio < 1 : ratio > 1;

function percent(ratio) {
	if (ratio === null)
		return '?';
	if (ratio >= 10)
		return `x ${ratio.toFixed(1)}`;
	const text = ((ratio - 1) * 100).toFixed(1);
	return `${text === '-0.0' ? '+0.0' : ratio >= 1 && text[0] !== '-' ? `+${text}` : text} %`;
}

const day = (line) => (line.committed || line.time || '').slice(0, 10);
const interval = (point) => point[2] === null || point[3] === null ? '' : ` (95 % CI ${percent(point[2])} to ${percent(point[3])})`;

// ---- one chart ----

// The lowest and highest ratio that is drawn. An interval without an end, or far beyond the points, does not set the scale.
function range(points) {
	const ratios = points.map((point) => point[1]);
	let low = Math.min(1, ...ratios), high = Math.max(1, ...ratios);
	const room = Math.max(high - low, 0.01);
	for (const point of points) {
		low = Math.min(low, Math.max(point[2] ?? low, low - room / 2));
		high = Math.max(high, Math.min(point[3] ?? high, high + room / 2));
	}
	return [low - room * 0.05, high + room * 0.05];
}

function chart(series, index) {
	const {points} = series, [low, high] = range(points);
	const first = points[0][0], last = points[points.length - 1][0];
	const x = (line) => LEFT + (last > first ? (line - first) / (last - first) : 0.5) * (WIDTH - LEFT - RIGHT);
	const y = (ratio) => TOP + (high - Math.min(Math.max(ratio, low), high)) / (high - low) * (HEIGHT - TOP - BOTTOM);
	const svg = draw('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', tabindex: 0, 'aria-label': `${series.name}: ${points.length} commits`});

	for (const ratio of [low + (high - low) * 0.05, high - (high - low) * 0.05])
		svg.append(draw('text', {x: LEFT - 6, y: y(ratio) + 4, 'text-anchor': 'end'}, percent(ratio)));
	svg.append(draw('line', {class: 'one', x1: LEFT, x2: WIDTH - RIGHT, y1: y(1), y2: y(1)}));
	svg.append(draw('text', {x: LEFT, y: HEIGHT - 6}, day(data.lines[first])));
	svg.append(draw('text', {x: WIDTH - RIGHT, y: HEIGHT - 6, 'text-anchor': 'end'}, day(data.lines[last])));
	points.forEach((point, i) => {
		if (i && data.lines[point[0]].anchor !== data.lines[points[i - 1][0]].anchor)
			svg.append(draw('line', {class: 'anchor', x1: x(point[0]), x2: x(point[0]), y1: TOP, y2: HEIGHT - BOTTOM}));
	});
	data.changes.forEach((change, nr) => {
		for (const [of, ratio, at] of change.shifts) {
			if (change.case !== state.case || of !== index)
				continue;
			const line = x(points[at][0]);
			svg.append(draw('line', {class: `change ${isWorse(series, ratio) ? 'slower' : 'faster'}`, 'data-change': nr, x1: line, x2: line, y1: TOP, y2: HEIGHT - BOTTOM}));
			svg.append(draw('text', {x: line + (line > WIDTH - 90 ? -4 : 4), y: TOP + 8, 'text-anchor': line > WIDTH - 90 ? 'end' : 'start'},
				`${nr + 1}: ${percent(ratio)}`));
		}
	});
	points.forEach((point, i) => {
		const at = x(point[0]);
		if (point[2] !== null && point[3] !== null)
			svg.append(draw('line', {class: 'interval', x1: at, x2: at, y1: y(point[2]), y2: y(point[3])}));
		svg.append(draw('circle', {class: 'point', 'data-point': i, cx: at, cy: y(point[1]), r: 3}));
	});
	svg.addEventListener('pointermove', (event) => {
		const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * WIDTH;
		let near = 0;
		points.forEach((point, i) => {
			if (Math.abs(x(point[0]) - at) < Math.abs(x(points[near][0]) - at))
				near = i;
		});
		choosePoint(index, near);
	});
	svg.addEventListener('focus', () => choosePoint(index, state.series === index ? state.point : points.length - 1));
	svg.addEventListener('keydown', (event) => {
		const step = {ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length}[event.key];
		if (!step)
			return;
		event.preventDefault();
		choosePoint(index, Math.min(Math.max(state.point + step, 0), points.length - 1));
	});
	return svg;
}

function choosePoint(index, nr) {
	const series = data.cases[state.case].series[index], point = series.points[nr], line = data.lines[point[0]];

	Object.assign(state, {series: index, point: nr});
	for (const old of document.querySelectorAll('.point.chosen'))
		old.classList.remove('chosen');
	byId('charts').querySelectorAll('svg')[index].querySelector(`[data-point="${nr}"]`).classList.add('chosen');
	byId('detail').textContent = `${line.commit} ${day(line)}: ${series.name} ${percent(point[1])}${interval(point)} against ${line.anchor}` +
		(line.cpu ? `; ${line.cpu}` : '');
}

// ---- change points ----

function chooseChange(nr) {
	state.change = nr;
	for (const element of document.querySelectorAll('.change, #changes li'))
		element.classList.toggle('chosen', Number(element.dataset.change) === nr);
	const line = document.querySelector(`.change[data-change="${nr}"]`);
	if (line)
		line.closest('svg').scrollIntoView({block: 'center'});
}

function changeItem(change, nr) {
	const {series} = data.cases[change.case], line = data.lines[change.line];
	const button = make('button', {type: 'button', click: () => chooseChange(nr)}, `${line.short} ${day(line)}, found ${change.later} ${change.later === 1 ? 'line' : 'lines'} later: `,
		...change.shifts.map(([of, ratio], i) => make('span', {class: isWorse(series[of], ratio) ? 'slower' : 'faster'}, `${i ? ', ' : ''}${series[of].name} ${percent(ratio)}`)));
	const item = make('li', {value: nr + 1}, button);

	item.dataset.change = nr;
	if (change.confirm)
		item.append(make('code', null, change.confirm));
	if (change.bisect)
		item.append(make('span', {class: 'note'}, 'if it is confirmed, find the commit:'), make('code', null, change.bisect));
	return item;
}

// ---- the page ----

function applyTheme() {
	document.documentElement.dataset.theme = darkQuery.matches ? 'dark' : 'light';
}

function show(of) {
	Object.assign(state, {case: of, change: -1, series: -1, point: -1});
	byId('charts').replaceChildren(...data.cases[of].series.map((series, i) => {
		const last = series.points[series.points.length - 1];
		return make('article', null, make('h3', null, `${series.name} `, make('span', {class: 'latest'}, `${percent(last[1])}${interval(last)}`)), chart(series, i));
	}));
	const items = data.changes.flatMap((change, nr) => change.case === of ? [changeItem(change, nr)] : []);
	byId('changes').replaceChildren(...(items.length ? items : [make('p', null, 'none')]));
	byId('detail').textContent = '';
}

darkQuery.addEventListener('change', applyTheme);
applyTheme();
byId('title').textContent = data.title;
byId('summary').textContent = `${data.lines.length} ${data.lines.length === 1 ? 'line' : 'lines'} from ${day(data.lines[0])} to ${day(data.lines[data.lines.length - 1])}`;
byId('case').append(...data.cases.map((one, i) => make('option', {value: i}, one.name)));
byId('case').addEventListener('change', () => show(Number(byId('case').value)));
byId('case-field').hidden = !data.cases.length;
show(0);
window.countersinkHistory = {data, state, show, chooseChange};
