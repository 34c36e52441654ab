// Elements of a page. Texts of foreign origin become text nodes, never markup.

const byId = (id) => document.getElementById(id);

// An element with properties (functions are listeners) and children (texts or elements).
function make(tag, properties, ...children) {
	const element = document.createElement(tag);
	for (const [key, value] of Object.entries(properties || {})) {
		if (typeof value === 'function')
			element.addEventListener(key, value);
		else if (key in element && typeof value !== 'string')
			element[key] = value;
		else
			element.setAttribute(key, value);
	}
	element.append(...children);
	return element;
}

const darkQuery = window.matchMedia('(prefers-color-scheme: dark)');
