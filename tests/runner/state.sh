#!/bin/sh
# SPDX-License-Identifier: MIT
# A session that is saved and restored goes on exactly where it ended, whatever holds its keys and
# values; the prompt of the second run continues it; what is no state of this model is refused.
RUN=$TM_BUILD/yi-coder-run
failed=0
"$RUN" make-model --shape tiny -o tiny.gguf || exit 1
"$RUN" make-model --shape tiny --layers 3 -o other.gguf || exit 1

same() {
	if ! cmp "$1" "$2"; then
		echo "$3: another text"
		failed=1
	fi
}

for options in "" "--kv-alloc full" "--kv f32" "--kv q8_0" "--kv-alloc ring -c 20" "--load read -t 2"; do
	"$RUN" -m tiny.gguf -p 'Hello world' --greedy -n 30 --quiet $options | tr -d '\n' >whole || exit 1
	"$RUN" -m tiny.gguf -p 'Hello world' --greedy -n 12 --quiet $options --save state >first || exit 1
	"$RUN" -m tiny.gguf --restore state --greedy -n 18 --quiet $options --save later >second || exit 1
	cat first second | tr -d '\n' >both
	same whole both "'$options'"
done

# The second prompt's tokens follow the first answer's.
ids() {
	"$RUN" -m tiny.gguf --tokenize "$1" | tr ' ' ,
}
"$RUN" -m tiny.gguf -p 'Hello' --greedy -n 1 --quiet --save state >/dev/null || exit 1
"$RUN" -m tiny.gguf -p 'Hello' --greedy -n 1 --quiet --logits rows >/dev/null || exit 1
"$RUN" -m tiny.gguf --restore state -p ' again' --greedy -n 9 --quiet >second || exit 1
drawn=$(python3 -c '
import array
rows = array.array("f", open("rows", "rb").read())[-1024:]
print(max(range(1024), key=lambda i: rows[i]))')
"$RUN" -m tiny.gguf --tokens "$(ids Hello),$drawn,$(ids ' again')" --greedy -n 9 --quiet >whole || exit 1
same whole second "a second prompt"

refused() {
	"$RUN" -m "$1" --restore "$2" -n 1 --quiet >out 2>err
	status=$?
	if [ $status -ne 1 ] || [ "$(wc -l <err)" -ne 1 ] || [ -s out ]; then
		echo "$3: status $status, $(cat err)"
		failed=1
	fi
}
refused other.gguf state "another model"
refused tiny.gguf tiny.gguf "no state"
refused tiny.gguf nowhere "no file"
head -c 500 state >cut
refused tiny.gguf cut "half a state"
exit $failed
