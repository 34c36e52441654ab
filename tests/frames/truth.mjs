// Functions of a module, for truth.js: V8 has a URL in place of its file.
class Inside {
	method(f) { return f(); }
}

function inner(f) { return new Inside().method(f); }

export default async function exported(f) {
	inner(f);
	await null;
	return inner(f);
}
