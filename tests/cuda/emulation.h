/* The CUDA execution model on one CPU thread, for tests: mixprec_cuda.cuh with MIXPREC_CUDA_EMULATION set to this
   header is plain C++, and its kernels run as they are. Not fast, and adversarial where a GPU would be kind:

     - Every thread of a block is a fiber. One warp runs until all its lanes wait at the block's barrier, then another
       one, drawn at random: what lacks a __syncthreads reads what was not yet written. Within a warp the lanes run in
       an order drawn anew at each meeting.
     - Shared memory is filled with NaN before each block; its size is that of the launch, and accesses through
       ldmatrix, cp.async and wmma are checked for bounds and alignment. Plain reads find NaN behind the end, too, and
       plain writes there are found when the block has ended. cp.async fills its target with NaN at once and brings the
       data no earlier than the wait.
     - Of global memory the reads of mixprec_cuda_read_, cp.async and the copy engine are checked, no others.
     - A warp operation that not all lanes reach, or a barrier that a thread left out, ends the program.
     - The two blocks of a cluster run at the same time. What the copy engine brings fills its target with NaN at once
       and comes at a time that is drawn; it must not be sent to a block that has ended. Who arrives
       at a barrier may be held up there.
     - wgmma reads shared memory at once, or as late as the wait for it: which is drawn. Its sums must have been fenced;
       bytes that cp.async has brought or mixprec_cuda_wgmma_put_ has written must have been published (plain stores are
       not tracked).
     - Conversions return NaNs with another payload than the library promises, as hardware may.
     - Bank conflicts of ldmatrix and of pairs of words are counted.

   Not modelled: lanes that come to an aligned instruction one after the other, how few bits the fp8 units sum in,
   memory order between blocks, races within a barrier interval whose outcome no order of warps changes, other bank
   conflicts, time. */
#ifndef EMULATION_H
#define EMULATION_H

#include <map>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((unused))
#define __launch_bounds__(...) __attribute__((unused))
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {
    }
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y) {
    float2 v = {x, y};
    return v;
}
static inline float4 make_float4(float x, float y, float z, float w) {
    float4 v = {x, y, z, w};
    return v;
}
static inline uint2 make_uint2(unsigned x, unsigned y) {
    uint2 v = {x, y};
    return v;
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    uint4 v = {x, y, z, w};
    return v;
}

/* ---- fibers ---- */

#define EMULATION_STACK 65536
#define EMULATION_MAX_THREADS 1024
#define EMULATION_GUARD 4096 /* bytes behind the shared memory of a launch */

#if defined(__x86_64__)
/* Saves the callee-saved registers on the old stack and takes those of the new one. */
extern "C" void emulation_switch(void **old_stack, void *new_stack);
__asm__(".text\n.globl emulation_switch\nemulation_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
typedef void *emulation_context;
static inline void emulation_swap(emulation_context *from, emulation_context *to) {
    emulation_switch(from, *to);
}
static void emulation_make(emulation_context *context, char *stack, void (*entry)(void)) {
    void **top = (void **)(((uintptr_t)stack + EMULATION_STACK) & ~(uintptr_t)15);
    *--top = NULL; /* where entry would return to; keeps the stack aligned as after a call */
    *--top = (void *)entry;
    *context = top - 6;
    memset(*context, 0, 6 * sizeof(void *));
}
#else
typedef ucontext_t emulation_context;
static inline void emulation_swap(emulation_context *from, emulation_context *to) {
    swapcontext(from, to);
}
static void emulation_make(emulation_context *context, char *stack, void (*entry)(void)) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = EMULATION_STACK;
    context->uc_link = NULL;
    makecontext(context, entry, 0);
}
#endif

struct emulation_copy {
    unsigned char *to;
    size_t bytes;
    unsigned char data[16];
    int group;
};
/* A warp's part of a wgmma: what it reads, and where each lane's sums are. */
struct emulation_product {
    void (*run)(const emulation_product &);
    uint64_t a, b;
    bool add;
    void *sums[32];
    int warp, group;
};
struct emulation_warp {
    unsigned runnable, waiting, blocked, done; /* bits of lanes */
    const char *operation;
    void *slots[32];
    std::vector<emulation_product> products;
    int product_groups;
    bool fenced; /* since the last commit */
};
/* A barrier in shared memory, and a box on its way there. */
struct emulation_phase {
    unsigned count, pending, parity;
    long bytes;
};
struct emulation_box {
    unsigned char *to;
    bool *unpublished;
    std::vector<unsigned char> data;
    int block;
    uint32_t barrier;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim; /* of the running thread */
static struct {
    int now; /* the running thread, of all blocks that run at the same time */
    emulation_context scheduler, threads[EMULATION_MAX_THREADS];
    emulation_warp warps[EMULATION_MAX_THREADS / 32];
    std::vector<emulation_copy> copies[EMULATION_MAX_THREADS];
    int groups[EMULATION_MAX_THREADS];
    int block_threads, blocks, first_block; /* blocks: of the cluster */
    unsigned char *shared;                  /* of the running thread's block */
    bool *unpublished;                      /* bytes that a copy has brought, but that no fence has shown to wgmma */
    unsigned char *all_shared[2];
    bool *all_unpublished[2];
    std::map<uint32_t, emulation_phase> phases[2];
    std::vector<emulation_box> boxes;
    uint64_t blocked_on[EMULATION_MAX_THREADS];                            /* which barrier */
    std::vector<std::pair<size_t, size_t>> brought[EMULATION_MAX_THREADS]; /* those of a thread */
    size_t shared_bytes;
    char *stacks;
    void (*body)(void *);
    void *argument;
    uint64_t random;
    long launches, early_launches, barriers, sent;
    bool early; /* the kernel was launched so that it may begin before the one before it has ended */
    bool waited[EMULATION_MAX_THREADS]; /* for that to end */
    long conflicts, gathered; /* accesses that meet a bank twice; elements read from global memory one by one */
} emulation;

static unsigned emulation_random(void) {
    emulation.random = emulation.random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(emulation.random >> 33);
}
static int emulation_block(void) {
    return emulation.now / emulation.block_threads;
}
static void emulation_become(int thread) {
    emulation.now = thread;
    threadIdx.x = (unsigned)(thread % emulation.block_threads);
    blockIdx.x = (unsigned)(emulation.first_block + emulation_block());
    emulation.shared = emulation.all_shared[emulation_block()];
    emulation.unpublished = emulation.all_unpublished[emulation_block()];
}
static void emulation_fail(const char *what, const char *detail) {
    printf("FAIL  emulation: %s (%s) in block %u, thread %d\n", what, detail, blockIdx.x, emulation.now);
    printf("0 passed, 1 failed, 0 skipped\n");
    fflush(stdout);
    _Exit(1);
}

/* Goes on with another lane of the warp, or with the scheduler when none can run. */
static void emulation_yield(emulation_context *from) {
    int warp = emulation.now / 32, lane;
    unsigned runnable = emulation.warps[warp].runnable, start, rotated;
    if (!runnable) {
        if (emulation.warps[warp].waiting)
            emulation_fail("a warp operation that not all lanes reach", emulation.warps[warp].operation);
        emulation_swap(from, &emulation.scheduler);
        return;
    }
    start = emulation_random() % 32;
    rotated = runnable >> start | (start ? runnable << (32 - start) : 0);
    lane = (__builtin_ctz(rotated) + (int)start) % 32;
    emulation_become(warp * 32 + lane);
    if (from != &emulation.threads[emulation.now])
        emulation_swap(from, &emulation.threads[emulation.now]);
}

static void emulation_entry(void) {
    emulation.body(emulation.argument);
    if (!emulation.waited[emulation.now])
        emulation_fail("a thread has ended without waiting for the kernel before its own", "griddepcontrol");
    emulation_warp *warp = &emulation.warps[emulation.now / 32];
    warp->runnable &= ~(1u << emulation.now % 32);
    warp->done |= 1u << emulation.now % 32;
    emulation_yield(&emulation.threads[emulation.now]);
}

static void emulation_block_on(uint64_t barrier) {
    int self = emulation.now;
    emulation_warp *warp = &emulation.warps[self / 32];
    warp->runnable &= ~(1u << self % 32);
    warp->blocked |= 1u << self % 32;
    emulation.blocked_on[self] = barrier;
    emulation_yield(&emulation.threads[self]);
}
/* Those of a block that wait for a barrier: how many, and let them go on. */
static int emulation_blocked(int first, int last, uint64_t barrier, bool release) {
    int count = 0;
    for (int t = first; t < last; t++) {
        emulation_warp *warp = &emulation.warps[t / 32];
        if (!(warp->blocked >> t % 32 & 1) || emulation.blocked_on[t] != barrier)
            continue;
        count++;
        if (release) {
            warp->blocked &= ~(1u << t % 32);
            warp->runnable |= 1u << t % 32;
        }
    }
    return count;
}
/* A barrier of `count` threads, among those from first to last. Barriers 0 to 15 are those of a block, 16 is the
   cluster's, then come addresses in shared memory. */
static void emulation_barrier(int first, int last, int count, uint64_t barrier) {
    if (emulation_blocked(first, last, barrier, false) + 1 < count) {
        emulation_block_on(barrier);
        return;
    }
    emulation.barriers++;
    emulation_blocked(first, last, barrier, true);
}
static void emulation_block_barrier(int number, int count) {
    int first = emulation_block() * emulation.block_threads;
    emulation_barrier(first, first + emulation.block_threads, count, (uint64_t)number);
}
#define __syncthreads() emulation_block_barrier(0, emulation.block_threads)

/* All lanes meet; the last one to come runs combine(slots, context) for all. */
template <class Combine> static void emulation_meet(const char *operation, void *slot, Combine combine) {
    int self = emulation.now, lane = self % 32;
    emulation_warp *warp = &emulation.warps[self / 32];
    if (warp->waiting && warp->operation != operation && strcmp(warp->operation, operation))
        emulation_fail("lanes meet in different operations", operation);
    warp->operation = operation;
    warp->slots[lane] = slot;
    warp->waiting |= 1u << lane;
    warp->runnable &= ~(1u << lane);
    if (warp->waiting == 0xFFFFFFFFu) {
        combine(warp->slots);
        warp->waiting = 0;
        warp->runnable = 0xFFFFFFFFu;
    }
    emulation_yield(&emulation.threads[self]);
}
static inline void __syncwarp(unsigned = 0xFFFFFFFFu) {
    emulation_meet("__syncwarp", NULL, [](void **) {});
}
/* Each lane gets what lane `from` has. */
template <class T> static T emulation_shuffle(const char *what, T value, int from) {
    struct {
        T in, out;
        int from;
    } slot = {value, value, from};
    typedef decltype(slot) slot_type;
    emulation_meet(what, &slot, [](void **slots) {
        for (int lane = 0; lane < 32; lane++) {
            slot_type *s = (slot_type *)slots[lane];
            s->out = ((slot_type *)slots[s->from & 31])->in;
        }
    });
    return slot.out;
}
template <class T> static T __shfl_sync(unsigned, T value, int lane) {
    return emulation_shuffle("__shfl_sync", value, lane);
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int distance) {
    return emulation_shuffle("__shfl_xor_sync", value, (int)(threadIdx.x % 32) ^ distance);
}
static inline unsigned atomicMax(unsigned *p, unsigned x) {
    unsigned old = *p;
    if (x > old)
        *p = x;
    return old;
}

/* ---- the runtime ---- */

typedef enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorJitCompilationDisabled = 223,
    cudaErrorMisalignedAddress = 716
} cudaError_t;
typedef struct CUstream_st *cudaStream_t;
enum cudaDeviceAttr {
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerBlockOptin
};
enum { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaMemcpyDefault };
struct cudaFuncAttributes {
    int ptxVersion;
    size_t sharedSizeBytes;
};
enum cudaLaunchAttributeID {
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        dim3 clusterDim;
        int programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

/* The device that the emulation pretends to be; tests set it. */
static struct {
    int major, minor, compiled, multiprocessors, shared_bytes;
    bool wgmma, no_maps; /* no_maps: the copy engine refuses every array */
    cudaError_t error;   /* what every call returns, to test errors */
    int driver;
} emulation_device = {9, 0, 90, 4, 232448, false, false, cudaSuccess, 13000};
#define CUDART_VERSION 13000
#define MIXPREC_CUDA_EMULATED_ARCH (emulation_device.compiled * 10)

static inline const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess                       ? "no error"
           : error == cudaErrorNoKernelImageForDevice ? "no kernel image is available for execution on the device"
           : error == cudaErrorMisalignedAddress      ? "misaligned address"
                                                      : "an emulated error";
}
static cudaError_t emulation_last_error = cudaSuccess;
static inline cudaError_t emulation_result(cudaError_t error) {
    if (error != cudaSuccess)
        emulation_last_error = error;
    return error;
}
static inline cudaError_t cudaPeekAtLastError() {
    return emulation_last_error;
}
static inline cudaError_t cudaGetLastError() {
    const cudaError_t error = emulation_last_error;
    emulation_last_error = cudaSuccess;
    return error;
}
static inline cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return emulation_result(emulation_device.error);
}
static inline cudaError_t cudaDriverGetVersion(int *version) {
    *version = emulation_device.driver;
    return emulation_result(emulation_device.error);
}
static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    *value = attribute == cudaDevAttrComputeCapabilityMajor   ? emulation_device.major
             : attribute == cudaDevAttrComputeCapabilityMinor ? emulation_device.minor
             : attribute == cudaDevAttrMultiProcessorCount    ? emulation_device.multiprocessors
                                                              : emulation_device.shared_bytes;
    return emulation_result(emulation_device.error);
}
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
    attributes->ptxVersion = emulation_device.compiled;
    attributes->sharedSizeBytes = emulation_device.wgmma ? 4 : 0; /* of the one kernel that has any */
    return emulation_result(emulation_device.error);
}
static inline cudaError_t cudaFuncSetAttribute(const void *, int, int bytes) {
    return emulation_result(bytes <= emulation_device.shared_bytes ? cudaSuccess : cudaErrorInvalidValue);
}
static inline cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int, cudaStream_t) {
    memcpy(dst, src, bytes);
    return emulation_result(emulation_device.error);
}
static inline cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t) {
    memset(dst, value, bytes);
    return emulation_result(emulation_device.error);
}

static void emulation_end_phase(int block, uint32_t barrier, emulation_phase *phase) {
    if (phase->pending || phase->bytes)
        return;
    phase->parity ^= 1;
    phase->pending = phase->count;
    emulation_blocked(block * emulation.block_threads, (block + 1) * emulation.block_threads, barrier, true);
}
/* A box of the copy engine arrives. */
static void emulation_bring(size_t which) {
    emulation_box box = emulation.boxes[which];
    emulation.boxes.erase(emulation.boxes.begin() + (long)which);
    memcpy(box.to, box.data.data(), box.data.size());
    memset(box.unpublished, 0, box.data.size());
    emulation_phase *phase = &emulation.phases[box.block][box.barrier];
    phase->bytes -= (long)box.data.size();
    emulation_end_phase(box.block, box.barrier, phase);
}

static void emulation_run_blocks(int threads, int blocks) {
    int warps = threads / 32 * blocks, t, w, block;
    emulation.block_threads = threads, emulation.blocks = blocks;
    for (block = 0; block < blocks; block++) {
        memset(emulation.all_shared[block], 0xFF, emulation.shared_bytes + EMULATION_GUARD);
        memset(emulation.all_unpublished[block], 0, emulation.shared_bytes);
        emulation.phases[block].clear();
    }
    emulation.boxes.clear();
    for (t = 0; t < threads * blocks; t++) {
        emulation.copies[t].clear();
        emulation.brought[t].clear();
        emulation.groups[t] = 0;
        emulation.waited[t] = !emulation.early;
        emulation_make(&emulation.threads[t], emulation.stacks + (size_t)t * EMULATION_STACK, emulation_entry);
    }
    if (threads % 32)
        warps++;
    for (w = 0; w < warps; w++) {
        emulation_warp fresh = {};
        fresh.runnable = threads * blocks - w * 32 >= 32 ? 0xFFFFFFFFu : (1u << (threads - w * 32)) - 1;
        emulation.warps[w] = fresh;
    }
    for (;;) {
        int able = 0, blocked = 0, done = 0, pick;
        for (w = 0; w < warps; w++) {
            able += emulation.warps[w].runnable != 0;
            blocked += __builtin_popcount(emulation.warps[w].blocked);
            done += __builtin_popcount(emulation.warps[w].done);
        }
        if (!emulation.boxes.empty() && (!able || emulation_random() % 16 == 0)) {
            emulation_bring(emulation_random() % emulation.boxes.size());
            continue;
        }
        if (!able && blocked)
            emulation_fail(done ? "a thread has left before a barrier" : "threads wait for each other", "a barrier");
        if (!able) {
            for (block = 0; block < blocks; block++) {
                const unsigned char *guard = emulation.all_shared[block] + emulation.shared_bytes;
                if (guard[0] != 0xFF || memcmp(guard, guard + 1, EMULATION_GUARD - 1))
                    emulation_fail("a write behind the shared memory of the launch", "plain access");
            }
            return;
        }
        pick = (int)(emulation_random() % (unsigned)able);
        for (w = 0; w < warps; w++)
            if (emulation.warps[w].runnable && pick-- == 0)
                break;
        emulation_become(w * 32 + __builtin_ctz(emulation.warps[w].runnable));
        emulation_swap(&emulation.scheduler, &emulation.threads[emulation.now]);
    }
}

template <class Kernel> static void emulation_call(void *kernel) {
    (*(Kernel *)kernel)();
}
template <class... Parameters, class... Arguments>
static cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                      Arguments... arguments) {
    if (emulation_device.error != cudaSuccess)
        return emulation_result(emulation_device.error);
    unsigned cluster = 1;
    emulation.early = false;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            cluster = config->attrs[i].val.clusterDim.x;
        else
            emulation.early = config->attrs[i].val.programmaticStreamSerializationAllowed;
    emulation.early_launches += emulation.early;
    if (emulation.early && (emulation_device.compiled < 90 || emulation_device.driver < 12030))
        return emulation_result(cudaErrorInvalidValue);
    if (!config->gridDim.x || !config->gridDim.z || config->gridDim.z > 65535 || !config->blockDim.x ||
        config->blockDim.x * cluster > EMULATION_MAX_THREADS || cluster > 2 || config->gridDim.x % cluster ||
        (cluster > 1 && config->blockDim.x % 32) || config->dynamicSmemBytes > (size_t)emulation_device.shared_bytes)
        return emulation_result(cudaErrorInvalidValue);
    auto call = [&]() { kernel(static_cast<Parameters>(arguments)...); };
    emulation.launches++;
    gridDim = config->gridDim;
    blockDim = config->blockDim;
    emulation.shared_bytes = config->dynamicSmemBytes;
    if (!emulation.stacks) {
        emulation.stacks = (char *)malloc((size_t)EMULATION_MAX_THREADS * EMULATION_STACK);
        for (int block = 0; block < 2; block++) {
            emulation.all_shared[block] = (unsigned char *)aligned_alloc(128, 1 << 18);
            emulation.all_unpublished[block] = (bool *)malloc(1 << 18);
        }
    }
    emulation.body = emulation_call<decltype(call)>;
    emulation.argument = &call;
    for (unsigned z = 0; z < config->gridDim.z; z++)
        for (unsigned x = 0; x < config->gridDim.x; x += cluster) {
            blockIdx = dim3(x, 0, z);
            emulation.first_block = (int)x;
            emulation_run_blocks((int)config->blockDim.x, (int)cluster);
        }
    return cudaSuccess;
}

/* ---- [CUDA-PTX] ---- */

/* The NaN of an instruction: never the one that the library wants. */
static inline float emulation_nan(void) {
    return mixprec_f32_from_bits_(0x7FFFFFFFu);
}
static inline float emulation_result(volatile float x) {
    float y = x;
    return (mixprec_f32_bits_(y) & 0x7FFFFFFFu) > 0x7F800000u ? emulation_nan() : y;
}
static inline float mixprec_cuda_mul_(float a, float b) {
    return emulation_result(a * b);
}
static inline float mixprec_cuda_add_(float a, float b) {
    return emulation_result(a + b);
}
static inline float mixprec_cuda_sub_(float a, float b) {
    return emulation_result(a - b);
}
static inline float mixprec_cuda_fma_(float a, float b, float c) {
    return emulation_result(fmaf(a, b, c));
}
static inline float mixprec_cuda_reciprocal_(float x) {
    return emulation_result(fabsf(x) > 0x1p126f ? 0.0f : 1 / x);
}
static inline float mixprec_cuda_div_(float a, float b) {
    return emulation_result(a / b);
}
static inline float mixprec_cuda_sqrt_(float a) {
    return emulation_result(sqrtf(a));
}
static inline double __dmul_rn(double a, double b) {
    return a * b;
}
static inline float mixprec_cuda_cvt_f16_(uint32_t bits) {
    mixprec_f16 x;
    x.bits = (uint16_t)bits;
    return emulation_result(mixprec_f16_to_f32(x));
}
template <int count> static inline bool mixprec_cuda_any_above_(const float (&v)[count], float limit) {
    for (int e = 0; e < count; e++)
        if (!(fabsf(v[e]) <= limit))
            return true;
    return false;
}
static inline bool mixprec_cuda_has_cvt_(mixprec_dtype type) {
    return MIXPREC_CUDA_EMULATED_ARCH >= (type == MIXPREC_F16 || type == MIXPREC_BF16 ? 800 : 890);
}
/* A NaN becomes the one of the PTX ISA, 9.7.9.22 (cvt): 0x7FFF, and 0x7F in fp8. */
static inline uint32_t mixprec_cuda_cvt_pair_(float low, float high, mixprec_dtype type) {
    int bits = type == MIXPREC_F16 || type == MIXPREC_BF16 ? 16 : 8;
    mixprec_overflow overflow = bits == 16 ? MIXPREC_OVERFLOW_IEEE : MIXPREC_OVERFLOW_SATURATE;
    uint32_t codes[2];
    for (int e = 0; e < 2; e++) {
        float x = e ? high : low;
        codes[e] =
            x != x ? 0x7FFFu >> (16 - bits) : mixprec_encode((double)x, type, MIXPREC_ROUND_NEAREST_EVEN, overflow, 0);
    }
    return codes[0] | codes[1] << bits;
}
static inline void mixprec_cuda_let_next_begin_(void) {
}
static inline void mixprec_cuda_wait_for_last_(void) {
    emulation.waited[emulation.now] = true;
}
/* The arrays that kernels may read; tests enter them. */
static std::vector<std::pair<uintptr_t, uintptr_t>> emulation_arrays;
static void emulation_check_global(const void *p, size_t bytes, const char *what) {
    uintptr_t address = (uintptr_t)p;
    if (address % bytes)
        emulation_fail("misaligned", what);
    for (const auto &array : emulation_arrays)
        if (address >= array.first && address + bytes <= array.second)
            return;
    emulation_fail("a read outside of every array", what);
}
template <class T> static inline T mixprec_cuda_read_(const void *p) {
    emulation.gathered++;
    emulation_check_global(p, sizeof(T), "global read");
    return *(const T *)p;
}
template <class T> static inline T *mixprec_cuda_global_(T *p) {
    return p;
}
static inline float *mixprec_cuda_global_(float *p) {
    if (!emulation.waited[emulation.now])
        emulation_fail("partial sums that the kernel before may not have written yet", "a pointer");
    return p;
}
static inline unsigned char *mixprec_cuda_shared_(void) {
    return emulation.shared;
}
/* Shared memory begins at 1024, as it does from sm_90 on, where the system has the first KB. */
#define EMULATION_SHARED_BASE 1024
static inline uint32_t mixprec_cuda_shared_address_(const void *p) {
    return (uint32_t)((const unsigned char *)p - emulation.shared) + EMULATION_SHARED_BASE +
           ((uint32_t)emulation_block() << 24); /* as in a cluster of sm_90 */
}
static uint32_t emulation_offset(uint32_t address) {
    return (address & 0xFFFFFF) - EMULATION_SHARED_BASE;
}
/* What an address in shared memory leads to. */
static inline unsigned char *emulation_at_shared(size_t address, size_t bytes, size_t alignment, const char *what) {
    size_t at = emulation_offset((uint32_t)address);
    if (address % alignment || at > emulation.shared_bytes || bytes > emulation.shared_bytes - at)
        emulation_fail("a bad address in shared memory", what);
    return emulation.shared + at;
}

/* `count` accesses of `bytes` each that the hardware would serve at once, 128 bytes in all. */
static void emulation_count_conflicts(const uint32_t *addresses, int count, uint32_t bytes) {
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            emulation.conflicts += addresses[i] != addresses[j] && (addresses[i] - addresses[j]) % 128 / bytes == 0;
}

/* PTX ISA 9.0, ldmatrix; tested by CuTe's layouts, too. */
template <bool transposed> static void mixprec_cuda_ldmatrix_(uint32_t (&x)[4], uint32_t address) {
    struct slot_type {
        uint32_t address, *x;
    } slot = {address, x};
    emulation_at_shared(address, 16, 16, "ldmatrix");
    emulation_meet(transposed ? "ldmatrix.trans" : "ldmatrix", &slot, [](void **slots) {
        uint32_t addresses[32];
        for (int lane = 0; lane < 32; lane++)
            addresses[lane] = ((slot_type *)slots[lane])->address;
        for (int matrix = 0; matrix < 4; matrix++)
            emulation_count_conflicts(addresses + matrix * 8, 8, 16);
        for (int lane = 0; lane < 32; lane++)
            for (int matrix = 0; matrix < 4; matrix++) {
                uint16_t pair[2];
                for (int e = 0; e < 2; e++) {
                    int row = transposed ? lane % 4 * 2 + e : lane / 4,
                        column = transposed ? lane / 4 : lane % 4 * 2 + e;
                    memcpy(&pair[e],
                           emulation_at_shared(((slot_type *)slots[matrix * 8 + row])->address, 16, 16, "ldmatrix") +
                               (size_t)column * 2,
                           2);
                }
                ((slot_type *)slots[lane])->x[matrix] = pair[0] | (uint32_t)pair[1] << 16;
            }
    });
}

static void mixprec_cuda_load_pair_(uint32_t &low, uint32_t &high, uint32_t address) {
    const unsigned char *from = emulation_at_shared(address, 8, 8, "a pair of words");
    emulation_meet("a pair of words", &address, [](void **slots) {
        uint32_t addresses[32];
        for (int lane = 0; lane < 32; lane++)
            addresses[lane] = *(uint32_t *)slots[lane];
        emulation_count_conflicts(addresses, 16, 8);
        emulation_count_conflicts(addresses + 16, 16, 8);
    });
    memcpy(&low, from, 4);
    memcpy(&high, from + 4, 4);
}
/* PTX ISA 9.0, prmt: digit i of the selector names byte i of the result, among those of low and high. */
static inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector) {
    uint64_t bytes = (uint64_t)high << 32 | low;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)(bytes >> (selector >> i * 4 & 7) * 8 & 0xFF) << i * 8;
    return result;
}

/* PTX ISA 9.0, cp.async with ignore-src: "zeros will be copied to dst"; ptxas makes the same code of it as of CUTLASS's
   cp_async_zfill, whose src-size is 0. The source is read at once, which a kernel that changes it would notice. */
template <int bytes> static void mixprec_cuda_copy_async_(uint32_t address, const void *src, bool wanted) {
    emulation_copy copy = {
        emulation_at_shared(address, bytes, bytes, "cp.async"), bytes, {0}, emulation.groups[emulation.now]};
    if (wanted) {
        if (!emulation.waited[emulation.now])
            emulation_fail("a copy of what the kernel before may not have written yet", "cp.async");
        emulation_check_global(src, bytes, "cp.async");
        memcpy(copy.data, src, bytes);
    }
    memset(copy.to, 0xFF, bytes);
    emulation.gathered += bytes < 16;
    emulation.copies[emulation.now].push_back(copy);
}
static void mixprec_cuda_copy_commit_(void) {
    emulation.groups[emulation.now]++;
}
template <int pending> static void mixprec_cuda_copy_wait_(void) {
    std::vector<emulation_copy> &copies = emulation.copies[emulation.now], later;
    for (size_t i = 0; i < copies.size(); i++)
        if (copies[i].group < emulation.groups[emulation.now] - pending) {
            size_t at = (size_t)(copies[i].to - emulation.shared);
            memcpy(copies[i].to, copies[i].data, copies[i].bytes);
            memset(emulation.unpublished + at, 1, copies[i].bytes);
            emulation.brought[emulation.now].push_back(std::make_pair(at, copies[i].bytes));
        } else
            later.push_back(copies[i]);
    copies.swap(later);
}

/* The fragments of mma.sync, PTX ISA 9.0, 9.7.14.5, tested by CuTe's layouts in test_cuda.cpp: lane 4 r + c has, of A,
   rows r and r + 8, of B column r; the words of its k are c and c + 4 of the eight words of a row. */
struct emulation_mma {
    const uint32_t *a, *b;
    void *d;
};
static float emulation_word(uint32_t word, int e, mixprec_dtype type) {
    int bits = type == MIXPREC_F32 ? 32 : type == MIXPREC_F16 || type == MIXPREC_BF16 ? 16 : 8;
    return (float)mixprec_decode((uint32_t)(word >> (e * bits) & (0xFFFFFFFFu >> (32 - bits))), type);
}
template <class Sum>
static void emulation_run_mma(const char *name, Sum (&d)[4], const uint32_t *a, const uint32_t *b, mixprec_dtype a_type,
                              mixprec_dtype b_type) {
    emulation_mma slot = {a, b, d};
    emulation_meet(name, &slot, [&](void **slots) {
        const int per_word = a_type == MIXPREC_F32 ? 1 : a_type == MIXPREC_F16 || a_type == MIXPREC_BF16 ? 2 : 4;
        static float wide_a[16][32], wide_b[8][32];
        for (int lane = 0; lane < 32; lane++) {
            const emulation_mma *s = (const emulation_mma *)slots[lane];
            for (int w = 0; w < 4; w++)
                for (int e = 0; e < per_word; e++)
                    wide_a[lane / 4 + w % 2 * 8][(lane % 4 + w / 2 * 4) * per_word + e] =
                        emulation_word(s->a[w], e, a_type);
            for (int w = 0; w < 2; w++)
                for (int e = 0; e < per_word; e++)
                    wide_b[lane / 4][(lane % 4 + w * 4) * per_word + e] = emulation_word(s->b[w], e, b_type);
        }
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++) {
                Sum *to = (Sum *)((emulation_mma *)slots[i % 8 * 4 + j / 2])->d + i / 8 * 2 + j % 2;
                Sum sum = 0;
                for (int k = 0; k < 8 * per_word; k++)
                    sum += (Sum)(wide_a[i][k] * wide_b[j][k]);
                *to += sum;
            }
    });
}
#define EMULATION_MMA(name, sum, a_type, b_type)                                                                       \
    static inline void mixprec_cuda_mma_##name##_(sum(&d)[4], const uint32_t *a, const uint32_t *b) {                  \
        emulation_run_mma("mma " #name, d, a, b, a_type, b_type);                                                      \
    }
EMULATION_MMA(f16, float, MIXPREC_F16, MIXPREC_F16)
EMULATION_MMA(bf16, float, MIXPREC_BF16, MIXPREC_BF16)
EMULATION_MMA(tf32, float, MIXPREC_F32, MIXPREC_F32)
EMULATION_MMA(s8, int, MIXPREC_I8, MIXPREC_I8)
EMULATION_MMA(e4m3_e4m3, float, MIXPREC_E4M3, MIXPREC_E4M3)
EMULATION_MMA(e4m3_e5m2, float, MIXPREC_E4M3, MIXPREC_E5M2)
EMULATION_MMA(e5m2_e4m3, float, MIXPREC_E5M2, MIXPREC_E4M3)
EMULATION_MMA(e5m2_e5m2, float, MIXPREC_E5M2, MIXPREC_E5M2)

static uint4 mixprec_cuda_load_four_(uint32_t address) {
    return *(const uint4 *)(const void *)emulation_at_shared(address, 16, 16, "four words");
}
static void mixprec_cuda_wgmma_put_(uint32_t address, const uint4 &x) {
    unsigned char *to = emulation_at_shared(address, 16, 16, "four words");
    size_t at = (size_t)(to - emulation.shared);
    memcpy(to, &x, 16);
    memset(emulation.unpublished + at, 1, 16);
    emulation.brought[emulation.now].push_back(std::make_pair(at, (size_t)16));
}
/* wgmma, PTX ISA 9.0, 9.7.15. A warp has 16 of the 64 rows. Products read shared memory at some time between their
   issue and the wait for them: at once or as late as they may, which is drawn. */
static void mixprec_cuda_wgmma_publish_(void) {
    for (const auto &bytes : emulation.brought[emulation.now])
        memset(emulation.unpublished + bytes.first, 0, bytes.second);
    emulation.brought[emulation.now].clear();
}
static void emulation_run_products(emulation_warp *warp, int pending) {
    size_t done = 0;
    for (; done < warp->products.size() && warp->products[done].group < warp->product_groups - pending; done++)
        warp->products[done].run(warp->products[done]);
    warp->products.erase(warp->products.begin(), warp->products.begin() + (long)done);
}
static void mixprec_cuda_wgmma_begin_(void) {
    emulation_meet("wgmma.fence", NULL, [](void **) { emulation.warps[emulation.now / 32].fenced = true; });
}
static void mixprec_cuda_wgmma_commit_(void) {
    emulation_meet("wgmma.commit_group", NULL, [](void **) {
        emulation.warps[emulation.now / 32].product_groups++;
        emulation.warps[emulation.now / 32].fenced = false;
    });
}
template <int pending> static void mixprec_cuda_wgmma_wait_(void) {
    emulation_meet("wgmma.wait_group", NULL,
                   [](void **) { emulation_run_products(&emulation.warps[emulation.now / 32], pending); });
}
template <int pending, class Sum, int count> static void mixprec_cuda_wgmma_finish_(Sum (&)[count]) {
    mixprec_cuda_wgmma_wait_<pending>();
}
/* Element k of a line of a matrix with its descriptor; of a matrix of lines of k, where the line is k. */
static float emulation_matrix_element(uint64_t matrix, int line, int k, bool trans, mixprec_dtype type) {
    const size_t size = mixprec_dtype_size(type), start = (size_t)(matrix & 0x3FFF) * 16;
    const size_t panel = (size_t)(matrix >> 16 & 0x3FFF) * 16, eight = (size_t)(matrix >> 32 & 0x3FFF) * 16;
    const size_t across = (size_t)(trans ? line : k) * size, down = (size_t)(trans ? k : line);
    size_t address = start + down / 8 * eight + down % 8 * 128 + (trans ? across / 128 * panel + across % 128 : across);
    uint32_t code = 0;
    if (matrix >> 61 != 2 || (matrix >> 49 & 7))
        emulation_fail("a matrix that is not swizzled by 128 bytes", "wgmma");
    address ^= (address >> 7 & 7) << 4;
    memcpy(&code, emulation_at_shared(address, size, size, "wgmma"), size);
    if (emulation.unpublished[emulation_offset((uint32_t)address)])
        emulation_fail("bytes that were copied without a fence", "wgmma");
    return (float)mixprec_decode(type == MIXPREC_F32 ? code & ~0x1FFFu : code, type); /* TF32: the rest is not seen */
}
template <class Sum, int count, bool a_trans, bool b_trans, int a_type, int b_type>
static void emulation_run_wgmma(const emulation_product &product) {
    static float a[16][32], b[256][32];
    const int depth = 32 / (int)mixprec_dtype_size((mixprec_dtype)a_type), columns = count * 2;
    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < 16; i++)
            a[i][k] = emulation_matrix_element(product.a, product.warp % 4 * 16 + i, k, a_trans, (mixprec_dtype)a_type);
        for (int j = 0; j < columns; j++)
            b[j][k] = emulation_matrix_element(product.b, j, k, b_trans, (mixprec_dtype)b_type);
    }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < columns; j++) {
            Sum *to = (Sum *)product.sums[i % 8 * 4 + j % 8 / 2] + j / 8 * 4 + i / 8 * 2 + j % 2, sum = 0;
            for (int k = 0; k < depth; k++)
                sum += (Sum)(a[i][k] * b[j][k]);
            *to = product.add ? *to + sum : sum;
        }
}
template <bool a_trans, bool b_trans, int a_type, int b_type, class Sum, int count>
static void emulation_wgmma(const char *name, Sum (&d)[count], uint64_t a, uint64_t b, bool add) {
    struct slot_type {
        Sum *d;
        uint64_t a, b;
        bool add;
    } slot = {d, a, b, add};
    emulation_meet(name, &slot, [](void **slots) {
        emulation_warp *warp = &emulation.warps[emulation.now / 32];
        emulation_product product = {emulation_run_wgmma<Sum, count, a_trans, b_trans, a_type, b_type>,
                                     ((slot_type *)slots[0])->a,
                                     ((slot_type *)slots[0])->b,
                                     ((slot_type *)slots[0])->add,
                                     {},
                                     emulation.now / 32,
                                     warp->product_groups};
        if (!warp->fenced)
            emulation_fail("sums that no fence has handed over", "wgmma");
        for (int lane = 0; lane < 32; lane++) {
            const slot_type *slot_of = (const slot_type *)slots[lane];
            product.sums[lane] = slot_of->d;
            if (slot_of->a != product.a || slot_of->b != product.b || slot_of->add != product.add)
                emulation_fail("lanes have different matrices", "wgmma");
        }
        warp->products.push_back(product);
        if (emulation_random() % 2)
            emulation_run_products(warp, -1);
    });
}
#define EMULATION_WGMMA(name, a_type, b_type)                                                                          \
    template <bool a_trans, bool b_trans, class Sums>                                                                  \
    static void mixprec_cuda_wgmma_##name##_(Sums &d, uint64_t a, uint64_t b, bool add) {                              \
        emulation_wgmma<a_trans, b_trans, a_type, b_type>("wgmma " #name, d, a, b, add);                               \
    }
EMULATION_WGMMA(f16, MIXPREC_F16, MIXPREC_F16)
EMULATION_WGMMA(bf16, MIXPREC_BF16, MIXPREC_BF16)
EMULATION_WGMMA(tf32, MIXPREC_F32, MIXPREC_F32)
EMULATION_WGMMA(s8, MIXPREC_I8, MIXPREC_I8)
EMULATION_WGMMA(e4m3_e4m3, MIXPREC_E4M3, MIXPREC_E4M3)
EMULATION_WGMMA(e4m3_e5m2, MIXPREC_E4M3, MIXPREC_E5M2)
EMULATION_WGMMA(e5m2_e4m3, MIXPREC_E5M2, MIXPREC_E4M3)
EMULATION_WGMMA(e5m2_e5m2, MIXPREC_E5M2, MIXPREC_E5M2)

static void mixprec_cuda_sync_(int number, int count) {
    emulation_block_barrier(number, count);
}
template <int count, bool more> static void mixprec_cuda_take_registers_(void) {
    emulation_meet("setmaxnreg", NULL, [](void **) {});
}
static void mixprec_cuda_cluster_sync_(void) {
    int all = emulation.block_threads * emulation.blocks;
    emulation_barrier(0, all, all, 16);
}
static uint32_t mixprec_cuda_cluster_rank_(void) {
    return (uint32_t)emulation_block();
}
/* PTX ISA 9.0, mbarrier: phases, whose order and parity count the threads that arrive and the bytes of the copy
   engine. */
static void mixprec_cuda_barrier_begin_(uint32_t barrier, uint32_t count) {
    emulation_at_shared(barrier, 8, 8, "a barrier");
    emulation_phase phase = {count, count, 0, 0};
    emulation.phases[emulation_block()][emulation_offset(barrier)] = phase;
}
static emulation_phase *emulation_phase_of(int block, uint32_t barrier) {
    if (block >= emulation.blocks || !emulation.phases[block].count(emulation_offset(barrier)))
        emulation_fail("a barrier that was not begun", "mbarrier");
    for (int t = 0; t < emulation.block_threads; t++)
        if (!(emulation.warps[(block * emulation.block_threads + t) / 32].done >> t % 32 & 1))
            return &emulation.phases[block][emulation_offset(barrier)];
    emulation_fail("a barrier of a block that has ended", "mbarrier");
    return NULL;
}
static void mixprec_cuda_barrier_arrive_(uint32_t barrier, uint32_t rank) {
    emulation_phase *phase = emulation_phase_of((int)rank, barrier);
    if (!phase->pending)
        emulation_fail("more arrive than a barrier counts", "mbarrier");
    phase->pending--;
    emulation_end_phase((int)rank, emulation_offset(barrier), phase);
    if (emulation_random() % 2) /* another warp goes on at once */
        emulation_swap(&emulation.threads[emulation.now], &emulation.scheduler);
}
static void mixprec_cuda_barrier_expect_(uint32_t barrier, uint32_t bytes) {
    emulation_phase_of(emulation_block(), barrier)->bytes += (long)bytes;
    mixprec_cuda_barrier_arrive_(barrier, (uint32_t)emulation_block());
}
static void mixprec_cuda_barrier_wait_(uint32_t barrier, uint32_t parity) {
    while (emulation_phase_of(emulation_block(), barrier)->parity == parity)
        emulation_block_on(emulation_offset(barrier));
}
/* The copy engine, and what the driver checks of an array. */
struct alignas(64) mixprec_cuda_map_ {
    const unsigned char *data;
    uint64_t size[3], stride[2];
    uint32_t lines;
};
static bool mixprec_cuda_map_of_(mixprec_cuda_map_ *map, const void *data, const uint64_t (&size)[3],
                                 const uint64_t (&stride)[2], uint32_t lines) {
    if (emulation_device.no_maps || (uintptr_t)data % 16 || stride[0] % 16 || stride[1] % 16 || !lines || lines > 256)
        return false;
    for (int i = 0; i < 3; i++)
        if (!size[i] || size[i] >> 32 || (i < 2 && stride[i] >> 40))
            return false;
    map->data = (const unsigned char *)data;
    memcpy(map->size, size, sizeof size);
    memcpy(map->stride, stride, sizeof stride);
    map->lines = lines;
    return true;
}
static void mixprec_cuda_map_copy_(uint32_t to, const mixprec_cuda_map_ *map, uint32_t barrier, int byte, int line,
                                   int matrix, bool both) {
    std::vector<unsigned char> data(map->lines * 128u, 0);
    if (!emulation.waited[emulation.now])
        emulation_fail("a box of what the kernel before may not have written yet", "copy engine");
    emulation_at_shared(to, data.size(), 1024, "a box");
    if (byte < 0 || line < 0 || matrix < 0 || byte % 16)
        emulation_fail("a box before its array, or at no multiple of 16 bytes", "copy engine");
    for (uint32_t l = 0; l < map->lines; l++)
        for (int b = 0; b < 128; b++)
            if ((uint64_t)(byte + b) < map->size[0] && line + l < map->size[1] && (uint64_t)matrix < map->size[2]) {
                const unsigned char *from = map->data + (uint64_t)matrix * map->stride[1] +
                                            (uint64_t)(line + l) * map->stride[0] + (uint64_t)(byte + b);
                emulation_check_global(from, 1, "copy engine");
                data[l * 128 + (uint32_t)(b ^ (int)(l % 8) << 4)] = *from;
            }
    for (int block = 0; block < emulation.blocks; block++)
        if (both || block == emulation_block()) {
            const size_t at = emulation_offset(to);
            emulation_phase_of(block, barrier);
            emulation_box box = {emulation.all_shared[block] + at, emulation.all_unpublished[block] + at, data, block,
                                 emulation_offset(barrier)};
            memset(box.to, 0xFF, data.size());
            emulation.boxes.push_back(box);
        }
}
static void mixprec_cuda_send_(uint32_t to, uint32_t rank, uint32_t barrier, const uint4 &x) {
    const size_t at = emulation_offset(to);
    const uint32_t words[4] = {x.x, x.y, x.z, x.w};
    emulation_at_shared(to, 16, 16, "st.async");
    emulation_phase_of((int)rank, barrier);
    emulation_box box = {emulation.all_shared[rank] + at, emulation.all_unpublished[rank] + at,
                         std::vector<unsigned char>((const unsigned char *)words, (const unsigned char *)(words + 4)),
                         (int)rank, emulation_offset(barrier)};
    memset(box.to, 0xFF, 16);
    emulation.boxes.push_back(box);
    emulation.sent++;
}

static inline uint32_t mixprec_cuda_tf32_(uint32_t bits) {
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FFFE000u;
    return (bits + 0x1000u) & ~0x1FFFu;
}
static inline uint16_t emulation_f16(float x) {
    uint16_t bits = mixprec_f32_to_f16(x).bits;
    return (bits & 0x7FFF) > 0x7C00 ? 0x7FFF : bits;
}
static inline uint32_t mixprec_cuda_max_u16x2_(uint32_t a, uint32_t b) {
    uint32_t low = (uint16_t)a > (uint16_t)b ? (uint16_t)a : (uint16_t)b;
    return low | (a >> 16 > b >> 16 ? a >> 16 : b >> 16) << 16;
}
static inline uint32_t mixprec_cuda_mul_f16x2_(uint32_t a, uint32_t b) {
    return emulation_f16(mixprec_cuda_cvt_f16_(a & 0xFFFF) * mixprec_cuda_cvt_f16_(b & 0xFFFF)) |
           (uint32_t)emulation_f16(mixprec_cuda_cvt_f16_(a >> 16) * mixprec_cuda_cvt_f16_(b >> 16)) << 16;
}
static inline uint32_t mixprec_cuda_cvt_e4m3x2_(uint32_t codes) {
    return emulation_f16((float)mixprec_decode(codes & 0xFF, MIXPREC_E4M3)) |
           (uint32_t)emulation_f16((float)mixprec_decode(codes >> 8 & 0xFF, MIXPREC_E4M3)) << 16;
}

/* ---- nvcuda::wmma: which lane has which element is its own business ---- */

struct __half {
    uint16_t bits;
};
struct __nv_bfloat16 {
    uint16_t bits;
};
namespace nvcuda {
namespace wmma {
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
namespace precision {
struct tf32 {};
} // namespace precision
enum layout_t { mem_row_major };

static inline float value_of(__half x) {
    return (float)mixprec_decode(x.bits, MIXPREC_F16);
}
static inline float value_of(__nv_bfloat16 x) {
    return (float)mixprec_decode(x.bits, MIXPREC_BF16);
}
static inline float value_of(float x) {
    return x;
}
static inline float value_of(signed char x) {
    return (float)x;
}
template <class Use, int m, int n, int k, class T, class Layout = void> struct fragment { float x[m * k / 32]; };
template <int m, int n, int k, class T> struct fragment<accumulator, m, n, k, T, void> { T x[m * n / 32]; };
template <class F, class T> static void fill_fragment(F &f, T value) {
    for (size_t e = 0; e < sizeof(f.x) / sizeof(f.x[0]); e++)
        f.x[e] = value;
}
/* Element (row of A or column of B, k) is with lane index % 32, index = row * k's length + k. */
template <class Use, int m, int n, int k, class T, class Layout, class E>
static void load_matrix_sync(fragment<Use, m, n, k, T, Layout> &f, const E *p, unsigned ld) {
    emulation_at_shared(mixprec_cuda_shared_address_(p), (15 * ld + k) * sizeof(E), 32, "wmma load");
    if (ld * sizeof(E) % 16)
        emulation_fail("a leading dimension that is no multiple of 16 bytes", "wmma load");
    emulation_meet("wmma load", NULL, [](void **) {});
    for (int e = 0; e < 16 * k / 32; e++) {
        int index = e * 32 + emulation.now % 32;
        f.x[e] = value_of(p[(size_t)(index / k) * ld + index % k]);
    }
}
template <class D, class A, class B> static void mma_sync(D &d, const A &a, const B &b, const D &c) {
    struct slot_type {
        D *d;
        const A *a;
        const B *b;
        const D *c;
    } slot = {&d, &a, &b, &c};
    emulation_meet("wmma mma", &slot, [](void **slots) {
        const int k = (int)(sizeof(A) / sizeof(float) * 2);
        static float wide_a[16][16], wide_b[16][16];
        for (int index = 0; index < 16 * k; index++) {
            wide_a[index / k][index % k] = ((slot_type *)slots[index % 32])->a->x[index / 32];
            wide_b[index / k][index % k] = ((slot_type *)slots[index % 32])->b->x[index / 32];
        }
        for (int index = 0; index < 256; index++) {
            slot_type *s = (slot_type *)slots[index % 32];
            auto sum = s->c->x[0];
            sum = 0;
            for (int p = 0; p < k; p++)
                sum += (decltype(sum))(wide_a[index / 16][p] * wide_b[index % 16][p]);
            s->d->x[index / 32] = s->c->x[index / 32] + sum;
        }
    });
}
template <class F, class T> static void store_matrix_sync(T *p, const F &f, unsigned ld, layout_t) {
    emulation_at_shared(mixprec_cuda_shared_address_(p), (15 * ld + 16) * sizeof(T), 32, "wmma store");
    for (int e = 0; e < 8; e++) {
        int index = e * 32 + emulation.now % 32;
        p[(size_t)(index / 16) * ld + index % 16] = f.x[e];
    }
    emulation_meet("wmma store", NULL, [](void **) {});
}
} // namespace wmma
} // namespace nvcuda
#define EMULATION_WMMA_LOAD(name)                                                                                      \
    template <class Fragment, class E> static void mixprec_cuda_load_##name##_(Fragment &f, const E *p, unsigned ld) { \
        nvcuda::wmma::load_matrix_sync(f, p, ld);                                                                      \
    }
EMULATION_WMMA_LOAD(bf16_a)
EMULATION_WMMA_LOAD(bf16_b)
EMULATION_WMMA_LOAD(tf32_a)
EMULATION_WMMA_LOAD(tf32_b)

#endif
