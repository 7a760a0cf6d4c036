/* The operators of ai.zyfa called directly, without ONNX Runtime: plain C, part of libzyfa_ort_ops.so.
 *
 * Functions that can fail return 0, or -1 and one line in `text`, which holds `size` bytes.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char* name;
  const char* text; /* of a text attribute, else null */
  int64_t integer;
  float real;
  int32_t is_real;
} zyfa_attribute;

/* type: ONNX's number of the element type, 0 for an absent optional input or output. */
typedef struct {
  const int64_t* shape;
  int32_t type;
  int32_t rank;
} zyfa_tensor;

typedef struct {
  const char* op;   /* "ZyfaPrefillAttention", "ZyfaQuantizeFp8" or "ZyfaHadamard" */
  const char* name; /* of the node, for messages */
  const zyfa_attribute* attributes;
  const zyfa_tensor *inputs, *outputs; /* in the operator's order */
  int64_t attribute_count, input_count, output_count;
  int32_t device;        /* HIP's number of a GPU, -1 for the CPU */
  int32_t byte_rounding; /* of a GPU: 0 unknown, 1 to nearest, 2 truncates, 3 other */
} zyfa_node_request;

typedef struct zyfa_node zyfa_node;

/* A node with fixed shapes. Everything that can be refused is refused here. */
int zyfa_node_create(const zyfa_node_request* request, zyfa_node** node, char* text, int64_t size);
void zyfa_node_destroy(zyfa_node* node);

/* Contiguous tensors in the order of the request, null where absent. On the CPU returns when done; on a GPU
   everything is put on `stream` (a hipStream_t) and nothing waits. */
int zyfa_node_run(const zyfa_node* node, const void* const* inputs, void* const* outputs, void* stream,
                  char* text, int64_t size);

/* Opens a GPU and writes "name|architecture|1 when it is emulated|path of HIP" to `text`. */
int zyfa_gpu_open(int32_t device, char* text, int64_t size);

/* A stream of ours: whoever waits for it learns what its launches found. */
typedef struct zyfa_stream zyfa_stream;
int zyfa_stream_create(int32_t device, zyfa_stream** stream, char* text, int64_t size);
void* zyfa_stream_handle(const zyfa_stream* stream);
int zyfa_stream_synchronize(zyfa_stream* stream, char* text, int64_t size);
void zyfa_stream_destroy(zyfa_stream* stream);

/* Memory that is kept between uses, 256-aligned, for work on one stream. */
int zyfa_memory_allocate(int32_t device, uint64_t bytes, void* stream, void** pointer, char* text,
                         int64_t size);
void zyfa_memory_release(int32_t device, void* pointer);
/* kind: 1 to the device, 2 to the host, 3 within the device. Puts the copy on `stream`. */
int zyfa_memory_copy(int32_t device, void* to, const void* from, uint64_t bytes, int32_t kind, void* stream,
                     char* text, int64_t size);

#ifdef __cplusplus
}
#endif
