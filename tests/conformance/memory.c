/* Memory: limits, allocations, copies, fills, regions, spaces, and what is too large. Cost: the
 * bytes copied. */
#include <stdlib.h>

#include "kit.h"

/* By a plan that needs nothing: what is refused is the table. */
static void the_table_is_complete(struct tarn_kit *kit)
{
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    struct tarn_session_memory needs;
    struct tarn_error error;
    kit->lost = "what the table lacks would be called";
    MUST(tarn_builder_finish(tarn_builder_create("nothing"), &graph, &error));
    MUST(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1), &plan, &error));
    enum tarn_status status = tarn_session_memory_size(plan, kit->device, NULL, &needs, &error);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    if (status == TARN_USAGE) MUST(status);
    kit->lost = NULL;
}

static void limits_say_what_is_there(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits = {0};
    HOLDS(kit->table->name && kit->table->name[0]);
    OK(kit->table->memory_limits(kit->self, &limits));
    HOLDS(limits.alignment > 0 && (limits.alignment & (limits.alignment - 1)) == 0);
    HOLDS(limits.allocation_max > 0);
}

static void allocations_are_aligned_and_apart(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits;
    void *memory[8];
    OK(kit->table->memory_limits(kit->self, &limits));
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t size = 1 + 1000 * (uint64_t)i;
        OK(kit->table->memory_create(kit->self, size, &memory[i]));
        if (!kit->table->region_create) EQUAL((uintptr_t)memory[i] % limits.alignment, 0);
        OK(kit->table->fill(kit->self, memory[i], (unsigned char)i, size));
    }
    for (uint32_t i = 0; i < 8; i++) {
        unsigned char bytes[7001];
        uint64_t size = 1 + 1000 * (uint64_t)i;
        OK(kit->table->copy_out(kit->self, bytes, memory[i], size));
        for (uint64_t k = 0; k < size; k++) EQUAL(bytes[k], i);
        kit->table->memory_destroy(kit->self, memory[i], size);
    }
}

bool tarn_kit_has_spaces(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    if (table->struct_size < sizeof *table) return false; /* it ends before them */
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
        HOLDS(memcmp(seen, model + begin, size) == 0);
        if (table->region_destroy) table->region_destroy(kit->self, part);
    }
    OK(table->copy_out(kit->self, seen, memory, MODEL_BYTES));
    HOLDS(memcmp(seen, model, MODEL_BYTES) == 0);
    table->memory_destroy(kit->self, memory, MODEL_BYTES);
    free(model);
    free(seen);
}

static void a_large_allocation_is_usable_to_its_last_byte(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits;
    unsigned char *bytes = malloc(TARN_KIT_SLOT_BYTES);
    uint64_t size = (uint64_t)(kit->suite.effort == TARN_CONFORMANCE_QUICK ? 16 : 256) << 20;
    if (kit->suite.large_bytes > 0) size = kit->suite.large_bytes;
    void *memory, *end;
    OK(kit->table->memory_limits(kit->self, &limits));
    if (size > limits.allocation_max) size = limits.allocation_max;
    if (size > limits.available / 2) size = limits.available / 2;
    OK(kit->table->memory_create(kit->self, size, &memory));
    OK(kit->table->fill(kit->self, memory, 0x5a, size));
    end = (unsigned char *)memory + size - TARN_KIT_SLOT_BYTES;
    if (kit->table->region_create)
        OK(kit->table->region_create(kit->self, memory, size - TARN_KIT_SLOT_BYTES,
                                     TARN_KIT_SLOT_BYTES, &end));
    OK(kit->table->copy_out(kit->self, bytes, end, TARN_KIT_SLOT_BYTES));
    for (uint32_t i = 0; i < TARN_KIT_SLOT_BYTES; i++) EQUAL(bytes[i], 0x5a);
    if (kit->table->region_destroy) kit->table->region_destroy(kit->self, end);
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
    if (!code) FAIL("2^46 bytes were allocated");
    EQUAL(kit->table->error_class(kit->self, code), TARN_ERROR_OUT_OF_MEMORY);
    HOLDS(kit->table->error_text(kit->self, code)[0]);
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

const struct tarn_kit_test tarn_kit_memory[] = {
    {"the_table_is_complete", the_table_is_complete},
    {"limits_say_what_is_there", limits_say_what_is_there},
    {"allocations_are_aligned_and_apart", allocations_are_aligned_and_apart},
    {"copies_and_fills_reach_exactly_their_bytes", copies_and_fills_reach_exactly_their_bytes},
    {"a_large_allocation_is_usable_to_its_last_byte",
     a_large_allocation_is_usable_to_its_last_byte},
    {"what_is_too_large_is_out_of_memory_and_has_a_text",
     what_is_too_large_is_out_of_memory_and_has_a_text},
    {"host_memory_serves_copies", host_memory_serves_copies},
    {"every_memory_space_has_memory_of_its_own", every_memory_space_has_memory_of_its_own},
    {0},
};
