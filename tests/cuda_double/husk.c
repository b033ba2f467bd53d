/* husk.c - a libcuda.so.1 that lacks nearly everything: what a driver too old looks like. */
__attribute__((visibility("default"))) int cuInit(unsigned flags);

int cuInit(unsigned flags) {
    return (int)flags;
}
