#!/usr/bin/env bash
# Runs a Python program with the interpreter that has onnx and jax (tests/setup.sh read). Without one its tests
# are skipped, or have failed where they were asked for (tests/run.sh --with read).
#
#   with_read.sh PROGRAM ARGUMENTS...      TARN_LIBRARY names the library
folder=${TARN_READ:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn/read}
if [ ! -e "$folder/complete" ]; then
    case ,${TARN_REQUIRE:-}, in
    *,read,*) echo "read was asked for, and is not in $folder" && exit 1 ;;
    esac
    echo "1..0 # SKIP onnx and jax are not here (tests/setup.sh read)"
    exit 0
fi
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=${PYTHONPATH:-$here/../python:$here}
exec "$folder/bin/python" "$@"
