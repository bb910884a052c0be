# The demo model continues a prompt in words, and the same twice.
set -euo pipefail
first=$(hierarchos generate --model examples/demo-model --prompt "Once upon a time" --max-new-tokens 40)
second=$(hierarchos generate --model examples/demo-model --prompt "Once upon a time" --max-new-tokens 40)
echo "$first"
[ "$first" = "$second" ]
case $first in
  "Once upon a time there was a "*) ;;
  *) exit 1 ;;
esac
# What the reference framework says for this prompt.
hierarchos generate --model examples/demo-model --prompt "Once upon a time" --max-new-tokens 8 --json | grep -q '"text": " there was a stubborn'
