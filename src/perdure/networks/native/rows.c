/* How sequences lie in packed rows, and rows from padded sequences of any kind; compiled for any processor. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

/* rows[row of (step, rank)] = padded[chosen[order[rank]], step], each `bytes` long, of sequences that lie `length` steps
 * apart; without `chosen` the sequence is order[rank] itself. Returns 0 if there is no such sequence among `count`. */
PUBLIC int perdure_pack_rows(int64_t steps, const int64_t *sizes, const int64_t *order, const int64_t *chosen,
                             const char *padded, int64_t count, int64_t length, int64_t bytes, char *rows) {
    for (int64_t rank = 0; rank < sizes[0]; rank++) {
        const int64_t sequence = chosen ? chosen[order[rank]] : order[rank];
        if (sequence < 0 || sequence >= count) return 0;
    }
    for (int64_t step = 0; step < steps; step++)
        for (int64_t rank = 0; rank < sizes[step]; rank++, rows += bytes) {
            const int64_t sequence = chosen ? chosen[order[rank]] : order[rank];
            memcpy(rows, padded + (sequence * length + step) * bytes, (size_t)bytes);
        }
    return 1;
}

/* From lengths [batch], all from 1 to `steps`: the sequences by decreasing length, equal ones in their order, and how many
 * are still running at each step. */
PUBLIC int perdure_pack_plan(int64_t batch, const int64_t *lengths, int64_t steps, int64_t *order, int64_t *sizes) {
    memset(sizes, 0, (size_t)steps * sizeof *sizes);
    for (int64_t n = 0; n < batch; n++) {
        if (lengths[n] < 1 || lengths[n] > steps) return 0;
        sizes[lengths[n] - 1]++;
    }
    for (int64_t step = steps - 2; step >= 0; step--) sizes[step] += sizes[step + 1];
    /* Sequences that run longer come first: where those of each length begin, counted up as they are placed. */
    int64_t *next = malloc((size_t)steps * sizeof *next);
    if (next == NULL) return 0;
    for (int64_t step = 0; step < steps; step++) next[step] = step + 1 < steps ? sizes[step + 1] : 0;
    for (int64_t n = 0; n < batch; n++) order[next[lengths[n] - 1]++] = n;
    free(next);
    return 1;
}

/* The rows of the last `count` steps of each sequence, [count, batch], in the order of the batch. */
PUBLIC int perdure_last_rows(int64_t steps, const int64_t *sizes, const int64_t *order, int64_t count, int64_t *rows) {
    const int64_t batch = sizes[0];
    for (int64_t back = 0; back < count; back++) { /* row `count - 1 - back` of the result */
        int64_t *out = rows + (count - 1 - back) * batch;
        for (int64_t step = 0, offset = 0; step < steps; offset += sizes[step++]) {
            /* At this step those are `back` steps before their end that run for exactly `back` steps more. */
            const int64_t running = step + back < steps ? sizes[step + back] : 0;
            const int64_t longer = step + back + 1 < steps ? sizes[step + back + 1] : 0;
            for (int64_t rank = longer; rank < running; rank++) out[order[rank]] = offset + rank;
        }
    }
    return 1;
}

/* Packed rows that are joined with others: where they are, rows per step, and the order (NULL: as they are). */
typedef struct {
    const char *rows;
    const int64_t *sizes, *order;
    int64_t steps;
} packed;

/* The rows of several packed batches as one, with the sequences of the first batch before those of the second;
 * `places` gets, for every row of every batch, its row in the whole. */
PUBLIC int perdure_join_rows(int64_t steps, const int64_t *sizes, const int64_t *order, int64_t count,
                             const packed *batches, int64_t bytes, char *rows, int64_t *places) {
    int64_t *offsets = malloc((size_t)(steps + sizes[0]) * sizeof *offsets), *rank = offsets + steps;
    if (offsets == NULL) return 0;
    for (int64_t step = 0, offset = 0; step < steps; offset += sizes[step++]) offsets[step] = offset;
    for (int64_t n = 0; n < sizes[0]; n++) rank[order ? order[n] : n] = n;
    for (int64_t b = 0, first = 0; b < count; first += batches[b++].sizes[0]) {
        const char *from = batches[b].rows;
        for (int64_t step = 0; step < batches[b].steps; step++)
            for (int64_t n = 0; n < batches[b].sizes[step]; n++, from += bytes) {
                const int64_t place = offsets[step] + rank[first + (batches[b].order ? batches[b].order[n] : n)];
                memcpy(rows + place * bytes, from, (size_t)bytes);
                *places++ = place;
            }
    }
    free(offsets);
    return 1;
}
