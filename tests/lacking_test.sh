#!/bin/sh
# Stands for a test that needs a part which this build lacks: skipped, or failed where the part was
# asked for (tests/run.sh --with).
#
#   lacking_test.sh PART
case ,${TARN_REQUIRE:-}, in
*,"$1",*)
    echo "$1 was asked for, and this build is without it" >&2
    exit 1
    ;;
esac
exit 77
