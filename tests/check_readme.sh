#!/bin/sh
# Every ```c block of README.md is a program: it is taken out, compiled as printed with warnings as errors, and run; its
# output must be the ```text block that follows, where one does before the next program.
# Run from the repository's root: sh tests/check_readme.sh

. tests/check.sh

awk -v work="$work" '
    /^```/ { language = inside ? "" : substr($0, 4); inside = !inside
             if (language == "c") program++
             if (language == "text" && program) has_text[program]++
             next }
    inside && language == "c" { print > (work "/readme" program ".c") }
    inside && language == "text" && program && has_text[program] == 1 { print > (work "/readme" program ".want") }
' README.md

prints_what_it_says() {
    "$work/readme$1" >"$work/readme$1.got" || return
    [ ! -f "$work/readme$1.want" ] || diff "$work/readme$1.want" "$work/readme$1.got"
}

number=0
while number=$((number + 1)) && [ -f "$work/readme$number.c" ]; do
    check "readme: program $number compiles" \
        "$CC" -std=c99 $warnings -O1 -I. -o "$work/readme$number" "$work/readme$number.c"
    check "readme: program $number runs and prints what it says" prints_what_it_says "$number"
done
check "readme: there is a program with its output" test -f "$work/readme1.want"
check "readme: the quick start has fewer than 15 lines" test "$(wc -l <"$work/readme1.c")" -lt 15

summary
