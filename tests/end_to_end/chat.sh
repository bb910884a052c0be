# Conversations, by a template that the demo model's stories fit: what a message says goes on.
set -euo pipefail
out=$HIERARCHOS_TEST_FOLDER
is() { if [ "$1" != "$2" ]; then echo "got: $1"; echo "expected: $2"; exit 1; fi; }

# Without a template there is no conversation.
status=0
hierarchos chat --model examples/demo-model --message "Hello" >"$out/out" 2>"$out/err" || status=$?
is "$status" 2
grep -q "no chat template" "$out/err"

printf '%s' "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% else %}{{ m.content }}{% endif %}{% endfor %}" >"$out/template.jinja"
chat=(chat --model examples/demo-model --chat-template "$out/template.jinja" --max-new-tokens 12 --greedy)

# The first answer is the continuation; the second one sees all that was said.
first=$(hierarchos generate --model examples/demo-model --prompt "Once upon a time" --no-echo --max-new-tokens 12)
is "$(hierarchos "${chat[@]}" --message "Once upon a time")" "$first"
second=$(hierarchos generate --model examples/demo-model --prompt "Once upon a time$first He" --no-echo --max-new-tokens 12)
is "$(hierarchos "${chat[@]}" --message "Once upon a time" --message " He" | tail -n +2)" "$second"
is "$(printf 'Once upon a time\n He\n' | hierarchos "${chat[@]}" | tail -n +2)" "$second"

# A message over several lines, a system prompt, a conversation as JSON, and going on with it.
hierarchos "${chat[@]}" --system "Once upon" --message " a time" --json >"$out/talk.json"
is "$(grep -c '"role"' "$out/talk.json")" 3
is "$(hierarchos "${chat[@]}" --load "$out/talk.json" --message " He" )" "$second"
is "$(printf 'Once upon\\\n a time\n' | hierarchos "${chat[@]}" --json | grep -c 'Once upon\\n a time')" 1
is "$(printf '"""\nOnce upon\n a time\n"""\n' | hierarchos "${chat[@]}" --json | grep -c 'Once upon\\n a time')" 1

# What does not fit is refused, with what to do.
status=0
hierarchos "${chat[@]}" --context 16 --message "Once upon a time there was a very long message that goes on and on and on" >"$out/out" 2>"$out/err" || status=$?
is "$status" 2
grep -q -- "--context" "$out/err"
echo '{"messages": [{"role": 1}]}' >"$out/bad.json"
status=0
hierarchos "${chat[@]}" --load "$out/bad.json" --message x >"$out/out" 2>"$out/err" || status=$?
is "$status" 4
