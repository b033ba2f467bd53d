/*
 * explain_command.c - `tally explain RUNG`: a kernel on the model, step by step.
 */
#include "common/command.h"

#include "common/arguments.h"
#include "common/json.h"
#include "common/message.h"
#include "teach/ladder_counts.h"
#include "teach/own_explain.h"
#include "teach/picture.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char explain_help[] =
    "Usage: tally explain RUNG [OPTION...]\n"
    "       tally explain --kernel FILE[:NAME] [OPTION...]\n"
    "Runs a kernel of the ladder on the model, a simulated GPU, and shows what it does step by\n"
    "step: the stride, which warps are at work and with how many lanes, the lines of memory they\n"
    "touch; then what the rung wastes, and which rung mends that. Where a text has a closed\n"
    "formula, it stands beside the count. 'tally ladder' lists the rungs and compares them.\n"
    "\n" LADDER_OPTIONS_HELP
    "  --draw            draws each step: the elements in a row, which thread combines which, the\n"
    "                    values after it, the lines and banks that are touched; for small n\n"
    "  --svg FILE        the same as a picture; - is standard output\n"
    "  --device DEVICE   a kernel of your own: then on this device, too (cuda or opencl)\n"
    "  --steps           --json has every lane's accesses, too: elements, values, lines, banks, "
    "and\n"
    "                    the line of the kernel's text; n up to 4096\n"
    "  --json            all of it as one JSON object\n"
    "  --help            this text\n"
    "\n"
    "With --draw, --svg and --steps the elements are whole numbers from 1 to 9.\n"
    "A kernel of your own: CUDA C as nvcc takes it, compiled by g++, run on the model in a "
    "process\n"
    "that can do nothing else. Its parameters are (input, output), (array, n) or (input, output,\n"
    "n). Told are for which n it is right, what is wrong with it and in which line, what it does\n"
    "step by step, and the rung that it is most like. --device DEVICE (cuda or opencl): then it "
    "runs\n"
    "there, too; told are for which n it is right, what the device finds, and the time, beside "
    "the\n"
    "nearest rung's and the roof.\n"
    "\n" OWN_OPTIONS_HELP "\n"
    "Without options: 1024 elements in one block; 2^16 in blocks of 128 threads where the grid is\n"
    "sized to the device. With --draw or --svg: 16 in blocks of 8.\n";

static bool watch(struct explanation *e) {
    if (tally_ladder_explain(e->rung->name, &e->options.run, explain_note_step, e, &e->row) !=
        TALLY_OK)
        return failed("%s", tally_error()), false;
    if (e->out_of_memory) return failed("no memory for the steps of %s", e->rung->name), false;
    explain_settle(e);
    return true;
}

/* ---- In words ---- */

static void print_formula(const struct formula *f) {
    printf("  %s: %s = %.0f; counted %.0f", f->what, f->formula, f->value, f->counted);
    if (f->value_efficiency > 0)
        printf("\n  efficiency: %.2f by the formula, %.2f as counted", f->value_efficiency,
               f->counted_efficiency);
    printf("\n    %s\n", f->difference);
}

static void waste_sentence(const struct explanation *e, char *text, size_t size) {
    if (*e->rung->mends)
        snprintf(text, size, "What %s wastes: %s; %s mends that.", e->rung->name, e->rung->waste,
                 e->rung->mends);
    else
        snprintf(text, size, "What %s wastes: %s.", e->rung->name, e->rung->waste);
}

static int print_text(const struct explanation *e, const struct formula *formulas, int count,
                      const char *why) {
    char sentence[512];
    printf("%s: %s\n", e->rung->name, e->rung->idea);
    printf("%s of %" PRIu64 " %s on the model, finish: %s\n", tally_op_name(e->options.run.op),
           e->options.n, tally_type_name(e->options.run.type),
           tally_finish_name(e->options.run.finish));
    explain_print_launches(e);
    explain_print_totals(e);
    if (count)
        printf("\nThe texts' closed formula%s, beside the count%s:\n", count == 1 ? "" : "s",
               e->row.launches > 1 && count == 1 ? " of launch 1" : "");
    for (int i = 0; i < count; i++)
        print_formula(&formulas[i]);
    if (*why) printf("\n%s\n", why);
    waste_sentence(e, sentence, sizeof sentence);
    printf("\n%s\n", sentence);
    return finish_output();
}

/* ---- JSON ---- */

static struct json_object *json_formulas(const struct formula *formulas, int count) {
    struct json_object *list = json_new_list();
    for (int i = 0; i < count; i++) {
        const struct formula *f = &formulas[i];
        struct json_object *object = json_new_object();
        json_text(object, "what", f->what);
        json_text(object, "formula", f->formula);
        json_measure(object, "value", f->value);
        json_measure(object, "counted", f->counted);
        if (f->value_efficiency > 0) {
            json_measure(object, "value_efficiency", f->value_efficiency);
            json_measure(object, "counted_efficiency", f->counted_efficiency);
        }
        json_text(object, "difference", f->difference);
        json_item(list, object);
    }
    return list;
}

static int print_json(const struct explanation *e, const struct formula *formulas, int count,
                      const char *why) {
    char sentence[512];
    struct json_object *object = json_new_object();
    json_text(object, "rung", e->rung->name);
    json_text(object, "idea", e->rung->idea);
    json_text(object, "device", "model");
    json_count(object, "n", e->options.n);
    json_text(object, "op", tally_op_name(e->options.run.op));
    json_text(object, "dtype", tally_type_name(e->options.run.type));
    json_count(object, "block", e->options.run.block);
    json_count(object, "coarsen", e->options.run.coarsen);
    json_text(object, "finish", tally_finish_name(e->options.run.finish));
    json_flag(object, "correct", e->row.correct);
    json_count(object, "launches", e->row.launches);
    json_member(object, "steps", explain_json_steps(e));
    json_member(object, "counts", json_ladder_counts(&e->row));
    json_member(object, "formulas", json_formulas(formulas, count));
    json_text(object, "no_formula", why);
    json_text(object, "waste", e->rung->waste);
    json_text(object, "mended_by", e->rung->mends);
    waste_sentence(e, sentence, sizeof sentence);
    json_text(object, "sentence", sentence);
    return json_print(object);
}

/* ---- The command ---- */

static bool set_option(struct explanation *e, int option) {
    switch (option) {
    case 'S':
        return e->with_steps = true;
    case 'A':
        return e->draws = true;
    case 'V':
        e->svg = optarg;
        return true;
    case 'W':
        e->device = optarg;
        return true;
    default:
        return ladder_option(&e->options, option);
    }
}

static int read_options(struct explanation *e, struct own_options *own, int argc, char **argv) {
    static const struct option options[] = {LADDER_LONG_OPTIONS,
                                            OWN_LONG_OPTIONS,
                                            {"steps", no_argument, NULL, 'S'},
                                            {"draw", no_argument, NULL, 'A'},
                                            {"svg", required_argument, NULL, 'V'},
                                            {"device", required_argument, NULL, 'W'},
                                            {NULL, 0, NULL, 0}};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":hn:D:", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        e->has_dtype |= c == 'd';
        own->rungs_only |= c == 'c' || c == 'f';
        if (!own_option(own, c) && !set_option(e, c)) return STATUS_USAGE;
        if (own->is_misused) return STATUS_USAGE;
    }
    if (e->options.help) return STATUS_OK;
    if (e->with_steps && !e->options.as_json) return misused("--steps goes with --json");
    if (e->options.as_json && (e->draws || e->svg))
        return misused("--json is not drawn: leave out --draw and --svg");
    if (own->spec && optind < argc)
        return misused("explain takes a rung or --kernel; '%s' is one too many", argv[optind]);
    if (!own_options_fit(own) || (!own->spec && !ladder_block_fits(&e->options)))
        return STATUS_USAGE;
    if (!own->spec && e->device)
        return misused("--device goes with --kernel: rungs are explained on the model");
    if (e->device && e->options.width)
        return misused("--device takes a block of one dimension, as in --block 256");
    if (e->device && (e->draws || e->svg))
        return misused("--device is not drawn: leave out --draw and --svg");
    if (own->spec) return STATUS_OK;
    if (optind == argc) return misused("explain takes a rung; 'tally ladder' lists them");
    if (argc - optind > 1)
        return misused("explain takes one rung; '%s' is one too many", argv[optind + 1]);
    return STATUS_OK;
}

static int find_rung(struct explanation *e, const char *name) {
    char list[512] = "";
    for (size_t i = 0; (e->rung = tally_ladder_rung(i)); i++) {
        if (strcmp(e->rung->name, name) == 0 && e->rung->is_kernel) return STATUS_OK;
        if (strcmp(e->rung->name, name) == 0)
            return failed("'%s' is no kernel, so that the model has nothing to count", name);
        if (e->rung->is_kernel) strcat(strcat(list, " "), e->rung->name);
    }
    return failed("'%s' is no rung of the ladder; those to explain are%s", name, list);
}

/* Sets the options that were not given. The default is 1024 elements in one block, or 2^16 elements
 * where the grid is sized to the device, so that all its blocks have work. A picture has 16
 * elements, in blocks of 8. */
static void set_defaults(struct explanation *e) {
    struct ladder_options *o = &e->options;
    const bool grid = e->rung->grid_sized, drawn = e->draws || e->svg;
    if (drawn && !o->has_n) o->n = 16, o->has_n = true;
    if (drawn && !o->run.block) o->run.block = 8;
    if (drawn && !o->run.coarsen) o->run.coarsen = 2;
    if (!o->has_n) o->n = grid ? 1 << 16 : 1024;
    if (!o->run.coarsen) o->run.coarsen = 4;
    if (!o->run.block) o->run.block = grid || strcmp(e->rung->name, "coarsened") == 0 ? 128 : 512;
}

/* Asks for accesses if an option needs them. They take some 1000 bytes for each element and step,
 * so that n has a limit. */
static int ask_for_accesses(struct explanation *e) {
    if (!e->with_steps && !e->draws && !e->svg) return STATUS_OK;
    if (e->options.n > EXPLAIN_STEPS_MAX || e->options.run.coarsen > EXPLAIN_STEPS_MAX)
        return explain_too_many(e);
    e->options.run.accesses = 1;
    e->options.digits = true;
    return STATUS_OK;
}

static int explain(struct explanation *e) {
    struct formula formulas[FORMULAS_MAX];
    char why[256] = "";
    if (!watch(e)) return STATUS_FAILED;
    if (e->svg) {
        const int status = picture_write_svg(e, e->svg);
        if (status != STATUS_OK || !e->draws) return status;
    }
    if (e->draws) return picture_print(e);
    const int count = explain_formulas(e, formulas, why);
    if (count < 0) return STATUS_FAILED;
    return e->options.as_json ? print_json(e, formulas, count, why)
                              : print_text(e, formulas, count, why);
}

int explain_command(int argc, char **argv) {
    struct explanation e = {.options.run = {.op = TALLY_SUM, .type = TALLY_F32}};
    struct own_options own = {.seconds = OWN_SECONDS};
    int status = read_options(&e, &own, argc, argv);
    if (status != STATUS_OK) return status;
    if (e.options.help) return fputs(explain_help, stdout), finish_output();
    if (own.spec) {
        status = own_explain(&e, &own);
        explain_forget(&e);
        return status;
    }
    status = find_rung(&e, argv[optind]);
    if (status != STATUS_OK) return status;
    e.title = e.rung->name;
    e.idea = e.rung->idea;
    e.input = "x";
    set_defaults(&e);
    status = ask_for_accesses(&e);
    if (status != STATUS_OK) return status;
    if (!ladder_fill(&e.options)) return STATUS_FAILED;
    status = explain(&e);
    explain_forget(&e);
    return status;
}
