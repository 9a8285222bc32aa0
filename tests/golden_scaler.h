/* Reference values for test_scaler.c, as data. The loss scales after each step are those of PyTorch's
   _amp_update_scale_ (a port of its C++ kernel), of Megatron-LM's DynamicGradScaler and of Apex's LossScaler (their own
   Python, run). The unscaled gradients are those of PyTorch's _amp_foreach_non_finite_check_and_unscale_ (a port). */
#ifndef MIXPREC_GOLDEN_SCALER_H
#define MIXPREC_GOLDEN_SCALER_H

#include <float.h>
#include <stdint.h>

/* The scale after update number `step`, counted from 0; steps that are not listed had no overflow. */
typedef struct golden_step {
    int step, overflow;
    uint32_t scale_bits;
} golden_step;

static const golden_step golden_pytorch_s0[] = {
    {0, 0, 0x47800000}, {1000, 1, 0x47000000}, {3000, 0, 0x47800000}, {5000, 0, 0x48000000}, {5200, 0, 0x48000000}};

static const golden_step golden_megatron_s0[] = {{0, 0, 0x4F800000},    {999, 0, 0x50000000},  {1000, 1, 0x50000000},
                                                 {2000, 0, 0x50800000}, {3000, 0, 0x51000000}, {4000, 0, 0x51800000},
                                                 {5000, 0, 0x52000000}, {5200, 0, 0x52000000}};

static const golden_step golden_pytorch_s1[] = {
    {0, 0, 0x47800000},  {1, 0, 0x47800000},  {2, 0, 0x48000000},  {3, 1, 0x47800000},  {4, 0, 0x47800000},
    {5, 0, 0x47800000},  {6, 0, 0x48000000},  {7, 0, 0x48000000},  {8, 1, 0x47800000},  {9, 1, 0x47000000},
    {10, 0, 0x47000000}, {11, 0, 0x47000000}, {12, 0, 0x47800000}, {13, 0, 0x47800000}, {14, 0, 0x47800000},
    {15, 0, 0x48000000}, {16, 0, 0x48000000}};

static const golden_step golden_megatron_s1[] = {
    {0, 0, 0x47800000},  {1, 0, 0x47800000},  {2, 0, 0x48000000},  {3, 1, 0x47800000},  {4, 0, 0x47800000},
    {5, 0, 0x47800000},  {6, 0, 0x48000000},  {7, 0, 0x48000000},  {8, 1, 0x47800000},  {9, 1, 0x47000000},
    {10, 0, 0x47000000}, {11, 0, 0x47000000}, {12, 0, 0x47800000}, {13, 0, 0x47800000}, {14, 0, 0x47800000},
    {15, 0, 0x48000000}, {16, 0, 0x48000000}};

static const golden_step golden_apex_s2b[] = {{0, 0, 0x4B800000}, {1, 0, 0x4B800000}, {2, 0, 0x4B800000},
                                              {3, 1, 0x4B000000}, {4, 0, 0x4B800000}, {5, 0, 0x4B800000},
                                              {6, 0, 0x4B800000}};

static const golden_step golden_apex_s3c[] = {{0, 1, 0x40000000}, {1, 1, 0x3F800000}, {2, 1, 0x3F800000},
                                              {3, 1, 0x3F800000}, {4, 1, 0x3F800000}, {5, 1, 0x3F800000},
                                              {6, 1, 0x3F800000}, {7, 1, 0x3F800000}};

static const golden_step golden_megatron_s4[] = {
    {0, 1, 0x44800000},  {1, 0, 0x44800000},  {2, 1, 0x44000000},  {3, 1, 0x43800000},  {4, 0, 0x43800000},
    {5, 0, 0x43800000},  {6, 0, 0x44000000},  {7, 1, 0x44000000},  {8, 0, 0x44000000},  {9, 0, 0x44000000},
    {10, 0, 0x44800000}, {11, 0, 0x44800000}, {12, 1, 0x44800000}, {13, 1, 0x44000000}, {14, 1, 0x43800000},
    {15, 0, 0x43800000}, {16, 0, 0x43800000}, {17, 0, 0x44000000}};

typedef struct golden_trace {
    const char *name;
    float scale;
    int interval, hysteresis;
    float min_scale, max_scale;
    const golden_step *steps;
    int count;
} golden_trace;

#define GOLDEN_TRACE(name, scale, interval, hysteresis, min_scale, max_scale, steps)                                   \
    { name, scale, interval, hysteresis, min_scale, max_scale, steps, (int)(sizeof steps / sizeof *steps) }
static const golden_trace golden_traces[] = {
    GOLDEN_TRACE("PyTorch, defaults, one overflow", 0x1p16f, 2000, 1, FLT_MIN, FLT_MAX, golden_pytorch_s0),
    GOLDEN_TRACE("Megatron-LM, defaults, one overflow", 0x1p32f, 1000, 2, 1.0f, FLT_MAX, golden_megatron_s0),
    GOLDEN_TRACE("PyTorch, interval 3", 0x1p16f, 3, 1, FLT_MIN, FLT_MAX, golden_pytorch_s1),
    GOLDEN_TRACE("Megatron-LM, interval 3, hysteresis 1", 0x1p16f, 3, 1, 1.0f, FLT_MAX, golden_megatron_s1),
    GOLDEN_TRACE("Apex, interval 1, at max_scale", 0x1p23f, 1, 1, FLT_MIN, 0x1p24f, golden_apex_s2b),
    GOLDEN_TRACE("Apex, at min_scale", 4.0f, 2000, 1, 1.0f, 0x1p24f, golden_apex_s3c),
    GOLDEN_TRACE("Megatron-LM, interval 3, hysteresis 2", 1024.0f, 3, 2, 1.0f, FLT_MAX, golden_megatron_s4)};

/* What PyTorch makes of an f32 gradient under a scale. It tests the scaled gradient alone; mixprec also reports an
   output that became Inf. A NaN stands as 0x7FC00000. */
static const struct {
    uint32_t scale_bits, grad_bits, out_bits;
    int found_inf;
} golden_unscale[] = {{0x3F800000, 0x00000000, 0x00000000, 0}, {0x3F800000, 0x80000000, 0x80000000, 0},
                      {0x3F800000, 0x3F800000, 0x3F800000, 0}, {0x3F800000, 0x477FE000, 0x477FE000, 0},
                      {0x3F800000, 0x00000001, 0x00000001, 0}, {0x3F800000, 0x006CE3EE, 0x006CE3EE, 0},
                      {0x3F800000, 0x7F7FFFFF, 0x7F7FFFFF, 0}, {0x3F800000, 0x7F800000, 0x7F800000, 1},
                      {0x3F800000, 0xFF800000, 0xFF800000, 1}, {0x3F800000, 0x7FC00000, 0x7FC00000, 1},
                      {0x47800000, 0x00000000, 0x00000000, 0}, {0x47800000, 0x80000000, 0x80000000, 0},
                      {0x47800000, 0x3F800000, 0x37800000, 0}, {0x47800000, 0x477FE000, 0x3F7FE000, 0},
                      {0x47800000, 0x00000001, 0x00000000, 0}, {0x47800000, 0x006CE3EE, 0x0000006D, 0},
                      {0x47800000, 0x7F7FFFFF, 0x777FFFFF, 0}, {0x47800000, 0x7F800000, 0x7F800000, 1},
                      {0x47800000, 0xFF800000, 0xFF800000, 1}, {0x47800000, 0x7FC00000, 0x7FC00000, 1},
                      {0x40400000, 0x00000000, 0x00000000, 0}, {0x40400000, 0x80000000, 0x80000000, 0},
                      {0x40400000, 0x3F800000, 0x3EAAAAAB, 0}, {0x40400000, 0x477FE000, 0x46AA9556, 0},
                      {0x40400000, 0x00000001, 0x00000000, 0}, {0x40400000, 0x006CE3EE, 0x00244BFA, 0},
                      {0x40400000, 0x7F7FFFFF, 0x7EAAAAAA, 0}, {0x40400000, 0x7F800000, 0x7F800000, 1},
                      {0x40400000, 0xFF800000, 0xFF800000, 1}, {0x40400000, 0x7FC00000, 0x7FC00000, 1},
                      {0x7F000000, 0x00000000, 0x00000000, 0}, {0x7F000000, 0x80000000, 0x80000000, 0},
                      {0x7F000000, 0x3F800000, 0x00400000, 0}, {0x7F000000, 0x477FE000, 0x07FFE000, 0},
                      {0x7F000000, 0x00000001, 0x00000000, 0}, {0x7F000000, 0x006CE3EE, 0x00000000, 0},
                      {0x7F000000, 0x7F7FFFFF, 0x3FFFFFFF, 0}, {0x7F000000, 0x7F800000, 0x7F800000, 1},
                      {0x7F000000, 0xFF800000, 0xFF800000, 1}, {0x7F000000, 0x7FC00000, 0x7FC00000, 1},
                      {0x7F7FFFFF, 0x00000000, 0x00000000, 0}, {0x7F7FFFFF, 0x80000000, 0x80000000, 0},
                      {0x7F7FFFFF, 0x3F800000, 0x00200000, 0}, {0x7F7FFFFF, 0x477FE000, 0x077FE000, 0},
                      {0x7F7FFFFF, 0x00000001, 0x00000000, 0}, {0x7F7FFFFF, 0x006CE3EE, 0x00000000, 0},
                      {0x7F7FFFFF, 0x7F7FFFFF, 0x3F7FFFFF, 0}, {0x7F7FFFFF, 0x7F800000, 0x7F800000, 1},
                      {0x7F7FFFFF, 0xFF800000, 0xFF800000, 1}, {0x7F7FFFFF, 0x7FC00000, 0x7FC00000, 1},
                      {0x00800000, 0x00000000, 0x00000000, 0}, {0x00800000, 0x80000000, 0x80000000, 0},
                      {0x00800000, 0x3F800000, 0x7E800000, 0}, {0x00800000, 0x477FE000, 0x7F800000, 0},
                      {0x00800000, 0x00000001, 0x34000000, 0}, {0x00800000, 0x006CE3EE, 0x3F59C7DC, 0},
                      {0x00800000, 0x7F7FFFFF, 0x7F800000, 0}, {0x00800000, 0x7F800000, 0x7F800000, 1},
                      {0x00800000, 0xFF800000, 0xFF800000, 1}, {0x00800000, 0x7FC00000, 0x7FC00000, 1}};

#endif
