/*
 * devices.c - `tally devices`: lists the devices and their read bandwidth.
 *
 * The bandwidth is measured over a buffer larger than most caches. It is the read roof: an upper
 * limit for the rate of a reduction on this device.
 */
#include "common/command.h"

#include "common/arguments.h"
#include "common/guard.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/message.h"

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char devices_help[] =
    "Usage: tally devices [--json]\n"
    "Lists the devices that are here: the text that opens each (for --device), its name,\n"
    "instruction set, units (cores or multiprocessors), memory, and measured read bandwidth.\n"
    "\n"
    "  --json  an array of objects: spec, name, isa, units, threads, memory_bytes, read_gbps\n"
    "          (null where it cannot be measured)\n"
    "  --help  this text\n";

enum { BUFFER_BYTES = 256 << 20, LEAST_BYTES = 32 << 20 };

struct buffer {
    void *bytes;
    size_t size;
};

static bool get_buffer(struct buffer *b) {
    b->size = BUFFER_BYTES;
    while (b->size > 1 << 20 && b->size > memory_available() / 4)
        b->size /= 2;
    while (!(b->bytes = memory_get(b->size)) && b->size > LEAST_BYTES)
        b->size /= 2;
    if (!b->bytes)
        return failed("no memory for a buffer of %zu bytes to measure with", b->size), false;
    memset(b->bytes, 1, b->size); /* untouched pages would all be one page of zeros */
    return true;
}

/* Returns the device's read bandwidth, or NaN: a device that cannot be measured, or is broken, is
 * still listed. */
static double measure(const tally_device_info *info, const struct buffer *buffer) {
    tally_device *device;
    double seconds;
    tally_status s = tally_open(info->spec, &device);
    if (s == TALLY_OK) {
        s = tally_device_read(device, buffer->bytes, buffer->size, &seconds);
        tally_close(device);
    }
    if (s == TALLY_OK) return (double)buffer->size * 1e-9 / seconds;
    if (s != TALLY_EUNSUPPORTED) failed("%s: %s", info->spec, tally_error());
    return (double)NAN;
}

static void print_bandwidth(double gbps) {
    if (isnan(gbps))
        printf("%10s", "-");
    else
        printf("%5.1f GB/s", gbps);
}

static void print_row(const tally_device_info *info, double gbps) {
    printf("%-10s  %-9s %5u  %7.1f GB  ", info->spec, *info->isa ? info->isa : "-", info->units,
           (double)info->memory_bytes * 1e-9);
    print_bandwidth(gbps);
    printf("  %s\n", info->name);
}

static void print_table(const tally_device_info *infos, const double *gbps, size_t count) {
    printf("%-10s  %-9s %5s  %10s  %10s  %s\n", "SPEC", "ISA", "UNITS", "MEMORY", "READ", "NAME");
    for (size_t i = 0; i < count; i++)
        print_row(&infos[i], gbps[i]);
}

static int print_json(const tally_device_info *infos, const double *gbps, size_t count) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; i < count; i++) {
        struct json_object *object = json_new_object();
        json_text(object, "spec", infos[i].spec);
        json_text(object, "name", infos[i].name);
        json_text(object, "isa", infos[i].isa);
        json_count(object, "units", infos[i].units);
        json_count(object, "threads", infos[i].threads);
        json_count(object, "memory_bytes", infos[i].memory_bytes);
        json_measure(object, "read_gbps", gbps[i]);
        json_item(list, object);
    }
    return json_print(list);
}

static int list(tally_device_info *infos, double *gbps, size_t count, bool as_json) {
    struct buffer buffer;
    const bool can_measure = get_buffer(&buffer); /* if not, a message says why */
    for (size_t i = 0; i < count; i++)
        gbps[i] = can_measure ? measure(&infos[i], &buffer) : (double)NAN;
    if (can_measure) memory_release(buffer.bytes, buffer.size);
    if (as_json) return print_json(infos, gbps, count);
    print_table(infos, gbps, count);
    return finish_output();
}

static int list_all(void *argument) {
    const bool as_json = *(const bool *)argument;
    size_t count, room;
    if (tally_device_list(NULL, 0, &count) != TALLY_OK) return failed("%s", tally_error());
    tally_device_info *infos = calloc(count, sizeof *infos);
    double *gbps = calloc(count, sizeof *gbps);
    room = count;
    int status;
    if (!infos || !gbps)
        status = failed("no memory for a list of %zu devices", room);
    else if (tally_device_list(infos, room, &count) != TALLY_OK)
        status = failed("%s", tally_error());
    else
        status = list(infos, gbps, count < room ? count : room, as_json);
    free(infos);
    free(gbps);
    return status;
}

int devices_command(int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool as_json = false;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        if (c == 'h') return fputs(devices_help, stdout), finish_output();
        as_json = true;
    }
    if (optind < argc) return misused("devices takes no argument such as '%s'", argv[optind]);
    return guarded(list_all, &as_json, true);
}
