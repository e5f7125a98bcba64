/* Memory: limits, allocations, copies, fills, regions, spaces, and what is too large. Cost: the
 * bytes copied. */
#include <stdlib.h>

#include "kit.h"

/* By a plan that needs nothing: what is refused is the table. */
static void the_table_is_complete(struct tarn_kit *kit)
{
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    struct tarn_memory_needs needs;
    struct tarn_error error;
    kit->lost = "what the table lacks would be called";
    MUST(tarn_builder_finish(tarn_builder_create("nothing"), &graph, &error));
    MUST(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1), &plan, &error));
    enum tarn_status status = tarn_session_needs(plan, kit->device, NULL, 0, &needs, &error);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    if (status == TARN_USAGE) MUST(status);
    kit->lost = NULL;
}

static void limits_say_what_is_there(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits = {0};
    REQUIRE(kit->table->name && kit->table->name[0], "the table has no name");
    OK(kit->table->memory_limits(kit->self, &limits));
    REQUIRE(limits.alignment > 0 && (limits.alignment & (limits.alignment - 1)) == 0,
            "memory_limits says an alignment of %llu, which is no power of two",
            (unsigned long long)limits.alignment);
    REQUIRE(limits.allocation_max > 0 && limits.available > 0,
            "memory_limits says that no allocation is possible: %llu bytes at most, %llu available",
            (unsigned long long)limits.allocation_max, (unsigned long long)limits.available);
}

static bool can_allocate(struct tarn_kit *kit, uint64_t size)
{
    void *memory = NULL;
    tarn_kit_step(kit, "memory_create");
    int code = kit->table->memory_create(kit->self, size, &memory);
    if (code)
        REQUIRE(kit->table->error_class(kit->self, code) == TARN_ERROR_OUT_OF_MEMORY,
                "memory_create refuses %llu bytes with code %d (%s), whose error_class is not "
                "TARN_ERROR_OUT_OF_MEMORY",
                (unsigned long long)size, code, tarn_kit_text(kit, code));
    else
        kit->table->memory_destroy(kit->self, memory, size);
    return code == 0;
}

/* An allocation that must work. */
static uint64_t large_size(const struct tarn_kit *kit)
{
    if (kit->suite.large_bytes > 0) return kit->suite.large_bytes;
    return (uint64_t)(kit->suite.effort == TARN_CONFORMANCE_QUICK ? 16 : 256) << 20;
}

static void limits_are_those_of_allocations(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits, after;
    OK(kit->table->memory_limits(kit->self, &limits));
    uint64_t max = limits.allocation_max, large = large_size(kit);
    if (max != UINT64_MAX) {
        uint64_t size = max;
        if (limits.available != UINT64_MAX && size > limits.available / 2)
            size = limits.available / 2;
        REQUIRE(can_allocate(kit, size),
                "memory_create refuses %llu bytes, and memory_limits says that an allocation may "
                "have %llu and that %llu are available",
                (unsigned long long)size, (unsigned long long)max,
                (unsigned long long)limits.available);
    }
    REQUIRE(max >= large || !can_allocate(kit, large),
            "memory_create gives %llu bytes, and memory_limits says that an allocation may have "
            "%llu at most: plans that need more are refused",
            (unsigned long long)large, (unsigned long long)max);
    REQUIRE(limits.available >= large || !can_allocate(kit, large),
            "memory_create gives %llu bytes, and memory_limits says that %llu are available: plans "
            "that need more are refused",
            (unsigned long long)large, (unsigned long long)limits.available);
    OK(kit->table->memory_limits(kit->self, &after));
    REQUIRE(after.alignment == limits.alignment && after.allocation_max == max &&
                after.on_host == limits.on_host,
            "memory_limits says something else when it is asked again");
}

/* Where the host may follow addresses, it and the copies see the same bytes. */
static void on_host_is_true(struct tarn_kit *kit)
{
    enum { BYTES = 5000 };
    struct tarn_memory_limits limits;
    unsigned char bytes[BYTES];
    void *memory;
    OK(kit->table->memory_limits(kit->self, &limits));
    NEEDS(limits.on_host && !kit->table->region_create, "memory that the host can follow");
    OK(kit->table->memory_create(kit->self, BYTES, &memory));
    tarn_kit_pattern_fill(memory, BYTES, 5);
    OK(kit->table->copy_out(kit->self, bytes, memory, BYTES));
    REQUIRE(tarn_kit_pattern_compare(bytes, BYTES, 5) == BYTES,
            "copy_out does not give what host code wrote to the address, and on_host is true");
    tarn_kit_pattern_fill(bytes, BYTES, 6);
    OK(kit->table->copy_in(kit->self, memory, bytes, BYTES));
    REQUIRE(tarn_kit_pattern_compare(memory, BYTES, 6) == BYTES,
            "host code does not find at the address what copy_in wrote, and on_host is true");
    kit->table->memory_destroy(kit->self, memory, BYTES);
}

/* Allocations that come and go, each full of a pattern of its own. */
static void allocations_are_aligned_and_apart(struct tarn_kit *kit)
{
    enum { SLOTS = 16, STEPS = 200, BYTES = 7001 };
    const struct tarn_device_table *table = kit->table;
    struct tarn_kit_random random = {21};
    struct tarn_memory_limits limits;
    void *memory[SLOTS] = {0};
    uint64_t sizes[SLOTS] = {0};
    unsigned char bytes[BYTES];
    OK(table->memory_limits(kit->self, &limits));
    for (uint32_t i = 0; i < STEPS + SLOTS; i++) {
        uint32_t s = i < STEPS ? tarn_kit_below(&random, SLOTS) : i - STEPS;
        if (memory[s]) {
            OK(table->copy_out(kit->self, bytes, memory[s], sizes[s]));
            REQUIRE(tarn_kit_pattern_compare(bytes, sizes[s], s) == sizes[s],
                    "the bytes of an allocation changed while others were created and destroyed");
            table->memory_destroy(kit->self, memory[s], sizes[s]);
            memory[s] = NULL;
        }
        if (i >= STEPS) continue;
        sizes[s] = 1 + tarn_kit_below(&random, i % 2 ? BYTES : 64);
        OK(table->memory_create(kit->self, sizes[s], &memory[s]));
        REQUIRE(table->region_create || (uintptr_t)memory[s] % limits.alignment == 0,
                "memory_create gives address %p, and memory_limits says an alignment of %llu",
                memory[s], (unsigned long long)limits.alignment);
        tarn_kit_pattern_fill(bytes, sizes[s], s);
        OK(table->copy_in(kit->self, memory[s], bytes, sizes[s]));
    }
}

bool tarn_kit_has_spaces(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    if (table->struct_size < offsetof(struct tarn_device_table, queue_depth))
        return false; /* it ends before them */
    HOLDS(!table->space_limits == !table->space_create);
    HOLDS(!table->space_limits == !table->space_destroy);
    return table->space_limits;
}

bool tarn_kit_gives(struct tarn_kit *kit, enum tarn_space_kind kind)
{
    const struct tarn_memory_space space = {0, "probe", kind};
    void *memory;
    if (kind == TARN_SPACE_DEVICE || !tarn_kit_has_spaces(kit)) return true;
    if (kit->table->space_create(kit->self, &space, 100, &memory)) return false;
    kit->table->space_destroy(kit->self, &space, memory, 100);
    return true;
}

enum { MODEL_BYTES = 100000 };

static void copies_and_fills_reach_exactly_their_bytes(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    struct tarn_kit_random source = {3};
    unsigned char *model = calloc(1, MODEL_BYTES), *seen = calloc(1, MODEL_BYTES);
    void *memory, *part;
    OK(table->memory_create(kit->self, MODEL_BYTES, &memory));
    OK(table->fill(kit->self, memory, 0, MODEL_BYTES));
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t begin = tarn_kit_below(&source, MODEL_BYTES);
        uint32_t most = i % 2 ? 40 : MODEL_BYTES - begin;
        uint32_t size =
            1 + tarn_kit_below(&source, most < MODEL_BYTES - begin ? most : MODEL_BYTES - begin);
        part = (unsigned char *)memory + begin;
        if (table->region_create) OK(table->region_create(kit->self, memory, begin, size, &part));
        unsigned char byte = (unsigned char)tarn_kit_next(&source);
        for (uint32_t k = 0; k < size; k++)
            model[begin + k] = i % 3 ? byte : (unsigned char)tarn_kit_next(&source);
        if (i % 3)
            OK(table->fill(kit->self, part, byte, size));
        else
            OK(table->copy_in(kit->self, part, model + begin, size));
        memset(seen, 0, size);
        OK(table->copy_out(kit->self, seen, part, size));
        REQUIRE(memcmp(seen, model + begin, size) == 0,
                "copy_out of %u bytes from byte %u gives other bytes than %s wrote there", size,
                begin, i % 3 ? "fill" : "copy_in");
        if (table->region_destroy) table->region_destroy(kit->self, part);
    }
    OK(table->copy_out(kit->self, seen, memory, MODEL_BYTES));
    REQUIRE(memcmp(seen, model, MODEL_BYTES) == 0,
            "a copy or a fill wrote bytes beside those that it was given");
    table->memory_destroy(kit->self, memory, MODEL_BYTES);
    free(model);
    free(seen);
}

enum { GUARD = 64 }; /* bytes on each side that nobody may touch */

/* The part of an allocation as calls get it. */
static void *open_part(struct tarn_kit *kit, void *memory, uint64_t offset, uint64_t size)
{
    void *part = (unsigned char *)memory + offset;
    if (kit->table->region_create)
        OK(kit->table->region_create(kit->self, memory, offset, size, &part));
    return part;
}

static void close_part(struct tarn_kit *kit, void *part)
{
    if (kit->table->region_destroy) kit->table->region_destroy(kit->self, part);
}

static bool is_all(const unsigned char *bytes, uint64_t size, unsigned char byte)
{
    return size == 0 || (bytes[0] == byte && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* There and back, in one call each; the host's buffer, and the device's, have a guard around. */
static void copy_size(struct tarn_kit *kit, void *memory, unsigned char *host, uint64_t size)
{
    const struct tarn_device_table *table = kit->table;
    const unsigned long long told = size;
    uint64_t room = size + 2 * GUARD;
    void *part = open_part(kit, memory, GUARD, size);
    OK(table->fill(kit->self, memory, 0x77, room));
    tarn_kit_pattern_fill(host + GUARD, size, size);
    OK(table->copy_in(kit->self, part, host + GUARD, size));
    memset(host, 0x66, room);
    OK(table->copy_out(kit->self, host + GUARD, part, size));
    uint64_t wrong = tarn_kit_pattern_compare(host + GUARD, size, size);
    REQUIRE(wrong == size,
            "a copy_in of %llu bytes, then a copy_out of as many: byte %llu is wrong", told,
            (unsigned long long)wrong);
    REQUIRE(is_all(host, GUARD, 0x66) && is_all(host + GUARD + size, GUARD, 0x66),
            "copy_out of %llu bytes wrote beside them", told);
    OK(table->fill(kit->self, part, 0x55, size));
    OK(table->copy_out(kit->self, host, memory, room));
    REQUIRE(is_all(host + GUARD, size, 0x55), "fill of %llu bytes did not write all of them", told);
    REQUIRE(is_all(host, GUARD, 0x77) && is_all(host + GUARD + size, GUARD, 0x77),
            "copy_in or fill of %llu bytes wrote beside them", told);
    close_part(kit, part);
}

/* Around every power of two, and an odd one between: what is done in pieces goes wrong there. */
static void copies_and_fills_are_exact_at_every_size(struct tarn_kit *kit)
{
    uint32_t most = kit->suite.effort == TARN_CONFORMANCE_QUICK ? 22 : 25;
    uint64_t room = (UINT64_C(3) << (most - 1)) + 2 * GUARD;
    unsigned char *host = malloc(room);
    void *memory;
    HOLDS(host);
    OK(kit->table->memory_create(kit->self, room, &memory));
    for (uint32_t k = 0; k <= most; k++) {
        uint64_t power = UINT64_C(1) << k;
        if (k > 1) copy_size(kit, memory, host, power - 1);
        copy_size(kit, memory, host, power);
        copy_size(kit, memory, host, power + 1);
        if (k > 1 && k < most) copy_size(kit, memory, host, power + power / 3);
    }
    kit->table->memory_destroy(kit->self, memory, room);
    free(host);
}

/* ---- Copies and work ---- */

struct reader {
    const unsigned char *bytes;
    uint64_t size, seed, wrong;
};

static void read_bytes(void *argument)
{
    struct reader *reader = argument;
    reader->wrong = tarn_kit_pattern_compare(reader->bytes, reader->size, reader->seed);
}

/* What is enqueued behind a copy finds all of its bytes, and the caller may use its own again. */
static void work_sees_what_was_copied_before(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    const uint64_t size = 3000001;
    struct tarn_memory_limits limits;
    void *memory;
    tarn_kit_create_queues(kit, 1);
    OK(table->memory_limits(kit->self, &limits));
    bool by_closure = table->launch && limits.on_host && !table->region_create;
    bool by_pattern = tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS);
    NEEDS(by_closure || by_pattern, "way for work to read its memory");
    unsigned char *host = malloc(size);
    HOLDS(host);
    OK(table->memory_create(kit->self, size, &memory));
    void *part = open_part(kit, memory, 0, size);
    for (uint32_t i = 1; i < 6; i++) {
        uint64_t wrong = UINT64_MAX;
        struct reader reader = {memory, size, tarn_kit_seed(i), 0};
        OK(table->copy_in(kit->self, kit->wrongs ? kit->wrongs : memory, &wrong, 8));
        tarn_kit_pattern_fill(host, size, tarn_kit_seed(i));
        OK(table->copy_in(kit->self, part, host, size));
        memset(host, 0, size);
        if (by_pattern)
            OK(table->pattern_compare(kit->self, kit->queues[0], part, size, kit->seeds, i,
                                      kit->wrongs, 0));
        if (by_closure) OK(table->launch(kit->self, kit->queues[0], read_bytes, &reader));
        tarn_kit_finish(kit);
        if (by_pattern) OK(table->copy_out(kit->self, &wrong, kit->wrongs, 8));
        REQUIRE((!by_closure || reader.wrong == size) && (!by_pattern || wrong == UINT64_MAX),
                "work enqueued behind copy_in of %llu bytes did not find all of them; or the copy "
                "went on reading the host's bytes after it had returned",
                (unsigned long long)size);
    }
    close_part(kit, part);
    table->memory_destroy(kit->self, memory, size);
    free(host);
}

/* All of it in one copy each way. */
static void a_large_allocation_is_usable_to_its_last_byte(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits;
    uint64_t size = large_size(kit);
    void *memory;
    OK(kit->table->memory_limits(kit->self, &limits));
    if (size > limits.allocation_max) size = limits.allocation_max;
    if (size > limits.available / 2) size = limits.available / 2;
    unsigned char *bytes = malloc(size);
    if (!bytes) tarn_kit_skip(kit, "the host has too little memory");
    OK(kit->table->memory_create(kit->self, size, &memory));
    tarn_kit_pattern_fill(bytes, size, 5);
    OK(kit->table->copy_in(kit->self, memory, bytes, size));
    memset(bytes, 0, size);
    OK(kit->table->copy_out(kit->self, bytes, memory, size));
    uint64_t wrong = tarn_kit_pattern_compare(bytes, size, 5);
    REQUIRE(wrong == size,
            "a copy_in of %llu bytes, then a copy_out of as many: byte %llu is wrong",
            (unsigned long long)size, (unsigned long long)wrong);
    OK(kit->table->fill(kit->self, memory, 0x5a, size));
    OK(kit->table->copy_out(kit->self, bytes, memory, size));
    REQUIRE(is_all(bytes, size, 0x5a), "fill of %llu bytes did not write all of them",
            (unsigned long long)size);
    kit->table->memory_destroy(kit->self, memory, size);
    free(bytes);
}

static void what_is_too_large_is_out_of_memory_and_has_a_text(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits;
    void *memory = NULL;
    OK(kit->table->memory_limits(kit->self, &limits));
    uint64_t size = UINT64_C(1) << 46;
    int code = kit->table->memory_create(kit->self, size, &memory);
    if (!code) kit->table->memory_destroy(kit->self, memory, size);
    REQUIRE(code, "memory_create gave 2^46 bytes");
    REQUIRE(kit->table->error_class(kit->self, code) == TARN_ERROR_OUT_OF_MEMORY,
            "memory_create refused 2^46 bytes with code %d (%s), whose error_class is not "
            "TARN_ERROR_OUT_OF_MEMORY",
            code, tarn_kit_text(kit, code));
    const char *text = kit->table->error_text(kit->self, code);
    REQUIRE(text && text[0], "error_text of code %d, which memory_create returned, is %s", code,
            text ? "empty" : "NULL");
    OK(kit->table->memory_create(kit->self, 100, &memory)); /* it can go on */
    kit->table->memory_destroy(kit->self, memory, 100);
}

static void host_memory_serves_copies(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    void *host, *memory;
    HOLDS(!table->host_memory_create == !table->host_memory_destroy);
    NEEDS(table->host_memory_create, "host memory of its own");
    OK(table->host_memory_create(kit->self, TARN_KIT_SLOT_BYTES, &host));
    OK(table->memory_create(kit->self, TARN_KIT_SLOT_BYTES, &memory));
    tarn_kit_pattern_fill(host, TARN_KIT_SLOT_BYTES, 9);
    OK(table->copy_in(kit->self, memory, host, TARN_KIT_SLOT_BYTES));
    memset(host, 0, TARN_KIT_SLOT_BYTES);
    OK(table->copy_out(kit->self, host, memory, TARN_KIT_SLOT_BYTES));
    EQUAL(tarn_kit_pattern_compare(host, TARN_KIT_SLOT_BYTES, 9), TARN_KIT_SLOT_BYTES);
    table->memory_destroy(kit->self, memory, TARN_KIT_SLOT_BYTES);
    table->host_memory_destroy(kit->self, host, TARN_KIT_SLOT_BYTES);
}

/* Several spaces of each kind at a time: aligned, apart, and for fills and copies. A device may
 * refuse a kind that it does not have, but its own. */
static void every_memory_space_has_memory_of_its_own(struct tarn_kit *kit)
{
    enum { SPACES = 6, BYTES = 5000 };
    const struct tarn_device_table *table = kit->table;
    struct tarn_memory_space spaces[SPACES];
    void *memory[SPACES];
    uint32_t count = 0;
    NEEDS(tarn_kit_has_spaces(kit), "kinds of memory");
    for (uint32_t i = 0; i < SPACES; i++) {
        struct tarn_memory_limits limits = {0};
        spaces[count] = (struct tarn_memory_space){i, "space", (enum tarn_space_kind)(i % 3)};
        if (!tarn_kit_gives(kit, spaces[count].kind)) continue;
        OK(table->space_limits(kit->self, &spaces[count], &limits));
        HOLDS(limits.alignment > 0 && (limits.alignment & (limits.alignment - 1)) == 0);
        OK(table->space_create(kit->self, &spaces[count], BYTES, &memory[count]));
        if (!table->region_create) EQUAL((uintptr_t)memory[count] % limits.alignment, 0);
        OK(table->fill(kit->self, memory[count], (unsigned char)count, BYTES));
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        unsigned char bytes[BYTES];
        OK(table->copy_out(kit->self, bytes, memory[i], BYTES));
        for (uint32_t k = 0; k < BYTES; k++) EQUAL(bytes[k], i);
        tarn_kit_pattern_fill(bytes, BYTES, i);
        OK(table->copy_in(kit->self, memory[i], bytes, BYTES));
        OK(table->copy_out(kit->self, bytes, memory[i], BYTES));
        EQUAL(tarn_kit_pattern_compare(bytes, BYTES, i), BYTES);
    }
    for (uint32_t i = 0; i < count; i++)
        table->space_destroy(kit->self, &spaces[i], memory[i], BYTES);
}

/* ---- Copies on queues ---- */

static bool copies_on_queues(const struct tarn_device_table *table)
{
    return table->struct_size > offsetof(struct tarn_device_table, copy_enqueue) &&
           table->copy_enqueue;
}

/* From one allocation to a second one on a queue, and on to a third one on another queue that waits
 * for the first; what lies beside the bytes stays. Each copy is enqueued before the one that it
 * comes after may have ended. */
static void copies_on_queues_follow_their_order_and_reach_exactly_their_bytes(struct tarn_kit *kit)
{
    enum { BYTES = 100003, ROUNDS = 12, BESIDE = 64 };
    const struct tarn_device_table *table = kit->table;
    NEEDS(copies_on_queues(table), "copies on queues");
    tarn_kit_create_queues(kit, 2);
    void *event = tarn_kit_event(kit), *memory[3], *part[3];
    const uint64_t room = BYTES + 2 * BESIDE;
    unsigned char *host = malloc(room);
    HOLDS(host);
    for (int i = 0; i < 3; i++) OK(table->memory_create(kit->self, room, &memory[i]));
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint64_t size = round % 3 ? BYTES - round : round;
        for (int i = 0; i < 3; i++) {
            part[i] = open_part(kit, memory[i], BESIDE, size);
            OK(table->fill(kit->self, memory[i], (unsigned char)(0x55 + i), room));
        }
        tarn_kit_pattern_fill(host, size, round);
        OK(table->copy_in(kit->self, part[0], host, size));
        if (table->launch) tarn_kit_close_gate(kit, 0); /* neither copy may be early */
        OK(table->copy_enqueue(kit->self, kit->queues[0], part[1], part[0], size));
        tarn_kit_record(kit, event, 0);
        tarn_kit_wait(kit, event, 1);
        OK(table->copy_enqueue(kit->self, kit->queues[1], part[2], part[1], size));
        if (table->launch) tarn_kit_open_gate();
        tarn_kit_finish(kit);
        OK(table->copy_out(kit->self, host, part[2], size));
        REQUIRE(tarn_kit_pattern_compare(host, size, round) == size,
                "of two copies of %llu bytes on two queues, the second behind an event of the "
                "first, byte %llu is wrong",
                (unsigned long long)size,
                (unsigned long long)tarn_kit_pattern_compare(host, size, round));
        for (int i = 0; i < 3; i++) close_part(kit, part[i]);
        part[2] = open_part(kit, memory[2], 0, room);
        OK(table->copy_out(kit->self, host, part[2], room));
        close_part(kit, part[2]);
        for (uint64_t i = 0; i < room; i++)
            REQUIRE((i >= BESIDE && i < BESIDE + size) || host[i] == 0x57,
                    "a copy of %llu bytes on a queue wrote beside them", (unsigned long long)size);
    }
    for (int i = 0; i < 3; i++) table->memory_destroy(kit->self, memory[i], room);
    free(host);
}

#define MEMORY "device.h, \"Memory\": "

const struct tarn_kit_test tarn_kit_memory[] = {
    {"the_table_is_complete", the_table_is_complete,
     "device.h: functions that are marked both or none, or all or none, come together; struct_size "
     "and abi_version are those of the header"},
    {"limits_say_what_is_there", limits_say_what_is_there,
     "device.h, struct tarn_memory_limits; and `name` of the table"},
    {"limits_are_those_of_allocations", limits_are_those_of_allocations,
     "device.h, struct tarn_memory_limits: allocation_max are the bytes of the largest single "
     "allocation, available are those that are free now"},
    {"on_host_is_true", on_host_is_true,
     "device.h, struct tarn_memory_limits: on_host says that host code may follow the addresses "
     "that kernels get"},
    {"allocations_are_aligned_and_apart", allocations_are_aligned_and_apart,
     MEMORY "every allocation has the alignment of memory_limits, and bytes of its own"},
    {"copies_and_fills_reach_exactly_their_bytes", copies_and_fills_reach_exactly_their_bytes,
     MEMORY "blocking copies and fill, from any address inside an allocation or from the beginning "
            "of a region"},
    {"copies_and_fills_are_exact_at_every_size", copies_and_fills_are_exact_at_every_size,
     MEMORY "copies and fill reach exactly `size` bytes"},
    {"work_sees_what_was_copied_before", work_sees_what_was_copied_before,
     MEMORY "copies are blocking, and what is enqueued afterwards sees the bytes"},
    {"a_large_allocation_is_usable_to_its_last_byte", a_large_allocation_is_usable_to_its_last_byte,
     MEMORY "one allocation of `size` bytes; copies and fill reach exactly `size` bytes"},
    {"what_is_too_large_is_out_of_memory_and_has_a_text",
     what_is_too_large_is_out_of_memory_and_has_a_text,
     "device.h, \"Errors\": a text that is not NULL; the class TARN_ERROR_OUT_OF_MEMORY says that "
     "the device has too little memory"},
    {"host_memory_serves_copies", host_memory_serves_copies,
     MEMORY "host_memory_create gives host memory from which copies are fastest"},
    {"every_memory_space_has_memory_of_its_own", every_memory_space_has_memory_of_its_own,
     "device.h, \"Memory spaces\": each space has an allocation of its own"},
    {"copies_on_queues_follow_their_order_and_reach_exactly_their_bytes",
     copies_on_queues_follow_their_order_and_reach_exactly_their_bytes,
     "device.h, copy_enqueue: a copy on a queue, in the queue's order, of exactly `size` bytes"},
    {0},
};
