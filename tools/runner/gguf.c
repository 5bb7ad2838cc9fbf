/* SPDX-License-Identifier: MIT */
/*
 * See gguf.h. The parser reads the file once, front to back; it never allocates for more elements
 * than the remaining bytes could hold.
 */
#include "tools/runner/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/runner/gguf_cursor.h"
#include "tools/runner/mem.h"

#define COUNT_LIMIT 65536 /* values and tensors, each */
#define NAME_LIMIT 64     /* bytes of a tensor's name with its NUL */
#define KEY_LIMIT 65535
#define ALIGN_DEFAULT 32
#define ALIGN_LIMIT (UINT32_C(1) << 20)
#define VALUE_MIN_BYTES 14  /* key length, 1 byte, type, 1 byte */
#define TENSOR_MIN_BYTES 33 /* name length, 1 byte, count, 1 dimension, type, offset */

/* Bytes of a scalar; 0 for strings and arrays. */
static const uint8_t scalar_bytes[YI_GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static int read_count(struct yi_gguf_cursor *cursor, const char *field, uint64_t min_bytes,
		      uint32_t *ret)
{
	uint64_t offset = cursor->at, count = 0, left;
	int error;

	yi_gguf_cursor_name(cursor, "%s", field);
	error = yi_gguf_cursor_take(cursor, &count, sizeof(count));
	if (error)
		return error;
	left = cursor->file->file_bytes - cursor->at;
	if ((int64_t)count < 0)
		return yi_gguf_cursor_refuse(cursor, offset, "%" PRId64 " is negative",
					     (int64_t)count);
	if (count > COUNT_LIMIT)
		return yi_gguf_cursor_refuse(cursor, offset, "%" PRIu64 " is more than %d", count,
					     COUNT_LIMIT);
	if (count > left / min_bytes)
		return yi_gguf_cursor_refuse(cursor, offset,
					     "%" PRIu64 " can't fit in the %" PRIu64 " bytes left",
					     count, left);
	*ret = (uint32_t)count;
	return 0;
}

static int read_header(struct yi_gguf_cursor *cursor)
{
	struct yi_gguf *file = cursor->file;
	uint8_t magic[4] = {0};
	int error;

	yi_gguf_cursor_name(cursor, "magic");
	error = yi_gguf_cursor_take(cursor, magic, sizeof(magic));
	if (error)
		return error;
	if (memcmp(magic, "GGUF", 4))
		return yi_gguf_cursor_refuse(cursor, 0, "%02x%02x%02x%02x is not GGUF", magic[0],
					     magic[1], magic[2], magic[3]);
	yi_gguf_cursor_name(cursor, "version");
	error = yi_gguf_cursor_take(cursor, &file->version, sizeof(file->version));
	if (error)
		return error;
	if (file->version == 0x02000000 || file->version == 0x03000000)
		return yi_gguf_cursor_refuse(cursor, 4, "0x%08x means a big-endian file",
					     file->version);
	if (file->version < 2 || file->version > 3)
		return yi_gguf_cursor_refuse(cursor, 4, "%u is neither 2 nor 3", file->version);
	error = read_count(cursor, "tensor_count", TENSOR_MIN_BYTES, &file->n_tensors);
	return error ? error
		     : read_count(cursor, "metadata_kv_count", VALUE_MIN_BYTES, &file->n_values);
}

/* Skips the elements of an array, or a scalar's value. */
static int skip_elements(struct yi_gguf_cursor *cursor, const struct yi_gguf_value *value)
{
	uint64_t bytes;
	int error;

	if (value->elem_type != YI_GGUF_STRING) {
		if (__builtin_mul_overflow(value->count, scalar_bytes[value->elem_type], &bytes))
			return yi_gguf_cursor_refuse(cursor, cursor->at,
						     "%" PRIu64 " elements overflow", value->count);
		error = yi_gguf_cursor_need(cursor, bytes);
		if (error)
			return error;
		for (uint64_t i = 0; value->elem_type == YI_GGUF_BOOL && i < bytes; i++)
			if (cursor->file->meta[cursor->at + i] > 1)
				return yi_gguf_cursor_refuse(cursor, cursor->at + i,
							     "%u is no truth value",
							     cursor->file->meta[cursor->at + i]);
		cursor->at += bytes;
		return 0;
	}
	if (value->count > (cursor->file->file_bytes - cursor->at) / sizeof(uint64_t))
		return yi_gguf_cursor_refuse(cursor, cursor->at,
					     "%" PRIu64 " strings can't fit in the file",
					     value->count);
	for (uint64_t i = 0; i < value->count; i++) {
		uint64_t len = 0;

		error = yi_gguf_cursor_take(cursor, &len, sizeof(len));
		if (!error)
			error = yi_gguf_cursor_need(cursor, len);
		if (error)
			return error;
		cursor->at += len;
	}
	return 0;
}

static int read_type(struct yi_gguf_cursor *cursor, const char *what, enum yi_gguf_type *ret)
{
	uint64_t offset = cursor->at;
	int32_t type = 0;
	int error = yi_gguf_cursor_take(cursor, &type, sizeof(type));

	if (error)
		return error;
	if (type < 0 || type >= YI_GGUF_TYPES)
		return yi_gguf_cursor_refuse(cursor, offset, "%s %d is unknown", what, type);
	*ret = (enum yi_gguf_type)type;
	return 0;
}

/*
 * Reads a value; its pointers hold offsets from the start of the metadata until that has its final
 * address.
 */
static int read_value(struct yi_gguf_cursor *cursor, struct yi_gguf_value *value)
{
	uint64_t len = 0;
	int error;

	value->offset = cursor->at;
	value->count = 1;
	error = yi_gguf_cursor_take(cursor, &len, sizeof(len));
	if (error)
		return error;
	if (len == 0 || len > KEY_LIMIT)
		return yi_gguf_cursor_refuse(cursor, value->offset,
					     "length %" PRIu64 " is not 1 to %d", len, KEY_LIMIT);
	error = yi_gguf_cursor_need(cursor, len);
	if (error)
		return error;
	value->key.len = (size_t)len;
	value->key.bytes = (const char *)cursor->at;
	if (memchr(cursor->file->meta + cursor->at, 0, (size_t)len))
		return yi_gguf_cursor_refuse(cursor, value->offset, "holds a NUL byte");
	yi_gguf_cursor_name(cursor, "%.*s", len < 64 ? (int)len : 64,
			    (const char *)cursor->file->meta + cursor->at);
	cursor->at += len;
	error = read_type(cursor, "type", &value->type);
	if (error)
		return error;
	value->elem_type = value->type;
	if (value->type == YI_GGUF_ARRAY) {
		uint64_t offset = cursor->at;

		error = read_type(cursor, "element type", &value->elem_type);
		if (error)
			return error;
		if (value->elem_type == YI_GGUF_ARRAY)
			return yi_gguf_cursor_refuse(cursor, offset, "9 is an array of arrays");
		error = yi_gguf_cursor_take(cursor, &value->count, sizeof(value->count));
		if (error)
			return error;
	}
	value->data = (const uint8_t *)cursor->at;
	error = skip_elements(cursor, value);
	value->data_bytes = cursor->at - (uint64_t)value->data;
	return error;
}

static int read_values(struct yi_gguf_cursor *cursor)
{
	struct yi_gguf *file = cursor->file;

	file->values = yi_mem_array(YI_MEM_OTHER, file->n_values, sizeof(*file->values));
	if (!file->values)
		return yi_gguf_cursor_trouble(cursor, ENOMEM, "metadata");
	for (uint32_t i = 0; i < file->n_values; i++) {
		int error;

		yi_gguf_cursor_name(cursor, "key %u", i);
		error = read_value(cursor, &file->values[i]);
		if (error)
			return error;
	}
	return 0;
}

/* Turns offsets into pointers and enters keys into the table. */
static int settle_values(struct yi_gguf_cursor *cursor)
{
	struct yi_gguf *file = cursor->file;

	file->value_index = yi_gguf_index_create(file->n_values, &file->value_slots);
	if (!file->value_index)
		return yi_gguf_cursor_trouble(cursor, ENOMEM, "metadata");
	for (uint32_t i = 0; i < file->n_values; i++) {
		struct yi_gguf_value *value = &file->values[i];
		uint32_t *slot;

		value->key.bytes = (const char *)file->meta + (uintptr_t)value->key.bytes;
		value->data = file->meta + (uintptr_t)value->data;
		slot = yi_gguf_index_slot(file, file->value_index, file->value_slots, value->key);
		yi_gguf_cursor_name(cursor, "%.*s", value->key.len < 64 ? (int)value->key.len : 64,
				    value->key.bytes);
		if (*slot)
			return yi_gguf_cursor_refuse(cursor, value->offset, "key occurs twice");
		*slot = i + 1;
	}
	return 0;
}

static int read_name(struct yi_gguf_cursor *cursor, struct yi_gguf_tensor *tensor)
{
	uint64_t len = 0;
	int error = yi_gguf_cursor_take(cursor, &len, sizeof(len));

	if (error)
		return error;
	if (len == 0 || len >= NAME_LIMIT)
		return yi_gguf_cursor_refuse(cursor, tensor->info_offset,
					     "name's length %" PRIu64 " is not 1 to %d", len,
					     NAME_LIMIT - 1);
	error = yi_gguf_cursor_take(cursor, tensor->name, (size_t)len);
	if (error)
		return error;
	if (strlen(tensor->name) != len)
		return yi_gguf_cursor_refuse(cursor, tensor->info_offset, "name holds a NUL byte");
	yi_gguf_cursor_name(cursor, "%s", tensor->name);
	return 0;
}

static int read_dims(struct yi_gguf_cursor *cursor, struct yi_gguf_tensor *tensor,
		     uint64_t *ret_elements)
{
	uint64_t offset = cursor->at, elements = 1;
	int error = yi_gguf_cursor_take(cursor, &tensor->n_dims, sizeof(tensor->n_dims));

	if (error)
		return error;
	if (tensor->n_dims < 1 || tensor->n_dims > 4)
		return yi_gguf_cursor_refuse(cursor, offset, "%u dimensions are not 1 to 4",
					     tensor->n_dims);
	for (uint32_t i = 0; i < 4; i++)
		tensor->ne[i] = 1;
	for (uint32_t i = 0; i < tensor->n_dims; i++) {
		offset = cursor->at;
		error = yi_gguf_cursor_take(cursor, &tensor->ne[i], sizeof(tensor->ne[i]));
		if (error)
			return error;
		if ((int64_t)tensor->ne[i] < 1)
			return yi_gguf_cursor_refuse(cursor, offset,
						     "dimension %u of %" PRId64 " is less than 1",
						     i, (int64_t)tensor->ne[i]);
		if (__builtin_mul_overflow(elements, tensor->ne[i], &elements) ||
		    elements > INT64_MAX)
			return yi_gguf_cursor_refuse(cursor, offset,
						     "dimension %u of %" PRIu64
						     " makes the number of elements overflow",
						     i, tensor->ne[i]);
	}
	*ret_elements = elements;
	return 0;
}

static int read_tensor(struct yi_gguf_cursor *cursor, struct yi_gguf_tensor *tensor)
{
	const struct yi_type_traits *traits;
	uint64_t elements = 0, offset;
	uint32_t type = 0;
	int error;

	memset(tensor, 0, sizeof(*tensor));
	tensor->info_offset = cursor->at;
	error = read_name(cursor, tensor);
	if (!error)
		error = read_dims(cursor, tensor, &elements);
	offset = cursor->at;
	if (!error)
		error = yi_gguf_cursor_take(cursor, &type, sizeof(type));
	if (error)
		return error;
	traits = yi_type_find(type);
	if (!traits || !traits->weights)
		return yi_gguf_cursor_refuse(
			cursor, offset, "type %d is not one that this runner knows", (int32_t)type);
	tensor->type = (enum yi_type)type;
	if (tensor->ne[0] % traits->block)
		return yi_gguf_cursor_refuse(cursor, tensor->info_offset,
					     "row of %" PRIu64
					     " elements is not a multiple of %s's block of %u",
					     tensor->ne[0], traits->name, traits->block);
	if (__builtin_mul_overflow(elements / traits->block, traits->block_bytes, &tensor->bytes))
		return yi_gguf_cursor_refuse(cursor, tensor->info_offset,
					     "%" PRIu64 " elements overflow", elements);
	return yi_gguf_cursor_take(cursor, &tensor->offset, sizeof(tensor->offset));
}

/* Tensors must lie back to back in the order of their descriptions, each padded. */
static int place_tensor(struct yi_gguf_cursor *cursor, struct yi_gguf_tensor *tensor)
{
	struct yi_gguf *file = cursor->file;
	uint64_t align = file->alignment, padded, end;

	yi_gguf_cursor_name(cursor, "%s", tensor->name);
	if (tensor->offset % align)
		return yi_gguf_cursor_refuse(cursor, tensor->info_offset,
					     "offset %" PRIu64 " is not a multiple of %" PRIu64,
					     tensor->offset, align);
	if (tensor->offset != file->data_bytes)
		return yi_gguf_cursor_refuse(cursor, tensor->info_offset,
					     "offset %" PRIu64
					     " where the tensor before ends at %" PRIu64,
					     tensor->offset, file->data_bytes);
	if (__builtin_add_overflow(tensor->bytes, align - 1, &padded))
		return yi_gguf_cursor_refuse(cursor, tensor->info_offset,
					     "%" PRIu64 " bytes overflow", tensor->bytes);
	padded -= padded % align;
	if (__builtin_add_overflow(file->data_offset + tensor->offset, padded, &end) ||
	    end > file->file_bytes)
		return yi_gguf_cursor_refuse(
			cursor, tensor->info_offset,
			"%" PRIu64 " bytes from %" PRIu64 " on end beyond the file's %" PRIu64,
			padded, file->data_offset + tensor->offset, file->file_bytes);
	tensor->offset += file->data_offset;
	file->data_bytes += padded;
	return 0;
}

static int read_tensors(struct yi_gguf_cursor *cursor)
{
	struct yi_gguf *file = cursor->file;

	file->tensors = yi_mem_array(YI_MEM_OTHER, file->n_tensors, sizeof(*file->tensors));
	file->tensor_index = yi_gguf_index_create(file->n_tensors, &file->tensor_slots);
	if (!file->tensors || !file->tensor_index)
		return yi_gguf_cursor_trouble(cursor, ENOMEM, "tensors");
	for (uint32_t i = 0; i < file->n_tensors; i++) {
		uint32_t *slot;
		int error;

		yi_gguf_cursor_name(cursor, "tensor %u", i);
		error = read_tensor(cursor, &file->tensors[i]);
		if (error)
			return error;
		slot = yi_gguf_index_slot(
			file, file->tensor_index, file->tensor_slots,
			(struct yi_text){file->tensors[i].name, strlen(file->tensors[i].name)});
		if (*slot)
			return yi_gguf_cursor_refuse(cursor, file->tensors[i].info_offset,
						     "tensor occurs twice");
		*slot = i + 1;
	}
	return 0;
}

static int read_alignment(struct yi_gguf_cursor *cursor)
{
	struct yi_gguf *file = cursor->file;
	const struct yi_gguf_value *value = yi_gguf_find(file, "general.alignment");

	file->alignment = ALIGN_DEFAULT;
	if (!value)
		return 0;
	if (value->type != YI_GGUF_U32)
		return yi_gguf_refuse_value(file, value, cursor->error, "is not of type u32");
	memcpy(&file->alignment, value->data, sizeof(file->alignment));
	if (file->alignment < 8 || file->alignment > ALIGN_LIMIT ||
	    (file->alignment & (file->alignment - 1)))
		return yi_gguf_refuse_value(file, value, cursor->error,
					    "is not a power of 2 from 8 to %u", ALIGN_LIMIT);
	return 0;
}

static int parse(struct yi_gguf_cursor *cursor)
{
	struct yi_gguf *file = cursor->file;
	int error = read_header(cursor);

	if (!error)
		error = read_values(cursor);
	if (!error)
		error = read_tensors(cursor);
	if (!error)
		error = settle_values(cursor);
	if (!error)
		error = read_alignment(cursor);
	if (error)
		return error;
	file->data_offset = (cursor->at + file->alignment - 1) & ~(uint64_t)(file->alignment - 1);
	if (file->data_offset > file->file_bytes) {
		yi_gguf_cursor_name(cursor, "tensor data");
		return yi_gguf_cursor_refuse(cursor, cursor->at,
					     "padding to %" PRIu64
					     " ends beyond the file's %" PRIu64,
					     file->data_offset, file->file_bytes);
	}
	for (uint32_t i = 0; i < file->n_tensors; i++) {
		error = place_tensor(cursor, &file->tensors[i]);
		if (error)
			return error;
	}
	return 0;
}

struct yi_gguf *yi_gguf_open(const char *path, struct yi_error *error)
{
	struct yi_gguf *file = yi_mem_zeroed(YI_MEM_OTHER, sizeof(*file));
	struct yi_gguf_cursor cursor = {.file = file, .error = error, .field = "file"};
	struct stat st;

	if (!file) {
		yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "%s: no memory", path);
		return NULL;
	}
	file->fd = -1;
	file->path = yi_mem_text(YI_MEM_OTHER, path, strlen(path));
	if (!file->path) {
		yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "%s: no memory", path);
		goto fail;
	}
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0 || fstat(file->fd, &st)) {
		yi_gguf_cursor_trouble(&cursor, errno, "cannot be opened");
		goto fail;
	}
	if (!S_ISREG(st.st_mode)) {
		yi_error_set(error, YI_EXIT_TROUBLE, -EINVAL, "%s: not a regular file", path);
		goto fail;
	}
	file->file_bytes = (uint64_t)st.st_size;
	if (parse(&cursor))
		goto fail;
	return file;
fail:
	yi_gguf_close(file);
	return NULL;
}

void yi_gguf_close(struct yi_gguf *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	yi_mem_free(YI_MEM_OTHER, file->value_index);
	yi_mem_free(YI_MEM_OTHER, file->tensor_index);
	yi_mem_free(YI_MEM_OTHER, file->values);
	yi_mem_free(YI_MEM_OTHER, file->tensors);
	yi_mem_free(YI_MEM_OTHER, file->meta);
	yi_mem_free(YI_MEM_OTHER, file->path);
	yi_mem_free(YI_MEM_OTHER, file);
}
