/* Writes the picture as Chrome trace events, for Perfetto and chrome://tracing: a track for each
 * stream, an arrow for each wait, and a counter of the bytes in use. If the axis counts steps, a
 * step is drawn as a microsecond. Cost: linear. */
#include <inttypes.h>

#include "words.h"
#include "writers.h"

struct tracer {
    FILE *file;
    const struct tarn_model *model;
    const struct tarn_model_schedule *schedule;
};

/* "ts" or "dur". */
static void print_time(const struct tracer *tracer, const char *key, double time)
{
    fprintf(tracer->file, "\"%s\":%.3f", key, tracer->schedule->is_time ? time / 1000 : time);
}

static void print_track(const struct tracer *tracer, tarn_stream s)
{
    fprintf(tracer->file,
            "{\"ph\":\"M\",\"pid\":0,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", s);
    tarn_write_name(tracer->file, TARN_JSON, tarn_graph_stream_name(tracer->model->graph, s),
                    TARN_NAME_MAX);
    fprintf(tracer->file,
            "}},\n{\"ph\":\"M\",\"pid\":0,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":"
            "{\"sort_index\":%u}},\n",
            s, s);
}

static void print_launch(const struct tracer *tracer, uint32_t v)
{
    const struct tarn_launch *launch = &tracer->model->launches[v];
    struct tarn_op_info info;
    tarn_graph_op(tracer->model->graph, launch->op, &info);
    fprintf(tracer->file, "{\"ph\":\"X\",\"pid\":0,\"tid\":%u,", launch->stream);
    print_time(tracer, "ts", (double)tracer->schedule->begin[v]);
    fputc(',', tracer->file);
    print_time(tracer, "dur", (double)(tracer->schedule->end[v] - tracer->schedule->begin[v]));
    fputs(",\"name\":", tracer->file);
    tarn_write_name(tracer->file, TARN_JSON, info.name[0] ? info.name : "op", TARN_NAME_MAX);
    fputs(",\"cat\":", tracer->file);
    tarn_write_name(tracer->file, TARN_JSON, info.kind[0] ? info.kind : "op", TARN_NAME_MAX);
    fprintf(tracer->file, ",\"args\":{\"op\":%u,\"iteration\":0}},\n", launch->op);
}

/* Prints an arrow from the end of one launch to the start of another. */
static void print_arrow(const struct tracer *tracer, uint32_t number, uint32_t from, uint32_t to)
{
    const struct tarn_model_schedule *schedule = tracer->schedule;
    uint64_t last = schedule->end[from] - (schedule->end[from] > schedule->begin[from]);
    fprintf(tracer->file, "{\"ph\":\"s\",\"pid\":0,\"tid\":%u,\"id\":%u,",
            tracer->model->launches[from].stream, number);
    print_time(tracer, "ts", (double)last);
    fprintf(tracer->file,
            ",\"name\":\"wait\",\"cat\":\"wait\"},\n{\"ph\":\"f\",\"bp\":\"e\",\"pid\":0,"
            "\"tid\":%u,\"id\":%u,",
            tracer->model->launches[to].stream, number);
    print_time(tracer, "ts", (double)schedule->begin[to]);
    fputs(",\"name\":\"wait\",\"cat\":\"wait\"},\n", tracer->file);
}

static void print_level(const struct tracer *tracer, const char *space,
                        const struct tarn_memory_level *level)
{
    fputs("{\"ph\":\"C\",\"pid\":0,", tracer->file);
    print_time(tracer, "ts", level->at);
    fputs(",\"name\":\"bytes", tracer->file);
    if (space[0]) fputs(" of ", tracer->file);
    tarn_write_inside(tracer->file, TARN_JSON, space, TARN_NAME_MAX);
    fprintf(tracer->file,
            "\",\"args\":{\"alive\":%" PRIu64 ",\"held and padding\":%" PRIu64 "}},\n",
            level->alive, level->taken - level->alive);
}

/* A counter for each memory space. False: no memory. */
static bool print_levels(const struct tracer *tracer, const struct tarn_picture *picture)
{
    const struct tarn_model *model = tracer->model;
    struct tarn_memory memory = {NULL, false};
    for (tarn_space s = 0; s < model->spaces_count && !memory.is_exhausted; s++) {
        size_t count = 0;
        const struct tarn_memory_level *levels =
            tarn_schedule_levels(&memory, model, picture->spans, s, &count);
        const char *name = model->spaces_count > 1 ? model->spaces[s].name : "";
        for (size_t i = 0; levels && i < count; i++) print_level(tracer, name, &levels[i]);
    }
    tarn_memory_finish(&memory);
    return !memory.is_exhausted;
}

bool tarn_write_trace(FILE *file, const struct tarn_picture *picture)
{
    const struct tarn_model *model = &picture->model;
    struct tracer tracer = {file, model, tarn_picture_schedule(picture)};
    uint32_t arrows = 0;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
    for (tarn_stream s = 0; s < model->streams_count; s++) print_track(&tracer, s);
    for (uint32_t v = 0; v < model->launches_count; v++) {
        print_launch(&tracer, v);
        for (uint32_t i = model->waits.begin[v]; i < model->waits.begin[v + 1]; i++)
            print_arrow(&tracer, arrows++, model->waits.ids[i], v);
    }
    bool is_complete = print_levels(&tracer, picture);
    fputs("{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":", file);
    tarn_write_name(file, TARN_JSON, tarn_graph_name(model->graph), TARN_NAME_MAX);
    fputs("}}\n]}\n", file);
    return is_complete;
}
