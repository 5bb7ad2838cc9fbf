/* SPDX-License-Identifier: MIT */
/*
 * Reader of GGUF model files, version 2 and 3, little-endian.
 *
 * The file is hostile until proven otherwise: every count is checked against the bytes that are
 * left before anything is allocated or multiplied, and a file that breaks a rule is refused with
 * one line naming file, field, value and offset (error->status 3).  Metadata is read with pread
 * into memory of its own; tensor data is reached by yi_gguf_map or yi_gguf_read.
 *
 * A struct yi_gguf is read-only once open: any number of threads may read it.
 */
#ifndef YI_GGUF_H
#define YI_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/runner/error.h"
#include "tools/runner/quant.h"

enum yi_gguf_type {
	YI_GGUF_U8,
	YI_GGUF_I8,
	YI_GGUF_U16,
	YI_GGUF_I16,
	YI_GGUF_U32,
	YI_GGUF_I32,
	YI_GGUF_F32,
	YI_GGUF_BOOL,
	YI_GGUF_STRING,
	YI_GGUF_ARRAY,
	YI_GGUF_U64,
	YI_GGUF_I64,
	YI_GGUF_F64,
	YI_GGUF_TYPES
};

/* Bytes of a string in the metadata, not ended by NUL; lives as long as the file is open. */
struct yi_text {
	const char *bytes;
	size_t len;
};

struct yi_gguf_value {
	struct yi_text key;
	enum yi_gguf_type type;      /* for an array: YI_GGUF_ARRAY */
	enum yi_gguf_type elem_type; /* of an array's elements, else the type itself */
	uint64_t count;              /* of elements, 1 for a scalar */
	const uint8_t *data;         /* first element, unaligned */
	uint64_t data_bytes;
	uint64_t offset; /* of the key in the file, for messages */
};

struct yi_gguf_tensor {
	char name[64];
	enum yi_type type;
	uint32_t n_dims;
	uint64_t ne[4];  /* ne[0] is contiguous; dimensions not given are 1 */
	uint64_t offset; /* of the data in the file */
	uint64_t bytes;
	uint64_t info_offset; /* of the description in the file, for messages */
};

struct yi_gguf {
	char *path;
	int fd;
	uint64_t file_bytes;
	uint32_t version;
	uint32_t alignment;
	uint64_t data_offset; /* where tensor data starts */
	uint64_t data_bytes;  /* sum of padded tensors */
	uint32_t n_values, n_tensors;
	struct yi_gguf_value *values;
	struct yi_gguf_tensor *tensors;
	uint8_t *meta; /* the metadata's bytes, from offset 0 */
	uint64_t meta_bytes;
	uint32_t *value_index, *tensor_index; /* open-addressed tables of name -> number + 1 */
	uint32_t value_slots, tensor_slots;   /* powers of 2 */
};

/* Opens and checks everything but the tensors' data.  NULL: refused or trouble, see error. */
struct yi_gguf *yi_gguf_open(const char *path, struct yi_error *error);
void yi_gguf_close(struct yi_gguf *file);

const struct yi_gguf_value *yi_gguf_find(const struct yi_gguf *file, const char *key);
const struct yi_gguf_tensor *yi_gguf_find_tensor(const struct yi_gguf *file, const char *name);

/*
 * Scalars.  0: found and of a fitting type; -ENOENT: no such key (nothing else is touched, so a
 * default put into *ret before stays); -EINVAL: there but of a wrong type or out of range, with
 * error filled.  Integers of every width are taken where they fit.
 */
int yi_gguf_get_u32(const struct yi_gguf *file, const char *key, uint32_t *ret,
		    struct yi_error *error);
int yi_gguf_get_f32(const struct yi_gguf *file, const char *key, float *ret,
		    struct yi_error *error);
int yi_gguf_get_bool(const struct yi_gguf *file, const char *key, bool *ret,
		     struct yi_error *error);
int yi_gguf_get_text(const struct yi_gguf *file, const char *key, struct yi_text *ret,
		     struct yi_error *error);

/*
 * Arrays.  The getter checks that the key holds an array of that element type; I32 and U32 are
 * taken for each other.  Elements of fixed size are read by number, strings in order through a
 * cursor: `const uint8_t *at = NULL; while (yi_gguf_next_text(array, &at, &text)) ...`.
 */
int yi_gguf_get_array(const struct yi_gguf *file, const char *key, enum yi_gguf_type elem_type,
		      const struct yi_gguf_value **ret, struct yi_error *error);
bool yi_gguf_next_text(const struct yi_gguf_value *array, const uint8_t **at, struct yi_text *ret);
float yi_gguf_f32_at(const struct yi_gguf_value *array, uint64_t number);
int32_t yi_gguf_i32_at(const struct yi_gguf_value *array, uint64_t number);

/* Fills `error` with the standard refusal about a value: file, key, its value, its offset. */
int yi_gguf_refuse_value(const struct yi_gguf *file, const struct yi_gguf_value *value,
			 struct yi_error *error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same about something that is absent or that belongs to no single value. */
int yi_gguf_refuse(const struct yi_gguf *file, const char *field, struct yi_error *error,
		   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Tensor data: the whole file mapped shared and read-only, or read into one aligned block. */
const uint8_t *yi_gguf_map(const struct yi_gguf *file, struct yi_error *error);
uint8_t *yi_gguf_read(const struct yi_gguf *file, struct yi_error *error);

#endif
