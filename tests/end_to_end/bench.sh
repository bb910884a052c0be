# hierarchos bench: figures for a script, and what cannot be measured is refused.
set -euo pipefail
out=$HIERARCHOS_TEST_FOLDER
hierarchos bench --model examples/demo-model --device cpu --threads 1 --prompt 40 --new 5 --repeats 2 --json >"$out/report.json"
cat "$out/report.json"
for key in prefill_tokens_per_s decode_tokens_per_s weight_bytes; do
  sed -nE "s/^ *\"$key\": ([0-9.]+).*/\1/p" "$out/report.json" | awk '{exit !($1 > 0)}'
done
hierarchos bench --model examples/demo-model --device cpu --prompt 0 --new 3 --json >"$out/report.json"
! grep -q prefill_tokens_per_s "$out/report.json"
grep -q decode_tokens_per_s "$out/report.json"
status=0
hierarchos bench --model examples/demo-model --prompt 0 --new 0 2>"$out/error" || status=$?
[ "$status" -eq 2 ]
grep -q "nothing to measure" "$out/error"
