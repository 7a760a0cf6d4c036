// Of the kernels that MIGraphX's gpu target has compiled beforehand: the copy with which every segment writes
// its outputs, and the fill. MIGRAPHX_VERSION is the inline namespace of the library that this stands beside;
// classes are known by the functions that it exports.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct ihipStream_t;
extern "C" {
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, ihipStream_t* stream);
int hipMemsetAsync(void* to, int value, size_t bytes, ihipStream_t* stream);
int hipStreamSynchronize(ihipStream_t* stream);
}

namespace migraphx {
inline namespace MIGRAPHX_VERSION {

struct shape {
  const std::vector<size_t>& lens() const;
  const std::vector<size_t>& strides() const;
  size_t bytes() const;
  size_t type_size() const;
  bool standard() const;
};

struct argument {
  const shape& get_shape() const;
  char* data() const;
};

namespace gpu::device {

constexpr int kToDevice = 1, kToHost = 2, kWithin = 3;

static void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s failed in the rig\n", what);
  std::abort();
}

static size_t offset(const shape& s, size_t index) {
  size_t at = 0;
  for (size_t axis = s.lens().size(); axis-- > 0;) {
    at += index % s.lens()[axis] * s.strides()[axis];
    index /= s.lens()[axis];
  }
  return at;
}

void contiguous(ihipStream_t* stream, const argument& result, const argument& source) {
  const shape &to = result.get_shape(), &from = source.get_shape();
  if (to.standard() && from.standard()) {
    expect(hipMemcpyAsync(result.data(), source.data(), to.bytes(), kWithin, stream) == 0, "hipMemcpyAsync");
    return;
  }
  std::vector<char> have(from.bytes()), made(to.bytes());
  expect(hipMemcpyAsync(have.data(), source.data(), have.size(), kToHost, stream) == 0, "hipMemcpyAsync");
  expect(hipMemcpyAsync(made.data(), result.data(), made.size(), kToHost, stream) == 0, "hipMemcpyAsync");
  expect(hipStreamSynchronize(stream) == 0, "hipStreamSynchronize");
  size_t elements = 1;
  for (const size_t length : from.lens()) elements *= length;
  const size_t size = from.type_size();
  for (size_t i = 0; i < elements; ++i)
    std::memcpy(&made[offset(to, i) * size], &have[offset(from, i) * size], size);
  expect(hipMemcpyAsync(result.data(), made.data(), made.size(), kToDevice, stream) == 0, "hipMemcpyAsync");
  expect(hipStreamSynchronize(stream) == 0, "hipStreamSynchronize");
}

void fill(ihipStream_t* stream, const argument& result, unsigned long value) {
  expect(hipMemsetAsync(result.data(), static_cast<int>(value), result.get_shape().bytes(), stream) == 0,
         "hipMemsetAsync");
}

}  // namespace gpu::device
}  // namespace MIGRAPHX_VERSION
}  // namespace migraphx
