"""Adds up the TAP lines in meson's test logs; prints 'N passed, N failed, N skipped'.

count.py STATUS LOG.json...   STATUS: 0 when every meson run said so. Exits 1 when anything failed.
"""
import json
import re
import sys

passed = failed = skipped = 0
for log in sys.argv[2:]:
    for line in open(log):
        test = json.loads(line)
        points = re.findall(r"^(not )?ok\b[^#\n]*(# *SKIP)?", test.get("stdout", ""), re.M | re.I)
        skips = sum(bool(skip) for _, skip in points)
        fails = sum(bool(bad) and not skip for bad, skip in points)
        broken = test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
        if broken and not fails:
            fails = 1  # crashed, timed out or complained outside its test points
        if broken:
            print("failed: %s (%s)" % (test["name"], test["result"]))
        passed += len(points) - skips - sum(bool(bad) and not skip for bad, skip in points)
        failed += fails
        skipped += skips + (test["result"] == "SKIP" and not points)
if sys.argv[1] != "0" and not failed:
    failed = 1
print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
sys.exit(1 if failed else 0)
