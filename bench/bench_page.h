/* What the reports are made of, HTML and SVG without scripts: sections, cards, panels of bars. For C and C++. Colours:
   one accent for the library, grey for others, amber for limits. */
#ifndef MIXPREC_BENCH_PAGE_H
#define MIXPREC_BENCH_PAGE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

static void html_text(FILE *file, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        default: fputc(*text, file);
        }
}

/* ---- a panel of horizontal bars that start at zero ---- */

enum { BAR_LIBRARY, BAR_OTHER };

typedef struct bar {
    char label[24], text[24]; /* left of it; in the column on the right */
    int kind;
    double value, mark, dot; /* mark: a line across; dot: a circle; NaN: none */
} bar;

typedef struct bar_panel {
    const char *title, *unit;
    bar bars[64];
    int count;
    double max;   /* of the axis, so that panels side by side agree; 0: of the bars */
    double limit; /* a dashed line through all bars; NaN: none */
    const char *limit_label;
} bar_panel;

#define PANEL_WIDTH 380
#define PANEL_LEFT 116
#define PANEL_RIGHT 312
#define BAR_HEIGHT 21

static bar *add_bar(bar_panel *panel, const char *label, int kind, double value) {
    bar *added = &panel->bars[panel->count++];
    snprintf(added->label, sizeof(added->label), "%s", label);
    added->text[0] = 0;
    added->kind = kind;
    added->value = value;
    added->mark = added->dot = (double)NAN;
    return added;
}

static void start_panel(bar_panel *panel, const char *title, const char *unit) {
    memset(panel, 0, sizeof(*panel));
    panel->title = title;
    panel->unit = unit;
    panel->limit = (double)NAN;
}

static double extent(const bar_panel *panel) {
    double max = isfinite(panel->limit) ? panel->limit : 0;
    int i;
    for (i = 0; i < panel->count; i++)
        max = fmax(max, fmax(panel->bars[i].value, fmax(panel->bars[i].mark, panel->bars[i].dot)));
    return max;
}

/* 1, 2 or 5 times a power of ten, so that an axis has three to six steps. */
static double axis_step(double max) {
    double step = pow(10, floor(log10(max / 4)));
    return step * (max / step > 32 ? 10 : max / step > 12 ? 5 : max / step > 6 ? 2 : 1);
}

static void write_panel(FILE *file, const bar_panel *panel) {
    double max = 1.02 * (panel->max > 0 ? panel->max : extent(panel)), step = axis_step(max), tick;
    double scale = (PANEL_RIGHT - PANEL_LEFT) / max;
    int top = 42, bottom = top + panel->count * BAR_HEIGHT + 4, i;
    fprintf(file, "<svg viewBox='0 0 %d %d' role='img' aria-label='%s, %s'>\n", PANEL_WIDTH, bottom + 38, panel->title,
            panel->unit);
    fprintf(file, "<text class='title' x='0' y='14'>%s</text>\n", panel->title);
    for (tick = 0; tick <= max; tick += step) {
        double x = PANEL_LEFT + tick * scale;
        fprintf(file, "<line class='grid' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/>", x, x, top, bottom);
        fprintf(file, "<text class='small' x='%.1f' y='%d' text-anchor='middle'>%g</text>\n", x, bottom + 15, tick);
    }
    fprintf(file, "<text class='small' x='%d' y='%d' text-anchor='middle'>%s</text>\n", (PANEL_LEFT + PANEL_RIGHT) / 2,
            bottom + 32, panel->unit);
    for (i = 0; i < panel->count; i++) {
        const bar *b = &panel->bars[i];
        int y = top + 2 + i * BAR_HEIGHT, inset = b->kind == BAR_OTHER ? 4 : 2;
        fprintf(file, "<text class='%s' x='%d' y='%d' text-anchor='end'>%s</text>",
                b->kind == BAR_OTHER ? "small" : "label", PANEL_LEFT - 7, y + 15, b->label);
        fprintf(file, "<rect class='%s' x='%d' y='%d' width='%.1f' height='%d'/>",
                b->kind == BAR_OTHER ? "other" : "own", PANEL_LEFT, y + inset, fmax(b->value * scale, 0.5),
                BAR_HEIGHT - 2 * inset);
        if (isfinite(b->dot))
            fprintf(file, "<circle class='dot' cx='%.1f' cy='%d' r='3.5'/>", PANEL_LEFT + b->dot * scale, y + 10);
        if (isfinite(b->mark))
            fprintf(file, "<line class='limit' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/>", PANEL_LEFT + b->mark * scale,
                    PANEL_LEFT + b->mark * scale, y, y + BAR_HEIGHT - 1);
        fprintf(file, "<text class='%s' x='%d' y='%d' text-anchor='end'>%s</text>\n",
                b->kind == BAR_OTHER ? "small" : "label", PANEL_WIDTH - 2, y + 15, b->text);
    }
    if (isfinite(panel->limit)) {
        double x = PANEL_LEFT + panel->limit * scale;
        fprintf(file, "<line class='limit dashed' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/>", x, x, top - 6, bottom);
        fprintf(file, "<text class='small limit-text' x='%.1f' y='%d' text-anchor='%s'>%s</text>\n", x, top - 10,
                x > 240 ? "end" : "middle", panel->limit_label);
    }
    fprintf(file, "</svg>\n");
}

static void start_section(FILE *file, const char *title) {
    fprintf(file, "<section><h2>%s</h2>\n", title);
}

static void end_section(FILE *file) {
    fprintf(file, "</section>\n");
}

/* Panels side by side, on one axis. */
static void write_panels(FILE *file, bar_panel *panels, int count) {
    double max = 0;
    int i;
    for (i = 0; i < count; i++)
        max = fmax(max, extent(&panels[i]));
    fprintf(file, "<div class='panels'>\n");
    for (i = 0; i < count; i++) {
        panels[i].max = max;
        if (panels[i].count)
            write_panel(file, &panels[i]);
    }
    fprintf(file, "</div>\n");
}

/* ---- the page ---- */

static const char style[] =
    ":root{--back:#fbfbf9;--card:#fff;--text:#1d2329;--muted:#5d6872;--grid:#e4e7ea;--own:#0072b2;--other:#b4bcc4;"
    "--limit:#c77700;color-scheme:light dark}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#13171b;--card:#1a2026;--text:#e6eaee;--muted:#9aa6b2;--grid:#"
    "2c343c;"
    "--own:#56b4e9;--other:#5b6672;--limit:#e69f00}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\n"
    "main{max-width:1200px;margin:0 auto;padding:36px 20px 60px}h1{font-size:30px;line-height:1.2;margin:0 0 4px}"
    "h2{font-size:20px;margin:0 0 4px}p{margin:0 0 14px;color:var(--muted);max-width:76ch}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:14px;margin:22px 0}"
    ".card,section{background:var(--card);border:1px solid var(--grid);border-radius:10px}.card{padding:14px 18px}"
    "section{padding:20px 22px;margin:18px 0}.card b{display:block;font-size:27px;line-height:1.25;font-weight:650}"
    ".card span{color:var(--muted);font-size:14px;display:block}.card .unit{display:inline;font-size:15px}\n"
    ".panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(310px,100%),1fr));gap:20px 28px}"
    ".narrow{max-width:440px}.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(330px,100%),1fr));"
    "gap:20px 36px;align-items:center}svg{display:block;width:100%;height:auto;overflow:visible}\n"
    "svg text{fill:var(--text);font-size:13px}svg .title{font-weight:650;font-size:14px}svg .small{fill:var(--muted);"
    "font-size:12px}svg .power{font-size:9px}svg .strong{font-weight:650}svg .limit-text{fill:var(--limit)}"
    ".grid{stroke:var(--grid)}.own{fill:var(--own)}.other{fill:var(--other)}.limit{stroke:var(--limit);stroke-width:2}"
    ".dashed{stroke-dasharray:5 3;stroke-width:1.5}.dot,.hollow{fill:var(--card);stroke:var(--own);stroke-width:2}"
    ".dot{stroke:var(--text);stroke-width:1.5}.link{stroke:var(--own);stroke-width:1.5;opacity:.45}"
    ".leader{fill:none;stroke:var(--other)}\n"
    ".legend{font-size:14px;margin:12px 0 0}.legend span{margin-right:18px;white-space:nowrap}"
    ".legend "
    "i{display:inline-block;margin-right:7px;vertical-align:-1px}.key-bar{width:16px;height:12px;background:var(--own)}"
    ".key-dot{width:11px;height:11px;border-radius:6px;background:var(--own)}"
    ".key-ring{width:11px;height:11px;border-radius:6px;border:2px solid var(--text)}"
    ".own-ring{border-color:var(--own)}.key-limit{width:2px;height:14px;background:var(--limit)}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}"
    "td,th{padding:4px 14px 4px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}"
    "th{color:var(--muted);font-weight:500}td.name,th.name{text-align:left}"
    "@media(max-width:600px){main{padding:24px 12px}section{padding:16px "
    "14px}table{font-size:13px}td,th{padding-right:9px}}summary{cursor:pointer;color:var(--muted)}\n";

static void start_page(FILE *file, const char *title) {
    fprintf(file,
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
            "content='width=device-width,"
            "initial-scale=1'>\n<title>%s</title>\n<style>\n%s</style></head>\n<body><main>\n",
            title, style);
}

static void write_card(FILE *file, const char *name, double value, const char *unit, const char *note) {
    fprintf(file, "<div class='card'><span>%s</span><b>%.*f <span class='unit'>%s</span></b><span>%s</span></div>\n",
            name, value < 100 ? 1 : 0, value, unit, note);
}

#endif
