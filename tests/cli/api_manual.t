#!/bin/sh
# Manual pages of section 3: each public header has one, with its functions, prototypes, types and errors.
. "$(dirname "$0")/lib.sh"

if ! have python3; then
	skip_all "there is no python3"
fi

cat >compare.py <<'END'
"""compare.py INCLUDE MAN PART HEADER: what PART of HEADER differs between the header and its page; nothing if equal."""
import pathlib, re, sys

include, man, part, header = sys.argv[1:]
source = (pathlib.Path(include) / header).read_text()
plain = lambda text: ' '.join(text.split())

def unmarked(text):
    text = re.sub(r'\\f[BIR]', '', text).replace('\\(aq', "'").replace('\\-', '-').replace('\\&', '').replace('\\e', '\\')
    return re.sub(r'^\.(?!SS |SH ).*\n', '\n', text, flags=re.M)

pages = [unmarked(page.read_text()) for page in sorted(pathlib.Path(man).glob('*.3'))]
pages = [page for page in pages if f'#include <{header}>\n' in page.split('.SH DESCRIPTION')[0]]
if len(pages) != 1:
    sys.exit(f'{len(pages)} pages include {header}')
sections = dict(re.findall(r'^\.SH ([A-Z ]+)\n(.*?)(?=^\.SH |\Z)', pages[0], re.M | re.S))
entries = dict(re.findall(r'^\.SS (\w+)\n(.*?)(?=^\.SS |\Z)', sections['FUNCTIONS'], re.M | re.S))

# Functions: a comment, perhaps a macro, a declaration. What a caller does not call itself is left out.
functions = {}
for comment, declaration in re.findall(
        r'/\*\*((?:(?!\*/).)*)\*/\s*(?:#define[^\n]*\n)?((?:static inline )?[^;{}#/]*?\w+\([^;{]*\))(?=;|\s*\{)', source, re.S):
    declaration = plain(declaration.replace('static inline ', ''))
    functions[re.search(r'(\w+)\(', declaration).group(1)] = (comment, declaration)
called = set(re.findall(r'^(?:static inline )?(?:\w+[ *]+)+((?:csink|countersink)_\w+)\(', source, re.M))
called = {name for name in called if not name.endswith('_sized') and f'extern void {name}(' not in source}

def errors(text):
    return set(re.findall(r'-(E[A-Z0-9]{2,})\b', text))

if part == 'functions':
    named = set(re.findall(r'\w+', plain(sections['NAME']).split(' - ')[0]))
    print(*sorted(called ^ set(functions) | called ^ set(entries) | called ^ named))
elif part == 'prototypes':
    synopsis = plain(sections['SYNOPSIS'])
    print(*(declaration for _, declaration in functions.values() if declaration + ';' not in synopsis), sep='\n')
elif part == 'errors':
    print(*(f'{name}: {error}' for name, (comment, _) in functions.items()
            for error in sorted(errors(comment) ^ errors(entries.get(name, '')))), sep='\n')
elif part == 'types':
    body = source[source.index('extern "C"'):]
    types = re.findall(r'^(?:(?:enum|struct) \w+ \{.*?^\};|#define CSINK_[A-Z_]+\b(?!_H)[^\n]*)', body, re.M | re.S)
    page = plain(sections.get('TYPES AND CONSTANTS', ''))
    print(*(name for name in types if plain(name) not in page), sep='\n')
elif part == 'context':
    whole = 'Context of all functions:' in plain(sections['DESCRIPTION']) or 'Context: any thread' in plain(sections['DESCRIPTION'])
    print(*(name for name, entry in entries.items() if not whole and 'Context:' not in plain(entry)))
END

for header in countersink.h $(cd "$SRC/include" && ls countersink/*.h); do
	for part in functions prototypes types errors context; do
		is "$(python3 compare.py "$SRC/include" "$SRC/launcher/man" $part "$header" 2>&1)" "" "$header: its manual page has the same $part"
	done
done

# A page that lacks a function, a type's member and an error shows that the points above can fail.
mkdir man
cp "$SRC"/launcher/man/*.3 man/
sed -i -e '/^\.SS csink_pmc_stop$/d' -e '/uint32_t nr_ended;/d' -e '/EEXIST/d' man/csink_pmc.3
is "$(python3 compare.py "$SRC/include" man functions countersink/pmc.h)" csink_pmc_stop "a function without an entry is found"
like "$(python3 compare.py "$SRC/include" man types countersink/pmc.h)" 'struct csink_pmc_value' "a type that differs is found"
like "$(python3 compare.py "$SRC/include" man errors countersink/pmc.h)" '^csink_pmc_attach: EEXIST$' "an error without an entry is found"
done_testing
