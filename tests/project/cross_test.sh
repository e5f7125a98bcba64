#!/usr/bin/env bash
# The library's and the command's sources compile without a warning for other machines, for which
# Debian has compilers: aarch64, and ARM with 32 bits. For a big-endian one they are refused, with
# the reason. Nothing is run. TAP on stdout.
#
#   cross_test.sh SOURCE
set -u
cd "$1" || exit 1
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
number=0
echo "1..3"

# hwloc's headers belong to one machine. Those of zlib and jansson are good for all machines, but some lie in a folder of this one.
for header in zlib.h zconf.h jansson.h jansson_config.h; do
    ln -s "$(echo "#include <$header>" | cc -E - | sed -n "s|^# 1 \"\(/.*/$header\)\".*|\1|p" | head -1)" "$headers"
done

for machine in aarch64-linux-gnu arm-linux-gnueabihf; do
    number=$((number + 1))
    if ! command -v "$machine-gcc" >/dev/null; then
        case ,${TARN_REQUIRE:-}, in
        *,cross,*) echo "not ok $number - compiles_for_$machine: $machine-gcc is not here" ;;
        *) echo "ok $number - compiles_for_$machine # SKIP $machine-gcc is not here" ;;
        esac
        continue
    fi
    findings=$(find streams planner runtime cli -name '*.c' ! -name machine_hwloc.c | sort | xargs -P "$(nproc)" -n 8 \
        "$machine-gcc" -std=c11 -fsyntax-only -O1 -D_GNU_SOURCE -DTARN_CUDA_MAJOR=13 \
        -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Iinclude -I. "-I$headers" 2>&1)
    if [ -z "$findings" ]; then
        echo "ok $number - compiles_for_$machine"
    else
        echo "not ok $number - compiles_for_$machine"
        head -20 <<<"$findings" | sed 's/^/# /'
    fi
done

# A compiler that says it is one for such a machine; the same command without that is the control.
number=$((number + 1))
compile=(cc -std=c11 -fsyntax-only -D_GNU_SOURCE -Iinclude -I. streams/graph/builder.c)
swapped=$("${compile[@]}" -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__ 2>&1)
if [[ $? -ne 0 && $swapped == *"#error"*"ittle-endian"* ]] && "${compile[@]}"; then
    echo "ok $number - big_endian_machines_are_refused"
else
    echo "not ok $number - big_endian_machines_are_refused"
    head -5 <<<"$swapped" | sed 's/^/# /'
fi
