#!/bin/sh
# Runs test programs and adds up their results.
#
#     count.sh run LOG COMMAND...   runs the command and shows its output; its summary line is kept in LOG and shown
#                                   with the log's name before it. A program that ends without one, or with a status
#                                   that does not agree with it, counts as one failure.
#     count.sh total LOG...         prints the sum as `N passed, M failed, K skipped`; exits with 1 if any failed
#
# A log that does not exist counts as one failure.

set -u
mode=$1
shift

run() {
    log=$1
    name=$(basename "$log" .log)
    shift
    mkdir -p "$(dirname "$log")"
    rm -f "$log"
    {
        "$@" 2>&1
        echo "exit status $?"
    } | {
        counts=
        while IFS= read -r line; do
            case $line in
            "exit status "*) status=${line#exit status } ;;
            [0-9]*" passed, "*" failed, "*" skipped") counts=$line ;;
            *) printf '%s\n' "$line" ;;
            esac
        done
        if [ -z "$counts" ]; then
            echo "FAIL  $name: ended without a summary (exit status $status)"
            counts="0 passed, 1 failed, 0 skipped"
        elif [ "$status" -ne 0 ] && [ "${counts#* passed, 0 failed}" != "$counts" ]; then
            echo "FAIL  $name: no failure counted, but exit status $status"
            counts="${counts%%, *}, 1 failed, ${counts##*, }"
        fi
        printf '%s: %s\n' "$name" "$counts"
        printf '%s\n' "$counts" >"$log"
    }
}

total() {
    passed=0 failed=0 skipped=0
    for log in "$@"; do
        if [ -f "$log" ]; then
            read -r p _ f _ s _ <"$log"
        else
            p=0 f=1 s=0
            echo "FAIL  $(basename "$log" .log): did not run"
        fi
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    done
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
}

"$mode" "$@"
