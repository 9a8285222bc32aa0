/* Checkpoints of any bytes. The input says which items are saved, which are to be loaded, and how the stream is damaged
   in between, or is the stream itself; the checksum may be mended, so that what lies behind it is reached. Whatever
   comes, nothing is read beyond the stream or written beyond the items; on an error the items are as before, and on
   success they hold what saving them gives again, byte for byte. How to run it: see fuzz.h. */
#include "fuzz.h"

enum { ITEMS = 5, LENGTH = 300, HISTORY = 7 };

typedef struct state {
    mixprec_checkpoint_item items[ITEMS];
    size_t count;
    char names[ITEMS][260];
} state;

static void make_history(mixprec_delayed_scaling *scaling, uint64_t random) {
    static const mixprec_dtype dtypes[] = {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_F16, (mixprec_dtype)77};
    size_t length = (size_t)(random >> 8) % HISTORY;
    memset(scaling, (int)(random & 0xFF), sizeof *scaling);
    scaling->dtype = dtypes[random >> 20 & 3];
    scaling->history = (float *)(void *)fuzz_memory(length * sizeof(float), (int)(random >> 32 & 0xFF));
    scaling->history_length = length;
}

/* Items of any kind, drawn from the input. */
static void make_items(state *s) {
    static const mixprec_checkpoint_item none = {"", MIXPREC_CHECKPOINT_ARRAY, MIXPREC_NONE, NULL, 0};
    size_t i, j;
    s->count = fuzz_below(ITEMS + 1);
    for (i = 0; i < s->count; i++) {
        mixprec_checkpoint_item *item = &s->items[i];
        int fill = (int)fuzz_bits(1);
        size_t length = fuzz_one_in(20) ? 254 + fuzz_below(5) : fuzz_below(4), bytes;
        *item = none;
        memset(s->names[i], 'a' + (int)fuzz_below(2), length);
        s->names[i][length] = 0;
        item->name = s->names[i];
        item->kind = (mixprec_checkpoint_kind)fuzz_enum(0, MIXPREC_CHECKPOINT_DELAYED_SCALING);
        item->dtype = item->kind == MIXPREC_CHECKPOINT_ARRAY || fuzz_one_in(30)
                          ? (mixprec_dtype)fuzz_enum(0, MIXPREC_DTYPE_COUNT - 1)
                          : MIXPREC_NONE;
        item->n = item->kind == MIXPREC_CHECKPOINT_SCALER || item->kind == MIXPREC_CHECKPOINT_DELAYED_SCALING
                      ? fuzz_below(4)
                      : fuzz_below(fuzz_one_in(8) ? LENGTH : 5);
        bytes = item->kind == MIXPREC_CHECKPOINT_ARRAY    ? mixprec_dtype_bytes(item->dtype, item->n)
                : item->kind == MIXPREC_CHECKPOINT_U64    ? item->n * sizeof(uint64_t)
                : item->kind == MIXPREC_CHECKPOINT_SCALER ? item->n * sizeof(mixprec_scaler)
                                                          : item->n * sizeof(mixprec_delayed_scaling);
        item->data = fuzz_memory(bytes, fill);
        for (j = 0; item->kind == MIXPREC_CHECKPOINT_DELAYED_SCALING && j < item->n; j++)
            make_history((mixprec_delayed_scaling *)item->data + j, fuzz_bits(5));
        if (fuzz_one_in(50))
            item->n = SIZE_MAX / (1 + fuzz_below(7)); /* refused: more than an array can have */
        else if (fuzz_one_in(50))
            item->data = NULL;
    }
}

/* The same items in memory of their own. */
static void copy_items(state *to, const state *from) {
    size_t i, j;
    *to = *from;
    for (i = 0; i < from->count; i++) {
        const mixprec_checkpoint_item *item = &from->items[i];
        size_t size = item->kind == MIXPREC_CHECKPOINT_SCALER            ? sizeof(mixprec_scaler)
                      : item->kind == MIXPREC_CHECKPOINT_DELAYED_SCALING ? sizeof(mixprec_delayed_scaling)
                                                                         : sizeof(uint64_t);
        size_t bytes =
            item->kind == MIXPREC_CHECKPOINT_ARRAY ? mixprec_dtype_bytes(item->dtype, item->n) : item->n * size;
        to->items[i].name = to->names[i];
        to->items[i].data = fuzz_memory(bytes, 0);
        if (bytes)
            memcpy(to->items[i].data, item->data, bytes);
        for (j = 0; item->kind == MIXPREC_CHECKPOINT_DELAYED_SCALING && j < item->n; j++) {
            mixprec_delayed_scaling *scaling = (mixprec_delayed_scaling *)to->items[i].data + j;
            size_t length = scaling->history_length * sizeof(float);
            float *history = (float *)(void *)fuzz_memory(length, 0);
            memcpy(history, scaling->history, length);
            scaling->history = history;
        }
    }
}

static unsigned char stream[1 << 16], again[1 << 16], saved_before[1 << 16];

static size_t save(const state *s, unsigned char *bytes) {
    mixprec_buffer buffer;
    uint64_t size = mixprec_checkpoint_size(s->items, s->count);
    mixprec_status status;
    buffer.bytes = bytes;
    buffer.size = (size_t)size; /* exactly */
    buffer.used = 0;
    FUZZ_CHECK(size <= sizeof stream, "the fuzzer's buffer is too small");
    status = mixprec_checkpoint_save(s->items, s->count, mixprec_buffer_write, &buffer);
    FUZZ_CHECK((status == MIXPREC_OK) == (size != 0), "saving: status %d, size %d", (int)status, (int)size);
    FUZZ_CHECK(buffer.used == size, "saving wrote %zu bytes, announced %zu", buffer.used, (size_t)size);
    FUZZ_CHECK(status == MIXPREC_OK || status == MIXPREC_ERR_NULL || status == MIXPREC_ERR_DTYPE ||
                   status == MIXPREC_ERR_RANGE || status == MIXPREC_ERR_SIZE,
               "saving: status %d", (int)status);
    return (size_t)size;
}

static size_t damage(size_t size) {
    size_t count = fuzz_below(4);
    while (count--) {
        size_t at = size ? fuzz_below(size) : 0, n = fuzz_below(9), i;
        switch (fuzz_below(4)) {
        case 0: /* a byte */
            if (size)
                stream[at] = (unsigned char)fuzz_bits(1);
            break;
        case 1: /* a length, a count */
            for (i = 0; i < 8 && at + i < size; i++)
                stream[at + i] = (unsigned char)(i < 2 ? fuzz_bits(1) : 0);
            break;
        case 2: size = fuzz_one_in(2) ? at : size - (size < n ? size : n); break;
        default: /* bytes more */
            if (size + n <= sizeof stream) {
                memmove(stream + at + n, stream + at, size - at);
                memset(stream + at, (int)fuzz_bits(1), n);
                size += n;
            }
        }
    }
    return size;
}

/* The checksum as the header's comment has it: written down anew. */
static void mend(size_t size) {
    uint64_t hash = 0, word;
    size_t i, j;
    if (size < 32)
        return;
    for (i = 0; i < 8; i++)
        stream[16 + i] = (unsigned char)((uint64_t)size >> 8 * i);
    for (i = 0; i < size - 8; i += 8) {
        word = 0;
        for (j = 0; j < 8 && i + j < size - 8; j++)
            word += (uint64_t)stream[i + j] << 8 * j;
        word = word * 0xC6A4A7935BD1E995u;
        word = (word ^ word >> 47) * 0xC6A4A7935BD1E995u;
        hash = (hash ^ word) * 0xC6A4A7935BD1E995u;
    }
    for (i = 0; i < 8; i++)
        stream[size - 8 + i] = (unsigned char)(hash >> 8 * i);
}

typedef struct source {
    const unsigned char *bytes;
    size_t size;
    uint64_t fails_from; /* reading at this offset and beyond gives less */
} source;
static size_t read_source(void *context, uint64_t offset, void *bytes, size_t n) {
    const source *s = (const source *)context;
    size_t end = s->fails_from < s->size ? (size_t)s->fails_from : s->size;
    FUZZ_CHECK(n > 0, "nothing was asked for");
    if (offset >= end)
        return 0;
    n = n < end - (size_t)offset ? n : end - (size_t)offset;
    memcpy(bytes, s->bytes + (size_t)offset, n);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    state from, to;
    mixprec_status status;
    unsigned char *exact;
    size_t length, saved, before, i;
    source s;
    int good; /* must load */
    fuzz_begin(data, size);
    make_items(&from);
    length = saved = save(&from, stream);
    memcpy(again, stream, saved);
    good = saved && fuzz_one_in(2);
    if (good)
        copy_items(&to, &from);
    else
        make_items(&to);
    for (i = 0; i < to.count; i++) /* other values than those in the stream */
        if (to.items[i].kind == MIXPREC_CHECKPOINT_ARRAY && to.items[i].data && to.items[i].n && !fuzz_one_in(2) &&
            mixprec_dtype_bytes(to.items[i].dtype, to.items[i].n))
            ((unsigned char *)to.items[i].data)[0] ^= 0x55;
    before = save(&to, saved_before);
    if (fuzz_one_in(8)) { /* the input is the stream */
        length = fuzz_left < sizeof stream ? fuzz_left : sizeof stream;
        memcpy(stream, fuzz_data, length);
    } else {
        length = damage(length);
        if (fuzz_one_in(2))
            mend(length);
    }
    good = good && length >= saved && !memcmp(stream, again, saved);
    exact = fuzz_memory(length, 0);
    memcpy(exact, stream, length);
    s.bytes = exact;
    s.size = length;
    s.fails_from = fuzz_one_in(10) ? fuzz_below(length + 1) : UINT64_MAX;
    status = mixprec_checkpoint_load(to.items, to.count, read_source, &s);
    if (!before) {
        FUZZ_CHECK(status == MIXPREC_ERR_NULL || status == MIXPREC_ERR_DTYPE || status == MIXPREC_ERR_RANGE ||
                       status == MIXPREC_ERR_SIZE,
                   "unsound items: status %d", (int)status);
    } else if (status == MIXPREC_OK) {
        size_t n = save(&to, again);
        FUZZ_CHECK(n <= length && !memcmp(again, exact, n), "what was loaded saves to other bytes");
    } else {
        FUZZ_CHECK(status == MIXPREC_ERR_FORMAT || status == MIXPREC_ERR_VERSION || status == MIXPREC_ERR_TRUNCATED ||
                       status == MIXPREC_ERR_CHECKSUM || status == MIXPREC_ERR_MISMATCH,
                   "status %d", (int)status);
        FUZZ_CHECK(save(&to, again) == before && !memcmp(again, saved_before, before),
                   "status %d, but something was loaded", (int)status);
        FUZZ_CHECK(!good || s.fails_from < saved, "status %d for a good checkpoint", (int)status);
    }
    fuzz_free(0);
    return 0;
}
