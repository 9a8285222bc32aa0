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

/* Refused with this status, and nothing loaded. */
static void check_refused(size_t size, mixprec_status status, const char *what, size_t where) {
    static run_state to, before;
    mixprec_status got;
    fill(&to, 2);
    fill(&before, 2);
    got = load(&to, size);
    CHECK(got == status, "%s, %zu: got %s, want %s", what, where, mixprec_status_string(got),
          mixprec_status_string(status));
    CHECK(same_items(&to, &before), "%s, %zu: something was loaded", what, where);
}

static void test_damage(void) {
    static run_state from;
    size_t size, i;
    int bit;
    fill(&from, 1);
    size = save(&from);
    for (i = 0; i < size; i++)
        for (bit = 0; bit < 8; bit++) {
            mixprec_status want = i < 8               ? MIXPREC_ERR_FORMAT
                                  : i < 12            ? MIXPREC_ERR_VERSION
                                  : i >= 16 && i < 24 ? MIXPREC_ERR_TRUNCATED /* or the checksum of less */
                                                      : MIXPREC_ERR_CHECKSUM;
            if (test_quick && (i * 8 + (size_t)bit) % 37 && i > 32)
                continue;
            bytes[i] = (unsigned char)(bytes[i] ^ 1 << bit);
            if (i >= 16 && i < 24 && !(bytes[i] >> bit & 1))
                want = MIXPREC_ERR_CHECKSUM;
            check_refused(size, want, "a flipped bit", i);
            bytes[i] = (unsigned char)(bytes[i] ^ 1 << bit);
        }
    for (i = 0; i < size; i += test_quick && i > 40 ? 13 : 1)
        check_refused(i, MIXPREC_ERR_TRUNCATED, "cut off", i);
    for (i = 1; i < 3000; i += 7) { /* two words exchanged: every hash of words one by one must notice */
        size_t a = 24 + i % (size - 32), b = 24 + i * 37 % (size - 32);
        unsigned char byte = bytes[a];
        if (bytes[a] == bytes[b])
            continue;
        bytes[a] = bytes[b];
        bytes[b] = byte;
        check_refused(size, MIXPREC_ERR_CHECKSUM, "bytes exchanged", i);
        bytes[b] = bytes[a];
        bytes[a] = byte;
    }
    memset(bytes, 0, 64);
    check_refused(64, MIXPREC_ERR_FORMAT, "foreign", 0);
    check_refused(3, MIXPREC_ERR_FORMAT, "foreign and short", 0);
}

static void flip(size_t bit) {
    bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ 1 << bit % 8);
}

/* Signs of neighbouring floats, every choice of twelve, and every two bits of two words: what one word does to a hash,
   the next one might undo. */
static void test_damage_of_words(void) {
    static run_state from;
    size_t size, first, i, j;
    unsigned signs;
    fill(&from, 1);
    size = save(&from);
    first = size / 16 * 64; /* as a bit */
    for (signs = 1; signs < 4096; signs++) {
        for (i = 0; i < 12; i++)
            if (signs >> i & 1)
                flip(first + 32 * i + 31);
        check_refused(size, MIXPREC_ERR_CHECKSUM, "signs", signs);
        for (i = 0; i < 12; i++)
            if (signs >> i & 1)
                flip(first + 32 * i + 31);
    }
    for (i = 0; i < 128; i++)
        for (j = i + 1; j < 128; j++) {
            if (test_quick && (i * 128 + j) % 7)
                continue;
            flip(first + i);
            flip(first + j);
            check_refused(size, MIXPREC_ERR_CHECKSUM, "two bits", i * 128 + j);
            flip(first + i);
            flip(first + j);
        }
}

static void test_mismatch(void) {
    static run_state from, to, before;
    mixprec_buffer buffer;
    size_t size;
    int i;
    fill(&from, 1);
    size = save(&from);
    buffer.bytes = bytes;
    buffer.size = size;
    buffer.used = 0;
    fill(&before, 2);
    for (i = 0; i < 13; i++) {
        size_t count = ITEMS;
        fill(&to, 2);
        switch (i) {
        case 0: to.items[0].name = "Master"; break;
        case 1: to.items[0].name = "maste"; break;
        case 2: to.items[0].name = "masters"; break;
        case 3: to.items[1].n = 300; break;
        case 4: to.items[2].dtype = MIXPREC_F16; break;
        case 5: to.items[3].dtype = MIXPREC_E4M3, to.items[3].n = 4; break;
        case 6: to.items[5].n = 2; break;
        case 7: to.items[6] = to.items[7]; break;
        case 8: count = ITEMS - 1; break;
        case 9: to.scaling[1].history_length = 5; break;
        case 10: to.scaling[0].dtype = MIXPREC_E5M2; break;
        case 11: to.items[0].data = to.moment, to.items[1].data = to.master, to.items[0].name = "moment"; break;
        default: count = 0; break;
        }
        CHECK(mixprec_checkpoint_load(to.items, count, mixprec_buffer_read, &buffer) == MIXPREC_ERR_MISMATCH, "case %d",
              i);
        CHECK(same_items(&to, &before), "case %d: something was loaded", i);
    }
    bytes[size] = 77; /* what follows is not looked at */
    fill(&to, 2);
    CHECK(load(&to, size + 1) == MIXPREC_OK && same_items(&to, &from), "bytes that follow");
}

/* As documented: of little-endian words of 8 bytes, the last filled up with zeros. */
static uint64_t checksum(const unsigned char *stream, size_t n) {
    uint64_t hash = 0;
    size_t i, j;
    for (i = 0; i < n; i += 8) {
        uint64_t word = 0;
        for (j = 8; j--;)
            word = word << 8 | (i + j < n ? stream[i + j] : 0);
        word = word * 0xC6A4A7935BD1E995u;
        word = (word ^ word >> 47) * 0xC6A4A7935BD1E995u;
        hash = (hash ^ word) * 0xC6A4A7935BD1E995u;
    }
    return hash;
}

/* The format of version 2 is the same on every machine; another format needs another number. */
static void test_format(void) {
    static const unsigned char
        want[] = {0x89, 'M', 'I', 'X', 'P', 0x0D, 0x0A, 0x1A, 2,    0,    0,    0,    2,    0,    0,
                  0,    89,  0,   0,   0,   0,    0,    0,    0, /* header */
                  1,    0,   0,   0,   'w', 0,    0,    0,    0,    4,    0,    0,    0,    3,    0,
                  0,    0,   0,   0,   0,   0,    0x80, 0x3F, 0x00, 0xC0, 0x22, 0x11, /* bf16 */
                  2,    0,   0,   0,   'n', 'o',  1,    0,    0,    0,    0,    0,    0,    0,    1,
                  0,    0,   0,   0,   0,   0,    0,    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
    mixprec_bf16 w[3] = {{0x3F80}, {0xC000}, {0x1122}};
    uint64_t number = 0x1122334455667788u, hash;
    mixprec_checkpoint_item items[2] = {{"w", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_BF16, NULL, 3},
                                        {"no", MIXPREC_CHECKPOINT_U64, MIXPREC_NONE, NULL, 1}};
    mixprec_buffer buffer;
    size_t i;
    items[0].data = w;
    items[1].data = &number;
    buffer.bytes = bytes;
    buffer.size = sizeof want + 8;
    buffer.used = 0;
    CHECK(mixprec_checkpoint_save(items, 2, mixprec_buffer_write, &buffer) == MIXPREC_OK, "saving");
    CHECK(buffer.used == sizeof want + 8, "%zu bytes", buffer.used);
    for (i = 0; i < sizeof want; i++)
        CHECK(bytes[i] == want[i], "byte %zu is %02x, want %02x", i, bytes[i], want[i]);
    hash = checksum(want, sizeof want);
    for (i = 0; i < 8; i++)
        CHECK(bytes[sizeof want + i] == (unsigned char)(hash >> 8 * i), "byte %zu of the checksum", i);
}

/* The same of a whole run, written by hand: the fields of records in their order, little-endian, without gaps. */
static unsigned char wanted[8192];
static size_t wanted_bytes;
static void want_number(uint64_t number, int size) {
    for (; size; size--, number >>= 8)
        wanted[wanted_bytes++] = (unsigned char)number;
}
static void want_f32(const float *x) { /* by address: x87 would make quiet ones of signalling NaNs */
    uint32_t word;
    memcpy(&word, x, 4);
    want_number(word, 4);
}
static void want_f64(const double *x) {
    uint64_t word;
    memcpy(&word, x, 8);
    want_number(word, 8);
}
static void want_item(const char *name, uint64_t kind, mixprec_dtype dtype, uint64_t n) {
    want_number(strlen(name), 4);
    for (; *name; name++)
        want_number((unsigned char)*name, 1);
    want_number(kind, 4);
    want_number((uint64_t)dtype, 4);
    want_number(n, 8);
}

static void test_format_of_records(void) {
    static const unsigned char head[] = {0x89, 'M', 'I', 'X', 'P', 0x0D, 0x0A, 0x1A, 2, 0, 0, 0, ITEMS, 0, 0, 0};
    static run_state s;
    mixprec_buffer buffer;
    uint64_t bytes_in_all;
    size_t i, j;
    fill(&s, 21);
    bytes_in_all = mixprec_checkpoint_size(s.items, ITEMS);
    memcpy(wanted, head, sizeof head);
    wanted_bytes = sizeof head;
    want_number(bytes_in_all, 8);
    want_item("master", 0, MIXPREC_F32, 301);
    for (i = 0; i < 301; i++)
        want_f32(&s.master[i]);
    want_item("moment", 0, MIXPREC_F32, 301);
    for (i = 0; i < 301; i++)
        want_f32(&s.moment[i]);
    want_item("half", 0, MIXPREC_BF16, 17);
    for (i = 0; i < 17; i++)
        want_number(s.half[i], 2);
    want_item("fp4", 0, MIXPREC_E2M1, 7);
    for (i = 0; i < 4; i++)
        want_number(s.fp4[i], 1);
    want_item("", 0, MIXPREC_F64, 2);
    for (i = 0; i < 2; i++)
        want_f64(&s.wide[i]);
    want_item("counters", 1, MIXPREC_NONE, 3);
    for (i = 0; i < 3; i++)
        want_number(s.counters[i], 8);
    want_item("scaler", 2, MIXPREC_NONE, 1);
    want_f32(&s.scaler.scale);
    want_f32(&s.scaler.min_scale);
    want_f32(&s.scaler.max_scale);
    want_number((uint32_t)s.scaler.growth_interval, 4);
    want_f64(&s.scaler.growth_factor);
    want_f64(&s.scaler.backoff_factor);
    want_number((uint32_t)s.scaler.hysteresis, 4);
    want_number((uint32_t)s.scaler.growth_tracker, 4);
    want_number((uint32_t)s.scaler.hysteresis_used, 4);
    want_number((uint32_t)s.scaler.found_inf, 4);
    want_item("scaling", 3, MIXPREC_NONE, 2);
    for (i = 0; i < 2; i++) {
        want_f32(&s.scaling[i].scale);
        want_number((uint32_t)s.scaling[i].margin, 4);
        want_number((uint32_t)s.scaling[i].most_recent, 4);
        want_number((uint64_t)s.scaling[i].dtype, 4);
        want_number(s.scaling[i].history_length, 8);
        for (j = 0; j < s.scaling[i].history_length; j++)
            want_f32(&s.scaling[i].history[j]);
    }
    want_number(checksum(wanted, wanted_bytes), 8);
    buffer.bytes = bytes;
    buffer.size = sizeof wanted;
    buffer.used = 0;
    CHECK(mixprec_checkpoint_save(s.items, ITEMS, mixprec_buffer_write, &buffer) == MIXPREC_OK, "saving");
    CHECK(buffer.used == wanted_bytes && bytes_in_all == wanted_bytes, "%zu bytes, want %zu", buffer.used,
          wanted_bytes);
    for (i = 0; i < wanted_bytes; i++)
        CHECK(bytes[i] == wanted[i], "byte %zu is %02x, want %02x", i, bytes[i], wanted[i]);
}

/* ---- streams ---- */

typedef struct limited {
    mixprec_buffer buffer;
    size_t most; /* calls that succeed */
} limited;

static size_t limited_write(void *context, const void *from, size_t n) {
    limited *l = (limited *)context;
    return mixprec_buffer_write(&l->buffer, from, l->most ? l->most--, n : n - 1);
}

static size_t limited_read(void *context, uint64_t offset, void *to, size_t n) {
    limited *l = (limited *)context;
    return mixprec_buffer_read(&l->buffer, offset, to, l->most ? l->most--, n : n - 1); /* then short by one byte */
}

static void test_streams(void) {
    static float large[2][5000];
    static const float zeros[5000];
    static unsigned char room[1 << 15];
    mixprec_checkpoint_item item = {"large", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, NULL, 5000};
    const size_t calls = 1000;
    limited l;
    size_t i;
    for (i = 0; i < 5000; i++)
        large[0][i] = (float)i;
    item.data = large[0];
    for (i = 0; i < 6; i++) {
        l.buffer.bytes = room;
        l.buffer.size = sizeof room;
        l.buffer.used = 0;
        l.most = i;
        CHECK(mixprec_checkpoint_save(&item, 1, limited_write, &l) == MIXPREC_ERR_STREAM, "%zu calls", i);
        item.data = large[1];
        CHECK(mixprec_checkpoint_load(&item, 1, mixprec_buffer_read, &l.buffer) != MIXPREC_OK &&
                  !memcmp(large[1], zeros, sizeof zeros),
              "half a checkpoint was loaded");
        item.data = large[0];
        memset(room, 0, sizeof room);
    }
    l.most = 1000;
    l.buffer.used = 0;
    CHECK(mixprec_checkpoint_save(&item, 1, limited_write, &l) == MIXPREC_OK, "saving");
    item.data = large[1];
    CHECK(mixprec_checkpoint_load(&item, 1, mixprec_buffer_read, &l.buffer) == MIXPREC_OK &&
              !memcmp(large[0], large[1], sizeof large[0]),
          "loading");
    l.most = calls; /* how many calls a load takes; then one that fails at each, in the second pass, too */
    CHECK(mixprec_checkpoint_load(&item, 1, limited_read, &l) == MIXPREC_OK && l.most < calls - 6, "reading");
    for (i = 0; i < calls - l.most; i++) {
        limited short_of = l;
        short_of.most = i;
        CHECK(mixprec_checkpoint_load(&item, 1, limited_read, &short_of) != MIXPREC_OK, "%zu of %zu reads", i,
              calls - l.most);
    }
    l.buffer.size = 100;
    l.buffer.used = 0;
    CHECK(mixprec_checkpoint_save(&item, 1, mixprec_buffer_write, &l.buffer) == MIXPREC_ERR_STREAM &&
              l.buffer.used == 0,
          "a buffer that is too small");
    l.buffer.used = 101;
    CHECK(mixprec_buffer_write(&l.buffer, bytes, 1) == 0 && l.buffer.used == 101, "a buffer that says it is overfull");
}

static void test_statuses(void) {
    static run_state s, before;
    static unsigned char sound[sizeof bytes];
    char long_name[300];
    mixprec_buffer buffer, saved;
    int i;
    memset(long_name, 'x', sizeof long_name);
    long_name[256] = 0;
    fill(&s, 2);
    saved.bytes = sound;
    saved.size = save(&s);
    saved.used = 0;
    memcpy(sound, bytes, sizeof bytes);
    memset(bytes, 0x33, sizeof bytes);
    for (i = 0; i < 14; i++) {
        mixprec_status want = MIXPREC_ERR_NULL;
        const mixprec_checkpoint_item *items = s.items;
        mixprec_write write = mixprec_buffer_write;
        mixprec_read read = mixprec_buffer_read;
        fill(&s, 1);
        fill(&before, 1);
        switch (i) {
        case 0: items = NULL; break;
        case 1: s.items[2].name = NULL; break;
        case 2: s.items[7].data = NULL; break;
        case 3: s.scaling[1].history = NULL; break;
        case 4: write = NULL, read = NULL; break;
        case 5: s.items[0].dtype = MIXPREC_NONE, want = MIXPREC_ERR_DTYPE; break;
        case 6: s.items[5].dtype = MIXPREC_F32, want = MIXPREC_ERR_DTYPE; break;
        case 7: s.items[0].dtype = (mixprec_dtype)99, want = MIXPREC_ERR_DTYPE; break;
        case 8: s.items[5].dtype = (mixprec_dtype)99, want = MIXPREC_ERR_DTYPE; break;
        case 9: s.items[1].name = long_name, want = MIXPREC_ERR_RANGE; break;
        case 10: s.items[1].kind = (mixprec_checkpoint_kind)4, want = MIXPREC_ERR_RANGE; break;
        case 11: s.items[1].n = SIZE_MAX / 16 + 1, want = MIXPREC_ERR_SIZE; break;
        case 12: /* together; 32 bits of size_t cannot tell so many */
            s.items[1].n = s.items[2].n = sizeof(size_t) > 4 ? SIZE_MAX / 100 : SIZE_MAX;
            want = MIXPREC_ERR_SIZE;
            break;
        default: s.scaling[0].history_length = SIZE_MAX / 8 + 1, want = MIXPREC_ERR_SIZE; break;
        }
        buffer.bytes = bytes;
        buffer.size = sizeof bytes;
        buffer.used = 0;
        CHECK(mixprec_checkpoint_save(items, ITEMS, write, &buffer) == want && buffer.used == 0 && bytes[0] == 0x33,
              "saving, case %d", i);
        CHECK(mixprec_checkpoint_load(items, ITEMS, read, &saved) == want && same_items(&s, &before),
              "loading, case %d", i);
        CHECK(i == 4 || mixprec_checkpoint_size(items, ITEMS) == 0, "size, case %d", i);
    }
    long_name[255] = 0;
    fill(&s, 1);
    s.items[1].name = long_name;
    CHECK(mixprec_checkpoint_size(s.items, ITEMS) != 0, "a name of 255 bytes");
    CHECK(mixprec_checkpoint_size(NULL, 0) == 32, "of nothing");
    buffer.used = 0;
    CHECK(mixprec_checkpoint_save(NULL, 0, mixprec_buffer_write, &buffer) == MIXPREC_OK && buffer.used == 32,
          "nothing");
    CHECK(mixprec_checkpoint_load(NULL, 0, mixprec_buffer_read, &buffer) == MIXPREC_OK, "nothing");
}

/* ---- a run that is resumed ---- */

typedef struct model {
    float master[257], moment1[257], moment2[257], history[7];
    mixprec_bf16 weights[257];
    mixprec_scaler scaler;
    mixprec_adam adam;
    mixprec_delayed_scaling scaling;
} model;

static void model_init(model *m) {
    size_t i;
    memset(m, 0, sizeof *m);
    for (i = 0; i < 257; i++)
        m->master[i] = (float)i / 100;
    mixprec_scaler_init(&m->scaler);
    m->scaler.growth_interval = 5;
    mixprec_adamw_init(&m->adam);
    mixprec_delayed_scaling_init(&m->scaling, MIXPREC_E5M2, m->history, 7);
}

static void model_step(model *m, uint64_t index) {
    mixprec_parameter p;
    float grad[257], amax;
    double squares;
    float inverse = mixprec_inverse_scale(m->scaler.scale);
    size_t i;
    for (i = 0; i < 257; i++)
        grad[i] = (m->master[i] - (float)(mixprec_random_bits(index, i) >> 16) * 0x1p-16f) * m->scaler.scale;
    if (index % 11 == 3)
        grad[100] = 2 * 3e38f;
    mixprec_sum_squares(&squares, grad, MIXPREC_F32, 257);
    m->scaler.found_inf |= mixprec_found_inf(squares);
    mixprec_amax(&amax, grad, MIXPREC_F32, 257);
    mixprec_delayed_scaling_update(&m->scaling, amax);
    if (!mixprec_scaler_update(&m->scaler))
        return;
    m->adam.step++;
    memset(&p, 0, sizeof p);
    p.n = 257;
    p.grad = grad;
    p.grad_type = MIXPREC_F32;
    p.master = m->master;
    p.model = m->weights;
    p.model_type = MIXPREC_BF16;
    p.moment1 = m->moment1;
    p.moment2 = m->moment2;
    p.round = MIXPREC_ROUND_STOCHASTIC;
    p.seed = index;
    mixprec_adam_step(&m->adam, &p, inverse, mixprec_clip_coefficient(mixprec_gradient_norm(squares, inverse), 1.0), 0);
}

static size_t model_items(model *m, uint64_t *index, mixprec_checkpoint_item *items) {
    static const mixprec_checkpoint_item template[] = {
        {"master", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, NULL, 257},
        {"moment1", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, NULL, 257},
        {"moment2", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, NULL, 257},
        {"weights", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_BF16, NULL, 257},
        {"scaler", MIXPREC_CHECKPOINT_SCALER, MIXPREC_NONE, NULL, 1},
        {"e5m2", MIXPREC_CHECKPOINT_DELAYED_SCALING, MIXPREC_NONE, NULL, 1},
        {"step", MIXPREC_CHECKPOINT_U64, MIXPREC_NONE, NULL, 1},
        {"index", MIXPREC_CHECKPOINT_U64, MIXPREC_NONE, NULL, 1}};
    memcpy(items, template, sizeof template);
    items[0].data = m->master;
    items[1].data = m->moment1;
    items[2].data = m->moment2;
    items[3].data = m->weights;
    items[4].data = &m->scaler;
    items[5].data = &m->scaling;
    items[6].data = &m->adam.step;
    items[7].data = index;
    return 8;
}

static void test_resume(void) {
    static model whole, resumed;
    mixprec_checkpoint_item items[8];
    mixprec_buffer buffer;
    uint64_t index, other = 0;
    size_t count;
    model_init(&whole);
    buffer.bytes = bytes;
    buffer.size = sizeof bytes;
    buffer.used = 0;
    for (index = 0; index < 60; index++) {
        if (index == 29) {
            count = model_items(&whole, &index, items);
            CHECK(mixprec_checkpoint_save(items, count, mixprec_buffer_write, &buffer) == MIXPREC_OK, "saving");
        }
        model_step(&whole, index);
    }
    model_init(&resumed);
    resumed.adam.learning_rate = 1e-3;
    count = model_items(&resumed, &other, items);
    CHECK(mixprec_checkpoint_load(items, count, mixprec_buffer_read, &buffer) == MIXPREC_OK && other == 29, "loading");
    for (index = other; index < 60; index++)
        model_step(&resumed, index);
    resumed.scaling.history = whole.scaling.history;
    CHECK(whole.adam.step > 40 && whole.adam.step < 60, "the run skips no step, or all");
    CHECK(!memcmp(whole.master, resumed.master, sizeof whole.master) &&
              !memcmp(whole.moment1, resumed.moment1, sizeof whole.moment1) &&
              !memcmp(whole.moment2, resumed.moment2, sizeof whole.moment2) &&
              !memcmp(whole.weights, resumed.weights, sizeof whole.weights) &&
              !memcmp(whole.history, resumed.history, sizeof whole.history) &&
              whole.scaling.scale == resumed.scaling.scale && whole.scaler.scale == resumed.scaler.scale &&
              whole.adam.step == resumed.adam.step,
          "a resumed run differs");
}

/* A stream whose checksum is right, but covers less than the items: none of it may be loaded. */
static void test_short_total(void) {
    static unsigned char memory[8192];
    static float large[1000];
    float small[4] = {1, 2, 3, 4};
    const mixprec_checkpoint_item items[2] = {{"a", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, small, 4},
                                              {"b", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_F32, large, 1000}};
    mixprec_buffer buffer = {memory, sizeof memory, 0};
    uint64_t total, hash;
    int i;
    CHECK(mixprec_checkpoint_save(items, 2, mixprec_buffer_write, &buffer) == MIXPREC_OK, "save");
    total = buffer.used - 2000;
    for (i = 0; i < 8; i++)
        memory[16 + i] = (unsigned char)(total >> 8 * i);
    hash = checksum(memory, (size_t)total - 8);
    for (i = 0; i < 8; i++)
        memory[total - 8 + (size_t)i] = (unsigned char)(hash >> 8 * i);
    small[0] = 99;
    CHECK(mixprec_checkpoint_load(items, 2, mixprec_buffer_read, &buffer) == MIXPREC_ERR_MISMATCH && small[0] == 99,
          "bytes behind the checksum are loaded");
    buffer.size = buffer.used = (size_t)total;
    CHECK(mixprec_checkpoint_load(items, 2, mixprec_buffer_read, &buffer) == MIXPREC_ERR_MISMATCH && small[0] == 99,
          "half loaded");
}

int main(int argc, char **argv) {
    test_init(argc, argv);
#define TEST(name, function)                                                                                           \
    if (test_begin(name)) {                                                                                            \
        function();                                                                                                    \
        test_end();                                                                                                    \
    }
    TEST("checkpoint: what is loaded is what was saved", test_round_trip)
    TEST("checkpoint: the bytes of the format", test_format)
    TEST("checkpoint: the bytes of every kind of record", test_format_of_records)
    TEST("checkpoint: truncated, damaged, foreign", test_damage)
    TEST("checkpoint: damage of several words", test_damage_of_words)
    TEST("checkpoint: other items than were saved", test_mismatch)
    TEST("checkpoint: a checksum of less than the items", test_short_total)
    TEST("checkpoint: streams that end early, in many pieces", test_streams)
    TEST("checkpoint: a run that is resumed gives the same bits", test_resume)
    TEST("checkpoint: statuses", test_statuses)
    return test_summary();
}
