// Numbers and canvases.

// Give a canvas a size in pixels of the page, and return what draws on it in these.
function sized(canvas, width, height) {
	const ratio = Math.min(window.devicePixelRatio || 1, 3);
	canvas.style.height = `${height}px`;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	const context = canvas.getContext('2d');
	context.scale(ratio, ratio);
	return context;
}

const SCALES = {
	nanoseconds: [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']],
	microseconds: [[1e6, 's'], [1e3, 'ms'], [1, 'µs']],
	milliseconds: [[1e3, 's'], [1, 'ms']],
	seconds: [[1, 's']],
	bytes: [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']],
	count: [[1e9, 'G'], [1e6, 'M'], [1e4, 'k'], [1, '']],
};

// A value for people: "1.234 s". Counts below ten thousand are whole.
function formatValue(value, unit) {
	const scales = SCALES[unit] || SCALES.count;
	const size = Math.abs(value);
	let [divisor, name] = scales.find(([least]) => size >= least) || scales[scales.length - 1];
	if (name === 'k')
		[divisor, name] = [1e3, 'k'];
	const scaled = value / divisor;
	const digits = Number.isInteger(scaled) && divisor === 1 ? 0 : Math.abs(scaled) >= 100 ? 1 : Math.abs(scaled) >= 10 ? 2 : 3;
	const text = (digits ? scaled.toFixed(digits) : formatCount(scaled)).replace('-', '−');
	return name ? `${text} ${name}` : text;
}

// A point of an axis whose points are `step` microseconds apart, all with one unit and no more digits than distinguish them.
function formatTick(time, step) {
	const [divisor, name] = SCALES.microseconds.find(([least]) => 10 * step >= least) || [1, 'µs'];
	const digits = Math.max(0, Math.ceil(Math.log10(divisor / step) - 1e-9));
	return time ? `${(time / divisor).toFixed(digits)} ${name}` : '0';
}

function formatPercent(part, whole) {
	if (!whole)
		return '–';
	const percent = 100 * part / whole;
	return `${percent.toFixed(Math.abs(percent) >= 99.995 || percent === 0 ? 0 : 2).replace('-', '−')} %`;
}

// A change, with its sign: "+12.3 %", "new", "gone".
function formatChange(base, now) {
	if (!base)
		return now ? 'new' : '–';
	if (!now)
		return 'gone';
	const percent = 100 * (now - base) / base;
	return `${percent >= 0 ? '+' : '−'}${Math.abs(percent).toFixed(Math.abs(percent) < 9.95 ? 1 : 0)} %`;
}

function formatSigned(value, unit) {
	return value > 0 ? `+${formatValue(value, unit)}` : formatValue(value, unit);
}

const formatCount = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
const plural = (n, one, many) => `${formatCount(n)} ${n === 1 ? one : many}`;
const baseName = (path) => path.slice(path.lastIndexOf('/') + 1) || path;
