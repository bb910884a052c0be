# A LoRA adapter on the demo model: the loss falls, and the adapter is there in PEFT's form.
set -euo pipefail
out=$HIERARCHOS_TEST_FOLDER
{
  for i in 1 2 3 4 5 6 7 8; do
    echo "The robot pressed button number $i and the green lamp blinked twice. Then it rolled to the next door and waited."
  done
} >"$out/text.txt"
hierarchos finetune --model examples/demo-model --data "$out/text.txt" --lora-rank 8 --steps 10 --seq 128 --lr 5e-3 \
  --output "$out/adapter" | tee "$out/log"
first=$(awk '/^step/ {print $4; exit}' "$out/log")
last=$(awk '/^step/ {l = $4} END {print l}' "$out/log")
awk -v a="$first" -v b="$last" 'BEGIN {exit !(b < a - 0.3)}'
grep -q '"peft_type": "LORA"' "$out/adapter/adapter_config.json"
head -c 4000 "$out/adapter/adapter_model.safetensors" | grep -aq 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight'
