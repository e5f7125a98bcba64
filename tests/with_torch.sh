#!/usr/bin/env bash
# Runs a Python program with the interpreter that has PyTorch and ExecuTorch (tests/setup.sh torch). Without one
# its tests are skipped, or have failed where they were asked for (tests/run.sh --with torch). With --oldest: with
# the oldest PyTorch that is promised to work (tests/setup.sh torch-oldest), only if it was asked for; with --models:
# with libraries of models, too (tests/setup.sh torch-models), only if that was asked for.
#
#   with_torch.sh [--oldest | --models] PROGRAM ARGUMENTS...      TARN_LIBRARY names the library
part=torch folder=${TARN_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn/torch}
asked() { case ,${TARN_REQUIRE:-}, in *,"$part",*) ;; *) return 1 ;; esac }
case $1 in
--oldest | --models)
    part=torch$(echo "$1" | tail -c +2) folder=$folder$(echo "$1" | tail -c +2)
    shift
    asked || { echo "1..0 # SKIP not asked for (tests/run.sh --with $part)" && exit 0; }
    ;;
esac
if [ ! -e "$folder/complete" ]; then
    asked && echo "$part was asked for, and is not in $folder" && exit 1
    echo "1..0 # SKIP PyTorch is not here (tests/setup.sh torch)"
    exit 0
fi
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=${PYTHONPATH:-$here/../python:$here}
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 PATH=$folder/bin:$PATH
exec "$folder/bin/python" "$@"
