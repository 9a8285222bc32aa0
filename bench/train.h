/* The training benchmark: what train.c (the model, the runs) hands to train_report.c (the files and the page). */
#ifndef MIXPREC_TRAIN_H
#define MIXPREC_TRAIN_H

#include "../mixprec.h"

#include <stdio.h>

#define TRAIN_POINTS 32 /* of a loss curve, at most */

/* One line of results.csv, and what is drawn of it. */
typedef struct train_result {
    const char *task, *mode, *about; /* about: what the task is */
    int seed;
    double val_loss, val_acc, delta_fp32; /* nats per character; share; val_loss minus fp32's of the same seed */
    int skipped;                          /* steps that the loss scaler skipped */
    double flushed;                       /* share of the nonzero gradients that narrowing made zero */
    double ms_per_step;                   /* of one thread's CPU time; NaN when all steps were measuring ones */
    size_t bytes;                         /* weights, activations, gradients, optimiser */
    int points, steps[TRAIN_POINTS];
    double losses[TRAIN_POINTS];
    double exponents[256]; /* gradients by biased fp32 exponent, before they are narrowed */
} train_result;

void train_write_csv(FILE *file, const train_result *results, int count);
void train_write_table(FILE *file, const train_result *results, int count);
void train_write_html(FILE *file, const train_result *results, int count, const char *about);

#endif
