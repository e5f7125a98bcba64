"""The conformance suite finds every faulty device: each mutant is the toy device with one fault, made
by replacing text of its source, and must fail the tests that are named here.

    mutants_test.py SOURCE_ROOT FOLDER LIBTARN_CONFORMANCE LIBTARN CC...

MUTANT=NAME runs one, and prints all that the suite says of it."""
import os
import pathlib
import subprocess
import sys

root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
conformance, library, compiler = sys.argv[3], pathlib.Path(sys.argv[4]), sys.argv[5:]

APPEND = "    *queue->end = command;\n    queue->end = &command->next;\n"


def overtakes(kind, condition="(*link)->kind == WAIT"):
    """Commands of that kind are put before the first waiting one."""
    return [(APPEND, f"""    struct command **link = queue->is_busy ? &queue->first->next : &queue->first;
    while (*link && !(what.kind == {kind} && {condition})) link = &(*link)->next;
    command->next = *link;
    *link = command;
    if (!command->next) queue->end = &command->next;
""")]


ENTER = "    int code = enter(toy);\n    if (code) return code;\n"
PROGRAMS = "every_program_of_calls_keeps_its_order"
EVENTS = "an_event_orders_two_queues_and_can_be_recorded_again"
KEEPS = "pending_waits_keep_to_the_record_that_they_were_made_for"
SIZES = "copies_and_fills_are_exact_at_every_size"
WRONGS = "patterns_keep_to_their_bytes_and_the_smallest_wrong"
PATTERNS = "patterns_are_exact_at_every_offset_and_size"
LIMITS = "limits_are_those_of_allocations"
TOO_LARGE = "what_is_too_large_is_out_of_memory_and_has_a_text"
DEPTH = "a_queue_takes_its_depth_behind_work_that_is_not_over"
COPIES = "copies_on_queues_follow_their_order_and_reach_exactly_their_bytes"
CODES = "every_code_has_a_text_and_a_class"
QUERY = "a_query_tells_when_the_end_is_reached"

# Name: replacements, tests that fail.
MUTANTS = {
    # ---- Order ----
    "a launch overtakes waits": (overtakes("CALL"), [PROGRAMS, EVENTS]),
    "a launch overtakes two waits": (
        overtakes("CALL", "(*link)->kind == WAIT && (*link)->next && (*link)->next->kind == WAIT"), [PROGRAMS]),
    "a launch overtakes a wait behind other work": (
        overtakes("CALL", "link != &queue->first && (*link)->kind == WAIT"), [PROGRAMS]),
    "a record overtakes waits": (overtakes("RECORD"), [PROGRAMS]),
    "a fill overtakes waits": (overtakes("FILL"), [PROGRAMS]),
    "a copy on a queue overtakes waits": (overtakes("COPY"), [COPIES]),
    "a copy on a queue leaves out its last byte": (
        [("memcpy(command->bytes, command->from, command->size)", "memcpy(command->bytes, command->from, command->size - 1)")], [COPIES]),
    "a copy on a queue copies a byte more": (
        [("memcpy(command->bytes, command->from, command->size)", "memcpy(command->bytes, command->from, command->size + 1)")], [COPIES]),
    "a comparison overtakes waits": (overtakes("COMPARE"), [PROGRAMS]),
    "a record overtakes launches": (overtakes("RECORD", "(*link)->kind == CALL"), [PROGRAMS]),
    "a wait is put at the end of the launches before it": (overtakes("WAIT", "(*link)->kind == RECORD"), [PROGRAMS]),
    "waits do not wait": ([("return first->kind != WAIT || first->moment->is_reached;", "return true;")],
                          [PROGRAMS, EVENTS]),
    "waits in urgent queues do not wait": (
        [("return first->kind != WAIT || first->moment->is_reached;",
          "return first->kind != WAIT || queue->is_urgent || first->moment->is_reached;")], [PROGRAMS]),
    "waits look at the latest record": (
        [("    struct moment *moment = calloc(1, sizeof *moment);\n",
          "    struct moment *moment = event->latest ? event->latest : calloc(1, sizeof *moment);\n"),
         ("    moment->users = 1; /* the event */\n", "    moment->users++, moment->is_reached = false;\n")],
        [KEEPS]),
    "a launch is called twice": ([("case CALL: command->function(command->argument); break;",
                                   "case CALL: command->function(command->argument); command->function("
                                   "command->argument); break;")], ["a_queue_keeps_its_order"]),
    "a full queue drops launches": (
        [(APPEND, "    uint32_t count = 0;\n    for (struct command *c = queue->first; c; c = c->next) count++;\n"
          "    if (count > 1000 && what.kind == CALL) return NO_ERROR;\n" + APPEND)], [DEPTH]),
    "a full queue waits for room": (
        [(APPEND, "    for (uint32_t count = 2000; count > 1000;) {\n        count = 0;\n"
          "        for (struct command *c = queue->first; c; c = c->next) count++;\n"
          "        if (count > 1000) pthread_cond_wait(&toy->changed, &toy->lock);\n    }\n" + APPEND)], [DEPTH]),
    "urgent queues that wait hold up the others": (
        [("if (!can_begin(queue) || (found && !queue->is_urgent)) continue;",
          "if (queue->is_urgent && queue->first && !queue->is_busy && !can_begin(queue)) return NULL;\n"
          "        if (!can_begin(queue) || (found && !queue->is_urgent)) continue;")], [PROGRAMS]),
    # ---- Events ----
    "event_wait waits in the call": (
        [("    if (event->latest)\n        code = append",
          "    while (event->latest && !event->latest->is_reached) pthread_cond_wait(&toy->changed, &toy->lock);\n"
          "    if (event->latest)\n        code = append")], ["no_call_waits_for_another_queue"]),
    "an event is reached when it is recorded": (
        [("    moment->users = 1; /* the event */\n", "    moment->users = 1, moment->is_reached = true;\n")], [QUERY]),
    "an event recorded in an idle queue is reached": (
        [("        event->latest = moment;\n",
          "        event->latest = moment;\n        moment->is_reached = toy->queues == queue;\n")], [PROGRAMS]),
    "every event is reached, says the query": (
        [("*done = !event->latest || event->latest->is_reached;", "*done = true;")], [QUERY]),
    "an event that was once reached stays so": (
        [("    uint64_t time_ns; /* at which it was reached */", "    uint64_t time_ns; /* at which it was reached */\n"
          "    bool was_reached;"),
         ("        drop(event->latest);\n        event->latest = moment;",
          "        moment->was_reached = event->latest && event->latest->is_reached;\n"
          "        drop(event->latest);\n        event->latest = moment;"),
         ("*done = !event->latest || event->latest->is_reached;",
          "*done = !event->latest || event->latest->is_reached || event->latest->was_reached;")], [QUERY]),
    "an event never recorded is not reached": (
        [("*done = !event->latest || event->latest->is_reached;",
          "*done = event->latest && event->latest->is_reached;")],
        ["an_event_that_was_never_recorded_holds_up_nobody"]),
    "a wait for an event never recorded fails": (
        [("    if (event->latest)\n        code = append",
          "    if (!event->latest) code = NO_MEMORY;\n    if (event->latest)\n        code = append")],
        ["an_event_that_was_never_recorded_holds_up_nobody"]),
    "a query of what is not reached fails": (
        [("*done = !event->latest || event->latest->is_reached;\n    return leave(toy, NO_ERROR);",
          "*done = !event->latest || event->latest->is_reached;\n    return leave(toy, *done ? NO_ERROR : NO_MEMORY);")],
        [QUERY]),
    # ---- What failed ----
    "a record that fails forgets the one before it": (
        [(ENTER + "    struct moment *moment",
          ENTER.replace("if (code) return code;", "if (code) event->latest = NULL;\n    if (code) return code;")
          + "    struct moment *moment")], ["a_record_that_fails_leaves_the_one_before_it", PROGRAMS]),
    "a record that fails is there all the same": (
        [(ENTER + "    struct moment *moment",
          "    int code = enter(toy), failed = code;\n    if (code) pthread_mutex_lock(&toy->lock);\n    code = NO_ERROR;\n"
          "    struct moment *moment"),
         ("        event->latest = moment;\n    }\n    return leave(toy, code);",
          "        event->latest = moment;\n    }\n    return leave(toy, failed ? failed : code);")],
        [PROGRAMS]),
    "what is enqueued is so even if the call fails": (
        [("    return code ? code : leave(toy, append(toy, queue, what));",
          "    if (!code) return leave(toy, append(toy, queue, what));\n    pthread_mutex_lock(&toy->lock);\n"
          "    append(toy, queue, what);\n    return leave(toy, code);")],
        ["a_call_on_a_queue_that_fails_enqueues_nothing"]),
    "a copy that fails writes half": (
        [("static int copy(struct toy *toy, void *to, const void *from, uint64_t size)\n{\n" + ENTER,
          "static int copy(struct toy *toy, void *to, const void *from, uint64_t size)\n{\n"
          "    int code = enter(toy);\n    if (code) memcpy(to, from, size / 2);\n    if (code) return code;\n")],
        ["a_call_on_memory_that_fails_changes_nothing"]),
    "an event that cannot be created counts": (
        [("    *result = create(toy, sizeof(struct event));\n", "    *result = create(toy, sizeof(struct event));\n"),
         ("static int event_create(void *self, void **result)\n{\n    struct toy *toy = self;\n" + ENTER,
          "static int event_create(void *self, void **result)\n{\n    struct toy *toy = self;\n"
          "    int code = enter(toy);\n    if (code) toy->alive++;\n    if (code) return code;\n")],
        ["what_cannot_be_created_leaves_nothing"]),
    # ---- Memory ----
    "copy_out above 1 MiB loses its last byte": (
        [("return copy(self, host, device, size);",
          "return copy(self, host, device, size > 1 << 20 ? size - 1 : size);")], [SIZES]),
    "copy_in above 20 MiB loses its first byte": (
        [("return copy(self, device, host, size);",
          "uint64_t lost = size > 20 << 20;\n    return copy(self, (char *)device + lost, (const char *)host + lost, "
          "size - lost);")], [SIZES]),
    "copy_in copies whole words": (
        [("return copy(self, device, host, size);", "return copy(self, device, host, size < 4 ? size : size / 4 * 4);")],
        [SIZES, "copies_and_fills_reach_exactly_their_bytes"]),
    "fill writes whole words": ([("memset(device, byte, size);", "memset(device, byte, (size + 7) / 8 * 8);")], [SIZES]),
    "fill keeps seven bits": ([("memset(device, byte, size);", "memset(device, byte & 0x7f, size);")],
                              ["copies_and_fills_reach_exactly_their_bytes"]),
    "copy_in ends later": (
        [("static int copy_in(", "static struct late {\n    void *to;\n    const void *from;\n    uint64_t size;\n} late;\n\n"
          "static void *run_late(void *argument)\n{\n    (void)argument;\n"
          "    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);\n    memcpy(late.to, late.from, late.size);\n"
          "    return NULL;\n}\n\nstatic int copy_in("),
         ("return copy(self, device, host, size);",
          "uint64_t half = size > 1 << 20 ? size / 2 : size;\n    int code = copy(self, device, host, half);\n"
          "    pthread_t thread;\n    if (code || half == size) return code;\n"
          "    late = (struct late){(char *)device + half, (const char *)host + half, size - half};\n"
          "    if (!pthread_create(&thread, NULL, run_late, NULL)) pthread_detach(thread);\n    return NO_ERROR;")],
        ["work_sees_what_was_copied_before"]),
    "small allocations are one": (
        [("    *memory = aligned_alloc(ALIGNMENT, rounded(size));\n",
          "    static _Alignas(ALIGNMENT) char small[64];\n"
          "    *memory = size < 64 ? small : aligned_alloc(ALIGNMENT, rounded(size));\n"),
         ("    free(memory);\n", "    if (size >= 64) free(memory);\n")], ["allocations_are_aligned_and_apart"]),
    "allocations have less alignment than is said": (
        [(".alignment = ALIGNMENT,", ".alignment = 4096,")], ["allocations_are_aligned_and_apart"]),
    "the alignment is no power of two": ([(".alignment = ALIGNMENT,", ".alignment = 768,")], ["limits_say_what_is_there"]),
    "allocation_max is too high": (
        [(".allocation_max = MEMORY_BYTES,", ".allocation_max = MEMORY_BYTES * 4,"),
         (".available = MEMORY_BYTES - toy->memory_used,", ".available = UINT64_MAX,")], [LIMITS]),
    "allocation_max is too low": ([(".allocation_max = MEMORY_BYTES,", ".allocation_max = 1 << 20,")], [LIMITS]),
    "available is too low": (
        [(".available = MEMORY_BYTES - toy->memory_used,", ".available = 100000,")], [LIMITS]),
    # ---- Stamps ----
    "stamps are in microseconds": ([("(double)a->latest->time_ns;", "(double)a->latest->time_ns, *elapsed_ns /= 1000;")],
                                   ["stamps_tell_real_time"]),
    "stamps are in ticks of 2 ns": ([("(double)a->latest->time_ns;", "(double)a->latest->time_ns, *elapsed_ns /= 2;")],
                                    ["stamps_tell_real_time"]),
    "stamps run backwards": (
        [("(double)b->latest->time_ns - (double)a->latest->time_ns;",
          "(double)a->latest->time_ns - (double)b->latest->time_ns;")], ["stamps_tell_real_time"]),
    "stamps have the time at which they were enqueued": (
        [("    moment->users = 1; /* the event */\n", "    moment->users = 1, moment->time_ns = now_ns();\n"),
         ("        command->moment->time_ns = now_ns();\n", "")], ["a_stamp_takes_its_time_in_its_queue"]),
    # ---- Checking kernels ----
    "compare overwrites a smaller wrong": (
        [("if (i < command->size) note_wrong(command->wrong, i);", "if (i < command->size) *command->wrong = i;")],
        [WRONGS]),
    "compare overwrites a wrong when all is right": (
        [("if (i < command->size) note_wrong(command->wrong, i);",
          "if (i < command->size) note_wrong(command->wrong, i);\n        else *command->wrong = UINT64_MAX;")], [WRONGS]),
    "compare keeps the larger wrong": (
        [("while (index < old && ", "while ((index > old || old == UINT64_MAX) && ")], [WRONGS]),
    "compare tells the last wrong byte": (
        [("        if (i < command->size) note_wrong",
          "        for (uint64_t k = i; k < command->size; k++)\n"
          "            if (command->bytes[k] != pattern_byte(*command->seed, k)) i = k;\n"
          "        if (i < command->size) note_wrong")], [PATTERNS]),
    "compare looks at 64 KiB": (
        [("while (i < command->size && command", "while (i < command->size && i < 65536 && command"),
         ("        if (i < command->size) note_wrong", "        if (i < command->size && i < 65536) note_wrong")],
        [PATTERNS, "large_patterns_are_exact"]),
    "compare looks at whole words": (
        [("while (i < command->size && command", "while (i < command->size / 8 * 8 && command"),
         ("        if (i < command->size) note_wrong", "        if (i < command->size / 8 * 8) note_wrong")], [PATTERNS]),
    "fill ends with whole words": (
        [("for (; i < command->size; i++) command", "for (; i < (command->size + 7) / 8 * 8; i++) command")], [WRONGS]),
    "the pattern starts again after 64 KiB": (
        [("(seed + i / 8 * TARN_PATTERN_STEP)", "(seed + i % 65536 / 8 * TARN_PATTERN_STEP)")], [PATTERNS]),
    "patterns have the seed 0": ([(".seed = (const uint64_t *)seeds + seed});", ".seed = seeds});")], [PATTERNS]),
    # ---- Errors, and what is left ----
    "a text is NULL": ([('case NO_MEMORY: return "out of memory";', "case NO_MEMORY: return NULL;")], [CODES, TOO_LARGE]),
    "the text of an unknown code is NULL": ([('default: return "unknown code";', "default: return NULL;")], [CODES]),
    "out of memory is retryable": (
        [("code == NO_MEMORY ? TARN_ERROR_OUT_OF_MEMORY : TARN_ERROR_RETRYABLE", "TARN_ERROR_RETRYABLE")], [TOO_LARGE]),
    "every error is poisoned": (
        [("TARN_ERROR_OUT_OF_MEMORY : TARN_ERROR_RETRYABLE", "TARN_ERROR_OUT_OF_MEMORY : TARN_ERROR_POISONED")],
        ["a_record_that_fails_leaves_the_one_before_it"]),
    "a class is none": ([("TARN_ERROR_OUT_OF_MEMORY : TARN_ERROR_RETRYABLE",
                          "TARN_ERROR_OUT_OF_MEMORY : (enum tarn_error_class)77")], [CODES]),
    "queues are never destroyed": ([("    remove_queue(toy, queue);\n    toy->alive--;\n",
                                     "    remove_queue(toy, queue);\n")], ["a_queue_keeps_its_order"]),
    "a destroyed queue never ends": (
        [("    while (queue->first) pthread", "    for (;;) pthread")], ["a_queue_keeps_its_order"]),
    "a launch never returns": (
        [("    return enqueue(self, queue,\n                   (struct command){.kind = CALL,",
          "    for (;;) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);\n"
          "    return enqueue(self, queue,\n                   (struct command){.kind = CALL,")],
        ["a_queue_keeps_its_order"]),
}
HANGS = {"a destroyed queue never ends": "destroying", "a launch never returns": "launch has not returned"}


def run(*words, **options):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)


def build(program, source):
    made = run(*compiler, "-std=c11", "-O1", "-w", "-I", root / "include", "-I", root / "examples/toy_device", source,
               root / "examples/toy_device/conformance.c", conformance, library, f"-Wl,-rpath,{library.parent}",
               "-lpthread", "-o", program)
    if made.returncode:
        sys.exit(f"Bail out! {source} does not compile: {made.stdout}")


def faults(name, program, tests):
    """What is wrong with how the suite treats the mutant: a list of lines."""
    wrong = []
    for test in tests:
        try:
            ran = run(program, test, env={**os.environ, "TOY_PATIENCE_MS": "400"}, timeout=120)
        except subprocess.TimeoutExpired:
            wrong.append(f"{test} hangs")
            continue
        if len(sys.argv) and "MUTANT" in os.environ:
            print(ran.stdout)
        if ran.returncode == 0 or f"not ok 1 - {test}" not in ran.stdout:
            wrong.append(f"{test} passes (exit code {ran.returncode}): {ran.stdout}")
        elif "# what happened: " not in ran.stdout or "# the rule: " not in ran.stdout:
            wrong.append(f"{test} does not say what happened, or the rule: {ran.stdout}")
        elif name in HANGS and (HANGS[name] not in ran.stdout or f"the test {test} hangs" not in ran.stdout):
            wrong.append(f"{test} does not say where it hangs: {ran.stdout}")
    return wrong


def main():
    folder.mkdir(parents=True, exist_ok=True)
    text = (root / "examples/toy_device/toy_device.c").read_text()
    wanted = {name: how for name, how in MUTANTS.items() if os.environ.get("MUTANT", name) == name}
    print(f"1..{len(wanted)}", flush=True)
    failures = 0
    for number, (name, (replacements, tests)) in enumerate(wanted.items(), 1):
        mutant = text
        for old, new in replacements:
            if mutant.count(old) != 1:
                sys.exit(f"Bail out! {name}: the toy device has {mutant.count(old)} times: {old}")
            mutant = mutant.replace(old, new)
        source, program = folder / "mutant.c", folder / "mutant"
        source.write_text(mutant)
        build(program, source)
        wrong = faults(name, program, tests)
        failures += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}", *wrong, sep="\n# ", flush=True)
    sys.exit(failures > 0)


main()
