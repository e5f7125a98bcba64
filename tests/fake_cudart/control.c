/* The test's side of the stand-in: finding its functions. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "fake_cudart.h"

static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

bool fake_control_load(const char *path, struct fake_control *control)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library && find(library, "fake_cudart_reset", &control->reset) &&
        find(library, "fake_cudart_inject", &control->inject) &&
        find(library, "fake_cudart_has_failed", &control->has_failed) &&
        find(library, "fake_cudart_calls", &control->calls) &&
        find(library, "fake_cudart_alive", &control->alive) &&
        find(library, "fake_cudart_violations", &control->violations) &&
        find(library, "fake_cudart_hold", &control->hold) &&
        find(library, "fake_cudart_contexts", &control->contexts) &&
        find(library, "fake_cudart_instantiate_flags", &control->instantiate_flags))
        return true;
    fprintf(stderr, "%s: %s\n", path, dlerror());
    return false;
}
