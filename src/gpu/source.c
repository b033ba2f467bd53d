/* source.c - see source.h. */
#include "gpu/source.h"

#include "base/status.h"
#include "base/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tally_status source_check(const struct problem *p) {
    if (!p->user) return TALLY_OK;
    if (!p->user->source)
        return fail(TALLY_EUNSUPPORTED,
                    "this user operator has no source expression: it runs on the "
                    "cpu device only");
    if (type_is_short_float(p->type))
        return fail(TALLY_EUNSUPPORTED, "user operators on %s run on the cpu device only",
                    tally_type_name(p->type));
    return TALLY_OK;
}

/* The text around a user's expression. The expression has lines of its own, so that a compiler's
 * message names the line within it. */
static const char frame[] = "#include \"kernels/tuning.h\"\n"
                            "#include \"kernels/operators.h\"\n"
                            "PURE element user_combine(element a, element b) {\n"
                            "    return (element)(\n"
                            "#line 1 \"operator\"\n"
                            "%s\n"
                            ");\n"
                            "}\n";

tally_status source_prelude(const struct problem *p, char **out) {
    size_t size = sizeof frame + strlen(p->user->source);
    *out = malloc(size);
    if (!*out) return fail(TALLY_ENOMEM, "no memory for an operator's text (%zu bytes)", size);
    snprintf(*out, size, frame, p->user->source);
    return TALLY_OK;
}
