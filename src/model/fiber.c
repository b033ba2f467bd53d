/*
 * fiber.c - the switch between fibers: in assembly on x86-64 and aarch64, through ucontext elsewhere.
 *
 * In assembly, a fiber at rest has the registers that calls preserve on top of its stack, and with them the
 * address at which to go on. A new fiber gets the same, with its entry as that address.
 */
#include "model/fiber.h"

#include <stdint.h>
#include <string.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(from, to) ((void)(from), (void)(to), 0U)
#define VALGRIND_STACK_DEREGISTER(id)     ((void)(id))
#endif

void fiber_announce(void *stacks, size_t size, unsigned count, unsigned *ids) {
    for (unsigned i = 0; i < count; i++) {
        char *stack = (char *)stacks + i * size;
        ids[i] = VALGRIND_STACK_REGISTER(stack, stack + size - 1);
    }
}

void fiber_withdraw(unsigned count, const unsigned *ids) {
    for (unsigned i = 0; i < count; i++)
        VALGRIND_STACK_DEREGISTER(ids[i]);
}

#ifdef FIBER_UCONTEXT

void fiber_prepare(fiber *f, void *stack, size_t size, void (*entry)(void)) {
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = size;
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
}

void fiber_switch(fiber *from, fiber *to) {
    swapcontext(&from->context, &to->context);
}

#else

void model_fiber_switch(void **from, void *to);

#if defined(__x86_64__)

#define SAVED 6 /* rbp rbx r12 r13 r14 r15, then the address to go on at */

__asm__(".text\n"
        ".p2align 4\n"
        ".globl model_fiber_switch\n"
        ".hidden model_fiber_switch\n"
        ".type model_fiber_switch, @function\n"
        "model_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rcx\n"
        "    jmp *%rcx\n"
        ".size model_fiber_switch, .-model_fiber_switch\n");

void fiber_prepare(fiber *f, void *stack, size_t size, void (*entry)(void)) {
    /* On entry to a function the stack pointer is 8 off a multiple of 16. */
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    uintptr_t *at = (uintptr_t *)(top - 8) - (SAVED + 1);
    memset(at, 0, SAVED * sizeof *at);
    at[SAVED] = (uintptr_t)entry;
    f->stack_pointer = at;
}

#else

#define SAVED 20 /* x19 ... x30, d8 ... d15; x30 is the address to go on at */

__asm__(".text\n"
        ".p2align 4\n"
        ".globl model_fiber_switch\n"
        ".hidden model_fiber_switch\n"
        ".type model_fiber_switch, %function\n"
        "model_fiber_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size model_fiber_switch, .-model_fiber_switch\n");

void fiber_prepare(fiber *f, void *stack, size_t size, void (*entry)(void)) {
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    uintptr_t *at = (uintptr_t *)top - SAVED;
    memset(at, 0, SAVED * sizeof *at);
    at[11] = (uintptr_t)entry; /* x30 */
    f->stack_pointer = at;
}

#endif

void fiber_switch(fiber *from, fiber *to) {
    model_fiber_switch(&from->stack_pointer, to->stack_pointer);
}

#endif
