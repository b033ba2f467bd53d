/*
 * manylinux_2_28.h - included before all else when the wheel for other systems is compiled (scripts/make-wheel): names the
 * versions of glibc's functions that glibc 2.28 has. A newer glibc has the same functions under the old versions, too;
 * the linker takes the newest unless it is told.
 */
#if defined(__x86_64__)
#define TALLY_OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define TALLY_OLDEST "GLIBC_2.17"
#else
#error "manylinux_2_28.h: the oldest versions of this processor's functions are not known here"
#endif
#define TALLY_OLD(name) __asm__(".symver " #name ", " #name "@" TALLY_OLDEST)
TALLY_OLD(dladdr);
TALLY_OLD(dlclose);
TALLY_OLD(dlerror);
TALLY_OLD(dlopen);
TALLY_OLD(dlsym);
TALLY_OLD(pthread_create);
TALLY_OLD(pthread_join);
TALLY_OLD(pthread_mutex_trylock);
TALLY_OLD(pthread_once);
TALLY_OLD(pthread_rwlock_rdlock);
TALLY_OLD(pthread_rwlock_unlock);
TALLY_OLD(pthread_rwlock_wrlock);
TALLY_OLD(pthread_sigmask);
#undef TALLY_OLD
#undef TALLY_OLDEST
