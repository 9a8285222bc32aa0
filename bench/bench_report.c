/* The reports: results.csv and results.json hold every figure; report.html is one page without scripts or outside
   parts, whose plots are SVG. */
#include "bench.h"
#include "bench_page.h"

/* ---- tables for programs ---- */

void bench_write_csv(FILE *file) {
    int i;
    fprintf(file, "suite,case,dtype,isa,threads,impl,metric,value\n");
    for (i = 0; i < bench_result_count; i++) {
        const bench_result *r = &bench_results[i];
        fprintf(file, "%s,%s,%s,%s,%d,%s,%s,%.9g\n", r->key.suite, r->key.name, r->key.dtype, r->key.isa,
                r->key.threads, r->key.impl, r->metric, r->value);
    }
}

static void json_text(FILE *file, const char *name, const char *text) {
    fprintf(file, "\"%s\": \"", name);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < 32)
            fprintf(file, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, file);
    fputc('"', file);
}

void bench_write_json(FILE *file) {
    const bench_machine_info *machine = &bench_machine;
    int i;
    fprintf(file, "{\n  ");
    json_text(file, "cpu", machine->cpu);
    fprintf(file, ",\n  ");
    json_text(file, "system", machine->system);
    fprintf(file, ",\n  ");
    json_text(file, "compiler", machine->compiler);
    fprintf(file, ",\n  ");
    json_text(file, "date", machine->date);
    fprintf(file, ",\n  ");
    json_text(file, "command", bench_option.command);
    fprintf(file, ",\n  ");
    json_text(file, "path", mixprec_isa_name(mixprec_isa_best()));
    fprintf(file, ",\n  \"cores\": %d, \"threads\": %d, \"l1_bytes\": %.0f, \"l2_bytes\": %.0f, \"l3_bytes\": %.0f,\n",
            machine->cores, bench_option.threads, (double)machine->l1_bytes, (double)machine->l2_bytes,
            (double)machine->l3_bytes);
    fprintf(file, "  \"results\": [");
    for (i = 0; i < bench_result_count; i++) {
        const bench_result *r = &bench_results[i];
        fprintf(file,
                "%s\n    {\"suite\": \"%s\", \"case\": \"%s\", \"dtype\": \"%s\", \"isa\": \"%s\", \"threads\": %d, ",
                i ? "," : "", r->key.suite, r->key.name, r->key.dtype, r->key.isa, r->key.threads);
        fprintf(file, "\"impl\": \"%s\", \"metric\": \"%s\", \"value\": ", r->key.impl, r->metric);
        if (isfinite(r->value))
            fprintf(file, "%.9g}", r->value);
        else
            fprintf(file, "null}");
    }
    fprintf(file, "\n  ]\n}\n");
}

/* ---- figures for the page ---- */

/* On any path of a peer; of the library on the best one. NaN when it was not measured. */
static double figure(const char *suite, const char *name, mixprec_dtype dtype, const char *impl, const char *metric) {
    int i;
    for (i = 0; i < bench_result_count; i++) {
        const bench_key *key = &bench_results[i].key;
        if (!strcmp(key->suite, suite) && !strcmp(key->name, name) && !strcmp(key->dtype, mixprec_dtype_name(dtype)) &&
            !strcmp(key->impl, impl) && !strcmp(bench_results[i].metric, metric) &&
            (strcmp(impl, "mixprec") || !strcmp(key->isa, mixprec_isa_name(mixprec_isa_best()))))
            return bench_results[i].value;
    }
    return (double)NAN;
}

static double library_figure(const char *suite, const char *name, mixprec_dtype dtype, const char *metric) {
    return figure(suite, name, dtype, "mixprec", metric);
}

/* ---- speed beside error ---- */

typedef struct scatter_point {
    double speed[2], error[2]; /* the large product; the vector */
    double label_y;
    mixprec_dtype dtype;
} scatter_point;

static int compare_points(const void *a, const void *b) {
    double x = ((const scatter_point *)a)->error[0], y = ((const scatter_point *)b)->error[0];
    return (x < y) - (x > y);
}

static void write_scatter(FILE *file) {
    static const int WIDTH = 430, HEIGHT = 380, LEFT = 58, RIGHT = 366, TOP = 12, BOTTOM = 338;
    static const char *const suites[2] = {"gemm", "batch"};
    const char *names[2] = {"1024", "1x4096x4096"};
    scatter_point points[6];
    double max_speed = 1, low = 0, high = -20, step, tick, previous = 0;
    int i, j, count = 0, decade;
    for (i = 0; i < 6; i++) {
        scatter_point *point = &points[count];
        point->dtype = bench_dtypes[i];
        for (j = 0; j < 2; j++) {
            point->speed[j] = library_figure(suites[j], names[j], point->dtype, "speedup_over_f32");
            point->error[j] = fmax(1e-18, library_figure(suites[j], names[j], point->dtype, "error"));
        }
        if (!(point->speed[0] > 0 && point->speed[1] > 0 && isfinite(point->error[0] + point->error[1])))
            continue;
        for (j = 0; j < 2; j++) {
            max_speed = fmax(max_speed, point->speed[j]);
            low = fmin(low, floor(log10(point->error[j])));
            high = fmax(high, ceil(log10(point->error[j])));
        }
        count++;
    }
    if (count < 2)
        return;
    max_speed *= 1.06;
    step = axis_step(max_speed);
#define X_OF(speed) (LEFT + (speed) / max_speed * (RIGHT - LEFT))
#define Y_OF(error) (BOTTOM - (log10(error) - low) / (high - low) * (BOTTOM - TOP))
    start_section(file, "Speed beside error");
    fprintf(file, "<p>Each format once as a large product (GEMM 1024, bound by arithmetic) and once as a vector times a"
                  " 4096 x 4096 matrix (bound by memory). Further right is faster than f32, further down is more exact:"
                  " a format earns its error back where memory is the limit.</p>\n<div class='pair'>\n");
    fprintf(file, "<svg viewBox='0 0 %d %d' role='img' aria-label='speed over f32 beside error, for each format'>\n",
            WIDTH, HEIGHT);
    for (tick = 0; tick <= max_speed; tick += step) {
        fprintf(file, "<line class='grid' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/>", X_OF(tick), X_OF(tick), TOP, BOTTOM);
        fprintf(file, "<text class='small' x='%.1f' y='%d' text-anchor='middle'>%g&#215;</text>\n", X_OF(tick),
                BOTTOM + 18, tick);
    }
    for (decade = (int)low; decade <= (int)high; decade += high - low > 8 ? 2 : 1) {
        double y = Y_OF(pow(10, decade));
        fprintf(file, "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>", LEFT, RIGHT, y, y);
        fprintf(
            file,
            "<text class='small' x='%d' y='%.1f' text-anchor='end'>10<tspan dy='-5' class='power'>%d</tspan></text>\n",
            LEFT - 6, y + 4, decade);
    }
    fprintf(file, "<text class='small' x='%d' y='%d' text-anchor='middle'>speed over f32</text>\n", (LEFT + RIGHT) / 2,
            BOTTOM + 38);
    fprintf(file,
            "<text class='small' transform='translate(11 %d) rotate(-90)' text-anchor='middle'>"
            "error: max |c &#8722; r| / &#8721; |a b|</text>\n",
            (TOP + BOTTOM) / 2);
    /* labels from the bottom of the page upward would collide where errors are close: each keeps its distance */
    qsort(points, (size_t)count, sizeof(*points), compare_points);
    for (i = 0; i < count; i++) {
        points[i].label_y = fmax(Y_OF(points[i].error[1]), i ? previous + 18 : 0);
        previous = points[i].label_y;
    }
    for (i = 0; i < count; i++) {
        const scatter_point *p = &points[i];
        double x0 = X_OF(p->speed[0]), y0 = Y_OF(p->error[0]), x1 = X_OF(p->speed[1]), y1 = Y_OF(p->error[1]);
        fprintf(file, "<polyline class='leader' points='%.1f,%.1f %d,%.1f %d,%.1f'/>", fmax(x0, x1), x0 > x1 ? y0 : y1,
                RIGHT + 4, x0 > x1 ? y0 : y1, RIGHT + 18, p->label_y);
        fprintf(file, "<line class='link' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>", x0, y0, x1, y1);
        fprintf(file, "<circle class='own' cx='%.1f' cy='%.1f' r='5.5'/>", x0, y0);
        fprintf(file, "<circle class='hollow' cx='%.1f' cy='%.1f' r='5'/>", x1, y1);
        fprintf(file, "<text class='strong' x='%d' y='%.1f'>%s</text>\n", RIGHT + 22, p->label_y + 4,
                mixprec_dtype_name(p->dtype));
    }
#undef X_OF
#undef Y_OF
    fprintf(file, "</svg>\n<div><div class='scroll'><table><tr><th class='name'>format<th>bytes<th>GEMM 1024<th>error"
                  "<th>vector &#215; matrix<th>error</tr>\n");
    for (i = 0; i < count; i++) {
        const scatter_point *p = &points[i];
        fprintf(file, "<tr><td class='name'>%s<td>%d<td>%.2f&#215;<td>%.1e<td>%.2f&#215;<td>%.1e</tr>\n",
                mixprec_dtype_name(p->dtype), (int)mixprec_dtype_size(p->dtype), p->speed[0], p->error[0], p->speed[1],
                p->error[1]);
    }
    fprintf(file, "</table></div>\n<p class='legend'><span><i class='key-dot'></i>GEMM 1024</span>"
                  "<span><i class='key-ring own-ring'></i>vector times matrix</span></p></div>\n</div>\n");
    end_section(file);
}

/* ---- products ---- */

/* One format's bars: the library's, then those of the peers. */
static void add_products(bar_panel *panel, const char *suite, const char *name, mixprec_dtype dtype, const char *metric,
                         double scale, const char *text_format) {
    const bench_peer *peers;
    int i, count = bench_peers(&peers);
    double value = scale * library_figure(suite, name, dtype, metric);
    if (!isfinite(value))
        return;
    {
        bar *own = add_bar(panel, mixprec_dtype_name(dtype), BAR_LIBRARY, value);
        snprintf(own->text, sizeof(own->text), text_format, value);
    }
    for (i = 0; i < count; i++) {
        value = scale * figure(suite, name, dtype, peers[i].name, metric);
        if (peers[i].dtype == dtype && isfinite(value)) {
            bar *other = add_bar(panel, peers[i].name, BAR_OTHER, value);
            snprintf(other->text, sizeof(other->text), text_format, value);
        }
    }
}

static void write_products(FILE *file, const char *suite, const char *const names[3], const char *const titles[3],
                           const char *metric, const char *unit, const char *limit_label, const char *section,
                           const char *explanation) {
    bar_panel panels[3];
    int i, j, bars = 0;
    for (i = 0; i < 3; i++) {
        start_panel(&panels[i], titles[i], unit);
        for (j = 0; j < 6; j++)
            add_products(&panels[i], suite, names[i], bench_dtypes[j], metric, 100, "%.0f %%");
        panels[i].limit = 100;
        panels[i].limit_label = limit_label;
        bars += panels[i].count;
    }
    if (!bars)
        return;
    start_section(file, section);
    fprintf(file, "<p>%s</p>\n", explanation);
    write_panels(file, panels, 3);
    end_section(file);
}

static void write_gram(FILE *file) {
    const char *name = bench_option.quick ? "1024x8192" : "1024x65536";
    bar_panel panel;
    int i;
    start_panel(&panel, bench_option.quick ? "A 1024 x 8192 (--quick)" : "A 1024 x 65536",
                "milliseconds, less is better");
    for (i = 0; i < 6; i++) {
        double published = bench_published(bench_dtypes[i]);
        int before = panel.count;
        add_products(&panel, "gram", name, bench_dtypes[i], "seconds_best", 1e3, "%.0f ms");
        if (panel.count > before && !bench_option.quick && isfinite(published)) {
            bar *gpu = add_bar(&panel, "T4 GPU", BAR_OTHER, published);
            snprintf(gpu->text, sizeof(gpu->text), "%.3g ms", published);
        }
    }
    if (!panel.count)
        return;
    start_section(file, "dot(A, A<sup>T</sup>)");
    fprintf(file,
            "<p>The published case: on a T4 GPU its authors report 541, 34.7 and 5.58 ms for A 1024 x 65536 in f64, f32"
            " and f16. Blue is %d core%s of this CPU.</p>\n<div class='narrow'>",
            bench_option.threads, bench_option.threads > 1 ? "s" : "");
    write_panel(file, &panel);
    fprintf(file, "</div>\n");
    end_section(file);
}

/* ---- streams ---- */

static double portable_figure(const char *suite, const char *name, mixprec_dtype dtype) {
    bench_key key = bench_key_of(suite, name, dtype, MIXPREC_ISA_C);
    return bench_find(&key, "gb_per_s");
}

static void write_streams(FILE *file, const char *suite, const char *const *names, const char *const *label_formats,
                          int name_count, const char *section, const char *explanation) {
    static const char *const levels[3] = {"L1", "L2", "DRAM"};
    bar_panel panels[3];
    int level, row, dtype, bars = 0;
    for (level = 0; level < 3; level++) {
        start_panel(&panels[level], levels[level], "GB/s, read + written; at the right: of the line");
        for (row = 0; row < name_count; row++)
            for (dtype = 0; dtype < 6; dtype++) {
                char name[64], label[24];
                double value;
                snprintf(name, sizeof(name), "%s/%s", names[row], levels[level]);
                value = library_figure(suite, name, bench_dtypes[dtype], "gb_per_s");
                if (isfinite(value)) {
                    bar *b;
                    snprintf(label, sizeof(label), label_formats[row], mixprec_dtype_name(bench_dtypes[dtype]));
                    b = add_bar(&panels[level], label, BAR_LIBRARY, value);
                    b->mark = library_figure(suite, name, bench_dtypes[dtype], "load_store_gb_per_s");
                    if (isfinite(b->mark))
                        snprintf(b->text, sizeof(b->text), "%.0f %%",
                                 100 * library_figure(suite, name, bench_dtypes[dtype], "share_of_load_store"));
                    if (mixprec_isa_best() != MIXPREC_ISA_C)
                        b->dot = portable_figure(suite, name, bench_dtypes[dtype]);
                }
            }
        bars += panels[level].count;
    }
    if (!bars)
        return;
    start_section(file, section);
    fprintf(file, "<p>%s</p>\n<div class='panels'>\n", explanation);
    for (level = 0; level < 3; level++)
        if (panels[level].count)
            write_panel(file, &panels[level]);
    fprintf(file, "</div>\n<p class='legend'><span><i class='key-bar'></i>%s</span>",
            mixprec_isa_name(mixprec_isa_best()));
    if (mixprec_isa_best() != MIXPREC_ISA_C)
        fprintf(file, "<span><i class='key-limit'></i>only loads and stores, as many bytes</span>"
                      "<span><i class='key-ring'></i>portable C</span>");
    fprintf(file, "</p>\n");
    end_section(file);
}

/* ---- training ---- */

/* The label of a case: its name as far as the '/', with "grad" for a gradient. */
static void case_label(char label[24], const char *name) {
    const int length = (int)strcspn(name, "/"), tail = 9; /* of "-backward", and of "-gradient" */
    const char *end = name + length - tail;
    if (length > tail && (!strncmp(end, "-backward", 9) || !strncmp(end, "-gradient", 9)))
        snprintf(label, 24, "%.*s grad", length - tail, name);
    else
        snprintf(label, 24, "%.*s", length, name);
}

static void write_passes(FILE *file) {
    static const char *const titles[4] = {"Reductions", "Quantisation", "Optimisers", "mixprec_stats"};
    static const char *const suites[4] = {"reduce", "quant", "optim", "convert"};
    static const char *const metrics[4] = {"share_of_load_store", "share_of_load_store", "share_of_load_store",
                                           "share_of_read"};
    bar_panel panels[4];
    int i, bars = 0;
    for (i = 0; i < 4; i++) {
        start_panel(&panels[i], titles[i], i < 3 ? "% of a loop that loads and stores" : "% of a loop that loads");
        panels[i].limit = 100;
        panels[i].limit_label = i < 3 ? "loads, stores" : "loads";
    }
    for (i = 0; i < bench_result_count; i++) {
        const bench_result *r = &bench_results[i];
        char label[24];
        int panel;
        bar *b;
        for (panel = 0; panel < 4 && (strcmp(r->key.suite, suites[panel]) || strcmp(r->metric, metrics[panel]));
             panel++)
            ;
        if (panel == 4 || !strstr(r->key.name, "/DRAM") || strcmp(r->key.isa, mixprec_isa_name(mixprec_isa_best())))
            continue;
        case_label(label, r->key.name);
        b = add_bar(&panels[panel], label, BAR_LIBRARY, 100 * r->value);
        snprintf(b->text, sizeof(b->text), "%s %.0f", r->key.dtype, 100 * r->value);
        bars++;
    }
    if (!bars)
        return;
    start_section(file, "Passes of training");
    fprintf(file,
            "<p>Over arrays in memory, once. The line is a loop that only loads and stores the same bytes, or, for"
            " the statistics of an array before it is narrowed, only loads them; streams that a prefetcher follows"
            " well can be faster.</p>\n");
    write_panels(file, panels, 4);
    end_section(file);
}

static void write_layers(FILE *file) {
    static const char *const places[2] = {"/L2", "/DRAM"};
    static const mixprec_dtype types[2] = {MIXPREC_F32, MIXPREC_BF16};
    static char titles[4][16];
    bar_panel panels[4];
    int panel, i, bars = 0;
    for (panel = 0; panel < 4; panel++) {
        const char *place = places[panel / 2], *type = mixprec_dtype_name(types[panel % 2]);
        snprintf(titles[panel], sizeof(titles[panel]), "%s, %s", place + 1, type);
        start_panel(&panels[panel], titles[panel], "cycles for an element, less is better");
        for (i = 0; i < bench_result_count; i++) {
            const bench_result *r = &bench_results[i];
            char label[24];
            bar *b;
            if (strcmp(r->key.suite, "layers") || strcmp(r->metric, "cycles_per_element") ||
                strcmp(r->key.dtype, type) || strcmp(r->key.name + strcspn(r->key.name, "/"), place))
                continue;
            case_label(label, r->key.name);
            b = strcmp(r->key.impl, "mixprec") ? add_bar(&panels[panel], r->key.impl, BAR_OTHER, r->value)
                                               : add_bar(&panels[panel], label, BAR_LIBRARY, r->value);
            snprintf(b->text, sizeof(b->text), "%.2f", r->value);
        }
        bars += panels[panel].count;
    }
    if (!bars)
        return;
    start_section(file, "Layers");
    fprintf(file, "<p>Rows of 1,024 elements (softmax-64: of 64), one thread; all tensors in the second cache, or in"
                  " memory. Grey: a peer's figure for the same layer.</p>\n");
    write_panels(file, panels, 4);
    end_section(file);
}

/* ---- the page ---- */

static void write_cards(FILE *file) {
    static const char *const sizes[3] = {"256", "1024", "2048"};
    int threads = bench_option.threads, i, j;
    double best = 0, vector;
    char note[160], best_note[160] = "";
    fprintf(file, "<div class='cards'>\n");
    snprintf(note, sizeof(note), "f32; %.0f in f64; %d thread%s", bench_peak(MIXPREC_F64, threads), threads,
             threads > 1 ? "s" : "");
    write_card(file, "FMA peak at the start", bench_peak(MIXPREC_F32, threads), "GFLOP/s", note);
    snprintf(note, sizeof(note), "copy %.1f, read + written", bench_bandwidth("copy", threads));
    write_card(file, "DRAM read at the start", bench_bandwidth("read", threads), "GB/s", note);
    for (i = 0; i < 3; i++)
        for (j = 0; j < 6; j++) {
            double gflops = library_figure("gemm", sizes[i], bench_dtypes[j], "gflops");
            if (gflops > best) {
                best = gflops;
                snprintf(best_note, sizeof(best_note), "%s, size %s, %.0f %% of peak",
                         mixprec_dtype_name(bench_dtypes[j]), sizes[i],
                         100 * library_figure("gemm", sizes[i], bench_dtypes[j], "share_of_peak"));
            }
        }
    if (best > 0)
        write_card(file, "Best GEMM", best, "GFLOP/s", best_note);
    vector = library_figure("batch", "1x4096x4096", MIXPREC_E4M3, "speedup_over_f32");
    if (vector > 0) {
        snprintf(note, sizeof(note), "f16 %.1f, bf16 %.1f",
                 library_figure("batch", "1x4096x4096", MIXPREC_F16, "speedup_over_f32"),
                 library_figure("batch", "1x4096x4096", MIXPREC_BF16, "speedup_over_f32"));
        write_card(file, "Vector times matrix, e4m3", vector, "&#215; f32", note);
    }
    fprintf(file, "</div>\n");
}

static void write_formats(FILE *file) {
    int i;
    start_section(file, "Formats");
    fprintf(
        file,
        "<div class='scroll'><table><tr><th class='name'>format<th>bits<th>exponent<th>mantissa<th>max<th>min normal"
        "<th>min subnormal<th>epsilon<th>Inf</tr>\n");
    for (i = 0; i < 6; i++) {
        mixprec_format_info info;
        bench_check(mixprec_format(bench_dtypes[i], &info));
        fprintf(file, "<tr><td class='name'>%s<td>%d<td>%d<td>%d<td>%.5g<td>%.5g<td>%.5g<td>%.5g<td>%s</tr>\n",
                info.name, info.bits, info.exponent_bits, info.mantissa_bits, info.max, info.min_normal,
                info.min_subnormal, info.epsilon, info.has_inf ? "yes" : "no");
    }
    fprintf(file, "</table></div>\n");
    end_section(file);
}

/* A cell of the table of all figures: empty when the metric was not taken. */
static void write_cell(FILE *file, const bench_key *key, const char *metric, const char *format, double scale) {
    double value = bench_find(key, metric);
    fprintf(file, "<td>");
    if (isfinite(value))
        fprintf(file, format, scale * value);
}

static void write_all_figures(FILE *file) {
    int i;
    start_section(file, "Every figure");
    fprintf(
        file,
        "<details><summary>All measurements of this run</summary><div class='scroll'><table><tr><th class='name'>suite"
        "<th class='name'>case<th class='name'>format<th class='name'>implementation<th class='name'>path"
        "<th>ms, best<th>median<th>GFLOP/s<th>of peak<th>GB/s<th>of DRAM read<th>cycles/element<th>of load-store"
        "<th>error<th>of sum</tr>\n");
    for (i = 0; i < bench_result_count; i++) {
        const bench_key *key = &bench_results[i].key;
        if (strcmp(bench_results[i].metric, "seconds_best"))
            continue;
        fprintf(file,
                "<tr><td class='name'>%s<td class='name'>%s<td class='name'>%s<td class='name'>%s<td class='name'>%s",
                key->suite, key->name, key->dtype, key->impl, key->isa);
        write_cell(file, key, "seconds_best", "%.4g", 1e3);
        write_cell(file, key, "seconds_median", "%.4g", 1e3);
        write_cell(file, key, "gflops", "%.1f", 1);
        write_cell(file, key, "share_of_peak", "%.0f %%", 100);
        write_cell(file, key, "gb_per_s", "%.1f", 1);
        write_cell(file, key, "share_of_dram_read", "%.0f %%", 100);
        write_cell(file, key, "cycles_per_element", "%.3f", 1);
        write_cell(file, key, "share_of_load_store", "%.0f %%", 100);
        write_cell(file, key, "error", "%.1e", 1);
        write_cell(file, key, "error_of_sum", "%.1e", 1);
        fprintf(file, "</tr>\n");
    }
    fprintf(file, "</table></div></details>\n");
    end_section(file);
}

static void write_machine(FILE *file) {
    const bench_machine_info *machine = &bench_machine;
    const bench_peer *peers;
    int i, count = bench_peers(&peers);
    start_section(file, "Machine and run");
    fprintf(file, "<div class='scroll'><table>\n<tr><td class='name'>CPU<td class='name'>");
    html_text(file, machine->cpu);
    fprintf(file,
            ", %d cores, L1 %.0f KiB, L2 %.0f KiB, L3 %.0f MiB</tr>\n<tr><td class='name'>system<td class='name'>",
            machine->cores, (double)machine->l1_bytes / 1024, (double)machine->l2_bytes / 1024,
            (double)machine->l3_bytes / 1048576);
    html_text(file, machine->system);
    fprintf(file, "</tr>\n<tr><td class='name'>compiler<td class='name'>");
    html_text(file, machine->compiler);
    fprintf(file, "</tr>\n<tr><td class='name'>path<td class='name'>%s, %d thread%s",
            mixprec_isa_name(mixprec_isa_best()), bench_option.threads,
            bench_option.threads > 1 ? "s" : ", pinned to a core");
    fprintf(file, "</tr>\n<tr><td class='name'>peers<td class='name'>%s", count ? "" : "none was found by the build");
    for (i = 0; i < count; i++)
        if (i == 0 || strcmp(peers[i].name, peers[i - 1].name))
            fprintf(file, "%s%s (%s)", i ? ", " : "", peers[i].name, peers[i].core);
    fprintf(file, "</tr>\n<tr><td class='name'>command<td class='name'>");
    html_text(file, bench_option.command);
    fprintf(file, "</tr>\n</table></div>\n");
    end_section(file);
}

void bench_write_html(FILE *file) {
    static const char *const sizes[3] = {"256", "1024", "2048"};
    static const char *const size_titles[3] = {"256 x 256 x 256", "1024 x 1024 x 1024", "2048 x 2048 x 2048"};
    static const char *const batches[3] = {"1x4096x4096", "8x4096x4096", "32x4096x4096"};
    static const char *const batch_titles[3] = {"1 vector", "8 vectors", "32 vectors"};
    static const char *const directions[] = {"from-f32",
                                             "from-f32-saturating",
                                             "from-f32-keep-inf",
                                             "from-f32-upward",
                                             "from-f32-scaled",
                                             "from-f32-stochastic",
                                             "to-f32",
                                             "from-f64",
                                             "from-bf16",
                                             "from-e4m3",
                                             "from-f16"};
    static const char *const direction_labels[] = {
        "f32 &#8594; %s", "%s saturating",  "%s keeping Inf",  "%s upward",       "%s scaled",     "%s stochastic",
        "%s &#8594; f32", "f64 &#8594; %s", "bf16 &#8594; %s", "e4m3 &#8594; %s", "f16 &#8594; %s"};
    static const char *const unscale[1] = {"unscale"};
    static const char *const unscale_labels[1] = {"%s"};
    start_page(file, "mixprec on this machine");
    fprintf(file, "<h1>Mixed precision on ");
    html_text(file, bench_machine.cpu);
    fprintf(file, "</h1>\n<p>mixprec %d.%d.%d, path %s, %d thread%s. ", MIXPREC_VERSION_MAJOR, MIXPREC_VERSION_MINOR,
            MIXPREC_VERSION_PATCH, mixprec_isa_name(mixprec_isa_best()), bench_option.threads,
            bench_option.threads > 1 ? "s" : "");
    html_text(file, bench_machine.compiler);
    fprintf(file, ". %s.</p>\n", bench_machine.date);
    write_cards(file);
    write_scatter(file);
    write_products(
        file, "gemm", sizes, size_titles, "share_of_peak", "% of the FMA peak", "peak", "Matrix products",
        "How much of the multiply-add peak is reached: of f64 for f64, of f32 for all others, which sum in f32."
        " The peak is measured again right before and after each sample, for the clock of a machine changes"
        " from one moment to the next. Grey: other libraries in the same format, one run. Above 100 % a library"
        " uses units that the FMA peak does not count, such as dot products of bf16.");
    write_products(file, "batch", batches, batch_titles, "share_of_dram_read", "% of DRAM read bandwidth", "DRAM read",
                   "Vectors times a 4096 x 4096 matrix",
                   "The weights come from memory. One vector can go no faster than they"
                   " arrive, so half the bytes is half the time; with more vectors arithmetic takes over.");
    write_gram(file);
    write_streams(
        file, "convert", directions, direction_labels, COUNT_OF(directions), "Conversion",
        "Arrays that live in the first cache, in the second and in memory. The line is a loop that only loads and"
        " stores as many bytes, in vectors of up to the path's width, the fastest: about the most that a conversion"
        " can reach. In memory it can pass the line, for what is written around the caches is not read first."
        " Each panel has its own axis.");
    write_streams(file, "scaler", unscale, unscale_labels, 1, "Unscaling gradients",
                  "Gradients of each format, multiplied by the"
                  " inverse scale, checked for Inf and NaN and written as f32.");
    write_passes(file);
    write_layers(file);
    write_formats(file);
    write_machine(file);
    write_all_figures(file);
    fprintf(file, "</main></body></html>\n");
}
