#!/usr/bin/env bash
# The house's rules, as far as a script can check them. TAP on stdout.
#
#   style_test.sh SOURCE BUILD
set -u
cd "$1" || exit 1
build=$2
number=0

# report NAME FINDINGS: passes when nothing was found.
report() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        sed 's/^/# /' <<<"$2"
    fi
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

code() { find include streams planner runtime cli tests examples -name "*.[ch]" "$@" | sort; }

if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    report layout_is_clang_formats \
        "$(code | xargs clang-format --dry-run 2>&1 | grep 'warning:' | cut -d: -f1 | sort | uniq -c)"
else
    skip layout_is_clang_formats "clang-format 14 is not here"
fi

# Headers that no file includes before all others: of those that one does, its compiling shows it.
headers_unshown() {
    code -name '*.h' | grep -vxFf <(code -name '*.c' | xargs awk '
        FNR == 1 { folder = FILENAME; sub(/[^/]*$/, "", folder); is_first = 1 }
        /^#include/ && is_first { is_first = 0; gsub(/"/, "", $2); print $2; print folder $2 }')
}

headers_alone() {
    local header
    for header in $(headers_unshown); do
        [[ $header == examples/custom_sdk/* && ! -e /usr/include/CL/cl.h ]] && continue
        [[ $header == examples/train/* && ! -e /usr/include/dnnl.h ]] && continue
        echo "#include \"$header\"" | cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror \
            -fsyntax-only -x c -Iinclude -I. -Itests - 2>&1 | head -5
    done
    for header in include/tarn.h include/tarn/*.h include/tarn.hpp; do
        echo "#include \"$header\"" | c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror \
            -fsyntax-only -x c++ -Iinclude -I. - 2>&1 | head -5
    done
}
report every_header_stands_alone "$(headers_alone)"

# arrows FOLDER FORBIDDEN: includes in FOLDER that reach into a room above it.
arrows() { grep -rnE "#include \"([a-z_./]*/)?($2)/" "$1" --include='*.[ch]'; }
report arrows_point_down_only "$(
    arrows include 'streams|planner|runtime|cli'
    arrows streams 'planner|runtime|cli'
    arrows streams/base 'text|graph|order|plan|verify|file'
    arrows streams/text 'graph|order|plan|verify|file'
    arrows streams/graph 'order|plan|verify|file'
    arrows streams/order 'plan|verify|file'
    arrows streams/plan 'verify|file'
    arrows streams/verify 'order|file' # the proof shares nothing with what it proves
    arrows planner 'runtime|cli'
    arrows runtime 'planner|cli'
    arrows cli 'streams|planner|runtime'
    arrows tests/conformance 'streams|planner|runtime|cli|support'
)"

# third_party HEADER ALLOWED: includes of HEADER in other library files than ALLOWED.
third_party() {
    grep -rlE "#include <$1" include streams planner runtime cli | grep -vE "$2"
}
report third_party_headers_stay_in_their_rooms "$(
    third_party zlib '^(streams/text/text_file|cli/show/page)\.c$'
    third_party omp '^planner/parallel/'
    third_party hwloc '^runtime/state/machine_hwloc\.c$'
    third_party jansson '^streams/(text/json_write\.h|file/json_read\.c)$|^cli/command/print\.c$'
)"

report one_file_asks_for_memory "$(
    grep -rnE '(^|[^_[:alnum:]])(malloc|calloc|realloc|aligned_alloc|strn?dup|free)\(' streams planner runtime \
        --include='*.[ch]' | grep -vE '^streams/base/memory\.c:|free\(\)'
)"

# exported: names of the shared library, without their versions.
exported() { nm -D --defined-only "$build/libtarn.so" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}'; }

report only_tarn_names_are_global "$(
    exported | grep -v '^tarn_'
    nm -g --defined-only "$build"/libtarn-{core,plan}.a "$build"/tests/conformance/libtarn-conformance.a 2>/dev/null | awk 'NF == 3 && $3 !~ /^tarn_/'
)"

report every_public_function_is_called_with_null "$(
    exported | sed 's/_sized$//' | while read -r name; do # the inline function calls that
        grep -qw "$name" tests/library/null_test.c || echo "$name is not in tests/library/null_test.c"
    done
)"

library() { find include streams planner runtime cli tests/conformance -name "*.[ch]" "$@" | sort; }

symbols=$(python3 tests/project/symbols.py . "$build" 2>&1)
report no_circles_of_files_or_folders "$(grep -v '^unused' <<<"$symbols")"

# But for tarn_executor, of which runtime/state declares what host and queues each define.
report a_struct_has_one_meaning "$(
    library -exec grep -ohE '^(struct|enum|union) tarn_[a-z0-9_]+ \{' {} + | sort | uniq -d | grep -v 'struct tarn_executor {'
)"

report every_global_name_has_a_user_in_another_file "$(grep '^unused' <<<"$symbols")"

# doors ROOM...: includes, outside a room, of another of its headers than the one of its name.
doors() {
    local room
    for room in "${@%/}"; do
        grep -rnE "#include \"$room/" include streams planner runtime cli --include='*.[ch]' |
            grep -v "^$room/" | grep -v "\"$room/$(basename "$room")\.h\""
    done
}
report rooms_are_entered_by_their_doors "$(
    doors streams/verify planner/papers planner/place/*/ planner/transform/*/ \
        runtime/check runtime/cuda runtime/host runtime/queues runtime/session
)"

report nothing_is_called_all "$(
    grep -rnE '\ball(->|\.[a-z]+\b[^"])|\b(bool|int|u?int[0-9]+_t|size_t|struct [a-z_]+) \*?all\b' \
        streams planner runtime cli tests examples --include='*.[ch]'
)"

report verbs_have_manual_pages "$(
    diff <(sed -n 's/^    {"\([a-z]*\)", tarn_verb_.*/\1/p' cli/main.c | sort) \
        <(sed -n "s/^  foreach verb : \(.*\)$/\1/p" cli/command/meson.build | grep -oE '[a-z]+' | sort)
)"

shared=shared
report the_project_is_self_contained "$(
    git ls-files -z 2>/dev/null | xargs -0 grep -nE "/wor[k]/|\.\./$shared\b|/roo[t]/|/hom[e]/" -- 2>/dev/null | cut -c1-160
)"

report files_named_in_the_architecture_exist "$(
    grep -oE '`[a-z_/]+\.(c|h|md|sh)`' docs/architecture.md | tr -d '\`' | sort -u | while read -r name; do
        [ -n "$(find . -path ./build -prune -o -path "*/$name" -print -quit)" ] || echo "$name"
    done
)"

# Documents, and their sections: a citation, document, "Section", may go on in the next line of a comment.
report documents_and_sections_that_code_cites_exist "$(
    grep -rnE '\b[A-Z_]{4,}(\.md)?, section [0-9]' include streams planner runtime cli tests \
        --include='*.[ch]' --include='*.py'
    git ls-files '*.[ch]' '*.py' '*.sh' '*.cpp' '*.hpp' 2>/dev/null | xargs perl -0777 -ne '
        $_ = join "\n", m{/\*.*?\*/|//[^\n]*}gs if $ARGV =~ /\.[ch](pp)?$/; # members may be named so
        s/\n\s*(\*|#|\/\/)\s/ /g;
        while (/((?:[\w.-]+\/)+[\w-]+\.md|[A-Z_]{3,}\.md)\b(?:, "([^"]+)")?/g) {
            my ($name, $section, $text) = ($1, $2, "");
            my ($path) = grep { -e } $name, "docs/$name", $ARGV =~ s|[^/]*$|$name|r;
            print "$ARGV: there is no $name\n" unless $path;
            next unless $path and defined $section and $path =~ /^docs/;
            open my $file, "<", $path; $text = <$file>;
            print "$ARGV: $path has no section \"$section\"\n" unless $text =~ /^#+ \Q$section\E$/m;
        }' 2>&1
)"
echo "1..$number"
