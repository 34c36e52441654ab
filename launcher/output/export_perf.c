/*
 * perf.data, in the form that perf record leaves in a file: an attribute for each type, COMM and MMAP2 (with build-ids)
 * for each process, then samples with their call chains, whose periods are what the profile added up. Described in the
 * kernel's tools/perf/Documentation/perf.data-file-format.txt and perf_event_open(2).
 *
 * Objects get addresses of their own, since those of a profile are of many processes and may overlap. What is in no
 * object, and so could not be named by perf (pseudo-functions, code made at run time), gets a KSYMBOL record each: the
 * one way to give an address a name in the file itself. perf shows these as the kernel's. The symbol of an
 * interpreted function has its file and first line, "score at slow.py:12", and is so long that each of its lines has an
 * address: perf prints the third line below as score at slow.py:12+0x3.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/path.h"
#include "launcher/output/export.h"
#include "launcher/output/export_perf.h"
#include "launcher/output/thread_names.h"
#include "launcher/profile/interpreted.h"
#include "launcher/profile/profile.h"

#define OBJECTS_AT 0x100000000ULL
#define OBJECT_ALIGN 0x10000ULL
/* The kernel's, but below its text: a reader without KSYMBOL (hotspot) takes the symbol of the kernel that lies below.
 */
#define SYMBOLS_AT 0xffff800000000000ULL
#define SYMBOL_BYTES 16
#define MAX_SYMBOL 256
#define MAX_LINES (1 << 20)
#define MAX_NAME 4000             /* a record has 65535 bytes */
#define FIRST_SPARE_PID (1 << 22) /* above the kernel's largest */

/* ---- records ---- */

void csink_perf_put_name(FILE *out, const char *name, size_t padded)
{
	size_t len = strnlen(name, padded - 1);

	fwrite(name, 1, len, out);
	for (; len < padded; len++)
		putc(0, out);
}

/* Of a name in a record: to eight bytes. */
static size_t padded(const char *name)
{
	return (CSINK_MIN(strlen(name), (size_t)MAX_NAME) + 8) & ~(size_t)7;
}

static void put_header(FILE *out, uint32_t type, uint16_t misc, size_t size)
{
	struct perf_event_header header = {.type = type, .misc = misc, .size = sizeof(header) + size};

	fwrite(&header, sizeof(header), 1, out);
}

static void put_comm(FILE *out, int32_t pid, int32_t tid, const char *comm)
{
	int32_t ids[2] = {pid, tid};
	char cut[16];

	snprintf(cut, sizeof(cut), "%s", comm);
	put_header(out, PERF_RECORD_COMM, 0, sizeof(ids) + padded(cut));
	fwrite(ids, sizeof(ids), 1, out);
	csink_perf_put_name(out, cut, padded(cut));
}

static void put_mapping(FILE *out, int32_t pid, const struct csink_perf_object *object)
{
	struct {
		int32_t pid, tid;
		uint64_t start, bytes, offset;
		uint8_t build_id_len, reserved[3], build_id[20];
		uint32_t prot, flags;
	} body = {pid, pid, object->base, object->bytes, object->offset, object->build_id_len, {0}, {0}, 5, 2};

	memcpy(body.build_id, object->build_id, sizeof(body.build_id));
	put_header(out, PERF_RECORD_MMAP2,
		   PERF_RECORD_MISC_USER | (object->build_id_len ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0),
		   sizeof(body) + padded(object->file));
	fwrite(&body, sizeof(body), 1, out);
	csink_perf_put_name(out, object->file, padded(object->file));
}

static void put_symbol(FILE *out, uint64_t address, uint32_t bytes, const char *name)
{
	struct {
		uint64_t address;
		uint32_t bytes;
		uint16_t type, flags;
	} body = {address, bytes, PERF_RECORD_KSYMBOL_TYPE_OOL, 0};
	char cut[MAX_SYMBOL];

	snprintf(cut, sizeof(cut), "%s", name);
	put_header(out, PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL, sizeof(body) + padded(cut));
	fwrite(&body, sizeof(body), 1, out);
	csink_perf_put_name(out, cut, padded(cut));
}

/* ---- objects and symbols ---- */

/* A source file, the module of interpreted functions, has no addresses. */
static bool is_object(const struct csink_profile *p, uint32_t mapping)
{
	const char *file = mapping < p->nr_mappings ? csink_profile_text(p, p->mappings[mapping].file) : "";

	if (mapping < p->nr_mappings && !p->mappings[mapping].start && !p->mappings[mapping].limit)
		return false;
	return *file == '/' || !strcmp(file, "[vdso]");
}

static uint8_t hex_digit(char c)
{
	return c >= 'a' ? c - 'a' + 10 : c >= 'A' ? c - 'A' + 10 : c - '0';
}

static void read_build_id(struct csink_perf_object *object, const char *hex)
{
	size_t len = strlen(hex);

	if (len % 2 || len > 2 * sizeof(object->build_id) || strspn(hex, "0123456789abcdefABCDEF") != len)
		return;
	for (size_t i = 0; i < len / 2; i++)
		object->build_id[i] = hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]);
	object->build_id_len = len / 2;
}

/* Where each mapping lies in the file: as large as its locations need. */
static int place_objects(struct csink_perf *e)
{
	const struct csink_profile *p = e->p;
	uint64_t next = OBJECTS_AT;
	struct csink_perf_object *object;

	e->objects = calloc(p->nr_mappings + 1, sizeof(*e->objects));
	if (!e->objects)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->nr_mappings; i++) {
		object = &e->objects[i];
		object->start = p->mappings[i].start;
		object->bytes = CSINK_MAX(p->mappings[i].limit, object->start + 1) - object->start;
		object->offset = p->mappings[i].offset;
		object->file = csink_profile_text(p, p->mappings[i].file);
		read_build_id(object, csink_profile_text(p, p->mappings[i].build_id));
	}
	for (uint32_t i = 1; i < p->nr_locations; i++) {
		uint64_t address = p->locations[i].address, more;

		if (!is_object(p, p->locations[i].mapping))
			continue;
		object = &e->objects[p->locations[i].mapping];
		if (address < object->start && object->start - address <= object->offset) {
			more = object->start - (address & ~0xfffULL);
			more = CSINK_MIN(more, object->offset);
			object->start -= more;
			object->offset -= more;
			object->bytes += more;
		}
		if (address >= object->start)
			object->bytes = CSINK_MAX(object->bytes, address - object->start + 1);
	}
	for (uint32_t i = 1; i < p->nr_mappings; i++) {
		object = &e->objects[i];
		object->base = next + object->start % OBJECT_ALIGN;
		next = (object->base + object->bytes + 2 * OBJECT_ALIGN) & ~(OBJECT_ALIGN - 1);
	}
	return 0;
}

/* How far below an interpreted function's first line a line is. */
static uint32_t lines_below(const struct csink_profile *p, const struct csink_profile_line *line)
{
	int64_t first = p->functions[line->function].start_line;

	return first > 0 && line->line > first && line->line - first < MAX_LINES ? (uint32_t)(line->line - first) : 0;
}

/* The addresses that each function needs beyond SYMBOL_BYTES: e->symbols[f].lines. */
static void count_lines(struct csink_perf *e)
{
	const struct csink_profile *p = e->p;

	for (uint32_t id = 1; id < p->nr_locations; id++) {
		const struct csink_profile_location *location = &p->locations[id];
		const struct csink_profile_line *line = &p->lines[location->first_line];
		struct csink_perf_symbol *symbol;

		if (!location->nr_lines || !csink_is_interpreted(p, location->mapping, line->function))
			continue;
		symbol = &e->symbols[line->function];
		symbol->is_interpreted = true;
		symbol->lines = CSINK_MAX(symbol->lines, lines_below(p, line));
	}
}

/* The address that stands for a function in no object: a KSYMBOL is written at its first use. */
static uint64_t symbol_address(struct csink_perf *e, uint32_t function)
{
	const struct csink_profile_function *f = &e->p->functions[function];
	const char *name = csink_profile_text(e->p, f->name);
	struct csink_perf_symbol *symbol = &e->symbols[function];
	uint32_t bytes = (symbol->lines + SYMBOL_BYTES) & ~(SYMBOL_BYTES - 1U);
	char place[MAX_SYMBOL];

	if (!symbol->address) {
		symbol->address = SYMBOLS_AT + SYMBOL_BYTES + e->symbol_bytes;
		e->symbol_bytes += bytes;
		snprintf(place, sizeof(place), f->start_line ? "%.160s at %.60s:%" PRId64 : "%.160s at %.60s", name,
			 csink_base_name(csink_profile_text(e->p, f->file)), f->start_line);
		put_symbol(e->names, symbol->address, bytes,
			   symbol->is_interpreted ? place
			   : *name                ? name
						  : "[unknown]");
	}
	return symbol->address;
}

/* ---- samples ---- */

static void push(struct csink_perf *e, uint64_t ip, uint64_t context)
{
	if (e->context != context && e->nr_ips < CSINK_PERF_MAX_IPS)
		e->ips[e->nr_ips++] = e->context = context;
	if (e->nr_ips < CSINK_PERF_MAX_IPS)
		e->ips[e->nr_ips++] = ip;
}

/* The call chain of a stack, in e->ips. */
static void make_chain(struct csink_perf *e, uint32_t stack)
{
	const struct csink_profile *p = e->p;
	const struct csink_profile_range *range = &p->stacks[stack];

	e->nr_ips = 0;
	e->context = 0;
	for (uint32_t i = 0; i < range->nr; i++) {
		const struct csink_profile_location *location = &p->locations[p->stack_ids[range->first + i]];

		if (is_object(p, location->mapping)) {
			const struct csink_perf_object *object = &e->objects[location->mapping];

			push(e, location->address - object->start + object->base, PERF_CONTEXT_USER);
			continue;
		}
		/* Code made at run time that has no name keeps its time, which were its caller's otherwise. */
		if (!location->nr_lines)
			push(e, symbol_address(e, 0), PERF_CONTEXT_KERNEL);
		for (uint32_t k = 0; k < location->nr_lines; k++) {
			const struct csink_profile_line *line = &p->lines[location->first_line + k];
			uint64_t address = symbol_address(e, line->function);

			address += e->symbols[line->function].is_interpreted ? lines_below(p, line) : 0;
			push(e, address, PERF_CONTEXT_KERNEL);
		}
	}
	if (!e->nr_ips)
		push(e, 0, PERF_CONTEXT_USER);
}

static void put_sample(struct csink_perf *e, const struct csink_thread_row *row, uint32_t event)
{
	const struct csink_perf_process *who = &e->processes[row->thread];
	int64_t value = csink_profile_values(e->p, row->sample)[e->events[event].type];
	uint64_t body[8], nr = 0;
	int32_t ids[2] = {who->pid, who->tid};

	if (value <= 0)
		return;
	body[nr++] = event + 1; /* PERF_SAMPLE_IDENTIFIER */
	body[nr++] = e->ips[1]; /* behind the context */
	memcpy(&body[nr++], ids, sizeof(ids));
	if (e->has_times)
		body[nr++] = row->time_ns == CSINK_NO_TIME ? e->threads.first_ns : row->time_ns;
	body[nr++] = value;
	body[nr++] = e->nr_ips;
	put_header(e->data, PERF_RECORD_SAMPLE,
		   e->ips[0] == (uint64_t)PERF_CONTEXT_USER ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL,
		   (nr + e->nr_ips) * sizeof(*body));
	fwrite(body, sizeof(*body), nr, e->data);
	fwrite(e->ips, sizeof(*e->ips), e->nr_ips, e->data);
}

static void put_samples(struct csink_perf *e)
{
	for (uint32_t i = 0; i < e->threads.nr_rows; i++) {
		make_chain(e, e->p->samples[e->threads.rows[i].sample].stack);
		for (uint32_t k = 0; k < e->nr_events; k++)
			put_sample(e, &e->threads.rows[i], k);
	}
}

/* ---- processes ---- */

/* perf knows a process by its pid alone: another program in the same one (exec) gets a pid that no process has. Returns
 * whether the thread is the first of its process. */
static bool number_process(struct csink_perf *e, uint32_t i, int32_t *spare)
{
	const struct csink_thread *thread = &e->threads.threads[i], *other;
	struct csink_perf_process *process = &e->processes[i];
	bool is_new = true;

	process->pid = thread->pid ? thread->pid : (*spare)++;
	for (uint32_t k = 0; k < i; k++) {
		other = &e->threads.threads[k];
		if (other->pid != thread->pid)
			continue;
		is_new = strcmp(other->process, thread->process);
		if (!is_new) {
			process->pid = e->processes[k].pid;
			break;
		}
		if (process->pid == e->processes[k].pid)
			process->pid = (*spare)++;
	}
	process->tid = thread->tid && process->pid == thread->pid ? thread->tid : process->pid;
	return is_new;
}

static void put_processes(struct csink_perf *e)
{
	int32_t spare = FIRST_SPARE_PID;

	for (uint32_t i = 0; i < e->threads.nr_threads; i++) {
		const struct csink_thread *thread = &e->threads.threads[i];

		if (number_process(e, i, &spare)) {
			put_comm(e->names, e->processes[i].pid, e->processes[i].pid,
				 *thread->process ? thread->process : "[unknown]");
			for (uint32_t m = 1; m < e->p->nr_mappings; m++) {
				if (is_object(e->p, m))
					put_mapping(e->names, e->processes[i].pid, &e->objects[m]);
			}
		}
		if (*thread->thread && (e->processes[i].tid != e->processes[i].pid || !*thread->process))
			put_comm(e->names, e->processes[i].pid, e->processes[i].tid, thread->thread);
	}
}

/* ---- all of it ---- */

/* Which types become events: the chosen one first. How many samples there were is no weight of its own. */
static void choose_events(struct csink_perf *e, uint32_t chosen)
{
	for (uint32_t k = 0; k < e->p->nr_types && e->nr_events < CSINK_PERF_MAX_EVENTS; k++) {
		uint32_t type = k == 0 ? chosen : k <= chosen ? k - 1 : k;
		const char *name = csink_profile_text(e->p, e->p->types[type].name);

		if (type == chosen || strcmp(name, "samples"))
			e->events[e->nr_events++] = (struct csink_perf_type){type, name};
	}
}

static int export(struct csink_perf *e, FILE *out, uint32_t type)
{
	int err = csink_threads_build(&e->threads, e->p);

	if (err)
		return err;
	e->has_times = e->threads.first_ns != CSINK_NO_TIME;
	e->processes = calloc((size_t)e->threads.nr_threads + 1, sizeof(*e->processes));
	e->symbols = calloc((size_t)e->p->nr_functions + 1, sizeof(*e->symbols));
	e->names = open_memstream(&e->names_text, &e->names_bytes);
	e->data = open_memstream(&e->data_text, &e->data_bytes);
	if (!e->processes || !e->symbols || !e->names || !e->data || place_objects(e))
		return -ENOMEM;
	count_lines(e);
	choose_events(e, type);
	put_processes(e);
	put_samples(e);
	if (fflush(e->names) || ferror(e->names) || fflush(e->data) || ferror(e->data))
		return -ENOMEM;
	return csink_perf_write_file(out, e);
}

int csink_export_perf(FILE *out, const struct csink_profile *p, uint32_t type)
{
	struct csink_perf e = {.p = p};
	int err = export(&e, out, CSINK_MIN(type, CSINK_MAX(p->nr_types, 1) - 1));

	if (e.names)
		fclose(e.names);
	if (e.data)
		fclose(e.data);
	free(e.names_text);
	free(e.data_text);
	free(e.processes);
	free(e.objects);
	free(e.symbols);
	csink_threads_free(&e.threads);
	return err;
}
