/* The room OPTIM: steps of optimisers, and the accumulation of gradients. */
#include "bench.h"

static void run_accumulate(const bench_tensor_run *run) {
    bench_check(mixprec_accumulate((float *)(void *)run->arrays[0], run->arrays[1], run->row->dtype, run->n, 0.125f));
}

static mixprec_parameter parameter_of(const bench_tensor_run *run) {
    mixprec_parameter p;
    memset(&p, 0, sizeof(p));
    p.n = run->n;
    p.grad = run->arrays[0];
    p.grad_type = p.model_type = run->row->dtype;
    p.master = (float *)(void *)run->arrays[1];
    p.moment1 = (float *)(void *)run->arrays[2];
    p.isa = run->isa;
    return p;
}

static void run_adamw(const bench_tensor_run *run) {
    mixprec_parameter p = parameter_of(run);
    mixprec_adam adam;
    mixprec_adamw_init(&adam);
    adam.step = 10;
    p.moment2 = (float *)(void *)run->arrays[3];
    p.model = run->arrays[4];
    bench_check(mixprec_adam_step(&adam, &p, 0.5f, 0.25f, 0));
}

static void run_sgd(const bench_tensor_run *run) {
    mixprec_parameter p = parameter_of(run);
    mixprec_sgd sgd;
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.9;
    sgd.weight_decay = 1e-4;
    sgd.step = 10;
    p.model = run->arrays[3];
    bench_check(mixprec_sgd_step(&sgd, &p, 0.5f, 0.25f, 0));
}

void bench_optim(void) {
    static const bench_tensor rows[] = {
        {"accumulate", MIXPREC_F32, run_accumulate, {{4, BENCH_UPDATE}, {4, BENCH_READ}}, 0},
        {"accumulate", MIXPREC_BF16, run_accumulate, {{4, BENCH_UPDATE}, {2, BENCH_READ}}, 0},
        {"sgd", MIXPREC_BF16, run_sgd, {{2, BENCH_READ}, {4, BENCH_UPDATE}, {4, BENCH_UPDATE}, {2, BENCH_WRITE}}, 0},
        {"adamw",
         MIXPREC_BF16,
         run_adamw,
         {{2, BENCH_READ}, {4, BENCH_UPDATE}, {4, BENCH_UPDATE}, {4, BENCH_UPDATE}, {2, BENCH_WRITE}},
         0},
        {"adamw",
         MIXPREC_F16,
         run_adamw,
         {{2, BENCH_READ}, {4, BENCH_UPDATE}, {4, BENCH_UPDATE}, {4, BENCH_UPDATE}, {2, BENCH_WRITE}},
         0},
    };
    bench_tensors("optim", "DRAM", rows, COUNT_OF(rows));
}
