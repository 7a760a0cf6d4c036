/* A window into the HIP runtime for tests: plain C, part of libzyfa_select.so. Functions return 0, or -1 and
 * one line in `text`.
 */
#pragma once

#include <stdint.h>

#include "select_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The pool of device 0. `stream` is ignored unless `on_stream`. */
int zyfa_pool_allocate(uint64_t bytes, int on_stream, void* stream, void** pointer, char* text, int64_t size);
void zyfa_pool_release(void* pointer);
void zyfa_pool_touch(void* stream);
void zyfa_pool_finished(void* stream);
int zyfa_pool_trim(char* text, int64_t size);

/* Runs a problem on a stream of device 0; pointers are device addresses in the order of BUFFERS. */
int zyfa_run(const zyfa_select_problem* problem, const void* const* pointers, void* stream, char* text,
             int64_t size);

/* Opens a device and says "name|architecture". */
int zyfa_device(int ordinal, char* text, int64_t size);

/* The length of a code object, or -1. */
int64_t zyfa_code_object(const char* name, char* text, int64_t size);

#ifdef __cplusplus
}
#endif
