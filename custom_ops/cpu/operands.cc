#include "operands.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "float_formats.hpp"

namespace zyfa::cpu {
namespace {

size_t tile_bytes(Operand form, int64_t width) { return kTileKeys * width * element_bytes(form); }

}  // namespace

int64_t TileOperands::columns(Operand form, int64_t v_dim) {
  return padded(v_dim, form == Operand::fp32 ? kLaneBlock : kStep);
}

int64_t TileOperands::dims(Operand form, int64_t qk_dim) {
  return form == Operand::fp32 ? qk_dim : padded(qk_dim, kStep);
}

size_t TileOperands::bytes(Operand form, int64_t qk_dim, int64_t v_dim) {
  const int64_t dim = dims(form, qk_dim), column = columns(form, v_dim);
  return Arena::bytes_for<std::byte>(tile_bytes(form, dim)) +
         2 * Arena::bytes_for<std::byte>(tile_bytes(form, column)) +
         Arena::bytes_for<uint16_t>(kTileKeys * std::max(dim, column));
}

TileOperands::TileOperands(const Kernels& kernels, Operand form, const OperandSource& source, int64_t kv_len,
                           Arena& arena)
    : kernels_(kernels),
      form_(form),
      source_(source),
      kv_len_(kv_len),
      dims_(dims(form, source.key.dim)),
      columns_(columns(form, source.value.dim)) {
  key_ = arena.take<std::byte>(tile_bytes(form, dims_));
  value_ = arena.take<std::byte>(tile_bytes(form, columns_));
  clean_ = arena.take<std::byte>(tile_bytes(form, columns_));
  staging_ = arena.take<uint16_t>(kTileKeys * std::max(dims_, columns_));
  // Columns of padding stay zero.
  std::memset(key_, 0, tile_bytes(form, dims_));
  std::memset(value_, 0, tile_bytes(form, columns_));
  std::memset(staging_, 0, kTileKeys * std::max(dims_, columns_) * sizeof(uint16_t));
}

// Rows [first, first + count) of the tile, from element `offset` of the view on.
void TileOperands::read_run(const RowView& view, bool values, int64_t offset, int64_t first, int64_t count) {
  const int64_t dim = values ? source_.value.dim : source_.key.dim, width = values ? columns_ : dims_;
  const size_t element = size_of(view.dtype);
  for (int64_t row = first; row < first + count; ++row) {
    const std::byte* from =
        static_cast<const std::byte*>(view.data) + (offset + (row - first) * view.strides.row) * element;
    if (form_ == Operand::bfloat16_pairs) {
      uint16_t* to = (values ? staging_ : static_cast<uint16_t*>(key_)) + row * width;
      kernels_.to_bfloat16(view.dtype, from, dim, to);
      continue;
    }
    float* to = static_cast<float*>(values ? value_ : key_) + row * width;
    if (source_.to_bfloat16) {
      kernels_.to_bfloat16(view.dtype, from, dim, staging_);
      kernels_.to_fp32(DType::bfloat16, staging_, dim, to);
    } else {
      kernels_.to_fp32(view.dtype, from, dim, to);
    }
    if (values && source_.value_factor != 1.0f)
      for (int64_t i = 0; i < dim; ++i) to[i] *= source_.value_factor;
  }
}

void TileOperands::read(const KeyRows& rows, bool values, int64_t batch, int64_t kv_head, int64_t first,
                        int64_t count) {
  const auto offset = [&](const RowView& view, int64_t row) {
    return batch * view.strides.batch + kv_head * view.strides.head + row * view.strides.row;
  };
  const int64_t old = std::clamp<int64_t>(rows.past_len - first, 0, count);
  if (old > 0) read_run(rows.past, values, offset(rows.past, first), 0, old);
  if (old < count)
    read_run(rows.fresh, values, offset(rows.fresh, first + old - rows.past_len), old, count - old);
  if (count == kTileKeys) return;
  void* target = !values ? key_ : form_ == Operand::fp32 ? value_ : staging_;
  const size_t row_bytes = (values ? columns_ : dims_) * element_bytes(form_);
  std::memset(static_cast<std::byte*>(target) + count * row_bytes, 0, (kTileKeys - count) * row_bytes);
}

void TileOperands::load(int64_t batch, int64_t kv_head, int64_t tile) {
  const int64_t first = tile * kTileKeys, count = std::min(kTileKeys, kv_len_ - first);
  read(source_.key, false, batch, kv_head, first, count);
  read(source_.value, true, batch, kv_head, first, count);
  if (form_ == Operand::bfloat16_pairs)
    kernels_.transpose_values(staging_, columns_, static_cast<uint16_t*>(value_));
  searched_ = false;
}

void TileOperands::scores(const void* q, int64_t lanes, float* s) const {
  if (form_ == Operand::fp32)
    kernels_.scores(static_cast<const float*>(key_), dims_, static_cast<const float*>(q), dims_, lanes, s);
  else
    kernels_.scores_pairs(static_cast<const uint16_t*>(key_), dims_, static_cast<const uint32_t*>(q), dims_,
                          lanes, s);
}

void TileOperands::accumulate(const void* p, int64_t lanes, const float* keep, float* o) const {
  multiply(value_, p, lanes, keep, o);
}

void TileOperands::accumulate_finite(uint64_t keys, const void* p, int64_t lanes, const float* keep,
                                     float* o) const {
  std::memcpy(clean_, value_, tile_bytes(form_, columns_));
  for (int64_t key = 0; key < kTileKeys; ++key) {
    if ((keys >> key & 1) == 0) continue;
    for (int64_t column = 0; column < columns_; ++column) {
      if (std::isfinite(value(key, column))) continue;
      if (form_ == Operand::fp32)
        static_cast<float*>(clean_)[key * columns_ + column] = 0.0f;
      else
        static_cast<uint16_t*>(clean_)[column * kTileKeys + key] = 0;
    }
  }
  multiply(clean_, p, lanes, keep, o);
}

void TileOperands::multiply(const void* v, const void* p, int64_t lanes, const float* keep, float* o) const {
  if (form_ == Operand::fp32)
    kernels_.accumulate(static_cast<const float*>(v), columns_, static_cast<const float*>(p), columns_, lanes,
                        keep, o);
  else
    kernels_.accumulate_pairs(static_cast<const uint16_t*>(v), static_cast<const uint32_t*>(p), columns_,
                              lanes, keep, o);
}

uint64_t TileOperands::not_finite() {
  if (!searched_)
    not_finite_ = form_ == Operand::fp32
                      ? kernels_.not_finite_fp32(static_cast<const float*>(value_), columns_, columns_)
                      : kernels_.not_finite_bfloat16(staging_, columns_, columns_);
  searched_ = true;
  return not_finite_;
}

float TileOperands::value(int64_t key, int64_t column) const {
  return form_ == Operand::fp32
             ? static_cast<const float*>(value_)[key * columns_ + column]
             : from_bfloat16(static_cast<const uint16_t*>(value_)[column * kTileKeys + key]);
}

}  // namespace zyfa::cpu
