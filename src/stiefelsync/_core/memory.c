/* Memory of many pages: where large ones are to be had they are asked for, as NumPy does for its
   arrays. */
#define _GNU_SOURCE
#include "kernels.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#define MANY ((size_t)1 << 22) /* bytes from which on that pays */
#define PAGE ((uintptr_t)4096)

static void *in_large_pages(void *memory, size_t bytes) {
#if defined(MADV_HUGEPAGE)
    const uintptr_t first = ((uintptr_t)memory + PAGE - 1) / PAGE * PAGE,
                    last = ((uintptr_t)memory + bytes) / PAGE * PAGE;
    if (memory && bytes >= MANY)
        madvise((void *)first, last - first, MADV_HUGEPAGE); /* no harm if it fails */
#else
    (void)bytes;
#endif
    return memory;
}

void *room_for(size_t cells, size_t size) {
    return in_large_pages(malloc(cells * size + 1), cells * size);
}

void *zeros_for(size_t cells, size_t size) {
    return in_large_pages(calloc(cells + 1, size), cells * size);
}
