/* The tags of an XML text that a test program wrote, one after the other, whatever their order. Context: any. */
#ifndef CSINK_XML_TAGS_H
#define CSINK_XML_TAGS_H

#include <stdbool.h>
#include <stddef.h>

/* A tag in the text: <NAME ATTRIBUTE="...">; name is "/NAME" of one that closes. */
struct csink_xml_tag {
	const char *name, *end; /* end: of the whole, where its '>' is */
	size_t len;             /* of the name */
};

/** The next tag from *at on, which is moved behind it. Comments and declarations are left out. Returns whether there is
 * one. */
bool csink_xml_next(const char **at, struct csink_xml_tag *tag);

bool csink_xml_is(const struct csink_xml_tag *tag, const char *name);

/** Copy an attribute's value, with its references resolved; cut where it is longer. Returns false, and "", if there is
 * none. */
bool csink_xml_attribute(const struct csink_xml_tag *tag, const char *name, char *out, size_t size);

/** An attribute's number; NAN: there is none. */
double csink_xml_number(const struct csink_xml_tag *tag, const char *name);

#endif
