// The rocBLAS functions that MIGraphX calls, computed on the host in FP32 from copies of the device's memory:
// for machines without a GPU. Column-major, as BLAS is; types are float, half and bfloat16.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

extern "C" {
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream);
int hipStreamSynchronize(void* stream);
}

namespace {

constexpr int kSuccess = 0, kFailed = 6, kNotImplemented = 2;
constexpr int kHalf = 150, kFloat = 151, kBfloat16 = 168;
constexpr int kNotTransposed = 111;
constexpr int kToDevice = 1, kToHost = 2;

struct Handle {
  void* stream = nullptr;
};

struct Matrix {
  const void* data;
  int type;
  int64_t leading, stride;
};

size_t size_of(int type) { return type == kFloat ? 4 : 2; }

float value(int type, const uint8_t* at) {
  if (type == kFloat) {
    float x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  if (type == kHalf) {
    _Float16 x;
    std::memcpy(&x, at, sizeof x);
    return static_cast<float>(x);
  }
  uint16_t half;
  std::memcpy(&half, at, sizeof half);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

void store(int type, float x, uint8_t* at) {
  if (type == kFloat) {
    std::memcpy(at, &x, sizeof x);
    return;
  }
  if (type == kHalf) {
    const auto half = static_cast<_Float16>(x);
    std::memcpy(at, &half, sizeof half);
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const auto half =
      static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  std::memcpy(at, &half, sizeof half);
}

// The bytes of `batch` matrices with so many columns.
std::vector<uint8_t> fetched(const Matrix& m, int64_t columns, int64_t rows, int64_t batch, void* stream,
                             bool& good) {
  const int64_t elements = (batch - 1) * m.stride + (columns - 1) * m.leading + rows;
  std::vector<uint8_t> bytes(static_cast<size_t>(elements) * size_of(m.type));
  good &= hipMemcpyAsync(bytes.data(), m.data, bytes.size(), kToHost, stream) == 0;
  return bytes;
}

bool known(int type) { return type == kHalf || type == kFloat || type == kBfloat16; }

int refused(const char* function) {
  std::fprintf(stderr, "%s: this stand-in for rocBLAS has no such product\n", function);
  return kNotImplemented;
}

int multiply(const Handle& handle, bool a_transposed, bool b_transposed, int64_t m, int64_t n, int64_t k,
             float alpha, const Matrix& a, const Matrix& b, float beta, const Matrix& c, const Matrix& d,
             int64_t batch) {
  bool good = true;
  const auto a_bytes = fetched(a, a_transposed ? m : k, a_transposed ? k : m, batch, handle.stream, good);
  const auto b_bytes = fetched(b, b_transposed ? k : n, b_transposed ? n : k, batch, handle.stream, good);
  const auto c_bytes = beta != 0 ? fetched(c, n, m, batch, handle.stream, good) : std::vector<uint8_t>();
  auto d_bytes = fetched(d, n, m, batch, handle.stream, good);
  good = good && hipStreamSynchronize(handle.stream) == 0;
  if (!good) return kFailed;
  const size_t a_size = size_of(a.type), b_size = size_of(b.type), c_size = size_of(c.type),
               d_size = size_of(d.type);
  for (int64_t z = 0; z < batch; ++z)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          const int64_t at_a = z * a.stride + (a_transposed ? i * a.leading + l : l * a.leading + i);
          const int64_t at_b = z * b.stride + (b_transposed ? l * b.leading + j : j * b.leading + l);
          sum += value(a.type, &a_bytes[at_a * a_size]) * value(b.type, &b_bytes[at_b * b_size]);
        }
        sum *= alpha;
        if (beta != 0) sum += beta * value(c.type, &c_bytes[(z * c.stride + j * c.leading + i) * c_size]);
        store(d.type, sum, &d_bytes[(z * d.stride + j * d.leading + i) * d_size]);
      }
  auto* const target = const_cast<void*>(d.data);
  good = hipMemcpyAsync(target, d_bytes.data(), d_bytes.size(), kToDevice, handle.stream) == 0;
  return good && hipStreamSynchronize(handle.stream) == 0 ? kSuccess : kFailed;
}

}  // namespace

extern "C" {

int rocblas_create_handle(void** handle) {
  *handle = new Handle;
  return kSuccess;
}

int rocblas_destroy_handle(void* handle) {
  delete static_cast<Handle*>(handle);
  return kSuccess;
}

int rocblas_set_stream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return kSuccess;
}

int rocblas_gemm_strided_batched_ex(void* handle, int a_operation, int b_operation, int m, int n, int k,
                                    const void* alpha, const void* a, int a_type, int lda, int64_t stride_a,
                                    const void* b, int b_type, int ldb, int64_t stride_b, const void* beta,
                                    const void* c, int c_type, int ldc, int64_t stride_c, void* d, int d_type,
                                    int ldd, int64_t stride_d, int batch, int compute_type, int, int32_t,
                                    uint32_t) {
  const bool types = known(a_type) && known(b_type) && known(c_type) && known(d_type);
  if (!types || (compute_type != kFloat && compute_type != kHalf))
    return refused("rocblas_gemm_strided_batched_ex");
  const auto factor = [&](const void* at) { return value(compute_type, static_cast<const uint8_t*>(at)); };
  return multiply(*static_cast<Handle*>(handle), a_operation != kNotTransposed, b_operation != kNotTransposed,
                  m, n, k, factor(alpha), {a, a_type, lda, stride_a}, {b, b_type, ldb, stride_b},
                  factor(beta), {c, c_type, ldc, stride_c}, {d, d_type, ldd, stride_d}, batch);
}

int rocblas_gemm_ex(void* handle, int a_operation, int b_operation, int m, int n, int k, const void* alpha,
                    const void* a, int a_type, int lda, const void* b, int b_type, int ldb, const void* beta,
                    const void* c, int c_type, int ldc, void* d, int d_type, int ldd, int compute_type,
                    int algorithm, int32_t solution, uint32_t flags) {
  return rocblas_gemm_strided_batched_ex(handle, a_operation, b_operation, m, n, k, alpha, a, a_type, lda, 0,
                                         b, b_type, ldb, 0, beta, c, c_type, ldc, 0, d, d_type, ldd, 0, 1,
                                         compute_type, algorithm, solution, flags);
}
}
