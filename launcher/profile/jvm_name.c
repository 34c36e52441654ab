/*
 * Names of methods that compilers of other languages made for the Java virtual machine. What a name cannot have there
 * is encoded in it, each function that is a value is a class or a method of its own, and what the compiler added has a
 * name, too. Numbers that it counted are left out, for they change with the rest of the file: reports
 * distinguish functions of one name by their lines.
 *
 * Sources: Scala's NameTransformer and the class files of scalac 2.11 and 2.12; CHAR_MAP of Clojure's Compiler.java;
 * Kotlin's documents of calls from Java and of mangling for inline classes, and the class files of kotlinc 1.3.
 */
#include "launcher/profile/jvm_name.h"

#include <stdbool.h>
#include <string.h>

#include "include/internal/base.h"

#define ANONYMOUS "(anonymous)"

struct name {
	const char *class, *method, *end; /* the class ends before the dot before the method */
	char *out;
	size_t nr, size; /* nr may exceed size: then it did not fit */
};

static void put(struct name *n, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++, n->nr++) {
		if (n->nr < n->size)
			n->out[n->nr] = text[i];
	}
}

/* A part of a name, behind a dot if another part is before it. */
static void put_part(struct name *n, const char *text, size_t len)
{
	if (len && n->nr && n->nr < n->size && n->out[n->nr - 1] != '.')
		put(n, ".", 1);
	put(n, text, len);
}

static bool begins(const char *at, const char *end, const char *with)
{
	size_t len = strlen(with);

	return (size_t)(end - at) >= len && !memcmp(at, with, len);
}

static bool is_one_of(const char *at, const char *end, const char *const *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if ((size_t)(end - at) == strlen(words[i]) && begins(at, end, words[i]))
			return true;
	return false;
}

/* Behind the digits that a text begins with. */
static const char *behind_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

static const char *find(const char *at, const char *end, const char *text)
{
	for (; at < end; at++)
		if (begins(at, end, text))
			return at;
	return NULL;
}

struct code {
	const char *text;
	char is;
};

/* The code that a text begins with; NULL: it is none. */
static const struct code *code_at(const struct code *codes, size_t nr, const char *at, const char *end)
{
	for (size_t i = 0; i < nr; i++)
		if (begins(at, end, codes[i].text))
			return &codes[i];
	return NULL;
}

/* ---- Clojure ----------------------------------------------------------------------------------------------------- */

static void put_clojure(struct name *n, const char *at, const char *end)
{
	static const struct code codes[] = {
		{"_COLON_", ':'},     {"_PLUS_", '+'},         {"_GT_", '>'},          {"_LT_", '<'},
		{"_EQ_", '='},        {"_TILDE_", '~'},        {"_BANG_", '!'},        {"_CIRCA_", '@'},
		{"_SHARP_", '#'},     {"_PERCENT_", '%'},      {"_CARET_", '^'},       {"_STAR_", '*'},
		{"_AMPERSAND_", '&'}, {"_BAR_", '|'},          {"_LBRACE_", '{'},      {"_RBRACE_", '}'},
		{"_LBRACK_", '['},    {"_SINGLEQUOTE_", '\''}, {"_DOUBLEQUOTE_", '"'}, {"_RBRACK_", ']'},
		{"_SLASH_", '/'},     {"_QMARK_", '?'},        {"_BSLASH_", '\\'},     {"_", '-'},
	};

	while (at < end) {
		const struct code *code = code_at(codes, CSINK_ARRAY_SIZE(codes), at, end);

		put(n, code ? &code->is : at, 1);
		at += code ? strlen(code->text) : 1;
	}
}

/* Behind a name are numbers: fn__5935, loading__6789__auto____8961, eval222. */
static const char *without_numbers(const char *at, const char *end)
{
	for (const char *cut = at + 1; cut + 2 < end; cut++)
		if (begins(cut, end, "__") && behind_digits(cut + 2, end) > cut + 2)
			return cut;
	return begins(at, end, "eval") && behind_digits(at + 4, end) == end ? at + 4 : end;
}

/* core$map$fn__5935.invoke: a function is a class, with a method for each way to call it. */
static void decode_clojure(struct name *n)
{
	static const char *const calls[] = {"invoke", "invokeStatic", "invokePrim", "doInvoke"};
	const char *class_end = n->method - 1, *at = memchr(n->class, '$', (size_t)(class_end - n->class));

	if (!at) { /* a record, or what a protocol became */
		put(n, n->class, (size_t)(n->method - n->class));
		put_clojure(n, n->method, n->end);
		return;
	}
	put_clojure(n, n->class, at);
	while (at < class_end) {
		const char *next = memchr(at + 1, '$', (size_t)(class_end - at - 1));

		next = next ? next : class_end;
		put(n, "/", 1);
		put_clojure(n, at + 1, without_numbers(at + 1, next));
		at = next;
	}
	if (is_one_of(n->method, n->end, calls, CSINK_ARRAY_SIZE(calls)))
		return;
	put(n, ".", 1);
	put_clojure(n, n->method, n->end);
}

/* ---- Scala ------------------------------------------------------------------------------------------------------- */

static const struct code operators[] = {
	{"$tilde", '~'},   {"$eq", '='},    {"$less", '<'},  {"$greater", '>'}, {"$bang", '!'},  {"$hash", '#'},
	{"$percent", '%'}, {"$up", '^'},    {"$amp", '&'},   {"$bar", '|'},     {"$times", '*'}, {"$div", '/'},
	{"$plus", '+'},    {"$minus", '-'}, {"$colon", ':'}, {"$bslash", '\\'}, {"$qmark", '?'}, {"$at", '@'},
};

/* What is encoded there: an operator, or a character of the form $u0020. Returns its bytes; 0: nothing is. */
static size_t operator_at(const char *at, const char *end, char *is)
{
	const struct code *code = code_at(operators, CSINK_ARRAY_SIZE(operators), at, end);
	const char *behind = at + (code ? strlen(code->text) : 0);
	unsigned int value = 0;

	/* $equals is a class in another one. */
	if (code && (behind == end || *behind == '$')) {
		*is = code->is;
		return (size_t)(behind - at);
	}
	if (!begins(at, end, "$u00") || end - at < 6)
		return 0;
	for (int i = 4; i < 6; i++) {
		char c = at[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F'))
			return 0;
		value = value * 16 + (unsigned int)(c <= '9' ? c - '0' : (c & 7) + 9);
	}
	*is = (char)value;
	return value >= ' ' && value < 0x7f ? 6 : 0;
}

/* A part of a name, with its operators; from a $ on that begins no operator it ends. Returns where that is. */
static const char *put_scala(struct name *n, const char *at, const char *end)
{
	bool is_first = true;
	char is;

	while (at < end) {
		size_t bytes = *at == '$' ? operator_at(at, end, &is) : 0;

		if (*at == '$' && !bytes)
			break;
		if (is_first)
			put_part(n, bytes ? &is : at, 1);
		else
			put(n, bytes ? &is : at, 1);
		is_first = false;
		at += bytes ? bytes : 1;
	}
	return at;
}

/* A function that is a value: behind $anonfun is the method that has it, and a number. Returns where that ends. */
static const char *put_anonymous(struct name *n, const char *at, const char *end)
{
	const char *digits = begins(at, end, "$") ? behind_digits(at + 1, end) : at;
	static const char *const applied[] = {"apply"};

	if (begins(at, end, "$") && digits == at + 1) {
		const char *name = at + 1, *behind = find(name, end, "$");

		behind = behind ? behind : end;
		if (is_one_of(name, behind, applied, 1))
			at = behind;
		else
			at = put_scala(n, name, end);
		if (at < end && begins(at, end, "$mc")) /* apply$mcVI$sp */
			at = find(at, end, "$sp") ? find(at, end, "$sp") + 3 : at;
		digits = begins(at, end, "$") ? behind_digits(at + 1, end) : at;
	}
	put_part(n, ANONYMOUS, strlen(ANONYMOUS));
	return digits > at + 1 ? digits : at;
}

static void decode_scala_class(struct name *n, const char *at, const char *end)
{
	while (at < end) {
		const char *digits = behind_digits(at + 1, end);

		if (*at != '$') {
			at = put_scala(n, at, end);
		} else if (begins(at, end, "$$anonfun")) {
			at = put_anonymous(n, at + strlen("$$anonfun"), end);
		} else if (begins(at, end, "$$anon$") || begins(at, end, "$anon$")) {
			at = behind_digits(at + (at[1] == '$' ? 7 : 6), end);
			put_part(n, ANONYMOUS, strlen(ANONYMOUS));
		} else if ((size_t)(end - at) == strlen("$class") && begins(at, end, "$class")) {
			at = end;
		} else if (digits > at + 1 && (digits == end || *digits == '$')) {
			at = digits; /* of a local class */
		} else {
			char is;

			if (operator_at(at, end, &is))
				at = put_scala(n, at, end);
			else
				at++;
		}
	}
}

static void decode_scala_method(struct name *n, bool is_in_anonymous)
{
	static const char *const own[] = {"$lzycompute", "$extension", "$adapted"};
	const char *at = n->method, *end = n->end, *number = end, *inner = NULL, *special, *rest;

	for (const char *next = at; (next = find(next, end, "$$")); next += 2)
		if (next > at && next + 2 < end && !begins(next, end, "$$anonfun"))
			inner = next + 2; /* com$acme$Main$$inner: of another class */
	at = inner ? inner : at;
	while (number > at && number[-1] >= '0' && number[-1] <= '9')
		number--;
	if (number - at > 10 && begins(number - 10, end, "$extension"))
		end = number; /* of a name that a value class has several times */
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(own); i++) {
		size_t len = strlen(own[i]);

		if ((size_t)(end - at) > len && begins(end - len, end, own[i]))
			end -= len;
	}
	special = find(at, end, "$mc");
	if (special && special > at && begins(end - 3, end, "$sp"))
		end = special;
	if (is_in_anonymous && end - at == 5 && begins(at, end, "apply"))
		return;
	if (begins(at, end, "$anonfun")) {
		put_anonymous(n, at + strlen("$anonfun"), end);
		return;
	}
	rest = put_scala(n, at, end);
	if (rest > at && rest < end && behind_digits(rest + 1, end) == end)
		return; /* a method in a method */
	if (rest > at)
		put(n, rest, (size_t)(end - rest));
	else
		put_part(n, at, (size_t)(end - at));
}

static void decode_scala(struct name *n)
{
	const char *class_end = n->method - 1, *simple = class_end;

	while (simple > n->class && simple[-1] != '.')
		simple--;
	put(n, n->class, (size_t)(simple - n->class));
	decode_scala_class(n, simple, class_end);
	decode_scala_method(n, find(simple, class_end, "$anonfun") != NULL);
}

/* ---- Kotlin ------------------------------------------------------------------------------------------------------ */

/* Where a name ends without one of the endings. */
static const char *without(const char *at, const char *end, const char *const *endings, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		size_t len = strlen(endings[i]);

		if ((size_t)(end - at) > len && !memcmp(end - len, endings[i], len))
			return end - len;
	}
	return end;
}

/*
 * Where put$app_main ends without the module of an internal function, or put$AllKt__MainKt without the class of a
 * private one. The names of local functions are like these; names of modules often have an underscore, those of
 * functions seldom.
 */
static const char *without_module(const char *at, const char *end)
{
	const char *module = end;

	while (module > at && module[-1] != '$')
		module--;
	return module > at + 1 && memchr(module, '_', (size_t)(end - module)) ? module - 1 : end;
}

/* main$lambda$0, foo$default, access$foo, access$getFoo$p, foo-impl, foo-WZ4Q5Ns, foo$app_main: what the compiler adds
 * to a method. */
static void decode_kotlin_method(struct name *n, bool is_in_anonymous)
{
	static const char *const calls[] = {"invoke", "invokeSuspend"};
	static const char *const defaults[] = {"$default"}, *const fields[] = {"$p", "$cp"};
	const char *at = n->method, *end = n->end, *lambda, *dash;

	if (is_in_anonymous && is_one_of(at, end, calls, CSINK_ARRAY_SIZE(calls)))
		return;
	if (begins(at, end, "access$") && end - at > 7) {
		at += 7;
		end = without(at, end, fields, CSINK_ARRAY_SIZE(fields));
	}
	end = without(at, end, defaults, CSINK_ARRAY_SIZE(defaults));
	lambda = find(at, end, "$lambda");
	end = without_module(at, lambda ? lambda : end);
	dash = memchr(at, '-', (size_t)(end - at));
	if (dash && dash > at && (begins(dash, end, "-impl") || end - dash == 8))
		end = dash;
	put_part(n, at, (size_t)(end - at));
	if (lambda)
		put_part(n, ANONYMOUS, strlen(ANONYMOUS));
}

static bool is_class_of_file(const char *at, const char *end, const char *file)
{
	const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	size_t len = strlen(base) - strlen(".kt");

	return (size_t)(end - at) == len + 2 && begins(end - 2, end, "Kt") && len &&
	       (at[0] | 0x20) == (base[0] | 0x20) && !memcmp(at + 1, base + 1, len - 1);
}

/* MainKt, or AllKt__MainKt, has the functions of Main.kt that are in no class. */
static bool is_of_file(const char *at, const char *end, const char *file)
{
	const char *part = find(at, end, "__");

	return is_class_of_file(at, end, file) || (part && is_class_of_file(part + 2, end, file));
}

/* In main$$inlined$let$lambda$1 the number: what is before it names a function that was inlined. */
static const char *behind_inlined(const char *at, const char *end)
{
	while (at < end && (*at < '0' || *at > '9')) {
		const char *next = memchr(at, '$', (size_t)(end - at));

		at = next ? next + 1 : end;
	}
	return at;
}

static void decode_kotlin(struct name *n, const char *file)
{
	static const char *const added[] = {"Companion", "DefaultImpls"};
	const char *class_end = n->method - 1, *at = class_end, *next;
	bool is_anonymous = false;

	while (at > n->class && at[-1] != '.')
		at--;
	put(n, n->class, (size_t)(at - n->class - (at > n->class)));
	for (bool is_first = true; at < class_end; at = next + (next < class_end), is_first = false) {
		if (at - n->class > 1 && at[-2] == '$' && begins(at, class_end, "inlined$"))
			at = behind_inlined(at, class_end);
		next = memchr(at, '$', (size_t)(class_end - at));
		next = next ? next : class_end;
		is_anonymous = next > at && behind_digits(at, next) == next;
		if (is_anonymous)
			put_part(n, ANONYMOUS, strlen(ANONYMOUS));
		else if (!(is_first && is_of_file(at, next, file)) &&
			 !is_one_of(at, next, added, CSINK_ARRAY_SIZE(added)))
			put_part(n, at, (size_t)(next - at));
	}
	decode_kotlin_method(n, is_anonymous);
}

/* ------------------------------------------------------------------------------------------------------------------ */

const char *csink_jvm_name(const char *name, const char *file, char *out, size_t size)
{
	const char *dot = strrchr(name, '.'), *ending = strrchr(file, '.');
	struct name n = {.class = name, .end = name + strlen(name), .out = out, .size = size};

	if (!dot || dot == name || !dot[1] || !ending || ending == file || ending[-1] == '/')
		return name;
	n.method = dot + 1;
	if (!strcmp(ending, ".clj") || !strcmp(ending, ".cljc"))
		decode_clojure(&n);
	else if (!strcmp(ending, ".scala"))
		decode_scala(&n);
	else if (!strcmp(ending, ".kt"))
		decode_kotlin(&n, file);
	else
		return name;
	if (!n.nr || n.nr >= size)
		return name;
	out[n.nr] = 0;
	return out;
}
