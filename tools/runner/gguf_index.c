/* SPDX-License-Identifier: MIT */
/* Tables of names to values and tensors; see gguf.h and gguf_cursor.h. */
#include <string.h>

#include "tools/runner/gguf_cursor.h"
#include "tools/runner/mem.h"

static uint32_t hash_name(const char *name, size_t len)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619U;
	return hash;
}

/* A table of `count` names, at most half full. */
uint32_t *yi_gguf_index_create(uint32_t count, uint32_t *ret_slots)
{
	uint32_t slots = 8;

	while (slots < count * 2)
		slots *= 2;
	*ret_slots = slots;
	return yi_mem_zeroed(YI_MEM_OTHER, slots * sizeof(uint32_t));
}

static struct yi_text value_name(const struct yi_gguf *file, uint32_t number)
{
	return file->values[number].key;
}

static struct yi_text tensor_name(const struct yi_gguf *file, uint32_t number)
{
	const char *name = file->tensors[number].name;

	return (struct yi_text){name, strlen(name)};
}

/* The slot of that name or the free slot where it belongs. */
uint32_t *yi_gguf_index_slot(const struct yi_gguf *file, uint32_t *index, uint32_t slots,
			     struct yi_text name)
{
	uint32_t at = hash_name(name.bytes, name.len) & (slots - 1);

	for (; index[at]; at = (at + 1) & (slots - 1)) {
		struct yi_text other = index == file->value_index
					       ? value_name(file, index[at] - 1)
					       : tensor_name(file, index[at] - 1);

		if (other.len == name.len && memcmp(other.bytes, name.bytes, name.len) == 0)
			break;
	}
	return &index[at];
}

const struct yi_gguf_value *yi_gguf_find(const struct yi_gguf *file, const char *key)
{
	struct yi_text name = {key, strlen(key)};
	uint32_t number = *yi_gguf_index_slot(file, file->value_index, file->value_slots, name);

	return number ? &file->values[number - 1] : NULL;
}

const struct yi_gguf_tensor *yi_gguf_find_tensor(const struct yi_gguf *file, const char *name)
{
	struct yi_text text = {name, strlen(name)};
	uint32_t number = *yi_gguf_index_slot(file, file->tensor_index, file->tensor_slots, text);

	return number ? &file->tensors[number - 1] : NULL;
}
