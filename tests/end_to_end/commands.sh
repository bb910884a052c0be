# Commands that tell about the program and the computer.
set -euo pipefail
out=$HIERARCHOS_TEST_FOLDER
# says TEXT COMMAND...: its output has a line that matches
says() {
  local text=$1
  shift
  hierarchos "$@" >"$out/says"
  grep -qE -- "$text" "$out/says" || { echo "hierarchos $* does not say $text:"; cat "$out/says"; exit 1; }
}
says '^hierarchos [0-9]+\.[0-9]+\.[0-9]+$' --version
says '^Examples:' --help
for command in generate chat eval bench finetune explain devices doctor architectures completion; do
  says "^  $command " --help
  says "^Usage: .*$command" "$command" --help
done

says '^cpu ' devices
says '"name": "cpu"' devices --json
says '^llama$' architectures
says '"gpt2"' architectures --json
says '^ok +cpu, .*: computes right$' doctor
says '"status": "ok"' doctor --json

hierarchos completion bash >"$out/completion"
complete_it() {
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hierarchos; echo "${COMPREPLY[*]}"' - "$out/completion" "$@"
}
[ "$(complete_it hierarchos gen)" = generate ]
[ "$(complete_it hierarchos generate --temp)" = --temperature ]
[ "$(complete_it hierarchos eval --str)" = --stride ]
says "__fish_seen_subcommand_from generate' -s n -l max-new-tokens -r" completion fish
says '^#compdef hierarchos$' completion zsh

# Nothing but results goes to a pipe, and a full disk is noticed.
hierarchos generate --model examples/demo-model --prompt "Once" --max-new-tokens 2 2>"$out/err" >/dev/null
[ ! -s "$out/err" ]
if [ -e /dev/full ]; then
  status=0
  hierarchos architectures >/dev/full 2>"$out/err" || status=$?
  [ "$status" -eq 1 ]
  grep -q "could not be written" "$out/err"
fi
