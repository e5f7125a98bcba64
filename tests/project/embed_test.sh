#!/usr/bin/env bash
# Every way of building on Tarn: as a meson subproject, installed and found by pkg-config (shared and
# static) or CMake, from C11 and C++17, under sanitizers. TAP on stdout.
#
#   embed_test.sh SOURCE WORK     WORK: a folder of its own; what is built there is used again
set -u
source=$1 work=$2
project=$work/project build=$work/build installed=$work/installed
number=0

echo "1..15"
log=$work/log
mkdir -p "$project/subprojects"
exec 3>&1 >>"$log" 2>&1

# check NAME COMMAND...: passes when the command does.
check() {
    local name=$1
    shift
    number=$((number + 1))
    : >"$log"
    if "$@"; then
        echo "ok $number - $name" >&3
    else
        echo "not ok $number - $name" >&3
        sed 's/^/# /' "$log" >&3
    fi
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2" >&3
}

cp "$source"/tests/project/embed_project/* "$project" 2>/dev/null
ln -sfn "$source" "$project/subprojects/tarn"

# Optimised code, kernels for a GPU and the methods of papers would only take time here.
subproject() {
    if [ ! -e "$build/build.ninja" ]; then
        meson setup "$build" "$project" --prefix "$installed" --libdir lib -Doptimization=0 -Ddebug=false \
            -Dsource="$source/examples" -Dtarn:cuda=disabled -Dtarn:papers=false -Dtarn:warning_level=0 || return 1
    fi
    meson compile -C "$build" && "$build/embed" && "$build/embed_cpp" && ! ls "$build"/subprojects/tarn/tests/*_test 2>/dev/null
}
check a_meson_subproject subproject
# From the build folder, by the file that meson makes for it.
uninstalled() {
    local flags
    flags=$(PKG_CONFIG_PATH=$build/meson-uninstalled pkg-config --cflags --libs tarn) && [[ $flags == *"$build"* ]] || return 1
    # shellcheck disable=SC2086
    cc -std=c11 "$source/examples/embed.c" -o "$work/uninstalled" $flags &&
        LD_LIBRARY_PATH=$build/subprojects/tarn "$work/uninstalled"
}
check uninstalled_by_pkg_config uninstalled
check installs meson install -C "$build" --quiet

# by_pkg_config OUTPUT COMPILER FILE FLAGS...: libraries come from LIBRARIES, words of pkg-config.
export PKG_CONFIG_PATH=$installed/lib/pkgconfig LD_LIBRARY_PATH=$installed/lib
by_pkg_config() {
    local output=$work/$1 compiler=$2 file=$3
    shift 3
    # shellcheck disable=SC2046
    $compiler "$@" "$file" $(pkg-config --cflags tarn) -o "$output" $(pkg-config --libs $LIBRARIES) && "$output"
}
warnings=(-Wall -Wextra -Wpedantic -Werror)
LIBRARIES=tarn
check c11_by_pkg_config by_pkg_config c11 cc "$source/examples/embed.c" -std=c11 "${warnings[@]}"
check cpp17_by_pkg_config by_pkg_config cpp17 c++ "$source/examples/embed.cpp" -std=c++17 "${warnings[@]}"

statically() {
    local libraries
    libraries=$(pkg-config --static --libs tarn) || return 1
    # shellcheck disable=SC2086
    cc -std=c11 "$source/examples/embed.c" $(pkg-config --cflags tarn) -o "$work/static" \
        ${libraries/-ltarn/-l:libtarn.a} && env -u LD_LIBRARY_PATH "$work/static" &&
        ! ldd "$work/static" | grep -q libtarn
}
# hwloc's own file for pkg-config names libudev for such programs; on Debian a package of its own.
lacking=
if pkg-config --static --print-requires-private tarn | grep -q hwloc; then
    # shellcheck disable=SC2046
    echo 'int main(void) { return 0; }' | cc -x c - -o "$work/nothing" $(pkg-config --static --libs hwloc) 2>/dev/null ||
        lacking="what hwloc names for static programs is not here (libudev-dev)"
fi
# if_linkable NAME COMMAND...: a check that links statically.
if_linkable() { if [ -z "$lacking" ]; then check "$@"; else skip "$1" "$lacking"; fi; }
if_linkable static_by_pkg_config statically

# What runs plans needs no planner.
cat >"$work/run_only.c" <<'END'
#include <tarn.h>
int main(void)
{
    struct tarn_graph *graph;
    return tarn_graph_load("/no/such/file", NULL, &graph, NULL) == TARN_SYSTEM ? 0 : 1;
}
END
core_alone() {
    # shellcheck disable=SC2046
    cc -std=c11 "$work/run_only.c" -o "$work/run_only" $(pkg-config --static --cflags --libs tarn-core) &&
        env -u LD_LIBRARY_PATH "$work/run_only"
}
if_linkable core_alone_by_pkg_config core_alone

# A vendor tests a device: here the host, which needs no opening.
cat >"$work/conformance.c" <<'END'
#include <tarn/conformance.h>
static bool open_host(void *user, struct tarn_device *device)
{
    (void)user;
    *device = tarn_device_host(NULL);
    return true;
}
int main(void)
{
    return tarn_conformance_run(TARN_CONFORMANCE(.open = open_host, .effort = TARN_CONFORMANCE_QUICK)) != 0;
}
END
LIBRARIES=tarn-conformance
check the_conformance_suite_by_pkg_config by_pkg_config conformance cc "$work/conformance.c" -std=c11 "${warnings[@]}"
LIBRARIES=tarn

# This build has no methods of papers: it plans, and says that they were left out.
cat >"$work/papers.c" <<'END'
#include <string.h>
#include <tarn.h>
int main(int argc, char **argv)
{
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_pairs pairs;
    struct tarn_error error;
    if (argc != 2 || tarn_graph_load(argv[1], NULL, &graph, NULL) != TARN_OK) return 1;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1), &plan, NULL) != TARN_OK) return 2;
    tarn_plan_destroy(plan);
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.method = "llfb"), &plan, &error) != TARN_USAGE) return 3;
    if (!strstr(error.text, "no methods of papers")) return 4;
    if (tarn_graph_pairs(graph, "clocks", &pairs, &error) != TARN_USAGE) return 5;
    tarn_graph_destroy(graph);
    return strstr(error.text, "no methods of papers") ? 0 : 6;
}
END
without_papers() {
    # shellcheck disable=SC2046
    cc -std=c11 "${warnings[@]}" "$work/papers.c" -o "$work/papers" $(pkg-config --cflags --libs tarn) &&
        "$work/papers" "$source/examples/graphs/figure7.json"
}
check methods_of_papers_are_said_to_be_left_out without_papers

for sanitizer in address undefined; do
    check "c11_with_the_${sanitizer}_sanitizer" \
        by_pkg_config sanitized cc "$source/examples/embed.c" -std=c11 "-fsanitize=$sanitizer"
done

by_cmake() {
    cmake -S "$project" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$installed" -DSOURCE="$source/examples" \
        -DRUN_ONLY="$work/run_only.c" -DCONFORMANCE="$work/conformance.c" && cmake --build "$work/cmake" &&
        "$work/cmake/embed" && "$work/cmake/embed_cpp" && "$work/cmake/run_only" && "$work/cmake/conformance"
}
# An installation that was moved, and a library in a folder of two names, as Debian has it: nothing leads to the old place.
by_cmake_moved() {
    rm -rf "$work/moved" "$work/cmake_moved" && mkdir -p "$work/moved" && cp -a "$installed" "$work/moved/there" &&
        cmake -S "$project" -B "$work/cmake_moved" -DCMAKE_PREFIX_PATH="$work/moved/there" -DSOURCE="$source/examples" \
            -DRUN_ONLY="$work/run_only.c" -DCONFORMANCE="$work/conformance.c" && cmake --build "$work/cmake_moved" &&
        LD_LIBRARY_PATH=$work/moved/there/lib "$work/cmake_moved/embed" && ! grep -rIq "$installed/" "$work/cmake_moved"
}
# Each file of an installation has a tag, and parts that no program links are not there.
tags() {
    local all=$work/tags tag
    for tag in "" runtime devel; do
        rm -rf "$all$tag" && DESTDIR=$all$tag meson install -C "$build" --quiet --no-rebuild ${tag:+--tags $tag} || return 1
    done
    (cd "$all" && find . -type f -o -type l) | sort >"$work/all"
    (cd "${all}runtime" && find . -type f -o -type l; cd "${all}devel" && find . -type f -o -type l) | sort >"$work/tagged"
    diff "$work/all" "$work/tagged" && grep -q "/LICENSE$" "$work/tagged" && ! grep -q "libtarn-p" "$work/all"
}
check files_have_tags tags
# The recipe in docs/embedding.md as it stands there, with the folder in place of the repository.
by_fetch_content() {
    local folder=$work/fetch
    mkdir -p "$folder"
    {
        printf 'cmake_minimum_required(VERSION 3.16)\nproject(fetcher C)\n'
        sed -n '/^    include(FetchContent)/,/^    find_package(tarn /s/^    //p' "$source"/docs/embedding.md |
            sed "s|GIT_REPOSITORY ... GIT_TAG ...|SOURCE_DIR \"$source\"|; s|-Dtests=disabled|& -Doptimization=0 -Ddebug=false -Dcuda=disabled|"
        printf 'add_executable(embed "%s")\ntarget_link_libraries(embed PRIVATE tarn::tarn)\n' "$source/examples/embed.c"
    } >"$folder/CMakeLists.txt"
    # CMake hands CC on as one word to what it calls.
    env -u CC -u CXX cmake -S "$folder" -B "$folder/build" && cmake --build "$folder/build" &&
        LD_LIBRARY_PATH=$folder/build/tarn/lib "$folder/build/embed"
}
if command -v cmake >/dev/null; then
    check cmake_finds_it by_cmake
    check cmake_finds_it_where_it_was_moved by_cmake_moved
    check cmake_fetches_it by_fetch_content
else
    skip cmake_finds_it "cmake is not here"
    skip cmake_finds_it_where_it_was_moved "cmake is not here"
    skip cmake_fetches_it "cmake is not here"
fi
