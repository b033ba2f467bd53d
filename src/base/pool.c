/* pool.c - see pool.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/pool.h"

#include "base/fpenv.h"
#include "base/stop.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct pool {
    pthread_mutex_t owner; /* held by the caller who has claimed the pool */
    pthread_mutex_t lock;  /* guards what follows, up to the task counter */
    pthread_cond_t work;   /* a loop has begun, or the pool ends */
    pthread_cond_t idle;   /* the last thread has left the loop */
    unsigned threads;      /* how many are wanted, with the caller */
    unsigned started;      /* how many have been started */
    unsigned inside;       /* of those, how many are in the loop now */
    unsigned long loop;    /* counts loops, so that no thread joins one twice */
    int open;              /* a loop is under way, and may be joined */
    int ending;
    atomic_uint forks; /* what fork_count was when the threads were started */
    void (*body)(void *, size_t, unsigned);
    void *context;
    size_t tasks;
    _Alignas(64) atomic_size_t next; /* the next task nobody has taken */
    pthread_t thread[];
};

/* The number of forks between this process and the first. A child has none of its parent's
 * threads. */
static atomic_uint fork_count;

static void count_fork(void) {
    atomic_fetch_add(&fork_count, 1);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, count_fork);
}

static void forget_threads(struct pool *p) {
    pthread_mutex_init(&p->owner, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->idle, NULL);
    p->started = p->inside = 0;
    p->open = 0;
    atomic_store(&p->forks, atomic_load(&fork_count));
}

struct pool *pool_create(unsigned threads) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    size_t size = sizeof(struct pool) + threads * sizeof(pthread_t);
    struct pool *p = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!p) return NULL;
    p->threads = threads;
    p->loop = 0;
    p->ending = 0;
    forget_threads(p);
    return p;
}

/* Runs tasks until none is left. Returns 1 if the caller has asked to stop. Only the calling
 * thread, worker 0, hears of that; it then takes all further tasks away. */
static int work(struct pool *p, unsigned worker) {
    size_t task;
    while ((task = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->tasks) {
        p->body(p->context, task, worker);
        if (worker == 0 && stop_asked()) {
            atomic_store_explicit(&p->next, p->tasks, memory_order_relaxed);
            return 1;
        }
    }
    return 0;
}

struct seat {
    struct pool *pool;
    unsigned worker;
};

static void *serve(void *argument) {
    struct seat seat = *(struct seat *)argument;
    free(argument);
    struct pool *p = seat.pool;
    fp_env_enter(); /* for the thread's life */
    pthread_mutex_lock(&p->lock);
    unsigned long seen = 0;
    for (;;) {
        while (!p->ending && (!p->open || p->loop == seen))
            pthread_cond_wait(&p->work, &p->lock);
        if (p->ending) break;
        seen = p->loop;
        p->inside++;
        pthread_mutex_unlock(&p->lock);
        work(p, seat.worker);
        pthread_mutex_lock(&p->lock);
        if (--p->inside == 0) pthread_cond_signal(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Starts the missing threads, as many as the system allows. They block all signals but those
 * that a thread's own instructions raise, which must reach the handler on that thread. */
static void start_threads(struct pool *p) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (p->started + 1 < p->threads) {
        struct seat *seat = malloc(sizeof *seat);
        if (!seat) break;
        *seat = (struct seat){p, p->started + 1};
        if (pthread_create(&p->thread[p->started], NULL, serve, seat) != 0) {
            free(seat);
            break;
        }
        p->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int pool_claim(struct pool *p) {
    if (p->forks != atomic_load(&fork_count)) {
        /* A forked child begins with one thread, but may have started others by now. */
        static pthread_mutex_t children = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&children);
        if (p->forks != atomic_load(&fork_count)) forget_threads(p);
        pthread_mutex_unlock(&children);
    }
    return pthread_mutex_trylock(&p->owner) == 0;
}

void pool_release(struct pool *p) {
    pthread_mutex_unlock(&p->owner);
}

int pool_loop(struct pool *p, size_t tasks, void (*body)(void *, size_t, unsigned), void *context) {
    pthread_mutex_lock(&p->lock);
    start_threads(p);
    p->body = body;
    p->context = context;
    p->tasks = tasks;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->loop++;
    p->open = 1;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);

    const int stopped = work(p, 0);

    pthread_mutex_lock(&p->lock);
    p->open = 0;
    while (p->inside > 0)
        pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return stopped;
}

void pool_destroy(struct pool *p) {
    if (!p) return;
    if (p->forks == atomic_load(&fork_count)) {
        pthread_mutex_lock(&p->lock);
        p->ending = 1;
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
        for (unsigned i = 0; i < p->started; i++)
            pthread_join(p->thread[i], NULL);
    }
    free(p);
}

unsigned pool_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t has room for */
    return online > 0 ? (unsigned)online : 1;
}
