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

cp -r examples/demo-model "$folder/model"
sed -i 's/"mlp_bias": false/"mlp_bias": false, "attention_sinks": 4/' "$folder/model/config.json"
expect 3 "attention_sinks" generate --model "$folder/model" "${prompt[@]}"
sed -i 's/, "attention_sinks": 4//; s/"hidden_size": 192/"hidden_size": 384/' "$folder/model/config.json"
expect 4 "model.embed_tokens.weight has shape [1146, 192]" generate --model "$folder/model" "${prompt[@]}"
