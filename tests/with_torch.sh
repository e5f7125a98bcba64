#!/usr/bin/env bash
# Runs a Python program with the interpreter that has PyTorch and ExecuTorch (tests/setup.sh torch). Without one
# its tests are skipped, or have failed where they were asked for (tests/run.sh --with torch).
#
#   with_torch.sh PROGRAM ARGUMENTS...      TARN_LIBRARY names the library
folder=${TARN_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn/torch}
if [ ! -e "$folder/complete" ]; then
    case ,${TARN_REQUIRE:-}, in *,torch,*)
        echo "torch was asked for, and is not in $folder"
        exit 1
        ;;
    esac
    echo "1..0 # SKIP PyTorch is not here (tests/setup.sh torch)"
    exit 0
fi
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=${PYTHONPATH:-$here/../python:$here}
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 PATH=$folder/bin:$PATH
exec "$folder/bin/python" "$@"
