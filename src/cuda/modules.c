/* modules.c - see modules.h. */
#include "cuda/modules.h"

#include "base/hash.h"
#include "base/status.h"
#include "cuda/errors.h"
#include "cuda/images.h"
#include "cuda/program.h"

#include <stdio.h>
#include <string.h>

/* Returns whether an image failed because it does not suit this driver or device, as another may. */
static bool image_unsuited(CUresult error) {
    return error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

/* Loads an image into the context: *out is its module. *error is the driver's error for the image,
 * and stays if the context cannot be entered. If leaving the context fails, unloads the image
 * again. */
static tally_status load_image(struct gpu *gpu, const void *image, const char *file,
                               CUresult *error, void **out) {
    CUmodule module = NULL;
    tally_status status = cuda_enter(gpu);
    if (status) return status;
    *error = cu.cuModuleLoadData(&module, image);
    status = cuda_leave(gpu, *error, file);
    if (status == TALLY_OK)
        *out = module;
    else if (*error == CUDA_SUCCESS && cuda_begin(gpu) == CUDA_SUCCESS)
        cuda_end(gpu, cu.cuModuleUnload(module));
    return status;
}

/* Unloads a program's modules. The context is current. Returns the last error. */
static CUresult unload_modules(void **modules) {
    CUresult error = CUDA_SUCCESS;
    for (unsigned i = 0; i < GPU_PROGRAM_PARTS && modules[i]; i++) {
        const CUresult unloaded = cu.cuModuleUnload(modules[i]);
        if (unloaded == CUDA_SUCCESS)
            modules[i] = NULL;
        else
            error = unloaded;
    }
    return error;
}

/* The oldest driver that puts launches which begin early into graphs. */
#define EARLY_IN_GRAPHS 12030

/* Notes whether a program's launches may begin early, as its kernels wait by themselves for earlier
 * work. Such a program has a constant begins_early (kernels/kernel.h). */
static void note_early(struct gpu *gpu, struct gpu_program *program) {
    CUdeviceptr address;
    size_t bytes;
    if (!program->native[0] || !cu.cuLaunchKernelEx || driver_version() < EARLY_IN_GRAPHS ||
        cuda_begin(gpu) != CUDA_SUCCESS)
        return;
    program->begins_early =
        cu.cuModuleGetGlobal(&address, &bytes, program->native[0], "begins_early") == CUDA_SUCCESS;
    cuda_end(gpu, CUDA_SUCCESS);
}

static uint64_t hash_of(const char *name) {
    return hash((const unsigned char *)name, strlen(name));
}

/* Appends images to those of a program; after a failure there are none of them. `names` are the kernels of the images, one
 * each, or NULL if one image has all kernels. *error is as load_image() says. */
static tally_status load_images(struct gpu *gpu, const struct program *p, const char *const *names,
                                struct gpu_program *program, CUresult *error) {
    tally_status status = TALLY_OK;
    unsigned first = 0;
    while (first < GPU_PROGRAM_PARTS && program->native[first])
        first++;
    if (p->count > GPU_PROGRAM_PARTS - first)
        return fail(TALLY_EINVAL, "%s has more kernels than %d", program->file, GPU_PROGRAM_PARTS);
    void **out = program->native + first;
    for (unsigned i = 0; i < p->count && status == TALLY_OK; i++) {
        status = load_image(gpu, p->image[i].bytes, program->file, error, &out[i]);
        if (names) program->made[first + i] = hash_of(names[i]);
    }
    if (status != TALLY_OK && out[0] && cuda_begin(gpu) == CUDA_SUCCESS)
        cuda_end(gpu, unload_modules(out));
    return status;
}

/* Makes and loads the images of kernels of a program, or with `names` NULL of all, which the disk cache then keeps. If the
 * driver does not take those from the disk cache, they are compiled anew. */
static tally_status compile_kernels(struct gpu *gpu, struct gpu_program *program,
                                    const char *const *names, unsigned count) {
    const struct program_target target = {gpu->facts.major, gpu->facts.minor, driver_version()};
    for (bool anew = false;; anew = true) {
        CUresult error = CUDA_SUCCESS;
        struct program p;
        tally_status status =
            program_make(program->root, program->file, names, count, &target, anew, &p);
        if (status == TALLY_OK) status = load_images(gpu, &p, names, program, &error);
        if (status == TALLY_OK) program_keep(&p);
        const bool again = image_unsuited(error) && program_was_found(&p);
        program_free(&p);
        if (again) continue;
        if (status == TALLY_OK) note_early(gpu, program);
        return status;
    }
}

/* Compiles a text that has one kernel, or a prelude. Of other texts each kernel is compiled when it is asked for. */
static tally_status compile_text(struct gpu *gpu, const struct gpu_text *of,
                                 struct gpu_program *program) {
    const bool is_plain = !of->prelude || !*of->prelude;
    const unsigned kernels = is_plain ? program_kernels_in(program->root) : 1;
    program->by_kernel = kernels > 1 && kernels <= GPU_PROGRAM_PARTS;
    return program->by_kernel ? TALLY_OK : compile_kernels(gpu, program, NULL, 0);
}

/* Loads the image that the build made of a text. If there is none, or it does not suit, compiles
 * the text. If both fail, tally_error() tells the image's failure. */
static tally_status compile(struct gpu *gpu, const struct gpu_text *of,
                            struct gpu_program *program) {
    const bool plain = !of->prelude || !*of->prelude;
    const void *image = plain ? image_find(of->file, of->defines, of->count) : NULL;
    CUresult error = CUDA_SUCCESS;
    if (!image) return compile_text(gpu, of, program);
    tally_status status = load_image(gpu, image, of->file, &error, &program->native[0]);
    if (status == TALLY_OK) note_early(gpu, program);
    if (image_unsuited(error) && compile_text(gpu, of, program) == TALLY_OK) return TALLY_OK;
    return image_unsuited(error) ? cuda_outcome(gpu->index, error, of->file) : status;
}

/* Looks for a kernel in a program's modules. A driver is asked only for kernels that the module has, as tools report a
 * failed look-up as an error. */
static tally_status look_for(struct gpu *gpu, const struct gpu_program *program, const char *name,
                             CUresult *error, void **out) {
    CUfunction function = NULL;
    tally_status status = cuda_enter(gpu);
    if (status) return status;
    *error = CUDA_ERROR_NOT_FOUND;
    for (unsigned i = 0;
         i < GPU_PROGRAM_PARTS && program->native[i] && *error == CUDA_ERROR_NOT_FOUND; i++)
        if (!program->by_kernel || program->made[i] == hash_of(name))
            *error = cu.cuModuleGetFunction(&function, program->native[i], name);
    *out = function;
    const bool is_missing = *error == CUDA_ERROR_NOT_FOUND;
    char what[96];
    snprintf(what, sizeof what, "kernel %s", name);
    return cuda_leave(gpu, is_missing ? CUDA_SUCCESS : *error, what);
}

static tally_status find_function(struct gpu *gpu, struct gpu_program *program, const char *name,
                                  void **out) {
    CUresult error = CUDA_SUCCESS;
    tally_status status = look_for(gpu, program, name, &error, out);
    if (status == TALLY_OK && error == CUDA_ERROR_NOT_FOUND && program->by_kernel) {
        status = compile_kernels(gpu, program, &name, 1);
        if (status == TALLY_OK) status = look_for(gpu, program, name, &error, out);
    }
    if (status != TALLY_OK || error == CUDA_SUCCESS) return status;
    return fail(TALLY_EINVAL, "cuda:%zu: %s has no kernel %s", gpu->index, program->file, name);
}

/* Waits for the launches of a program, then unloads it. A launch on a caller's stream is waited for together
 * with everything in the context, as the stream itself may be gone. (Loading the next program may wait for
 * the whole context anyway.) Returns false where waiting or unloading fails. */
static bool unload(struct gpu *gpu, struct gpu_program *program) {
    CUresult error = cuda_begin(gpu);
    if (error) return false;
    error = program->elsewhere ? cu.cuCtxSynchronize() : cu.cuStreamSynchronize(gpu->stream);
    if (error == CUDA_SUCCESS)
        error = unload_modules(program->native); /* one module: it has a user's operator */
    cuda_end(gpu, error);
    return !program->native[0];
}

bool module_unload_last(struct gpu *gpu, struct gpu_program *program) {
    (void)gpu;
    return unload_modules(program->native) == CUDA_SUCCESS;
}

const struct gpu_cache_calls module_calls = {
    .compile = compile, .find = find_function, .unload = unload};

tally_status cuda_build(struct gpu *gpu, const char *file, const char *prelude,
                        const char *const *defines, size_t count, struct gpu_program **out) {
    const struct gpu_text text = {
        .file = file, .prelude = prelude, .defines = defines, .count = count};
    return gpu_cache_build(&gpu->cache, gpu, gpu->name, text, out);
}

tally_status cuda_make(struct gpu *gpu, struct gpu_program *program, const char *const *names,
                       size_t count) {
    const char *missing[GPU_PROGRAM_PARTS];
    unsigned wanted = 0;
    for (size_t i = 0; i < count && program->by_kernel && wanted < GPU_PROGRAM_PARTS; i++) {
        CUresult error = CUDA_SUCCESS;
        void *function;
        if (!names[i]) continue;
        const tally_status status = look_for(gpu, program, names[i], &error, &function);
        if (status != TALLY_OK) return status;
        if (error == CUDA_ERROR_NOT_FOUND) missing[wanted++] = names[i];
    }
    return wanted > 0 ? compile_kernels(gpu, program, missing, wanted) : TALLY_OK;
}

tally_status cuda_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                         struct gpu_kernel **out) {
    return gpu_cache_kernel(&gpu->cache, gpu, gpu->name, program, name, out);
}
