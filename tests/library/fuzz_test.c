/* What fuzzers begin with and what they once found, in builds without one: every target gets its
 * seeds, each also cut short, and the inputs of data/fuzz, and ends the process where it finds
 * anything. argv[1]: the folder of seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

static const char *seeds;

struct target {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
};

static const struct target targets[] = {
    {"graph", fuzz_graph}, {"interval", fuzz_interval}, {"plan", fuzz_plan},   {"pair", fuzz_pair},
    {"order", fuzz_order}, {"costs", fuzz_costs},       {"calls", fuzz_calls},
};

/* Memory that ends where the input does, so that a sanitizer sees one byte too many. */
static void run(const struct target *target, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    if (size > 0) memcpy(copy, data, size);
    target->run(copy, size);
    free(copy);
}

static void run_file(const struct target *target, const char *path)
{
    enum { SIZE_MAX_READ = 1 << 20 };
    static uint8_t bytes[SIZE_MAX_READ];
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s", path);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    run(target, bytes, size);
    run(target, bytes, size - size / 3);
}

/* How many inputs the folder has. */
static size_t run_folder(const struct target *target, const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, target->name);
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    size_t inputs = 0;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s/%s", folder, target->name, entries[i]->d_name);
            print_message("# %s\n", path);
            run_file(target, path);
            inputs++;
        }
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return inputs;
}

static void every_target_keeps_its_promises_on_its_seeds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        assert_true(run_folder(&targets[i], seeds) > 0);
}

static void every_target_keeps_its_promises_on_what_once_broke_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        run_folder(&targets[i], TARN_SOURCE_DIR "/tests/data/fuzz");
}

static void no_input_at_all_is_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) run(&targets[i], NULL, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_target_keeps_its_promises_on_its_seeds),
        cmocka_unit_test(every_target_keeps_its_promises_on_what_once_broke_one),
        cmocka_unit_test(no_input_at_all_is_one),
    };
    if (argc != 2) return 2;
    seeds = argv[1];
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was under way is said before it ends the process */
    return cmocka_run_group_tests_name("fuzz", tests, NULL, NULL);
}
