/* SPDX-License-Identifier: MIT */
/* Whatever a file of requests holds: it is read, or refused in one line, and nothing stays. */
#include "tests/fuzz/runner/mutate.h"
#include "tools/runner/mem.h"
#include "tools/runner/request.h"

static void try(const uint8_t *bytes, size_t len)
{
	struct yi_requests requests = {NULL, 0, 0};
	struct yi_error error = {0, ""};
	int code;

	mutate_write("requests.jsonl", bytes, len);
	code = yi_requests_read("requests.jsonl", 1000, &requests, &error);
	if (code ? error.status != 2 || !error.text[0] || strchr(error.text, '\n')
		 : requests.count == 0)
		abort();
	for (size_t i = 0; i < requests.count; i++) {
		const struct yi_request *request = &requests.list[i];

		if (!request->session || request->n == 0 || request->prefix >= (int64_t)i ||
		    (!request->prompt && !request->ids.count))
			abort();
		for (size_t j = 0; j < request->ids.count; j++)
			if (request->ids.ids[j] >= 1000)
				abort();
	}
	yi_requests_clear(&requests);
	if (yi_mem_live_bytes())
		abort();
}

int main(int argc, char **argv)
{
	return mutate_main(argc, argv, try);
}
