#!/bin/sh
# The table of contents at the top of mixprec.h and the banners of its rooms must have the same tags in the same order,
# and each operation room (those between the last [VEC-...] and [DISPATCH]) and [SCALAR] must have its tests/test_<room>.c.
# The script then breaks copies of the header in several ways and sees itself notice.
# Run from the repository's root: sh tests/check_toc.sh

. tests/check.sh

# The first room, [TOP], is the page that holds the table: it has no banner.
contents() {
    sed -n '/^   Contents/,/\*\//s/^ *\[\([A-Z0-9-]*\)\].*/\1/p' "$1"
}
banners() {
    echo TOP
    awk '/^\/\* =+ \*\/$/ { rule = NR }
         match($0, /^\/\* \[[A-Z0-9-]+\]/) && rule == NR - 1 { print substr($0, 5, RLENGTH - 5) }' "$1"
}
operation_rooms() {
    contents "$1" | awk '/^VEC-/ { inside = 1; next } /^DISPATCH$/ { inside = 0 } inside'
}

# agree HEADER TESTS: all that is wrong goes to the output
agree() {
    contents "$1" >"$work/contents"
    banners "$1" >"$work/banners"
    wrong=0
    [ "$(wc -l <"$work/contents")" -ge 5 ] || { echo "no table of contents"; wrong=1; }
    diff "$work/contents" "$work/banners" || { echo "< contents, > banners"; wrong=1; }
    for room in SCALAR $(operation_rooms "$1"); do
        file=$2/test_$(echo "$room" | tr 'A-Z-' 'a-z_').c
        [ -f "$file" ] || { echo "[$room] has no $file"; wrong=1; }
    done
    return $wrong
}
notices() {
    ! agree "$@"
}

check "toc: contents, banners and tests agree" agree mixprec.h tests

sed '0,/^     \[GEMM\]/{/^     \[GEMM\]/d;}' mixprec.h >"$work/no_line.h"
check "toc: notices a room missing from the contents" notices "$work/no_line.h" tests
sed 's|^/\* \[API\]|/* [APIS]|' mixprec.h >"$work/renamed.h"
check "toc: notices a renamed banner" notices "$work/renamed.h" tests
sed -e 's|^/\* \[TYPES\]|/* [x]|' -e 's|^/\* \[SCALAR\]|/* [TYPES]|' -e 's|^/\* \[x\]|/* [SCALAR]|' \
    mixprec.h >"$work/swapped.h"
check "toc: notices banners in another order" notices "$work/swapped.h" tests
sed 's|^     \[DISPATCH\]|     [QUANT] x\n&|' mixprec.h >"$work/no_banner.h"
check "toc: notices a room without a banner" notices "$work/no_banner.h" tests
check "toc: notices a room without a test" notices mixprec.h "$work"

summary
