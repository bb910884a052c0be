# Errors are one sentence on stderr, and the exit status says their kind.
set -uo pipefail
folder=$HIERARCHOS_TEST_FOLDER

# expect STATUS TEXT ARGUMENTS...
expect() {
  local status=$1 text=$2 got=0
  shift 2
  hierarchos "$@" >"$folder/out" 2>"$folder/err" || got=$?
  if [ "$got" -ne "$status" ] || ! grep -qF -- "$text" "$folder/err" || [ -s "$folder/out" ]; then
    echo "hierarchos $*: status $got, expected $status and \"$text\":"
    cat "$folder/out" "$folder/err"
    exit 1
  fi
}

prompt=(--prompt "Once upon a time")
expect 2 "--model is required" generate "${prompt[@]}"
expect 2 "/nowhere" generate --model /nowhere "${prompt[@]}"
expect 2 "unknown device" generate --model examples/demo-model --device gpu "${prompt[@]}"
expect 5 "vulkan:99" generate --model examples/demo-model --device vulkan:99 "${prompt[@]}"
expect 2 "the prompt is empty" generate --model examples/demo-model --prompt ""
expect 2 "top_p must be between 0 and 1" generate --model examples/demo-model "${prompt[@]}" --top-p 1.5
expect 2 "--greedy does not go with" generate --model examples/demo-model "${prompt[@]}" --greedy --top-k 3
expect 2 "shorten the prompt" generate --model examples/demo-model "${prompt[@]}" --context 4
expect 2 "--help" generate --model examples/demo-model "${prompt[@]}" --nonsense
expect 3 "num_beams 2 with do_sample" generate --model examples/demo-model "${prompt[@]}" --num-beams 2 -t 0.5
expect 2 "at least 2" eval --model examples/demo-model --data /dev/null
expect 2 "leave out tokens" eval --model examples/demo-model --data README.md --window 8 --stride 9

cp -r examples/demo-model "$folder/model"
sed -i 's/"mlp_bias": false/"mlp_bias": false, "attention_sinks": 4/' "$folder/model/config.json"
expect 3 "attention_sinks" generate --model "$folder/model" "${prompt[@]}"
sed -i 's/, "attention_sinks": 4//; s/"hidden_size": 192/"hidden_size": 384/' "$folder/model/config.json"
expect 4 "model.embed_tokens.weight has shape [1146, 192]" generate --model "$folder/model" "${prompt[@]}"
sed -i 's/"hidden_size": 384/"hidden_size": 192/' "$folder/model/config.json"
echo '{"eos_token_id": 0, "penalty_alpha": 0.6}' >"$folder/model/generation_config.json"
expect 3 "penalty_alpha" generate --model "$folder/model" "${prompt[@]}"
echo '{"eos_token_id": 0, "top_k": -3}' >"$folder/model/generation_config.json"
expect 4 "generation_config.json: top_k" generate --model "$folder/model" "${prompt[@]}"
