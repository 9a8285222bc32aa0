/* Tests of mixprec_checkpoint_size, _save, _load, and of the buffer.

       cc -O2 -std=gnu11 tests/test_checkpoint.c -lm && ./a.out [--quick] [--filter TEXT] */
#include <stdint.h>

#include "test.h"
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

/* The state of a small run. */
typedef struct run_state {
    float master[301], moment[301], histories[2][5];
    uint16_t half[17];
    uint8_t fp4[4];
    double wide[2];
    uint64_t counters[3];
    mixprec_scaler scaler;
    mixprec_delayed_scaling scaling[2];
    mixprec_checkpoint_item items[8];
} run_state;
#define ITEMS 8

static void fill(run_state *s, uint64_t seed) {
    static const mixprec_checkpoint_item none = {"", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_NONE, NULL, 0};
    size_t i;
    unsigned char *bytes = (unsigned char *)s;
    for (i = 0; i < sizeof *s; i++)
        bytes[i] = (unsigned char)mixprec_random_bits(seed, i);
    for (i = 0; i < 2; i++) {
        s->scaling[i].history = s->histories[i];
        s->scaling[i].history_length = 5 - i;
        s->scaling[i].dtype = i ? MIXPREC_E5M2 : MIXPREC_E4M3;
    }
    for (i = 0; i < ITEMS; i++)
        s->items[i] = none;
#define ITEM(index, label, item_kind, type, array, count)                                                              \
    s->items[index].name = label;                                                                                      \
    s->items[index].kind = item_kind;                                                                                  \
    s->items[index].dtype = type;                                                                                      \
    s->items[index].data = array;                                                                                      \
    s->items[index].n = count
    ITEM(0, "master", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, s->master, 301);
    ITEM(1, "moment", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, s->moment, 301);
    ITEM(2, "half", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_BF16, s->half, 17);
    ITEM(3, "fp4", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_E2M1, s->fp4, 7);
    ITEM(4, "", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F64, s->wide, 2);
    ITEM(5, "counters", MIXPREC_CHECKPOINT_U64, MIXPREC_NONE, s->counters, 3);
    ITEM(6, "scaler", MIXPREC_CHECKPOINT_SCALER, MIXPREC_NONE, &s->scaler, 1);
    ITEM(7, "scaling", MIXPREC_CHECKPOINT_DELAYED_SCALING, MIXPREC_NONE, s->scaling, 2);
}

/* Do the items hold the same? */
static int same_items(const run_state *a, const run_state *b) {
    int i, same = !memcmp(a->master, b->master, sizeof a->master) && !memcmp(a->moment, b->moment, sizeof a->moment) &&
                  !memcmp(a->half, b->half, sizeof a->half) && !memcmp(a->fp4, b->fp4, sizeof a->fp4) &&
                  !memcmp(a->wide, b->wide, sizeof a->wide) && !memcmp(a->counters, b->counters, sizeof a->counters);
    const mixprec_scaler *p = &a->scaler, *q = &b->scaler;
    same = same && !memcmp(&p->scale, &q->scale, 4) && !memcmp(&p->min_scale, &q->min_scale, 4) &&
           !memcmp(&p->max_scale, &q->max_scale, 4) && p->growth_interval == q->growth_interval &&
           !memcmp(&p->growth_factor, &q->growth_factor, 8) && !memcmp(&p->backoff_factor, &q->backoff_factor, 8) &&
           p->hysteresis == q->hysteresis && p->growth_tracker == q->growth_tracker &&
           p->hysteresis_used == q->hysteresis_used && p->found_inf == q->found_inf;
    for (i = 0; i < 2; i++)
        same = same && !memcmp(&a->scaling[i].scale, &b->scaling[i].scale, 4) &&
               a->scaling[i].margin == b->scaling[i].margin && a->scaling[i].most_recent == b->scaling[i].most_recent &&
               !memcmp(a->histories[i], b->histories[i], 4 * b->scaling[i].history_length);
    return same;
}

static unsigned char bytes[1 << 14];

static size_t save(run_state *s) {
    mixprec_buffer buffer;
    uint64_t size = mixprec_checkpoint_size(s->items, ITEMS);
    buffer.bytes = bytes;
    buffer.size = sizeof bytes;
    buffer.used = 0;
    CHECK(mixprec_checkpoint_save(s->items, ITEMS, mixprec_buffer_write, &buffer) == MIXPREC_OK, "saving failed");
    CHECK(buffer.used == size, "%zu bytes written, %zu expected", buffer.used, (size_t)size);
    return buffer.used;
}

static mixprec_status load(run_state *s, size_t size) {
    mixprec_buffer buffer;
    buffer.bytes = bytes;
    buffer.size = size;
    buffer.used = 0;
    return mixprec_checkpoint_load(s->items, ITEMS, mixprec_buffer_read, &buffer);
}

static void test_round_trip(void) {
    static run_state from, to;
    size_t size;
    fill(&from, 1);
    fill(&to, 2);
    size = save(&from);
    CHECK(!same_items(&from, &to), "the test compares nothing");
    CHECK(load(&to, size) == MIXPREC_OK && same_items(&from, &to), "not what was saved");
}

int main(int argc, char **argv) {
    test_init(argc, argv);
    if (test_begin("checkpoint: what is loaded is what was saved")) {
        test_round_trip();
        test_end();
    }
    return test_summary();
}
