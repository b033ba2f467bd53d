/* own_object.c - see own_object.h. */
#include "ladder/own_object.h"

#include "base/status.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if UINTPTR_MAX == UINT64_MAX
typedef Elf64_Ehdr elf_header;
typedef Elf64_Shdr elf_section;
typedef Elf64_Sym elf_symbol;
typedef Elf64_Dyn elf_dynamic;
typedef Elf64_Rela elf_relocation;
#define RELOCATION_TYPE(r) ELF64_R_TYPE((r)->r_info)
#define SYMBOL_TYPE(s)     ELF64_ST_TYPE((s)->st_info)
#else
typedef Elf32_Ehdr elf_header;
typedef Elf32_Shdr elf_section;
typedef Elf32_Sym elf_symbol;
typedef Elf32_Dyn elf_dynamic;
typedef Elf32_Rela elf_relocation;
#define RELOCATION_TYPE(r) ELF32_R_TYPE((r)->r_info)
#define SYMBOL_TYPE(s)     ELF32_ST_TYPE((s)->st_info)
#endif

#if defined(__x86_64__)
#define IS_RESOLVER(type) ((type) == R_X86_64_IRELATIVE || (type) == R_X86_64_COPY)
#elif defined(__aarch64__)
#define IS_RESOLVER(type) ((type) == R_AARCH64_IRELATIVE || (type) == R_AARCH64_COPY)
#else
#define IS_RESOLVER(type) 0
#endif

enum { FAR_PAST = 1 << 16 }; /* bytes past a shared array that still count as the array's */

struct image {
    char *bytes;
    size_t size;
    const elf_header *header;
    const elf_section *sections;
    const char *names;
};

static const void *at(const struct image *m, uint64_t offset, uint64_t size) {
    return offset <= m->size && size <= m->size - offset ? m->bytes + offset : NULL;
}

/* Returns the file's first section of that type; NULL where it has none. */
static const elf_section *section_of_type(const struct image *m, uint32_t type) {
    for (unsigned i = 0; i < m->header->e_shnum; i++)
        if (m->sections[i].sh_type == type) return &m->sections[i];
    return NULL;
}

static const char *section_name(const struct image *m, const elf_section *s) {
    return m->names + s->sh_name;
}

static bool read_header(struct image *m) {
    m->header = at(m, 0, sizeof *m->header);
    if (!m->header || memcmp(m->header->e_ident, ELFMAG, SELFMAG) != 0) return false;
    m->sections = at(m, m->header->e_shoff, (uint64_t)m->header->e_shnum * sizeof *m->sections);
    if (!m->sections || m->header->e_shstrndx >= m->header->e_shnum) return false;
    const elf_section *names = &m->sections[m->header->e_shstrndx];
    m->names = at(m, names->sh_offset, names->sh_size);
    if (!m->names || names->sh_size == 0 || m->names[names->sh_size - 1]) return false;
    for (unsigned i = 0; i < m->header->e_shnum; i++)
        if (m->sections[i].sh_name >= names->sh_size) return false;
    return true;
}

/* Removes constructors and destructors from the dynamic section. Returns false if the object has no such section, or
 * needs other libraries. */
static bool disarm(const struct image *m) {
    const elf_section *s = section_of_type(m, SHT_DYNAMIC);
    elf_dynamic *d = s ? (elf_dynamic *)at(m, s->sh_offset, s->sh_size) : NULL;
    if (!d) return false;
    for (size_t i = 0; i < s->sh_size / sizeof *d; i++)
        switch (d[i].d_tag) {
        case DT_NEEDED:
        case DT_AUXILIARY:
        case DT_FILTER:
            return false;
        case DT_INIT:
        case DT_FINI:
        case DT_INIT_ARRAY:
        case DT_FINI_ARRAY:
        case DT_INIT_ARRAYSZ:
        case DT_FINI_ARRAYSZ:
        case DT_PREINIT_ARRAY:
        case DT_PREINIT_ARRAYSZ:
            d[i].d_tag = DT_DEBUG; /* the loader ignores this tag in a shared object */
            break;
        default:
            break;
        }
    return true;
}

static bool has_resolvers(const struct image *m) {
    for (unsigned i = 0; i < m->header->e_shnum; i++) {
        const elf_section *s = &m->sections[i];
        if (s->sh_type != SHT_RELA) continue;
        const elf_relocation *r = at(m, s->sh_offset, s->sh_size);
        if (!r) return true;
        for (size_t k = 0; k < s->sh_size / sizeof *r; k++)
            if (IS_RESOLVER(RELOCATION_TYPE(&r[k]))) return true;
    }
    return false;
}

/* Writes the plain name of a C++ symbol to out: "sdata" of "_ZZL3sumPfS_iE5sdata_0". Any other name stays as it
 * is. */
static void plain_name(const char *symbol, char out[64]) {
    const char *from = symbol;
    size_t length = strlen(symbol);
    if (strncmp(symbol, "_Z", 2) == 0)
        for (const char *e = symbol + length; --e > symbol;) {
            char *end;
            if (*e != 'E' && !(e[0] == 'L' && e[-1] == 'Z')) continue;
            const unsigned long size = strtoul(e + 1, &end, 10);
            if (end == e + 1 || size == 0 || size > strlen(end)) continue;
            from = end;
            length = size;
            break;
        }
    snprintf(out, 64, "%.*s", (int)length, from);
}

static tally_status note_symbols(const struct image *m, struct own_object *out) {
    const elf_section *s = section_of_type(m, SHT_SYMTAB);
    const elf_symbol *symbols = s ? at(m, s->sh_offset, s->sh_size) : NULL;
    if (!symbols || s->sh_link >= m->header->e_shnum) return TALLY_OK; /* it was stripped */
    const elf_section *strings = &m->sections[s->sh_link];
    const char *names = at(m, strings->sh_offset, strings->sh_size);
    if (!names || strings->sh_size == 0 || names[strings->sh_size - 1])
        return fail(TALLY_EFORMAT, "the kernel's object has a broken table of symbols");
    const size_t count = s->sh_size / sizeof *symbols;
    out->arrays = calloc(count + 1, sizeof *out->arrays);
    out->variables = calloc(count + 1, sizeof *out->variables);
    if (!out->arrays || !out->variables)
        return fail(TALLY_ENOMEM, "no memory for the kernel's symbols");
    for (size_t i = 0; i < count; i++) {
        const elf_symbol *y = &symbols[i];
        if (y->st_name >= strings->sh_size) continue;
        const char *name = names + y->st_name;
        if (strcmp(name, "tally_hook_names") == 0) out->anchor = y->st_value;
        if (y->st_shndx < m->header->e_shnum && strcmp(name, "own_dynamic") != 0 &&
            strcmp(section_name(m, &m->sections[y->st_shndx]), "model_dynamic") == 0 && *name)
            snprintf(out->dynamic_name, sizeof out->dynamic_name, "%s", name);
        if (SYMBOL_TYPE(y) != STT_OBJECT || y->st_shndx >= m->header->e_shnum) continue;
        const elf_section *in = &m->sections[y->st_shndx];
        const bool is_global = strcmp(section_name(m, in), "model_global") == 0;
        if ((strcmp(section_name(m, in), "model_shared") != 0 && !is_global) || y->st_size == 0)
            continue;
        struct own_array *a =
            is_global ? &out->variables[out->variable_count++] : &out->arrays[out->array_count++];
        a->span = (struct own_span){y->st_value, y->st_size};
        plain_name(name, a->name);
        if (!is_global) out->shared_used += y->st_size;
    }
    return TALLY_OK;
}

static void note_sections(const struct image *m, struct own_object *out) {
    for (unsigned i = 0; i < m->header->e_shnum; i++) {
        const elf_section *s = &m->sections[i];
        const char *name = section_name(m, s);
        const struct own_span span = {s->sh_addr, s->sh_size};
        if (strcmp(name, "model_shared") == 0) out->shared = span;
        if (strcmp(name, "model_dynamic") == 0) out->dynamic = span;
        if (strcmp(name, "model_global") == 0) out->global = span;
    }
}

static tally_status read_image(struct image *m, const char *path, struct own_object *out) {
    if (!read_header(m)) return fail(TALLY_EFORMAT, "%s is no object of a kernel", path);
    if (!disarm(m) || has_resolvers(m))
        return fail(TALLY_EFORMAT, "%s would run more than a kernel when it is loaded", path);
    note_sections(m, out);
    return note_symbols(m, out);
}

tally_status own_object_read(const char *path, struct own_object *out) {
    struct stat about;
    struct image m = {0};
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) != 0) {
        if (file >= 0) close(file);
        return fail(TALLY_EFORMAT, "%s cannot be read and changed", path);
    }
    if (!S_ISREG(about.st_mode)) { /* only a regular file can be mapped */
        close(file);
        return fail(TALLY_EFORMAT, "%s is no object of a kernel", path);
    }
    m.size = (size_t)about.st_size;
    m.bytes = mmap(NULL, m.size ? m.size : 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (m.bytes == MAP_FAILED) return fail(TALLY_ENOMEM, "no memory for %s", path);
    const tally_status status = read_image(&m, path, out);
    munmap(m.bytes, m.size ? m.size : 1);
    return status;
}

void own_object_settle(struct own_object *o, uintptr_t anchor) {
    const uintptr_t by = anchor - o->anchor;
    struct own_span *const spans[] = {&o->shared, &o->dynamic, &o->global};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (spans[i]->bytes) spans[i]->base += by;
    for (size_t i = 0; i < o->array_count; i++)
        o->arrays[i].span.base += by;
    for (size_t i = 0; i < o->variable_count; i++)
        o->variables[i].span.base += by;
    o->anchor = anchor;
}

void own_object_forget(struct own_object *o) {
    free(o->arrays);
    free(o->variables);
    o->arrays = o->variables = NULL;
}

bool own_object_is_near(const struct own_object *o, uintptr_t address) {
    return (o->shared.bytes && address - o->shared.base < o->shared.bytes + FAR_PAST) ||
           (o->dynamic.bytes && address - o->dynamic.base < o->dynamic.bytes + FAR_PAST);
}

bool own_object_array(const struct own_object *o, uintptr_t address, const char **name,
                      struct own_span *span) {
    const struct own_array *found = NULL;
    if (o->dynamic.bytes && address - o->dynamic.base < o->dynamic.bytes + FAR_PAST) {
        *name = o->dynamic_name;
        *span = o->dynamic;
        return true;
    }
    if (!own_object_is_near(o, address)) return false;
    /* Find the last array that begins at or before the address. */
    for (size_t i = 0; i < o->array_count; i++)
        if (o->arrays[i].span.base <= address &&
            (!found || o->arrays[i].span.base > found->span.base))
            found = &o->arrays[i];
    if (!found) return false;
    *name = found->name;
    *span = found->span;
    return true;
}

bool own_object_variable(const struct own_object *o, uintptr_t address, const char **name,
                         struct own_span *span) {
    for (size_t i = 0; i < o->variable_count; i++) {
        const struct own_array *v = &o->variables[i];
        if (address - v->span.base >= v->span.bytes) continue;
        *name = v->name;
        *span = v->span;
        return true;
    }
    return false;
}

bool own_object_say(const struct own_object *o, uintptr_t address, size_t element, char *text,
                    size_t room) {
    const char *name;
    struct own_span span;
    if (!own_object_array(o, address, &name, &span) &&
        !own_object_variable(o, address, &name, &span))
        return false;
    if (span.bytes > element || address - span.base >= element)
        snprintf(text, room, "%s[%zu]", name, (size_t)(address - span.base) / element);
    else
        snprintf(text, room, "%s", name);
    return true;
}
