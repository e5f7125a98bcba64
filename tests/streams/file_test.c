/* The loader and writer of graph files: every rule has a file in data/invalid that breaks it, with
 * the place (a JSON pointer, "line N", or nothing) and a part of the message in NAME.expected
 * beside it; what is accepted comes back from a round trip unchanged, down to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "streams/graph/graph.h"
#include "streams/text/text_file.h"
#include "support/random_graph.h"
#include "tarn/text.h"

#define DATA TARN_SOURCE_DIR "/tests/data"

/* ---- A folder of its own for every test ---- */

struct folder {
    char path[64];
    char name[256]; /* of the file asked for last */
};

static struct folder folder_create(void)
{
    struct folder folder = {.path = "/tmp/tarn-file-test-XXXXXX"};
    assert_non_null(mkdtemp(folder.path));
    return folder;
}

static const char *in_folder(struct folder *folder, const char *name)
{
    snprintf(folder->name, sizeof folder->name, "%s/%s", folder->path, name);
    return folder->name;
}

static size_t files_in(const char *path)
{
    size_t count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void folder_destroy(struct folder *folder)
{
    DIR *directory = opendir(folder->path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] != '.') unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    rmdir(folder->path);
}

/* ---- Files ---- */

static struct tarn_graph *load(const char *path)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

static void save(const struct tarn_graph *graph, const char *path)
{
    struct tarn_error error;
    if (tarn_graph_save(graph, path, &error) != TARN_OK) fail_msg("%s", error.text);
}

struct text {
    char *bytes;
    size_t size;
};

/* As it lies there, compressed or not. */
static struct text bytes_of(const char *path)
{
    struct text text = {0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    text.size = (size_t)ftell(file);
    rewind(file);
    text.bytes = calloc(1, text.size + 1);
    assert_int_equal(fread(text.bytes, 1, text.size, file), text.size);
    fclose(file);
    return text;
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    unlink(path); /* a file cut short in place may be flushed to the disk, which is slow */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void assert_same_bytes(const char *a, const char *b)
{
    struct text one = bytes_of(a), other = bytes_of(b);
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.bytes, other.bytes, one.size);
    free(one.bytes);
    free(other.bytes);
}

static const char *const endings[] = {".json", ".json.gz", ".csv", ".csv.gz"};

static bool has_ending(const char *name, const char *ending)
{
    size_t length = strlen(name), ending_length = strlen(ending);
    return length > ending_length && strcmp(name + length - ending_length, ending) == 0;
}

static bool is_graph(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        found = found || has_ending(name, endings[i]);
    return found;
}

/* Calls `check` for every graph file of a folder; returns how many there were. */
static size_t for_each_graph(const char *folder, void (*check)(const char *path))
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    size_t graphs = 0;
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (is_graph(name)) {
            char path[512];
            snprintf(path, sizeof path, "%s/%s", folder, name);
            check(path);
            graphs++;
        }
        free(entries[i]);
    }
    free(entries);
    return graphs;
}

/* ---- What is refused ---- */

struct expected {
    char where[160];
    char message[320];
};

static struct expected expected_of(const char *path)
{
    struct expected expected = {0};
    char name[512];
    snprintf(name, sizeof name, "%s", path);
    *strchr(strrchr(name, '/'), '.') = '\0';
    snprintf(name + strlen(name), sizeof name - strlen(name), ".expected");
    FILE *file = fopen(name, "r");
    if (!file) fail_msg("%s is missing", name);
    if (!fgets(expected.where, sizeof expected.where, file) ||
        !fgets(expected.message, sizeof expected.message, file))
        fail_msg("%s has less than two lines", name);
    fclose(file);
    expected.where[strcspn(expected.where, "\n")] = '\0';
    expected.message[strcspn(expected.message, "\n")] = '\0';
    assert_true(strlen(expected.message) > 5);
    return expected;
}

/* "line N"; "line " for any line; a pointer, or its beginning when that ends with "/". */
static bool is_at(const struct tarn_error *error, const char *where)
{
    unsigned line = 0;
    size_t length = strlen(where);
    if (strncmp(where, "line ", 5) == 0)
        return error->pointer[0] == '\0' && error->line > 0 &&
               (sscanf(where + 5, "%u", &line) != 1 || error->line == line);
    if (error->line != 0 || error->column != 0) return false;
    if (length > 0 && where[length - 1] == '/') return strncmp(error->pointer, where, length) == 0;
    return strcmp(error->pointer, where) == 0 && strstr(error->text, where);
}

static void check_refused(const char *path)
{
    struct expected expected = expected_of(path);
    struct tarn_graph *graph = (struct tarn_graph *)&expected;
    struct tarn_error error;
    enum tarn_status status = tarn_graph_load(path, NULL, &graph, &error);
    if (status != TARN_BAD_INPUT) fail_msg("%s: %s", path, tarn_status_text(status));
    assert_null(graph);
    assert_int_equal(error.status, status);
    if (!is_at(&error, expected.where))
        fail_msg("expected at '%s', not at '%s' line %u: %s", expected.where, error.pointer,
                 error.line, error.text);
    if (!strstr(error.text, expected.message))
        fail_msg("expected '%s' in '%s'", expected.message, error.text);
    assert_null(strchr(error.text, '\n'));
    assert_non_null(strstr(error.text, strrchr(path, '/')));
    assert_int_equal(tarn_graph_load(path, NULL, &graph, NULL), TARN_BAD_INPUT);
}

static void refuses_every_invalid_file_and_names_the_place(void **state)
{
    (void)state;
    assert_true(for_each_graph(DATA "/invalid", check_refused) >= 100);
}

static void names_op_and_tensor_in_the_error(void **state)
{
    (void)state;
    struct tarn_graph *graph;
    struct tarn_error error;
    tarn_graph_load(DATA "/invalid/tensor_with_two_producers.json", NULL, &graph, &error);
    assert_int_equal(error.op, 2);
    assert_int_equal(error.tensor, 3);
    tarn_graph_load(DATA "/invalid/tensor_size_above_2_to_53.json", NULL, &graph, &error);
    assert_int_equal(error.op, TARN_NONE);
    assert_int_equal(error.tensor, 3);
    tarn_graph_load(DATA "/invalid/op_input_not_an_id.json", NULL, &graph, &error);
    assert_int_equal(error.op, 4);
    assert_int_equal(error.tensor, TARN_NONE);
}

static enum tarn_status load_status(const char *path, const char *message)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    enum tarn_status status = tarn_graph_load(path, NULL, &graph, &error);
    if (status == TARN_OK) tarn_graph_destroy(graph);
    if (!strstr(error.text, message)) fail_msg("'%s' is not in '%s'", message, error.text);
    return status;
}

static void says_why_a_file_cannot_be_read(void **state)
{
    (void)state;
    assert_int_equal(load_status(DATA "/no_such_file.json", "No such file"), TARN_SYSTEM);
    assert_int_equal(load_status(DATA, "Is a directory"), TARN_SYSTEM);
    assert_int_equal(load_status("/dev/null", "the file is empty"), TARN_BAD_INPUT);
}

static void refuses_options_of_a_struct_that_was_not_filled(void **state)
{
    (void)state;
    struct tarn_load_options options = {.struct_size = 3};
    struct tarn_graph *graph;
    struct tarn_error error;
    assert_int_equal(tarn_graph_load(DATA "/valid/least.json", &options, &graph, &error),
                     TARN_USAGE);
    assert_null(graph);
    assert_non_null(strstr(error.text, "load options without their struct_size"));
}

/* As much text as the first buffer holds, so that some cuts end just where it is full. */
static void refuses_compressed_text_that_is_cut_at_any_byte(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    size_t size = 65535, read;
    char *zeros = calloc(1, size), *back;
    const char *path = in_folder(&folder, "whole.gz");
    assert_int_equal(tarn_text_write(path, zeros, size, NULL), TARN_OK);
    struct text whole = bytes_of(path);
    assert_int_equal(tarn_text_read(path, size, &back, &read, NULL), TARN_OK);
    assert_int_equal(read, size);
    free(back);
    for (size_t cut = 2; cut < whole.size; cut++) {
        struct tarn_error error = {0};
        write_bytes(path, whole.bytes, cut);
        assert_int_equal(tarn_text_read(path, size, &back, &read, &error), TARN_BAD_INPUT);
        assert_non_null(strstr(error.text, "the gzip data ends early"));
    }
    free(whole.bytes);
    free(zeros);
    folder_destroy(&folder);
}

static void stops_at_the_cap_before_memory_is_full(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    size_t size = (size_t)1 << 22;
    char *zeros = calloc(1, size), *text = NULL;
    struct tarn_error error = {0};
    const char *path = in_folder(&folder, "bomb.gz");
    assert_int_equal(tarn_text_write(path, zeros, size, NULL), TARN_OK);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_true((size_t)about.st_size < size / 500);
    assert_int_equal(tarn_text_read(path, size - 1, &text, &size, &error), TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "has more than 4194303 bytes of text"));
    assert_int_equal(tarn_text_read(path, size, &text, &size, NULL), TARN_OK);
    assert_memory_equal(text, zeros, size);
    free(text);
    free(zeros);
    folder_destroy(&folder);
}

/* ---- What is accepted ---- */

/* Saves, loads, saves: same hash, same bytes, meta and name kept; compressed as well. */
static void check_round_trip(const char *path)
{
    struct folder folder = folder_create();
    char first[256], second[256], third[256];
    snprintf(first, sizeof first, "%s", in_folder(&folder, "first.json"));
    snprintf(second, sizeof second, "%s", in_folder(&folder, "second.json.gz"));
    snprintf(third, sizeof third, "%s", in_folder(&folder, "third.json"));
    struct tarn_graph *graph = load(path);
    save(graph, first);
    struct tarn_graph *again = load(first);
    save(again, second);
    struct tarn_graph *last = load(second);
    save(last, third);
    assert_true(tarn_hash_equal(graph->hash, again->hash));
    assert_true(tarn_hash_equal(graph->hash, last->hash));
    assert_string_equal(graph->meta, again->meta);
    assert_string_equal(graph->name, again->name);
    assert_same_bytes(first, third);
    assert_int_equal(files_in(folder.path), 3);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(again);
    tarn_graph_destroy(last);
    folder_destroy(&folder);
}

static void round_trips_valid_files(void **state)
{
    (void)state;
    assert_true(for_each_graph(DATA "/valid", check_round_trip) >= 5);
    assert_true(for_each_graph(TARN_SOURCE_DIR "/examples/graphs", check_round_trip) >= 4);
}

static void round_trips_the_graphs_of_the_environment(void **state)
{
    (void)state;
    const char *folder = getenv("TARN_GRAPHS");
    if (!folder) skip();
    assert_true(for_each_graph(folder, check_round_trip) > 0);
}

static void round_trips_random_graphs(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 40);
        struct tarn_graph *graph = random_graph(&options);
        save(graph, in_folder(&folder, "random.json"));
        struct tarn_graph *again = load(folder.name);
        assert_true(tarn_hash_equal(graph->hash, again->hash));
        tarn_graph_destroy(graph);
        tarn_graph_destroy(again);
    }
    folder_destroy(&folder);
}

static void keeps_every_field(void **state)
{
    (void)state;
    struct tarn_graph *graph = load(DATA "/valid/every_field.json");
    const struct tarn_graph_op *op = &graph->ops[1];
    const struct tarn_op_extra *extra = tarn_extra(op);
    assert_string_equal(op->name, "m\"at\\mul\t\xe2\x98\x83\x7f");
    assert_string_equal(op->kind, "gemm");
    assert_int_equal(op->stream, 0);
    assert_int_equal(op->inputs_count, 2);
    assert_int_equal(op->inputs[0], 1);
    assert_int_equal(tarn_outputs(op)[1], 3);
    assert_int_equal(extra->control_count, 2);
    assert_int_equal(extra->workspace, 64);
    assert_int_equal(op->cost, 100);
    assert_int_equal(extra->flops, 12345);
    assert_int_equal(op->op_class, TARN_CLASS_RANDOM);
    assert_int_equal(graph->ops[2].op_class, TARN_CLASS_UNKNOWN);
    assert_int_equal(op->recomputable, TARN_RECOMPUTABLE);
    assert_int_equal(graph->ops[3].recomputable, TARN_RECOMPUTABLE_BY_RULE);
    assert_int_equal(graph->ops[4].recomputable, TARN_NOT_RECOMPUTABLE);
    assert_true(!op->view && graph->ops[3].view);
    assert_int_equal(extra->inplace_count, 1);
    assert_int_equal(extra->inplace[0][0], 1);
    assert_int_equal(extra->inplace[0][1], 2);
    assert_int_equal(extra->implementations_count, 2);
    assert_string_equal(extra->implementations[0].name, "fast");
    assert_int_equal(extra->implementations[0].workspace, 128);
    assert_int_equal(extra->implementations[0].inputs.count, 0);
    assert_int_equal(extra->implementations[0].outputs.count, 0);
    assert_int_equal(extra->implementations[1].cost, 200);
    assert_int_equal(extra->implementations[1].inputs.count, 2);
    assert_int_equal(extra->implementations[1].inputs.ids[1], 3);
    assert_int_equal(extra->implementations[1].outputs.count, 1);
    assert_int_equal(extra->implementations[1].outputs.ids[0], 2);
    assert_int_equal(extra->common_count, 1); /* the weight, in every implementation */
    assert_int_equal(extra->common[0], 0);
    assert_false(extra->common_is_given);
    assert_null(tarn_extra(&graph->ops[0])->common);
    assert_true(tarn_extra(&graph->ops[2])->common &&
                tarn_extra(&graph->ops[2])->common_count == 0);
    assert_true(tarn_extra(&graph->ops[4])->common_is_given &&
                tarn_extra(&graph->ops[4])->common[0] == 5);
    assert_int_equal(op->origin, 7);
    assert_int_equal(extra->implementation, 1);
    assert_int_equal(tarn_extra(&graph->ops[0])->implementation, TARN_NONE);
    assert_int_equal(graph->tensors[3].origin, 2);
    assert_int_equal(graph->tensors[2].origin, 2);
    assert_int_equal(graph->tensors[2].alignment, 4096);
    assert_int_equal(graph->tensors[4].root, 2);
    assert_string_equal(graph->streams[1].name, "comm");
    assert_string_equal(graph->meta, "{\"note\":\"every field there "
                                     "is\",\"anything\":[1,2.5,null,{\"\\u00E9\":\"\\\"\\\\\"}]}");
    tarn_graph_destroy(graph);
}

static void compresses_the_same_bytes_every_time(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *graph = load(TARN_SOURCE_DIR "/examples/graphs/alexnet_b1_adam.ddp.json");
    char first[256];
    snprintf(first, sizeof first, "%s", in_folder(&folder, "first.json.gz"));
    save(graph, first);
    save(graph, in_folder(&folder, "second.json.gz"));
    assert_same_bytes(first, folder.name);
    struct text text = bytes_of(first);
    assert_memory_equal(text.bytes, "\x1f\x8b\x08\0\0\0\0\0", 8); /* no time, no name */
    free(text.bytes);
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

static void writes_one_record_per_line(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *graph = load(DATA "/valid/list_order_not_topological.json");
    save(graph, in_folder(&folder, "g.json"));
    struct text text = bytes_of(folder.name);
    assert_string_equal(
        text.bytes,
        "{\"format\":\"tarn.graph\",\"version\":1,\"name\":\"step\",\n"
        "\"meta\":{\"note\":\"one step\"},\n"
        "\"streams\":[\n{\"id\":0,\"name\":\"compute\"},\n{\"id\":1,\"name\":\"comm\"}\n],\n"
        "\"ops\":[\n"
        "{\"id\":0,\"name\":\"late\",\"kind\":\"k\",\"stream\":0,\"inputs\":[0],\"outputs\":[]},\n"
        "{\"id\":1,\"name\":\"early\",\"kind\":\"k\",\"stream\":1,\"inputs\":[],\"outputs\":[0]}\n]"
        ",\n"
        "\"tensors\":[\n{\"id\":0,\"name\":\"t\",\"size\":1,\"kind\":\"intermediate\"}\n],\n"
        "\"contiguous\":[\n[0]\n]}\n");
    free(text.bytes);
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

/* ---- Where files go ---- */

static void keeps_the_old_file_when_writing_fails(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *small = load(DATA "/valid/every_field.json");
    struct tarn_graph *large = load(TARN_SOURCE_DIR "/examples/graphs/alexnet_b1_adam.ddp.json");
    struct tarn_error error;
    struct rlimit limit, tight;
    const char *path = in_folder(&folder, "graph.json");
    save(small, path);
    getrlimit(RLIMIT_FSIZE, &limit);
    tight = limit;
    tight.rlim_cur = 10000;
    setrlimit(RLIMIT_FSIZE, &tight);
    enum tarn_status status = tarn_graph_save(large, path, &error);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, TARN_SYSTEM); /* and not the end of this process by SIGXFSZ */
    assert_non_null(strstr(error.text, "cannot be written: File too large"));
    struct tarn_graph *still = load(path);
    assert_true(tarn_hash_equal(still->hash, small->hash));
    assert_int_equal(files_in(folder.path), 1);
    tarn_graph_destroy(still);
    tarn_graph_destroy(small);
    tarn_graph_destroy(large);
    folder_destroy(&folder);
}

static enum tarn_status save_status(const char *path, const char *message)
{
    struct tarn_graph *graph = load(DATA "/valid/least.json");
    struct tarn_error error;
    enum tarn_status status = tarn_graph_save(graph, path, &error);
    if (!strstr(error.text, message)) fail_msg("'%s' is not in '%s'", message, error.text);
    tarn_graph_destroy(graph);
    return status;
}

static void says_why_a_file_cannot_be_written(void **state)
{
    (void)state;
    assert_int_equal(save_status(DATA "/no_such_folder/g.json", "No such file"), TARN_SYSTEM);
    assert_int_equal(save_status(DATA, "Is a directory"), TARN_SYSTEM);
    assert_int_equal(save_status("/dev/full", "No space left"), TARN_SYSTEM);
}

static void writes_devices_in_place_and_through_links(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct stat about;
    char link[256];
    assert_int_equal(save_status("/dev/null", ""), TARN_OK);
    assert_int_equal(stat("/dev/null", &about), 0);
    assert_true(S_ISCHR(about.st_mode));
    snprintf(link, sizeof link, "%s", in_folder(&folder, "link.json"));
    write_bytes(in_folder(&folder, "target.json"), "old", 3);
    assert_int_equal(symlink("target.json", link), 0);
    assert_int_equal(save_status(link, ""), TARN_OK);
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    tarn_graph_destroy(load(folder.name));
    folder_destroy(&folder);
}

static void gives_files_the_mode_of_the_umask(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct stat about;
    mode_t before = umask(027);
    assert_int_equal(save_status(in_folder(&folder, "g.json"), ""), TARN_OK);
    umask(before);
    assert_int_equal(stat(folder.name, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    folder_destroy(&folder);
}

static mode_t mode_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_mode & 07777;
}

static void a_file_that_is_replaced_keeps_its_mode_and_owner(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct stat about;
    const char *path = in_folder(&folder, "g.json");
    static const mode_t modes[] = {0600, 0664, 0755, 0622};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_bytes(path, "old", 3);
        assert_int_equal(chmod(path, modes[i]), 0);
        if (geteuid() == 0) assert_int_equal(chown(path, 12345, 23456), 0);
        assert_int_equal(save_status(path, ""), TARN_OK);
        assert_int_equal(mode_of(path), modes[i]);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_uid, geteuid() == 0 ? 12345 : geteuid());
        if (geteuid() == 0) assert_int_equal(about.st_gid, 23456);
        tarn_graph_destroy(load(path));
    }
    folder_destroy(&folder);
}

static void save_as_nobody(const char *path)
{
    struct tarn_graph *graph = load(DATA "/valid/least.json");
    struct tarn_error error;
    assert_int_equal(seteuid(65534), 0);
    enum tarn_status status = tarn_graph_save(graph, path, &error);
    assert_int_equal(seteuid(0), 0);
    if (status) fail_msg("%s", error.text);
    tarn_graph_destroy(graph);
}

/* Bits that lend the rights of an owner or a group go where owner or group could not be kept. */
static void a_file_of_somebody_else_loses_what_its_owner_lent(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    struct folder folder = folder_create();
    const char *path = in_folder(&folder, "g.json");
    static const struct {
        gid_t group;
        mode_t mode;
    } cases[] = {{0, 02666}, {23456, 0666}}; /* of group 0 is who saves, of the other not */
    assert_int_equal(chmod(folder.path, 0777), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stat about;
        write_bytes(path, "old", 3);
        assert_int_equal(chown(path, 12345, cases[i].group), 0);
        assert_int_equal(chmod(path, 06666), 0);
        save_as_nobody(path);
        assert_int_equal(mode_of(path), cases[i].mode);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_uid, 65534);
    }
    folder_destroy(&folder);
}

static void a_temporary_name_that_is_taken_is_passed_by(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    char name[64], taken[256];
    snprintf(name, sizeof name, "tarn-%ld-0.tmp", (long)getpid());
    snprintf(taken, sizeof taken, "%s", in_folder(&folder, name));
    write_bytes(taken, "kept", 4);
    assert_int_equal(save_status(in_folder(&folder, "g.json"), ""), TARN_OK);
    tarn_graph_destroy(load(folder.name));
    struct text text = bytes_of(taken);
    assert_string_equal(text.bytes, "kept");
    free(text.bytes);
    assert_int_equal(files_in(folder.path), 2);
    folder_destroy(&folder);
}

static void links_lead_on_also_to_what_is_not_there(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct stat about;
    char first[256], second[256];
    snprintf(first, sizeof first, "%s", in_folder(&folder, "first.json"));
    snprintf(second, sizeof second, "%s", in_folder(&folder, "second.json"));
    in_folder(&folder, "target.json");
    assert_int_equal(symlink("second.json", first), 0);
    assert_int_equal(symlink(folder.name, second), 0); /* one relative, one absolute, none there */
    assert_int_equal(save_status(first, ""), TARN_OK);
    assert_int_equal(lstat(first, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(lstat(second, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(lstat(folder.name, &about), 0);
    assert_true(S_ISREG(about.st_mode));
    tarn_graph_destroy(load(folder.name));
    unlink(folder.name);
    assert_int_equal(symlink("first.json", folder.name), 0);
    assert_int_equal(save_status(first, "cannot be opened: Too many levels"), TARN_SYSTEM);
    folder_destroy(&folder);
    assert_int_equal(symlink("file_test.target.json", "file_test.link.json"), 0); /* no folder */
    assert_int_equal(save_status("file_test.link.json", ""), TARN_OK);
    assert_int_equal(unlink("file_test.target.json"), 0);
    unlink("file_test.link.json");
}

static void an_empty_file_can_be_written(void **state)
{
    struct stat about;
    (void)state;
    assert_int_equal(tarn_file_save("file_test.empty", NULL, 0, NULL), TARN_OK);
    assert_int_equal(stat("file_test.empty", &about), 0);
    assert_int_equal(about.st_size, 0);
    unlink("file_test.empty");
}

static void other_names_of_a_file_keep_the_old_contents(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    char first[256];
    snprintf(first, sizeof first, "%s", in_folder(&folder, "first.json"));
    in_folder(&folder, "second.json");
    write_bytes(first, "old", 3);
    assert_int_equal(link(first, folder.name), 0);
    assert_int_equal(save_status(first, ""), TARN_OK);
    struct text text = bytes_of(folder.name);
    assert_string_equal(text.bytes, "old");
    free(text.bytes);
    folder_destroy(&folder);
}

/* Root may write everything, so it is somebody else for as long as that takes. */
static void a_file_that_must_not_be_written_is_not_replaced(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *graph = load(DATA "/valid/least.json");
    struct tarn_error error;
    uid_t self = geteuid();
    write_bytes(in_folder(&folder, "g.json"), "old", 3);
    assert_int_equal(chmod(folder.name, 0444) | chmod(folder.path, 0777), 0);
    if (self == 0) assert_int_equal(seteuid(65534), 0);
    enum tarn_status status = tarn_graph_save(graph, folder.name, &error);
    if (self == 0) assert_int_equal(seteuid(self), 0);
    assert_int_equal(status, TARN_SYSTEM);
    assert_non_null(strstr(error.text, "cannot be written: Permission denied"));
    struct text text = bytes_of(folder.name);
    assert_string_equal(text.bytes, "old");
    free(text.bytes);
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

/* The longest name that the system allows has no room for anything behind it. */
static void the_longest_name_can_be_written(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    char name[256], path[512];
    memset(name, 'n', 255);
    name[255] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    assert_int_equal(save_status(path, ""), TARN_OK);
    tarn_graph_destroy(load(path));
    folder_destroy(&folder);
}

static void a_reader_that_has_gone_is_an_error_and_no_signal(void **state)
{
    (void)state;
    int ends[2];
    char path[32];
    sigset_t pending;
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(save_status(path, "cannot be written: Broken pipe"), TARN_SYSTEM);
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGPIPE) || sigismember(&mask, SIGXFSZ));
    close(ends[1]);
}

static void a_signal_that_was_pending_is_left_pending(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    sigset_t broken, before, pending;
    int number;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    raise(SIGPIPE);
    assert_int_equal(save_status(in_folder(&folder, "g.json"), ""), TARN_OK);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGPIPE));
    assert_int_equal(sigwait(&broken, &number), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    folder_destroy(&folder);
}

static void a_full_device_is_an_error(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip();
    assert_int_equal(save_status("/dev/full", "No space left"), TARN_SYSTEM);
}

/* Calls `act` with file descriptor `fd` replaced by the file. */
static void with_descriptor(int fd, const char *path, int flags, void (*act)(void *), void *data)
{
    int kept = dup(fd), file = open(path, flags, 0666);
    assert_true(kept >= 0 && file >= 0);
    dup2(file, fd);
    act(data);
    dup2(kept, fd);
    close(kept);
    close(file);
}

static void load_standard(void *graph)
{
    if (tarn_graph_load("-", NULL, graph, NULL) != TARN_OK) *(struct tarn_graph **)graph = NULL;
}

static void save_standard(void *graph) { tarn_graph_save(graph, "-", NULL); }

struct named_descriptor {
    const struct tarn_graph *graph;
    char link[256]; /* as /dev/stdout is one, which a fault in the writer must not reach */
};

static void save_descriptor(void *data)
{
    const struct named_descriptor *named = data;
    tarn_graph_save(named->graph, named->link, NULL);
}

static void a_descriptor_by_name_is_written_in_place(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *graph = load(DATA "/valid/least.json");
    struct named_descriptor named = {.graph = graph};
    struct stat before, after;
    snprintf(named.link, sizeof named.link, "%s", in_folder(&folder, "stdout"));
    assert_int_equal(symlink("/proc/self/fd/1", named.link), 0);
    write_bytes(in_folder(&folder, "out.json"), "", 0);
    assert_int_equal(stat(folder.name, &before), 0);
    fflush(stdout);
    with_descriptor(STDOUT_FILENO, folder.name, O_WRONLY, save_descriptor, &named);
    assert_int_equal(stat(folder.name, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    tarn_graph_destroy(load(folder.name));
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

static void what_only_looks_like_a_descriptor_is_a_path(void **state)
{
    (void)state;
    assert_int_equal(save_status("/dev/fd/", ""), TARN_SYSTEM);
    assert_int_equal(save_status("/dev/fd/1x", ""), TARN_SYSTEM);
    assert_int_equal(save_status("/dev/fd/1234567890", ""), TARN_SYSTEM);
    assert_int_equal(save_status("/dev/fd/123456789", "cannot be written: Bad file descriptor"),
                     TARN_SYSTEM);
}

static void reads_standard_input_and_writes_standard_output(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *graph = NULL;
    with_descriptor(STDIN_FILENO, TARN_SOURCE_DIR "/examples/graphs/resnet50_b1_adam.ddp.json.gz",
                    O_RDONLY, load_standard, &graph);
    assert_non_null(graph);
    fflush(stdout);
    with_descriptor(STDOUT_FILENO, in_folder(&folder, "out.json"), O_WRONLY | O_CREAT,
                    save_standard, graph);
    struct tarn_graph *again = load(folder.name);
    assert_true(tarn_hash_equal(graph->hash, again->hash));
    tarn_graph_destroy(graph);
    tarn_graph_destroy(again);
    folder_destroy(&folder);
}

/* ---- Damaged at random ---- */

static const char *const pieces[] = {"0",
                                     "1",
                                     "2",
                                     "3",
                                     "7",
                                     "-1",
                                     "4294967295",
                                     "9007199254740991",
                                     "9007199254740992",
                                     "1e9",
                                     "true",
                                     "null",
                                     "[]",
                                     "{}",
                                     "[0]",
                                     "[[0,1]]",
                                     "\"\"",
                                     "\"alias_of\":0,",
                                     "\"control\":[2],",
                                     "\"view\":true,",
                                     "\"workspace\":5,",
                                     "\"alignment\":512,",
                                     "\"inplace\":[[0,1]],",
                                     ",",
                                     "}",
                                     "\"parameter\"",
                                     "\"output\""};

/* Replaces a stretch of text by a piece, a copied stretch or random bytes. `room` is enough. */
static size_t mutate(struct random_source *source, char *text, size_t size)
{
    char insert[64];
    size_t at = random_below(source, (uint32_t)size), length = 0;
    size_t cut = random_percent(source, 50) ? strcspn(text + at, ",]}:") : random_below(source, 8);
    if (cut > size - at) cut = size - at;
    if (random_percent(source, 60)) {
        const char *piece = pieces[random_below(source, sizeof pieces / sizeof *pieces)];
        length = (size_t)snprintf(insert, sizeof insert, "%s", piece);
    } else if (random_percent(source, 70)) {
        size_t from = random_below(source, (uint32_t)size);
        length = random_below(source, 40);
        if (length > size - from) length = size - from;
        memcpy(insert, text + from, length);
    } else {
        length = random_below(source, 4);
        for (size_t i = 0; i < length; i++) insert[i] = (char)random_below(source, 256);
    }
    memmove(text + at + length, text + at + cut, size - at - cut + 1);
    memcpy(text + at, insert, length);
    return size - cut + length;
}

/* A digit for a digit keeps the syntax, so that the deeper rules are reached. */
static void mutate_digit(struct random_source *source, char *text, size_t size)
{
    for (int tries = 0; tries < 100; tries++) {
        size_t at = random_below(source, (uint32_t)size);
        if (text[at] < '0' || text[at] > '9') continue;
        text[at] = (char)('0' + random_below(source, 10));
        return;
    }
}

static void survives_random_damage_to_the_text(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    const char *path = in_folder(&folder, "damaged.json");
    struct text original = bytes_of(DATA "/valid/every_field.json");
    char *text = malloc(original.size + 1024);
    struct random_source source = {20};
    unsigned accepted = 0, refused_late = 0;
    for (int round = 0; round < 6000; round++) {
        struct tarn_error error;
        size_t size = original.size;
        memcpy(text, original.bytes, size + 1);
        for (uint32_t n = 1 + random_below(&source, 3); n > 0; n--) {
            if (random_percent(&source, 50))
                mutate_digit(&source, text, size);
            else
                size = mutate(&source, text, size);
        }
        struct tarn_graph *graph = NULL;
        write_bytes(path, text, size);
        enum tarn_status status = tarn_graph_load(path, NULL, &graph, &error);
        assert_true((status == TARN_OK) == (graph != NULL));
        tarn_graph_destroy(graph);
        if (status != TARN_OK && status != TARN_BAD_INPUT)
            fail_msg("%s: %s", tarn_status_text(status), text);
        if (status == TARN_BAD_INPUT) assert_true(strlen(error.text) > 10);
        accepted += status == TARN_OK;
        refused_late += status == TARN_BAD_INPUT && error.line == 0;
    }
    assert_true(accepted > 300 && refused_late > 1000); /* the damage is neither void nor total */
    free(text);
    free(original.bytes);
    folder_destroy(&folder);
}

static void survives_random_damage_to_compressed_files(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct text original = bytes_of(DATA "/valid/two_members.json.gz");
    struct random_source source = {21};
    const char *path = in_folder(&folder, "damaged.json.gz");
    for (int round = 0; round < 500; round++) {
        struct tarn_graph *graph = NULL;
        char *bytes = malloc(original.size + 1);
        memcpy(bytes, original.bytes, original.size);
        bytes[random_below(&source, (uint32_t)original.size)] = (char)random_below(&source, 256);
        write_bytes(path, bytes, 1 + random_below(&source, (uint32_t)original.size));
        enum tarn_status status = tarn_graph_load(path, NULL, &graph, NULL);
        assert_true(status == TARN_OK || status == TARN_BAD_INPUT);
        tarn_graph_destroy(graph);
        free(bytes);
    }
    free(original.bytes);
    folder_destroy(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_every_invalid_file_and_names_the_place),
        cmocka_unit_test(names_op_and_tensor_in_the_error),
        cmocka_unit_test(says_why_a_file_cannot_be_read),
        cmocka_unit_test(refuses_options_of_a_struct_that_was_not_filled),
        cmocka_unit_test(refuses_compressed_text_that_is_cut_at_any_byte),
        cmocka_unit_test(stops_at_the_cap_before_memory_is_full),
        cmocka_unit_test(round_trips_valid_files),
        cmocka_unit_test(round_trips_the_graphs_of_the_environment),
        cmocka_unit_test(round_trips_random_graphs),
        cmocka_unit_test(keeps_every_field),
        cmocka_unit_test(compresses_the_same_bytes_every_time),
        cmocka_unit_test(writes_one_record_per_line),
        cmocka_unit_test(keeps_the_old_file_when_writing_fails),
        cmocka_unit_test(says_why_a_file_cannot_be_written),
        cmocka_unit_test(writes_devices_in_place_and_through_links),
        cmocka_unit_test(gives_files_the_mode_of_the_umask),
        cmocka_unit_test(a_file_that_is_replaced_keeps_its_mode_and_owner),
        cmocka_unit_test(a_file_of_somebody_else_loses_what_its_owner_lent),
        cmocka_unit_test(a_temporary_name_that_is_taken_is_passed_by),
        cmocka_unit_test(links_lead_on_also_to_what_is_not_there),
        cmocka_unit_test(an_empty_file_can_be_written),
        cmocka_unit_test(other_names_of_a_file_keep_the_old_contents),
        cmocka_unit_test(a_file_that_must_not_be_written_is_not_replaced),
        cmocka_unit_test(the_longest_name_can_be_written),
        cmocka_unit_test(a_reader_that_has_gone_is_an_error_and_no_signal),
        cmocka_unit_test(a_signal_that_was_pending_is_left_pending),
        cmocka_unit_test(a_full_device_is_an_error),
        cmocka_unit_test(a_descriptor_by_name_is_written_in_place),
        cmocka_unit_test(what_only_looks_like_a_descriptor_is_a_path),
        cmocka_unit_test(reads_standard_input_and_writes_standard_output),
        cmocka_unit_test(survives_random_damage_to_the_text),
        cmocka_unit_test(survives_random_damage_to_compressed_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
