# Settings of generation, by options and by the package.
set -euo pipefail
out=$HIERARCHOS_TEST_FOLDER
model=(--model examples/demo-model)
ask=(generate "${model[@]}" --prompt "Once upon a time" --max-new-tokens)
is() { if [ "$1" != "$2" ]; then echo "got: $1"; echo "expected: $2"; exit 1; fi; }

# Beam search as the reference framework does it.
is "$(hierarchos "${ask[@]}" 16 --num-beams 4)" "Once upon a time there was a quick girl named Ella. She lived in a small house by the"

# Seeds repeat; different ones differ; a batch changes nothing.
first=$(hierarchos "${ask[@]}" 30 -t 1.5 --seed 1)
is "$(hierarchos "${ask[@]}" 30 -t 1.5 --seed 1)" "$first"
[ "$(hierarchos "${ask[@]}" 30 -t 1.5 --seed 2)" != "$first" ]
hierarchos "${ask[@]}" 30 -t 1.5 --seed 1 --prompt "The robot" >"$out/batch"
is "$(head -n "$(echo "$first" | wc -l)" "$out/batch")" "$first"

# Nearly greedy sampling is greedy.
greedy=$(hierarchos "${ask[@]}" 20)
is "$(hierarchos "${ask[@]}" 20 --top-k 1)" "$greedy"
is "$(hierarchos "${ask[@]}" 20 --top-p 0)" "$greedy"
is "$(hierarchos "${ask[@]}" 20 --temperature 0)" "$greedy"
is "$(hierarchos "${ask[@]}" 20 --temperature 0.0001)" "$greedy"

# Ends.
is "$(hierarchos "${ask[@]}" 20 --no-echo --stop "boy" --stop "never")" " there was a stubborn "
is "$(hierarchos "${ask[@]}" 20 --json --stop boy | grep finish_reason)" '  "finish_reason": "stop_string",'
is "$(hierarchos "${ask[@]}" 3 --json | grep finish_reason)" '  "finish_reason": "length",'
is "$(hierarchos "${ask[@]}" 50 --context 12 --json | grep finish_reason)" '  "finish_reason": "context",'
case $(hierarchos "${ask[@]}" 16 --bad-words stubborn) in *stubborn*) exit 1 ;; esac

# Standard input, a file, log-probabilities.
is "$(echo "Once upon a time" | hierarchos generate "${model[@]}" -n 20)" "$greedy"
printf 'Once upon a time' >"$out/prompt.txt"
is "$(hierarchos generate "${model[@]}" --prompt-file "$out/prompt.txt" -n 20)" "$greedy"
hierarchos "${ask[@]}" 2 --json --log-probs 2 >"$out/report.json"
is "$(grep -c '"log_prob"' "$out/report.json")" 6

# The package's own settings, and what it asks for that there is not.
cp -r examples/demo-model "$out/model"
echo '{"eos_token_id": 0, "num_beams": 4, "max_new_tokens": 16}' >"$out/model/generation_config.json"
is "$(hierarchos generate --model "$out/model" --prompt "Once upon a time")" "Once upon a time there was a quick girl named Ella. She lived in a small house by the"
echo '{"eos_token_id": 0, "do_sample": true, "top_k": 1, "max_new_tokens": 20}' >"$out/model/generation_config.json"
is "$(hierarchos generate --model "$out/model" --prompt "Once upon a time")" "$greedy"
