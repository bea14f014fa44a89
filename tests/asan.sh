#!/bin/sh
# The policy tests with the native rule engine built under AddressSanitizer and UndefinedBehaviorSanitizer.
#
# Needs: gcc with libasan and libubsan (Debian/Ubuntu: apt install gcc), Python's headers, and the sdist of
# durable-rules 2.0.28 (from the package index). PYTHON names the interpreter that has KernelSkill's development requirements.
# The build goes to a temporary folder; nothing that is installed changes. Takes two to five minutes, at most
# fourteen. KERNELSKILL_FUZZ_EXAMPLES sets how many rule sets the fuzz tries (150).
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
CC=${CC:-gcc}
asan=$($CC -print-file-name=libasan.so) && ubsan=$($CC -print-file-name=libubsan.so)
for library in "$asan" "$ubsan"; do
    [ -e "$library" ] || { echo "asan: $CC has no $(basename "$library"); install gcc with its sanitizer libraries" >&2; exit 2; }
done
"$PYTHON" -c "import pytest, hypothesis" || { echo "asan: $PYTHON lacks the development requirements" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "== building durable-rules 2.0.28 with -fsanitize=address,undefined"
sanitize="-fsanitize=address,undefined -fno-omit-frame-pointer -g"
CC=$CC CPPFLAGS="-DPyEval_CallObject=PyObject_CallObject $sanitize" LDFLAGS="$sanitize" \
    timeout 240 "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --no-binary durable-rules \
    --target "$work/site" durable-rules==2.0.28

# Tests that drive the raw engine into its crashes run it in processes with an environment of their own: the usual build.
echo "== fuzz and guards under the sanitizers"
export LD_PRELOAD="$asan $ubsan" PYTHONPATH="$work/site:$PWD" PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:log_path="$work/ubsan"
export KERNELSKILL_FUZZ_EXAMPLES="${KERNELSKILL_FUZZ_EXAMPLES:-150}"
"$PYTHON" -c "import durable_rules_engine as e, sys; sys.exit(not e.__file__.startswith('$work'))" \
    || { echo "asan: the sanitized engine is not the one that is imported" >&2; exit 2; }
timeout 600 "$PYTHON" -m pytest -p no:xdist --timeout 590 tests/kernelskill/policy/test_policy_fuzz.py \
    tests/kernelskill/policy/test_policy_pitfalls.py tests/kernelskill/policy/test_policy_deciding.py
if ls "$work"/ubsan.* >/dev/null 2>&1; then
    echo "== undefined behaviour inside the engine:"
    grep -h "runtime error" "$work"/ubsan.* | sort | uniq -c
    exit 1
fi
echo "== clean"
