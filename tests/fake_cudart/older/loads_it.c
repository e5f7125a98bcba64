/* A library that has loaded a CUDA runtime for itself, as a framework does: nobody else finds it by
 * the names of its functions. */
#include <dlfcn.h>

__attribute__((constructor)) static void load(void)
{
    dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
}
