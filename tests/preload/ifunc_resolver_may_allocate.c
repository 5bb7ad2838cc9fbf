/* SPDX-License-Identifier: MIT */
/*
 * H01: the resolver of an indirect function allocates, resizes and frees while its library is relocated:
 * before any constructor, maybe before this library is relocated itself.
 * Failure: a crash before main.
 */
/* libs: libifunc.so */
/* build: -Wl,-z,now */
int ifunc_answer(void);
int ifunc_call(void);

int main(void)
{
	return ifunc_answer() != 42 || ifunc_call() != 42;
}
