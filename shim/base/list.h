/* SPDX-License-Identifier: MIT */
/*
 * list: intrusive doubly linked list. A zeroed head is an empty list, so a list in .bss needs no
 * initialisation. The caller owns the nodes and does the locking.
 */
#ifndef TM_BASE_LIST_H
#define TM_BASE_LIST_H

#include "shim/base/attrs.h"

struct tm_list_node {
	struct tm_list_node *next;
	struct tm_list_node *prev;
};

struct tm_list {
	struct tm_list_node *first;
	struct tm_list_node *last;
};

/* The structure that holds "node" as its field "field". */
#define TM_CONTAINER_OF(node, type, field) ((type *)(void *)((char *)(node)-offsetof(type, field)))

TM_INLINE bool tm_list_is_empty(const struct tm_list *list)
{
	return list->first == NULL;
}

TM_INLINE void tm_list_push_front(struct tm_list *list, struct tm_list_node *node)
{
	node->prev = NULL;
	node->next = list->first;
	if (list->first)
		list->first->prev = node;
	else
		list->last = node;
	list->first = node;
}

TM_INLINE void tm_list_push_back(struct tm_list *list, struct tm_list_node *node)
{
	node->next = NULL;
	node->prev = list->last;
	if (list->last)
		list->last->next = node;
	else
		list->first = node;
	list->last = node;
}

/* "node" must be on "list". */
TM_INLINE void tm_list_remove(struct tm_list *list, struct tm_list_node *node)
{
	if (node->prev)
		node->prev->next = node->next;
	else
		list->first = node->next;
	if (node->next)
		node->next->prev = node->prev;
	else
		list->last = node->prev;
	node->next = NULL;
	node->prev = NULL;
}

/* NULL when the list is empty. */
TM_INLINE struct tm_list_node *tm_list_pop_front(struct tm_list *list)
{
	struct tm_list_node *node = list->first;

	if (node)
		tm_list_remove(list, node);
	return node;
}

TM_INLINE struct tm_list_node *tm_list_pop_back(struct tm_list *list)
{
	struct tm_list_node *node = list->last;

	if (node)
		tm_list_remove(list, node);
	return node;
}

/* Appends all nodes of "from" to "to"; "from" is empty afterwards. */
TM_INLINE void tm_list_splice_back(struct tm_list *to, struct tm_list *from)
{
	if (from->first == NULL)
		return;
	from->first->prev = to->last;
	if (to->last)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	from->first = NULL;
	from->last = NULL;
}

#endif
