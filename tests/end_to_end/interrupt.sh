# Ctrl-C ends a run in good order: what was generated is there, and the exit status says it.
set -uo pipefail
out=$HIERARCHOS_TEST_FOLDER
# The signal is ignored in the background of some shells, so it is given its usual meaning first.
timeout --preserve-status --signal=INT 1 env --default-signal=INT hierarchos generate --model examples/demo-model \
  --prompt "Once upon a time" --max-new-tokens 30000 --context 30010 --ignore-eos --temperature 1 --seed 1 --device cpu \
  >"$out/text" 2>"$out/err"
status=$?
cat "$out/err"
[ "$status" -eq 130 ] || exit 1
[ ! -s "$out/err" ] || exit 1
[ "$(head -c 16 "$out/text")" = "Once upon a time" ] || exit 1
[ "$(wc -c <"$out/text")" -gt 100 ] || exit 1
[ -z "$(tail -c 1 "$out/text")" ]  # a line's end
