/* SPDX-License-Identifier: MIT */
/* Values of the metadata, refusals about them, tensor data; see gguf.h. */
#include "tools/runner/gguf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/runner/mem.h"

/* A scalar integer of any width as two's complement plus a sign; false for other types. */
static bool integer_of(const struct yi_gguf_value *value, int64_t *ret, bool *ret_huge)
{
	uint64_t raw = 0;

	*ret_huge = false;
	switch (value->type) {
	case YI_GGUF_U8:
	case YI_GGUF_BOOL: raw = value->data[0]; break;
	case YI_GGUF_I8: raw = (uint64_t)(int64_t)(int8_t)value->data[0]; break;
	case YI_GGUF_U16: raw = (uint64_t)(value->data[0] | value->data[1] << 8); break;
	case YI_GGUF_I16:
		raw = (uint64_t)(int64_t)(int16_t)(value->data[0] | value->data[1] << 8);
		break;
	case YI_GGUF_U32: {
		uint32_t word;

		memcpy(&word, value->data, sizeof(word));
		raw = word;
		break;
	}
	case YI_GGUF_I32: {
		int32_t word;

		memcpy(&word, value->data, sizeof(word));
		raw = (uint64_t)(int64_t)word;
		break;
	}
	case YI_GGUF_U64:
		memcpy(&raw, value->data, sizeof(raw));
		*ret_huge = raw > INT64_MAX;
		break;
	case YI_GGUF_I64: memcpy(&raw, value->data, sizeof(raw)); break;
	default: return false;
	}
	*ret = (int64_t)raw;
	return true;
}

static bool float_of(const struct yi_gguf_value *value, double *ret)
{
	float single;

	if (value->type == YI_GGUF_F64) {
		memcpy(ret, value->data, sizeof(*ret));
		return true;
	}
	if (value->type != YI_GGUF_F32)
		return false;
	memcpy(&single, value->data, sizeof(single));
	*ret = (double)single;
	return true;
}

/* A value as text for a message. */
static void describe(const struct yi_gguf_value *value, char *text, size_t size)
{
	static const char *const names[YI_GGUF_TYPES] = {
		"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
		"bool", "string", "array", "u64", "i64", "f64",
	};
	double real;
	int64_t number;
	bool huge;

	if (value->type == YI_GGUF_ARRAY)
		snprintf(text, size, "array of %" PRIu64 " %s", value->count,
			 names[value->elem_type]);
	else if (value->type == YI_GGUF_STRING)
		snprintf(text, size, "'%.*s'",
			 value->data_bytes < 56 ? (int)value->data_bytes - 8 : 48,
			 (const char *)value->data + 8);
	else if (float_of(value, &real))
		snprintf(text, size, "%g", real);
	else if (integer_of(value, &number, &huge))
		snprintf(text, size, huge ? "%" PRIu64 : "%" PRId64, number);
}

int yi_gguf_refuse_value(const struct yi_gguf *file, const struct yi_gguf_value *value,
			 struct yi_error *error, const char *format, ...)
{
	char what[200], text[96] = "";
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	describe(value, text, sizeof(text));
	return yi_error_set(error, YI_EXIT_REFUSED, -EINVAL, "%s: %.*s: %s %s at offset %" PRIu64,
			    file->path, value->key.len < 64 ? (int)value->key.len : 64,
			    value->key.bytes, text, what, value->offset);
}

int yi_gguf_refuse(const struct yi_gguf *file, const char *field, struct yi_error *error,
		   const char *format, ...)
{
	char what[200];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return yi_error_set(error, YI_EXIT_REFUSED, -EINVAL, "%s: %s: %s at offset %" PRIu64,
			    file->path, field, what, file->data_offset);
}

int yi_gguf_get_u32(const struct yi_gguf *file, const char *key, uint32_t *ret,
		    struct yi_error *error)
{
	const struct yi_gguf_value *value = yi_gguf_find(file, key);
	int64_t number;
	bool huge;

	if (!value)
		return -ENOENT;
	if (value->type == YI_GGUF_BOOL || !integer_of(value, &number, &huge))
		return yi_gguf_refuse_value(file, value, error, "is not an integer");
	if (huge || number < 0 || number > UINT32_MAX)
		return yi_gguf_refuse_value(file, value, error, "is not from 0 to %u", UINT32_MAX);
	*ret = (uint32_t)number;
	return 0;
}

int yi_gguf_get_f32(const struct yi_gguf *file, const char *key, float *ret, struct yi_error *error)
{
	const struct yi_gguf_value *value = yi_gguf_find(file, key);
	double real;

	if (!value)
		return -ENOENT;
	if (!float_of(value, &real))
		return yi_gguf_refuse_value(file, value, error, "is not a real number");
	*ret = (float)real;
	return 0;
}

int yi_gguf_get_bool(const struct yi_gguf *file, const char *key, bool *ret, struct yi_error *error)
{
	const struct yi_gguf_value *value = yi_gguf_find(file, key);

	if (!value)
		return -ENOENT;
	if (value->type != YI_GGUF_BOOL)
		return yi_gguf_refuse_value(file, value, error, "is not a truth value");
	*ret = value->data[0] != 0;
	return 0;
}

int yi_gguf_get_text(const struct yi_gguf *file, const char *key, struct yi_text *ret,
		     struct yi_error *error)
{
	const struct yi_gguf_value *value = yi_gguf_find(file, key);
	uint64_t len;

	if (!value)
		return -ENOENT;
	if (value->type != YI_GGUF_STRING)
		return yi_gguf_refuse_value(file, value, error, "is not a string");
	memcpy(&len, value->data, sizeof(len));
	ret->bytes = (const char *)value->data + sizeof(len);
	ret->len = (size_t)len;
	return 0;
}

static bool is_word(enum yi_gguf_type type)
{
	return type == YI_GGUF_I32 || type == YI_GGUF_U32;
}

int yi_gguf_get_array(const struct yi_gguf *file, const char *key, enum yi_gguf_type elem_type,
		      const struct yi_gguf_value **ret, struct yi_error *error)
{
	const struct yi_gguf_value *value = yi_gguf_find(file, key);

	if (!value)
		return -ENOENT;
	if (value->type != YI_GGUF_ARRAY)
		return yi_gguf_refuse_value(file, value, error, "is not an array");
	if (value->elem_type != elem_type && !(is_word(elem_type) && is_word(value->elem_type)))
		return yi_gguf_refuse_value(file, value, error, "has elements of a wrong type");
	*ret = value;
	return 0;
}

bool yi_gguf_next_text(const struct yi_gguf_value *array, const uint8_t **at, struct yi_text *ret)
{
	const uint8_t *from = *at ? *at : array->data;
	uint64_t len;

	if (from == array->data + array->data_bytes)
		return false;
	memcpy(&len, from, sizeof(len));
	ret->bytes = (const char *)from + sizeof(len);
	ret->len = (size_t)len;
	*at = from + sizeof(len) + len;
	return true;
}

float yi_gguf_f32_at(const struct yi_gguf_value *array, uint64_t number)
{
	float value;

	memcpy(&value, array->data + number * sizeof(value), sizeof(value));
	return value;
}

int32_t yi_gguf_i32_at(const struct yi_gguf_value *array, uint64_t number)
{
	int32_t value;

	memcpy(&value, array->data + number * sizeof(value), sizeof(value));
	return value;
}

const uint8_t *yi_gguf_map(const struct yi_gguf *file, struct yi_error *error)
{
	void *map = mmap(NULL, file->file_bytes, PROT_READ, MAP_SHARED, file->fd, 0);

	if (map == MAP_FAILED) {
		yi_error_set(error, YI_EXIT_TROUBLE, -errno, "%s: cannot be mapped: %s", file->path,
			     strerror(errno));
		return NULL;
	}
	return map;
}

uint8_t *yi_gguf_read(const struct yi_gguf *file, struct yi_error *error)
{
	/* One block for all parameters, aligned as engines align it. */
	uint8_t *data = yi_mem_aligned(YI_MEM_WEIGHTS, 64, file->data_bytes);
	uint64_t done = 0;

	if (!data) {
		yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM,
			     "%s: no memory for %" PRIu64 " bytes of parameters", file->path,
			     file->data_bytes);
		return NULL;
	}
	while (done < file->data_bytes) {
		uint64_t left = file->data_bytes - done;
		ssize_t got = pread(file->fd, data + done, left < (1 << 24) ? left : 1 << 24,
				    (off_t)(file->data_offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			yi_error_set(error, YI_EXIT_TROUBLE, got ? -errno : -EIO,
				     "%s: cannot be read: %s", file->path,
				     got ? strerror(errno) : "became shorter");
			yi_mem_free(YI_MEM_WEIGHTS, data);
			return NULL;
		}
		done += (uint64_t)got;
	}
	return data;
}
