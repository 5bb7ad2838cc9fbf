/* SPDX-License-Identifier: MIT */
/* See ops.h. */
#include "tools/runner/ops.h"

#include <math.h>
#include <string.h>

#include "tools/runner/half.h"

/*
 * Vectors of four, so that vectorisation does not depend on the compiler; each element as in scalar
 * code.
 */
typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef uint32_t v4u __attribute__((vector_size(16)));

static v4f load4(const float *from)
{
	v4f value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static void store4(float *to, v4f value)
{
	memcpy(to, &value, sizeof(value));
}

static v4f splat(float value)
{
	return (v4f){value, value, value, value};
}

void yi_ops_rms_norm(const float *row, const float *weights, float eps, float *ret, size_t n)
{
	double sum = 0;
	float mean, scale;

	for (size_t i = 0; i < n; i++)
		sum += (double)(row[i] * row[i]);
	mean = (float)(sum / (double)n);
	scale = 1.0f / sqrtf(mean + eps);
	for (size_t i = 0; i < n; i++)
		ret[i] = row[i] * scale * weights[i];
}

void yi_ops_rope_angles(const struct yi_rope *rope, float position, float *ret_angles)
{
	/*
	 * The angle is multiplied step by step, not raised to a power for each pair: the bits
	 * differ.
	 */
	const float step = powf(rope->base, -2.0f / (float)rope->head_dim);
	float theta = position;

	for (uint32_t i = 0; i < rope->head_dim / 2; i++) {
		const float angle = rope->freqs ? theta / rope->freqs[i] : theta;

		ret_angles[2 * i] = cosf(angle);
		ret_angles[2 * i + 1] = sinf(angle);
		theta *= step;
	}
}

void yi_ops_rotate(float *row, uint32_t heads, uint32_t head_dim, const float *angles)
{
	for (uint32_t h = 0; h < heads; h++, row += head_dim) {
		for (uint32_t i = 0; i < head_dim; i += 2) {
			const float x0 = row[i], x1 = row[i + 1];

			row[i] = x0 * angles[i] - x1 * angles[i + 1];
			row[i + 1] = x0 * angles[i + 1] + x1 * angles[i];
		}
	}
}

/* Elements whose exponent leaves the range of one scaling step: scale twice. */
static float exp_far(float n, float j, uint32_t e)
{
	const uint32_t g = n <= 0 ? 0x82000000u : 0;
	const float s1 = yi_half_from_bits(g + 0x7f000000u), s2 = yi_half_from_bits(e - g);

	return fabsf(n) > 192 ? s1 * s1 : (s2 + s2 * j) * s1;
}

/*
 * e^x with an error below 1.5 units in the last place.  n = round(x / ln 2) comes out of the low
 * bits of z; b is the rest; j is a polynomial in b for e^b - 1; k is 2^n.
 */
static v4f exp4(v4f x)
{
	const v4f round = splat(0x1.8p23f);
	const v4f z = x * splat(0x1.715476p+0f) + round;
	const v4f n = z - round;
	const v4f b = (x - n * splat(0x1.62e4p-1f)) - n * splat(0x1.7f7d1cp-20f);
	const v4u e = (v4u)z << 23;
	const v4f k = (v4f)(e + 0x3f800000u);
	const v4f u = b * b;
	const v4f j = ((splat(0x1.0e4020p-7f) * b + splat(0x1.573e2ep-5f)) * u +
		       (splat(0x1.555e66p-3f) * b + splat(0x1.fffdb6p-2f))) *
			      u +
		      splat(0x1.ffffecp-1f) * b;
	v4f result = k + j * k;
	const v4i far = (n > splat(126)) | (n < splat(-126));

	if (far[0] | far[1] | far[2] | far[3])
		for (int i = 0; i < 4; i++)
			if (far[i])
				result[i] = exp_far(n[i], j[i], e[i]);
	return result;
}

void yi_ops_soft_max(float *scores, size_t n)
{
	float max = -INFINITY;
	double sum = 0;
	float scale;

	for (size_t i = 0; i < n; i++)
		max = scores[i] > max ? scores[i] : max;
	for (size_t i = n; i % 4; i++)
		scores[i] = -INFINITY;
	for (size_t i = 0; i < n; i += 4) {
		const v4f value = exp4(load4(scores + i) - splat(max));

		store4(scores + i, value);
		sum += (double)((value[0] + value[1]) + (value[2] + value[3]));
	}
	scale = (float)(1.0 / sum);
	for (size_t i = 0; i < n; i++)
		scores[i] *= scale;
}

void yi_ops_silu_mul(float *gate, const float *up, size_t n)
{
	size_t i = 0;

	for (; i + 4 <= n; i += 4) {
		const v4f x = load4(gate + i);

		store4(gate + i, x / (splat(1) + exp4(splat(0) - x)) * load4(up + i));
	}
	for (; i < n; i++)
		gate[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

void yi_ops_add(float *sum, const float *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] += row[i];
}

bool yi_ops_finite(const float *row, size_t n)
{
	uint32_t bad = 0;

	for (size_t i = 0; i < n; i++)
		bad |= (yi_half_bits_of(row[i]) & 0x7f800000) == 0x7f800000;
	return bad == 0;
}
