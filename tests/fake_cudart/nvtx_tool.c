/* A tool as NVTX expects one, named by NVTX_INJECTION64_PATH: it writes down which ranges and
 * memory regions are announced, one word each, for the test that loads it a second time to ask.
 * Source: the injection interface in NVTX 3's own headers (nvtxDetail). */
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

static char log_text[4096];
static int domain, heap;

static void note(const char *kind, const char *name, unsigned long long number)
{
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%s %s %llu\n", kind, name, number);
}

const char *nvtx_tool_log(void);
const char *nvtx_tool_log(void) { return log_text; }

/* ---- Ranges ---- */

static nvtxDomainHandle_t create_domain(const char *name)
{
    note("domain", name, 0);
    return (nvtxDomainHandle_t)(void *)&domain;
}

static void destroy_domain(nvtxDomainHandle_t handle)
{
    note("end", "domain", (void *)handle == (void *)&domain);
}

static int push(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attributes)
{
    note("push", attributes->message.ascii, (void *)handle == (void *)&domain);
    return 0;
}

static int pop(nvtxDomainHandle_t handle)
{
    note("pop", "range", (void *)handle == (void *)&domain);
    return 0;
}

/* ---- Memory ---- */

static nvtxMemHeapHandle_t register_heap(nvtxDomainHandle_t handle, const nvtxMemHeapDesc_t *given)
{
    const nvtxMemVirtualRangeDesc_t *range = given->typeSpecificDesc;
    (void)handle;
    note("heap", given->message.ascii, range->size);
    return (nvtxMemHeapHandle_t)(void *)&heap;
}

static void unregister_heap(nvtxDomainHandle_t handle, nvtxMemHeapHandle_t given)
{
    (void)handle;
    note("end", "heap", (void *)given == (void *)&heap);
}

static void register_regions(nvtxDomainHandle_t handle, const nvtxMemRegionsRegisterBatch_t *given)
{
    const nvtxMemVirtualRangeDesc_t *range = given->regionDescElements;
    (void)handle;
    note("region", (void *)given->heap == (void *)&heap ? "of the heap" : "of nothing",
         range->size);
}

static void name_regions(nvtxDomainHandle_t handle, const nvtxMemRegionsNameBatch_t *given)
{
    (void)handle;
    note("name", given->regionElements->name.ascii, given->regionCount);
}

/* ---- What NVTX calls ---- */

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainDestroy)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *table[NVTX_CBID_CORE2_DomainDestroy] = (NvtxFunctionPointer)destroy_domain;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    if (module->moduleId != NVTX_EXT_MODULEID_MEM) return 0;
    intptr_t *slots = module->segments[0].functionSlots;
    slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = (intptr_t)register_heap;
    slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = (intptr_t)unregister_heap;
    slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = (intptr_t)register_regions;
    slots[NVTX3EXT_CBID_nvtxMemRegionsName] = (intptr_t)name_regions;
    return 1;
}
