# Perplexity of a text equals the reference framework's (tests/data/generation.json).
set -euo pipefail
out=$HIERARCHOS_TEST_FOLDER
head -c 12000 examples/demo-model/stories.txt >"$out/text.txt"

# near VALUE EXPECTED: within 0.1 %
near() { awk -v a="$1" -v b="$2" 'BEGIN {d = a - b; if (d < 0) d = -d; exit !(d <= 0.001 * b)}'; }
field() { sed -nE "s/^ *\"$1\": ([0-9.]+),?$/\1/p" "$out/report.json"; }

hierarchos eval --model examples/demo-model --data "$out/text.txt" --window 128 --json >"$out/report.json"
cat "$out/report.json"
[ "$(field tokens)" -eq 2918 ]
[ "$(field scored_tokens)" -eq 2895 ]
near "$(field loss)" 0.443784311
near "$(field perplexity)" 1.558594

hierarchos eval --model examples/demo-model --data "$out/text.txt" --window 200 --stride 64 --json >"$out/report.json"
[ "$(field scored_tokens)" -eq 2917 ]
near "$(field loss)" 0.401393961

hierarchos eval --model examples/demo-model --data "$out/text.txt" --window 128 >"$out/line"
grep -q '^perplexity 1\.558' "$out/line"
echo "One word" | hierarchos eval --model examples/demo-model --data - --json >"$out/report.json"
[ "$(field scored_tokens)" -eq "$(($(field tokens) - 1))" ]
