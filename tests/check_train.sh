#!/bin/sh
# Training: the example compiles and prints these losses on every machine; the training benchmark runs in short, writes
# its files, shows what each mode is good and bad at, and refuses wrong options.
# Run from the repository's root: sh tests/check_train.sh

. tests/check.sh

printf 'step   0: loss 1.991\nstep 100: loss 0.136\nstep 200: loss 0.103\nstep 300: loss 0.035\n' >"$work/example.want"
prints_the_losses() {
    "$work/example" >"$work/example.got" && diff "$work/example.want" "$work/example.got"
}
check "train: the example has 60 lines or fewer" test "$(wc -l <tests/example_train.c)" -le 60
check "train: the example compiles" "$CC" -std=c99 $warnings $CFLAGS -I. -o "$work/example" tests/example_train.c &&
    check "train: the example prints its losses" prints_the_losses

check "train: the test of gradients compiles" "$CC" -std=gnu99 $warnings $CFLAGS -pthread -o "$work/gradients" \
    tests/train_gradients.c bench/train_report.c -lm &&
    check "train: gradients of whole models agree with differences of the loss" "$work/gradients"

program=$BUILD/train/train
# short OPTIONS...: a run of few steps
short() {
    "$program" --out "$work" --steps 40 --seeds 1 "$@" >"$work/train.out"
}
# The line of a mode: its difference to fp32 and its share of flushed gradients lie below the limits, and it takes less
# memory than fp32.
below() {
    awk -F , -v mode="$1" -v delta="$2" -v flushed="$3" '
        function number(x) { return x ~ /^-?[0-9.]+(e[-+][0-9]+)?$/ } # no NaN
        $2 == "fp32" { bytes = $10 }
        $2 == mode {
            found = 1
            if (!number($6) || !number($8) || $6 >= delta || $8 >= flushed || $10 >= bytes) wrong = 1
        }
        END { exit !found || wrong }
    ' "$work/results.csv"
}
# behind MODE DELTA: its loss is above that of fp32 by as much, at least
behind() {
    awk -F , -v mode="$1" -v delta="$2" '$2 == mode && $6 ~ /^[0-9.]+$/ && $6 >= delta { found = 1 } END { exit !found }' \
        "$work/results.csv"
}
flushes() {
    awk -F , -v mode="$1" '$2 == mode && $8 ~ /^[0-9.]+$/ && $8 >= 0.1 { found = 1 } END { exit !found }' \
        "$work/results.csv"
}
check "train: the benchmark compiles" "${MAKE:-make}" "$program"
# what each mode is for shows in these few steps
check "train: runs every mode" short --task accumulated-1024
check "train: the columns of results.csv" \
    grep -qx 'task,mode,seed,val_loss,val_acc,delta_fp32,skipped,flushed,ms_per_step,bytes' "$work/results.csv"
check "train: writes report.html" grep -q '</html>' "$work/report.html"
check "train: fp16 without scaling flushes gradients of 1,024 micro-batches" flushes fp16-unscaled
check "train: with a loss scale fp16 is as good as fp32" below fp16-dynamic 0.005 0.01
check "train: and with one that stays" below fp16-static 0.005 0.01
check "train: bf16 is, without" below bf16 0.005 0.01
check "train: and fp8 with scales of its tensors" below fp8-current 0.02 0.01
check "train: with those of steps before it is not far behind" below fp8-delayed 0.1 0.05
check "train: fp8 without flushes gradients" flushes fp8-unscaled
check "train: and is far behind" behind fp8-unscaled 0.5
check "train: runs every mode where the loss is not divided" short --task plain
for mode in fp16-unscaled fp16-static fp16-dynamic bf16 bf16-pure-stochastic bf16-pure-kahan; do
    check "train: there $mode is as good as fp32" below $mode 0.005 0.01
done
for mode in fp8-current fp8-delayed; do
    check "train: there $mode is hardly behind" below $mode 0.02 0.01
done
check "train: runs with small updates" short --task small-rate
check "train: weights in bf16 alone lose them, rounded to nearest" behind bf16-pure-nearest 0.1
check "train: rounded stochastically they do not" below bf16-pure-stochastic 0.02 0.01
check "train: nor with compensation" below bf16-pure-kahan 0.02 0.01
check "train: runs on a text" short --task plain --mode bf16 --steps 20 --data README.md
check "train: and reads that" grep -q '^README.md: [0-9]* characters' "$work/train.out"
check "train: where bf16 is as good as fp32" below bf16 0.02 0.01
check "train: the transformer runs" short --task transformer --mode fp16-dynamic
check "train: in fp16 it is as good as in fp32" below fp16-dynamic 0.02 0.02
check "train: every micro-batch runs" short --task accumulated-real --mode fp16-unscaled --steps 1
check "train: and fp16 without scaling flushes gradients there" flushes fp16-unscaled
check "train: --help" "$program" --help

# refused OPTIONS...: exit status 2, one line on stderr, nothing on stdout
refused() {
    "$program" "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && [ ! -s "$work/out" ]
}
head -c 5000 mixprec.h >"$work/short.txt"
for options in --fast "--steps 0" "--steps x" --seeds "--seeds 21" "--task no" "--mode no" "--threads -1" \
    "--task small-rate --mode fp16-dynamic" "--data $work/nowhere" "--data $work/short.txt" "--out $work/no/where"; do
    # shellcheck disable=SC2086
    check "train: refuses $options" refused $options
done

summary
