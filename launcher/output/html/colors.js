// Colours. A frame's text is dark on light or light on dark, at 7:1 and more; a module has a hue, or a language where a
// profile has functions of interpreters: their own code is nearly grey then. What matters is also shown in another way: pseudo-frames are hatched, inlined ones dashed, matches outlined, changes carry arrows and signs.

const HUES = [24, 205, 140, 45, 265, 180, 330, 95, 225, 5, 160, 290];
// The language of a frame is recorded, whatever its file is called.
const LANGUAGES = {Python: 205, PHP: 265, Perl: 180, Ruby: 340, JavaScript: 45, Java: 5, Go: 140};
const NATIVE = {name: 'native code', hue: 24, saturation: 0.18};
const OTHER = {name: 'other scripts', hue: 95, saturation: 1};

function hashText(text) {
	let hash = 2166136261;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return hash >>> 0;
}

function hslToRgb(h, s, l) {
	const a = s * Math.min(l, 1 - l);
	const channel = (n) => {
		const k = (n + h / 30) % 12;
		return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
	};
	return [channel(0), channel(8), channel(4)];
}

function luminance([r, g, b]) {
	const linear = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
	return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(a, b) {
	const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
	return (high + 0.05) / (low + 0.05);
}

class Colors {
	constructor(model) {
		this.model = model;
		// Modules take hues in the order of their weight, so that the large ones differ most.
		this.hueOf = new Map();
		this.setTheme('light');
	}

	rankModules(functions) {
		const weights = new Map();
		for (let i = 0; i < this.model.nrFrames; i++) {
			const module = this.model.frames.module[i];
			weights.set(module, (weights.get(module) || 0) + functions[0].self[i]);
		}
		[...weights].sort((a, b) => b[1] - a[1]).forEach(([module], rank) => {
			const text = this.model.texts[module];
			this.hueOf.set(module, rank < HUES.length ? HUES[rank] : hashText(text) % 360);
		});
	}

	// The language of a frame, where the profile has any; of an older profile, or a later one's language, it is not known.
	language(frame) {
		const name = this.model.languageOf(frame);
		if (!this.model.hasLanguages)
			return null;
		if (Object.hasOwn(LANGUAGES, name))
			return {name, hue: LANGUAGES[name], saturation: 1};
		return name || this.model.isInterpreted(frame) ? OTHER : NATIVE;
	}

	setTheme(theme) {
		this.isDark = theme === 'dark';
		this.text = this.isDark ? [244, 245, 247] : [17, 20, 26];
		this.cache = new Map();
	}

	// Functions of a module differ a little, so that siblings can be distinguished.
	frame(frame) {
		let color = this.cache.get(frame);
		if (color)
			return color;
		if (frame < 0 || this.model.isPseudo(frame)) {
			color = this.isDark ? [62, 66, 74] : [214, 217, 222];
		} else {
			const language = this.language(frame);
			const hue = language ? language.hue : this.hueOf.get(this.model.frames.module[frame]) ?? 24;
			const shade = hashText(this.model.frames.name[frame]) % 5 / 4;
			const saturation = (this.isDark ? 0.42 : 0.72) * (language ? language.saturation : 1);
			color = this.isDark ? hslToRgb(hue, saturation, 0.25 + 0.07 * shade) : hslToRgb(hue, saturation, 0.76 + 0.1 * shade);
		}
		this.cache.set(frame, color);
		return color;
	}

	// -1 (gone) ... 0 ... +1 (new): blue to grey to orange, which nearly all people can distinguish.
	change(amount) {
		const strength = Math.min(1, Math.abs(amount));
		const zero = this.isDark ? [58, 61, 68] : [226, 228, 231];
		const full = amount > 0 ? (this.isDark ? [140, 66, 8] : [250, 158, 78]) : (this.isDark ? [24, 82, 150] : [116, 176, 240]);
		return zero.map((c, i) => Math.round(c + (full[i] - c) * strength));
	}
}

const css = (color) => `rgb(${color[0]},${color[1]},${color[2]})`;
