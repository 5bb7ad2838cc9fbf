/* SPDX-License-Identifier: MIT */
/* libchain2: the next definition behind libchain1's. */
int cuda_chain(void);
int chain(void);

int chain(void)
{
	return 2;
}

int cuda_chain(void)
{
	return 2;
}
