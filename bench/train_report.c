/* The training benchmark's table, results.csv and report.html: one page without scripts or outside parts. */
#include "train.h"

#include <math.h>
#include <string.h>

/* Empty, or what stands for it, when nothing was timed. */
static const char *time_text(double ms, int decimals, const char *otherwise, char text[32]) {
    if (isnan(ms))
        return otherwise;
    snprintf(text, 32, "%.*f", decimals, ms);
    return text;
}

void train_write_csv(FILE *file, const train_result *results, int count) {
    int i;
    fprintf(file, "task,mode,seed,val_loss,val_acc,delta_fp32,skipped,flushed,ms_per_step,bytes\n");
    for (i = 0; i < count; i++) {
        const train_result *r = &results[i];
        char ms[32];
        fprintf(file, "%s,%s,%d,%.6f,%.6f,%.6f,%d,%.6f,%s,%zu\n", r->task, r->mode, r->seed, r->val_loss, r->val_acc,
                r->delta_fp32, r->skipped, r->flushed, time_text(r->ms_per_step, 3, "", ms), r->bytes);
    }
}

/* A line of the table: the seeds of one mode. They stand one after the other. */
typedef struct summary {
    const train_result *first;
    int seeds;
    double loss, accuracy, least, mean, most, skipped, flushed, ms;
} summary;

static summary summarise(const train_result *results, int count, int first) {
    summary s = {&results[first], 0, 0, 0, HUGE_VAL, 0, -HUGE_VAL, 0, 0, 0};
    int i;
    for (i = first; i < count && results[i].task == s.first->task && results[i].mode == s.first->mode; i++) {
        const train_result *r = &results[i];
        s.seeds++;
        s.loss += r->val_loss;
        s.accuracy += r->val_acc;
        s.mean += r->delta_fp32;
        s.least = fmin(s.least, r->delta_fp32);
        s.most = fmax(s.most, r->delta_fp32);
        s.skipped += r->skipped;
        s.flushed += r->flushed;
        s.ms += r->ms_per_step;
    }
    s.loss /= s.seeds;
    s.accuracy /= s.seeds;
    s.mean /= s.seeds;
    s.skipped /= s.seeds;
    s.flushed /= s.seeds;
    s.ms /= s.seeds;
    if (isnan(s.mean)) /* which fmin and fmax pass over */
        s.least = s.most = s.mean;
    return s;
}

void train_write_table(FILE *file, const train_result *results, int count) {
    const char *task = NULL;
    int i;
    for (i = 0; i < count;) {
        summary s = summarise(results, count, i);
        char ms[32];
        if (s.first->task != task) {
            task = s.first->task;
            fprintf(file, "\n%-22s %8s %7s   %26s %8s %8s %8s %8s\n", task, "val loss", "acc",
                    "minus fp32: min mean max", "skipped", "flushed", "ms/step", "KB");
        }
        fprintf(file, "%-22s %8.4f %6.2f%%   %+8.4f %+8.4f %+8.4f %8.1f %7.2f%% %8s %8.0f\n", s.first->mode, s.loss,
                100 * s.accuracy, s.least, s.mean, s.most, s.skipped, 100 * s.flushed, time_text(s.ms, 2, "-", ms),
                (double)s.first->bytes / 1000);
        i += s.seeds;
    }
}

/* ---- the page ---- */

static void write_text(FILE *file, const char *text) {
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            fprintf(file, "&#%d;", *text);
        else
            fputc(*text, file);
}

static void write_rows(FILE *file, const train_result *results, int count, const char *task) {
    int i;
    fprintf(file, "<table><tr><th>mode<th>validation loss<th>accuracy<th>minus fp32: mean<th>least<th>most<th>skipped "
                  "steps<th>gradients flushed to 0<th>ms per step<th>KB</tr>\n");
    for (i = 0; i < count;) {
        summary s = summarise(results, count, i);
        char ms[32];
        if (!strcmp(s.first->task, task))
            fprintf(file,
                    "<tr%s><td>%s<td>%.4f<td>%.1f %%<td>%+.4f<td>%+.4f<td>%+.4f<td>%.1f<td>%.2f %%<td>%s<td>%.0f"
                    "</tr>\n",
                    s.mean <= 0.1 ? "" : " class=bad" /* NaN, too */, s.first->mode, s.loss, 100 * s.accuracy, s.mean,
                    s.least, s.most, s.skipped, 100 * s.flushed, time_text(s.ms, 2, "-", ms),
                    (double)s.first->bytes / 1000);
        i += s.seeds;
    }
    fprintf(file, "</table>\n");
}

/* Loss against step, the first seed of each mode. Modes that fail stand out; the others lie on top of each other. */
static void write_curves(FILE *file, const train_result *results, int count, const char *task) {
    /* Okabe and Ito's colours, which the colour-blind tell apart, without the yellow; then dashed */
    static const char *const colours[] = {"#999999", "#d55e00", "#009e73", "#0072b2", "#e69f00", "#56b4e9", "#cc79a7"};
    const double left = 50, right = 600, top = 25, bottom = 315;
    double least = HUGE_VAL, most = -HUGE_VAL, steps = 1, step;
    int i, j, line = 0;
    for (i = 0; i < count; i++)
        for (j = 0; j < results[i].points && !strcmp(results[i].task, task); j++) {
            if (results[i].losses[j] < HUGE_VAL) {
                least = fmin(least, results[i].losses[j]);
                most = fmax(most, results[i].losses[j]);
            }
            steps = fmax(steps, results[i].steps[j]);
        }
    if (!(least < most))
        return;
    most = fmin(most, least + 4);
    fprintf(file, "<svg viewBox='0 0 860 350' role=img><title>Validation loss against step, %s</title>\n", task);
    fprintf(file,
            "<text x=8 y=12>validation loss, nats per character</text><text x=620 y=12>seed 1, and the loss at the "
            "end</text>\n");
    step = most - least > 2 ? 0.5 : 0.25;
    for (i = (int)ceil(least / step); i * step <= most; i++) {
        double y = bottom - (i * step - least) / (most - least) * (bottom - top);
        fprintf(file,
                "<line class=grid x1=%.0f x2=%.0f y1=%.1f y2=%.1f /><text x=%.0f y=%.1f text-anchor=end>%.2f</text>\n",
                left, right, y, y, left - 6, y + 4, i * step);
    }
    for (i = 0; i <= 4; i++)
        fprintf(file, "<text x=%.1f y=%.0f text-anchor=middle>%.0f</text>\n", left + (right - left) * i / 4,
                bottom + 18, steps * i / 4);
    fprintf(file, "<text x=%.0f y=%.0f text-anchor=middle>step</text>\n", (left + right) / 2, bottom + 33);
    for (i = 0; i < count; i++) {
        const train_result *r = &results[i];
        const char *colour = colours[line % 7], *dash = line < 7 ? "none" : "7 4";
        if (strcmp(r->task, task) || r->seed != 1)
            continue;
        fprintf(file, "<polyline fill=none stroke='%s' stroke-width=%s stroke-dasharray='%s' points='", colour,
                line == 0 ? "7" : "2", dash);
        for (j = 0; j < r->points; j++)
            fprintf(file, "%.1f,%.1f ", left + r->steps[j] / steps * (right - left),
                    bottom - (fmin(r->losses[j], most) - least) / (most - least) * (bottom - top));
        fprintf(file,
                "' /><line x1=620 x2=655 y1=%d y2=%d stroke='%s' stroke-width=%s stroke-dasharray='%s' /><text x=662 "
                "y=%d>%s %.3f</text>\n",
                35 + 22 * line, 35 + 22 * line, colour, line == 0 ? "7" : "2", dash, 39 + 22 * line, r->mode,
                r->val_loss);
        line++;
    }
    fprintf(file, "</svg>\n");
}

/* How many gradients have which magnitude, before they are narrowed, and what fp16 and E5M2 can hold. */
static void write_histogram(FILE *file, const train_result *results, int count, const char *task) {
    static const char *const shown[] = {"fp32", "fp16-dynamic"}, *const fills[] = {"#0072b2", "#e69f00"};
    static const char *const labels[] = {"as they are (fp32)", "times the loss scale (fp16-dynamic)"};
    const double left = 50, right = 830, top = 45, bottom = 315;
    const int low = -50, high = 18; /* powers of two */
    double most = 0;
    int i, e, s, has_scaled = 0;
    for (i = 0; i < count; i++)
        for (s = 0; s < 2 && !strcmp(results[i].task, task) && results[i].seed == 1; s++) {
            double total = 0;
            for (e = 1; e < 255; e++)
                total += results[i].exponents[e];
            has_scaled |= s == 1 && !strcmp(results[i].mode, shown[1]);
            for (e = 1; e < 255 && !strcmp(results[i].mode, shown[s]) && total > 0; e++)
                most = fmax(most, results[i].exponents[e] / total);
        }
    if (!(most > 0) || !has_scaled)
        return;
    fprintf(file,
            "<h3>Why loss scaling exists</h3><p>Gradients of activations and weights by magnitude, before they are "
            "narrowed: in fp32, and in fp16 with a dynamic loss scale.\n");
#define X_OF(power) (left + ((double)(power)-low) / (high - low) * (right - left))
    fprintf(file, "<svg viewBox='0 0 860 355' role=img><title>Exponents of gradients, %s</title>\n", task);
    /* below 2^-25, half of the smallest subnormal, nothing is left */
    fprintf(file,
            "<rect class=lost x=%.1f y=%.0f width=%.1f height=%.0f /><rect class=sub x=%.1f y=%.0f width=%.1f "
            "height=%.0f />\n",
            left, top, X_OF(-25) - left, bottom - top, X_OF(-25), top, X_OF(-14) - X_OF(-25), bottom - top);
    fprintf(file,
            "<text x=%.1f y=%.0f text-anchor=middle>0 in fp16</text><text x=%.1f y=%.0f text-anchor=middle>"
            "subnormal</text><text x=%.1f y=%.0f text-anchor=middle>normal in fp16</text>\n",
            (left + X_OF(-25)) / 2, top + 16, X_OF(-19), top + 16, X_OF(1), top + 16);
    fprintf(file,
            "<line class=limit x1=%.1f x2=%.1f y1=%.0f y2=%.0f /><text x=%.1f y=%.0f text-anchor=end>overflow"
            "</text>\n",
            X_OF(16), X_OF(16), top, bottom, X_OF(16) - 4, top + 34);
    for (s = 0; s < 2; s++)
        for (i = 0; i < count; i++) {
            const train_result *r = &results[i];
            double total = 0;
            if (strcmp(r->task, task) || r->seed != 1 || strcmp(r->mode, shown[s]))
                continue;
            for (e = 1; e < 255; e++)
                total += r->exponents[e];
            for (e = low; e < high; e++) {
                double share = r->exponents[e + 127] / total, width = X_OF(e + 1) - X_OF(e);
                fprintf(file, "<rect x=%.1f y=%.1f width=%.1f height=%.1f fill='%s' fill-opacity=0.6 />\n", X_OF(e) + 1,
                        bottom - share / most * (bottom - top - 50), width - 2, share / most * (bottom - top - 50),
                        fills[s]);
            }
            fprintf(file, "<rect x=%d y=14 width=14 height=14 fill='%s' fill-opacity=0.6 /><text x=%d y=26>%s</text>\n",
                    60 + 190 * s, fills[s], 80 + 190 * s, labels[s]);
        }
    for (e = low; e <= high; e += 4)
        fprintf(file, "<text x=%.1f y=%.0f text-anchor=middle>%d</text>\n", X_OF(e), bottom + 18, e);
    fprintf(file,
            "<text x=%.0f y=%.0f text-anchor=middle>log2 of the magnitude; heights: share of the nonzero "
            "gradients</text></svg>\n",
            (left + right) / 2, bottom + 35);
#undef X_OF
}

void train_write_html(FILE *file, const train_result *results, int count, const char *about) {
    const char *task = NULL;
    int i;
    fprintf(file, "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
                  "<title>mixprec: training in mixed precision</title>\n<style>"
                  "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;"
                  "background:#fff}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;"
                  "display:block;overflow-x:auto}"
                  "td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,"
                  "th:first-child{text-align:left}.bad "
                  "td{background:#fde0dd;font-weight:600}svg{width:100%%;height:auto;font:12px "
                  "system-ui,sans-serif;margin:.5rem 0 1.5rem}.grid{stroke:#ddd}.limit{stroke:#d62728}.lost{fill:"
                  "#fde0dd}.sub{fill:#fff3cd}</style>\n<h1>Training in mixed precision</h1><p>");
    write_text(file, about);
    fprintf(
        file,
        "<p>The same model, data and seeds in every mode of a task. <i>Minus fp32</i> is the validation loss "
        "less that of "
        "fp32 with the same seed; rows that lose more than 0.1 are red and bold. <i>Flushed</i> is the share of the "
        "nonzero gradients that became 0 when they were narrowed.\n");
    for (i = 0; i < count; i++) {
        if (results[i].task == task)
            continue;
        task = results[i].task;
        fprintf(file, "<h2>Task: %s</h2>\n", task);
        fprintf(file, "<p>");
        write_text(file, results[i].about);
        write_rows(file, results, count, task);
        write_curves(file, results, count, task);
        write_histogram(file, results, count, task);
    }
    fprintf(file, "</html>\n");
}
