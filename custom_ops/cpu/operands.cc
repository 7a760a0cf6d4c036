#include "operands.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace zyfa::cpu {
namespace {

constexpr int64_t kCacheLine = 64;

// Elements from one row of V to the next in a tile that is made: columns that lie a power of two apart would
// fall on the same lines of the cache.
int64_t row_of_values(int64_t columns) { return columns + kLaneBlock; }

size_t tile_bytes(Operand form, int64_t width) { return kTileKeys * width * element_bytes(form); }

}  // namespace

int64_t TileOperands::columns(Operand form, int64_t v_dim) {
  return padded(v_dim, is_pairs(form) ? kStep : kLaneBlock);
}

int64_t TileOperands::dims(Operand form, int64_t qk_dim) {
  return is_pairs(form) ? padded(qk_dim, kStep) : qk_dim;
}

size_t TileOperands::bytes(Operand form, int64_t qk_dim, int64_t v_dim) {
  const int64_t dim = dims(form, qk_dim), column = columns(form, v_dim);
  return Arena::bytes_for<std::byte>(tile_bytes(form, dim)) +
         2 * Arena::bytes_for<std::byte>(tile_bytes(form, row_of_values(column))) +
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
  const auto tile = [&](int64_t width, int64_t stride) {
    void* buffer = arena.take<std::byte>(tile_bytes(form, width));
    return Tile{is_pairs(form) ? DType::bfloat16 : DType::float32, buffer, stride, buffer, false};
  };
  key_ = tile(dims_, dims_);
  value_ = tile(row_of_values(columns_), is_pairs(form) ? kTileKeys : row_of_values(columns_));
  clean_ = arena.take<std::byte>(tile_bytes(form, columns_));
  staging_ = arena.take<uint16_t>(kTileKeys * std::max(dims_, columns_));
  // What pads rows stays zero.
  if (dims_ > source.key.dim) std::memset(key_.buffer, 0, tile_bytes(form, dims_));
  if (columns_ == source.value.dim) return;
  std::memset(value_.buffer, 0, tile_bytes(form, row_of_values(columns_)));
  std::memset(staging_, 0, kTileKeys * std::max(dims_, columns_) * sizeof(uint16_t));
}

// Rows [first, first + count) of the tile, from `from` on.
void TileOperands::read_run(const RowView& view, bool values, const void* from, int64_t first,
                            int64_t count) {
  const int64_t dim = values ? source_.value.dim : source_.key.dim, width = values ? columns_ : dims_;
  const int64_t row_bytes = view.strides.row * static_cast<int64_t>(size_of(view.dtype));
  const std::byte* at = static_cast<const std::byte*>(from);
  if (is_pairs(form_) && dim == width && view.strides.row == dim) {
    uint16_t* to = values ? staging_ : static_cast<uint16_t*>(key_.buffer);
    return kernels_.to_bfloat16(view.dtype, at, count * dim, to + first * dim);
  }
  for (int64_t row = first; row < first + count; ++row, at += row_bytes) {
    if (is_pairs(form_)) {
      uint16_t* to = (values ? staging_ : static_cast<uint16_t*>(key_.buffer)) + row * width;
      kernels_.to_bfloat16(view.dtype, at, dim, to);
      continue;
    }
    float* to =
        static_cast<float*>((values ? value_ : key_).buffer) + row * (values ? row_of_values(width) : width);
    if (source_.to_bfloat16) {
      kernels_.to_bfloat16(view.dtype, at, dim, staging_);
      kernels_.to_fp32(DType::bfloat16, staging_, dim, to);
    } else {
      kernels_.to_fp32(view.dtype, at, dim, to);
    }
    if (values && source_.value_factor != 1.0f)
      for (int64_t i = 0; i < dim; ++i) to[i] *= source_.value_factor;
  }
}

// Products for few rows convert on the way, but do not round or scale. The others take FP32 rows that lie
// close together: far apart they fall on the same lines of the cache.
bool TileOperands::usable_in_place(const RowView& view, bool values) const {
  if (values && (source_.value_factor != 1.0f || source_.value.dim != columns_)) return false;
  const bool exact = view.dtype == DType::bfloat16 || view.dtype == DType::float8e4m3fn;
  if (form_ == Operand::fp32_few_rows) return exact || !source_.to_bfloat16;
  return form_ == Operand::fp32 && view.dtype == DType::float32 && !source_.to_bfloat16 &&
         view.strides.row == (values ? columns_ : dims_);
}

void TileOperands::read(const KeyRows& rows, bool values, int64_t batch, int64_t kv_head, int64_t first,
                        int64_t count) {
  const int64_t old = std::clamp<int64_t>(rows.past_len - first, 0, count);
  const RowView& view = old == count ? rows.past : rows.fresh;
  Tile& tile = values ? value_ : key_;
  tile.in_place = count == kTileKeys && (old == 0 || old == count) && usable_in_place(view, values);
  if (tile.in_place) {
    tile.type = view.dtype;
    tile.data = rows.at(batch, kv_head, first);
    tile.stride = view.strides.row;
    return;
  }
  tile.data = tile.buffer;
  if (!is_pairs(form_)) {
    tile.type = DType::float32;
    tile.stride = values ? row_of_values(columns_) : dims_;
  }

  if (old > 0) read_run(rows.past, values, rows.at(batch, kv_head, first), 0, old);
  if (old < count) read_run(rows.fresh, values, rows.at(batch, kv_head, first + old), old, count - old);
  if (count == kTileKeys) return;
  void* target = values && is_pairs(form_) ? staging_ : tile.buffer;
  const int64_t row = !values ? dims_ : is_pairs(form_) ? columns_ : row_of_values(columns_);
  const size_t row_bytes = row * element_bytes(form_);
  std::memset(static_cast<std::byte*>(target) + count * row_bytes, 0, (kTileKeys - count) * row_bytes);
}

void TileOperands::load(int64_t batch, int64_t kv_head, int64_t tile) {
  const int64_t first = tile * kTileKeys, count = std::min(kTileKeys, kv_len_ - first);
  read(source_.key, false, batch, kv_head, first, count);
  read(source_.value, true, batch, kv_head, first, count);
  if (is_pairs(form_)) kernels_.transpose_values(staging_, columns_, static_cast<uint16_t*>(value_.buffer));
  tile_ = tile;
  searched_ = false;
}

void TileOperands::fetch(int64_t batch, int64_t kv_head, int64_t tile, int64_t part, int64_t parts) const {
  if (form_ == Operand::fp32_few_rows) return;
  const int64_t first = tile * kTileKeys + kTileKeys * part / parts;
  const int64_t past = std::min(kv_len_, tile * kTileKeys + kTileKeys * (part + 1) / parts);
  for (const KeyRows* rows : {&source_.key, &source_.value})
    for (int64_t key = first; key < past; ++key) {
      const char* row = static_cast<const char*>(rows->at(batch, kv_head, key));
      const int64_t bytes = rows->dim * static_cast<int64_t>(size_of(rows->fresh.dtype));
      for (int64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(row + at, 0, 2);
    }
}

// The tile that lies `tiles` behind this one, where both are used as they lie.
Ahead TileOperands::ahead(const Tile& tile, int64_t width, int64_t tiles) const {
  if (!tile.in_place || (tile_ + tiles + 1) * kTileKeys > kv_len_) return {};
  const int64_t element = size_of(tile.type), row_bytes = tile.stride * element;
  const std::byte* rows = static_cast<const std::byte*>(tile.data) + tiles * kTileKeys * row_bytes;
  return {rows, row_bytes, width * element};
}

void TileOperands::scores(const void* q, PanelSize size, float* s) const {
  switch (form_) {
    case Operand::fp32:
      return kernels_.scores(static_cast<const float*>(key_.data), key_.stride, static_cast<const float*>(q),
                             dims_, size.lanes, size.spans, s);
    case Operand::fp32_few_rows:
      return kernels_.scores_few(key_.type, key_.data, key_.stride, static_cast<const float*>(q),
                                 padded(dims_, kStep), dims_, size.rows, size.lanes,
                                 ahead(value_, columns_, 0), s);
    case Operand::bfloat16_pairs:
      return kernels_.scores_pairs(static_cast<const uint16_t*>(key_.data), key_.stride,
                                   static_cast<const uint32_t*>(q), dims_, size.lanes, size.spans, s);
  }
}

void TileOperands::accumulate(const Probabilities& p, PanelSize size, const float* keep, float* o) const {
  multiply(value_, p, size, keep, o);
}

void TileOperands::accumulate_finite(uint64_t keys, const Probabilities& p, PanelSize size, const float* keep,
                                     float* o) const {
  const int64_t columns = columns_;
  if (is_pairs(form_))
    std::memcpy(clean_, value_.data, tile_bytes(form_, columns));
  else
    for (int64_t key = 0; key < kTileKeys; ++key)
      kernels_.to_fp32(value_.type, row(value_, key), columns, static_cast<float*>(clean_) + key * columns);
  for (int64_t key = 0; key < kTileKeys; ++key) {
    if ((keys >> key & 1) == 0) continue;
    for (int64_t column = 0; column < columns; ++column) {
      if (std::isfinite(value(key, column))) continue;
      if (is_pairs(form_))
        static_cast<uint16_t*>(clean_)[column * kTileKeys + key] = 0;
      else
        static_cast<float*>(clean_)[key * columns + column] = 0.0f;
    }
  }
  multiply({is_pairs(form_) ? DType::bfloat16 : DType::float32, clean_, is_pairs(form_) ? kTileKeys : columns,
            clean_, false},
           p, size, keep, o);
}

void TileOperands::multiply(const Tile& v, const Probabilities& p, PanelSize size, const float* keep,
                            float* o) const {
  switch (form_) {
    case Operand::fp32:
      return kernels_.accumulate(static_cast<const float*>(v.data), v.stride, p.fp32, columns_, size.lanes,
                                 size.spans, keep, o);
    case Operand::fp32_few_rows:
      return kernels_.accumulate_few(v.type, v.data, v.stride, p.fp32, columns_, size.rows, size.lanes, keep,
                                     ahead(key_, dims_, 1), o);
    case Operand::bfloat16_pairs:
      return kernels_.accumulate_pairs(static_cast<const uint16_t*>(v.data), p.pairs, p.low_pairs, columns_,
                                       size.lanes, size.spans, keep, o);
  }
}

uint64_t TileOperands::not_finite() {
  if (!searched_)
    not_finite_ = is_pairs(form_) ? kernels_.not_finite(DType::bfloat16, staging_, columns_, columns_)
                                  : kernels_.not_finite(value_.type, value_.data, value_.stride, columns_);
  searched_ = true;
  return not_finite_;
}

float TileOperands::value(int64_t key, int64_t column) const {
  float x;
  const bool pairs = is_pairs(form_);
  const std::byte* line = row(value_, pairs ? column : key);
  kernels_.to_fp32(value_.type, line + (pairs ? key : column) * size_of(value_.type), 1, &x);
  return x;
}

const std::byte* TileOperands::row(const Tile& tile, int64_t index) {
  return static_cast<const std::byte*>(tile.data) + index * tile.stride * size_of(tile.type);
}

}  // namespace zyfa::cpu
