/* A program on an SDK of one's own: loads a graph and a plan that was made elsewhere, proves the
 * plan, and runs checked iterations of it on an OpenCL device. It links tarn-core alone: what runs
 * plans, without the planner.
 *
 *     tarn plan GRAPH -o PLAN
 *     custom_sdk GRAPH PLAN [ITERATIONS [DEVICE [buffers]]]
 *
 * `buffers` asks for sub-buffers where the device has shared virtual memory too. Their alignment is
 * what the device says, often 128: tarn plan --alignment 128. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opencl_device.h"

struct run {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
    struct opencl_device device;
    struct tarn_check_report report;
    double run_ms;
};

static enum tarn_status open_device(struct run *run, uint32_t index, bool with_buffers)
{
    cl_int code = opencl_device_open(&run->device, index, with_buffers);
    if (!code) return TARN_OK;
    fprintf(stderr, "custom_sdk: opening OpenCL device %" PRIu32 " failed with code %d: %s\n",
            index, code, run->device.table.error_text(NULL, code));
    return TARN_DEVICE;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static enum tarn_status run_checked(struct run *run, char *const *words, uint32_t iterations,
                                    struct tarn_error *error)
{
    const struct tarn_check_options *check = TARN_CHECK_OPTIONS(.iterations = iterations);
    struct tarn_device device = opencl_device_table(&run->device);
    enum tarn_status status = tarn_graph_load(words[0], NULL, &run->graph, error);
    if (!status)
        status = tarn_plan_load(words[1], run->graph, TARN_VERIFY, NULL, &run->plan, error);
    if (!status) status = tarn_session_create(run->plan, device, NULL, &run->session, error);
    double begin = now_ms();
    if (!status) status = tarn_session_check(run->session, check, &run->report, error);
    run->run_ms = now_ms() - begin;
    if (status) fprintf(stderr, "custom_sdk: %s: %s\n", tarn_status_text(status), error->text);
    return status;
}

/* The names are those of `tarn run --check --json`. */
static void print(const struct run *run, uint32_t iterations)
{
    const struct tarn_check_report *report = &run->report;
    double bytes = (double)report->bytes_read + (double)report->bytes_written;
    char name[256] = "";
    clGetDeviceInfo(run->device.id, CL_DEVICE_NAME, sizeof name, name, NULL);
    printf("{\"device\": \"%s\",\n", name);
    printf(" \"memory\": \"%s\",\n", run->device.is_svm ? "svm" : "sub-buffers");
    printf(" \"alignment\": %" PRIu64 ",\n", run->device.alignment);
    printf(" \"iterations\": %" PRIu32 ",\n", iterations);
    printf(" \"ops_run\": %" PRIu64 ",\n", report->ops_run);
    printf(" \"read_bytes\": %" PRIu64 ",\n", report->bytes_read);
    printf(" \"written_bytes\": %" PRIu64 ",\n", report->bytes_written);
    printf(" \"digest\": \"%016" PRIx64 "\",\n", report->digest);
    printf(" \"gb_per_s\": %.3f,\n", bytes / 1e6 / run->run_ms);
    printf(" \"ms\": {\"run\": %.3f}}\n", run->run_ms);
}

int main(int count, char **words)
{
    static struct run run; /* what never ends may use its device to the end of the process */
    struct tarn_error error;
    bool with_buffers = count == 6 && strcmp(words[5], "buffers") == 0;
    if (count < 3 || count > 6 || (count == 6 && !with_buffers)) {
        fprintf(stderr, "usage: custom_sdk GRAPH PLAN [ITERATIONS [DEVICE [buffers]]]\n");
        return TARN_USAGE;
    }
    uint32_t iterations = count > 3 ? (uint32_t)strtoul(words[3], NULL, 10) : 3;
    uint32_t index = count > 4 ? (uint32_t)strtoul(words[4], NULL, 10) : 0;
    enum tarn_status status = open_device(&run, index, with_buffers);
    if (!status) status = run_checked(&run, words + 1, iterations, &error);
    if (!status) print(&run, iterations);
    if (tarn_session_destroy(run.session) == TARN_OK) opencl_device_close(&run.device);
    tarn_plan_destroy(run.plan);
    tarn_graph_destroy(run.graph);
    return (int)status;
}
