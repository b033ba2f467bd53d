/*
 * unpack.c - see unpack.h. zlib, libzstd and libzip do the unpacking.
 */
#include "input/unpack.h"

#include "common/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

enum { PACKED_BYTES = 1 << 17 };

struct unpacker {
    const char *name;
    enum { GZIP, ZSTD, ZIP } kind;
    unpack_source *source;
    void *context;
    z_stream z;
    ZSTD_DStream *zstd;
    zip_t *archive;
    zip_file_t *member;
    bool ended;     /* the source has no more bytes */
    bool in_frame;  /* the packed bytes so far end within a frame */
    size_t at, end; /* packed bytes that have not been looked at are [at, end) */
    unsigned char packed[PACKED_BYTES];
};

static bool starts(const unsigned char *bytes, size_t size, const char *magic, size_t length) {
    return size >= length && memcmp(bytes, magic, length) == 0;
}

bool unpack_open(const char *name, const unsigned char *bytes, size_t size, unpack_source *source,
                 void *context, struct unpacker **out) {
    const bool is_gzip = starts(bytes, size, "\x1f\x8b\x08", 3);
    const bool is_zstd = starts(bytes, size, "\x28\xb5\x2f\xfd", 4);
    *out = NULL;
    if (!is_gzip && !is_zstd) return true;
    struct unpacker *u = calloc(1, sizeof *u);
    bool ready = u != NULL;
    if (u) {
        u->name = name;
        u->kind = is_gzip ? GZIP : ZSTD;
        u->source = source;
        u->context = context;
        if (is_gzip) ready = inflateInit2(&u->z, 15 + 16) == Z_OK;
        if (is_zstd) ready = (u->zstd = ZSTD_createDStream()) != NULL;
    }
    if (ready) return *out = u, true;
    free(u);
    return failed("no memory to unpack %s", name), false;
}

static bool damaged(const struct unpacker *u, const char *why) {
    return failed("%s is damaged: it cannot be unpacked (%s)", u->name, why), false;
}

static bool refill(struct unpacker *u) {
    if (u->at < u->end || u->ended) return true;
    u->at = 0;
    if (!u->source(u->context, u->packed, PACKED_BYTES, &u->end)) return false;
    u->ended = u->end < PACKED_BYTES;
    return true;
}

/* Unpacks some bytes; *got may be 0 although more follow. */
static bool inflate_some(struct unpacker *u, unsigned char *bytes, size_t size, size_t *got) {
    u->z.next_in = u->packed + u->at;
    u->z.avail_in = (uInt)(u->end - u->at);
    u->z.next_out = bytes;
    u->z.avail_out = size < 1 << 30 ? (uInt)size : 1u << 30;
    const uInt room = u->z.avail_out;
    int result = inflate(&u->z, Z_NO_FLUSH);
    *got = room - u->z.avail_out;
    u->at = u->end - u->z.avail_in;
    u->in_frame = true;
    if (result == Z_STREAM_END) { /* another member may follow */
        u->in_frame = false;
        return inflateReset(&u->z) == Z_OK || damaged(u, "zlib");
    }
    if (result == Z_OK || result == Z_BUF_ERROR) return true;
    return damaged(u, u->z.msg ? u->z.msg : "no gzip data");
}

static bool zstd_some(struct unpacker *u, unsigned char *bytes, size_t size, size_t *got) {
    ZSTD_inBuffer in = {u->packed, u->end, u->at};
    ZSTD_outBuffer out = {bytes, size, 0};
    size_t result = ZSTD_decompressStream(u->zstd, &out, &in);
    if (ZSTD_isError(result)) return damaged(u, ZSTD_getErrorName(result));
    u->at = in.pos;
    u->in_frame = result != 0;
    *got = out.pos;
    return true;
}

static bool read_member(struct unpacker *u, unsigned char *bytes, size_t size, size_t *got) {
    for (*got = 0; *got < size;) {
        zip_int64_t n = zip_fread(u->member, bytes + *got, size - *got);
        if (n < 0) return damaged(u, zip_file_strerror(u->member));
        if (n == 0) return true;
        *got += (size_t)n;
    }
    return true;
}

bool unpack_read(struct unpacker *u, unsigned char *bytes, size_t size, size_t *got) {
    if (u->kind == ZIP) return read_member(u, bytes, size, got);
    for (*got = 0; *got < size;) {
        size_t n;
        if (!refill(u)) return false;
        const bool drained = u->at == u->end;
        if (drained && !u->in_frame) return true;
        if (!(u->kind == GZIP ? inflate_some : zstd_some)(u, bytes + *got, size - *got, &n))
            return false;
        *got += n;
        if (drained && u->ended && !n) {
            if (!u->in_frame) return true;
            return failed("%s is truncated: it ends within its compressed data; write it again",
                          u->name),
                   false;
        }
    }
    return true;
}

/* ---- Archives ---- */

/* Writes the members' names to text[0..size), for a message. */
static void list_members(zip_t *archive, char *text, size_t size) {
    *text = 0;
    for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); i++) {
        size_t used = strlen(text);
        const char *name = zip_get_name(archive, (zip_uint64_t)i, 0);
        snprintf(text + used, size - used, "%s%s", used ? " " : "", name ? name : "?");
    }
}

static zip_int64_t find_member(zip_t *archive, const char *member) {
    char name[1024];
    if (!member) return zip_get_num_entries(archive, 0) == 1 ? 0 : -1;
    zip_int64_t i = zip_name_locate(archive, member, 0);
    snprintf(name, sizeof name, "%s.npy", member);
    return i >= 0 ? i : zip_name_locate(archive, name, 0);
}

bool unpack_member(const char *path, const char *member, struct unpacker **out) {
    int error;
    char names[512];
    zip_t *archive = zip_open(path, ZIP_RDONLY, &error);
    if (!archive) return failed("%s is no archive that can be read", path), false;
    struct unpacker *u = calloc(1, sizeof *u);
    zip_int64_t i = find_member(archive, member);
    list_members(archive, names, sizeof names);
    if (i < 0 && member)
        failed("%s has no member %s; its members are %s", path, member, names);
    else if (i < 0)
        failed("%s is an archive; name one of its members, as in %s:NAME: %s", path, path, names);
    else if (!u || !(u->member = zip_fopen_index(archive, (zip_uint64_t)i, 0)))
        failed("%s: %s", path, u ? zip_strerror(archive) : "no memory");
    if (!u || !u->member) return free(u), zip_discard(archive), false;
    u->name = path;
    u->kind = ZIP;
    u->archive = archive;
    return *out = u, true;
}

void unpack_close(struct unpacker *u) {
    if (!u) return;
    if (u->kind == GZIP) inflateEnd(&u->z);
    if (u->member) zip_fclose(u->member);
    if (u->archive) zip_discard(u->archive);
    ZSTD_freeDStream(u->zstd);
    free(u);
}
