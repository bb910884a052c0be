// The type of a value: logical dtype × storage × layout, over concrete capacities.
#pragma once

#include <array>
#include <string>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hierarchos {

// A dim may carry a device count ≤ its capacity: rows past it are zero, have zero gradient, and every reduction honours
// it. The count is a rank-0 I32 value of the root function, declared with Graph::count.
using CountId = int16_t;
inline constexpr CountId kFull = -1;  // the whole capacity

// Layout 0 is row-major (or, for block storage, the file's blocks). Others are what a device's products read best
// (kRows16: quant/layout.h).
using LayoutId = uint32_t;
inline constexpr LayoutId kRowMajor = 0;

struct Type {
  DType dtype = DType::F32;
  Storage storage = Storage::Plain;
  LayoutId layout = kRowMajor;
  Shape shape;
  std::array<CountId, Shape::kMaxRank> counts = {kFull, kFull, kFull, kFull, kFull, kFull};

  Type() = default;
  Type(DType d, Shape s, Storage st = Storage::Plain) : dtype(d), storage(st), shape(s) {}

  bool plain() const { return storage == Storage::Plain && layout == kRowMajor; }
  bool counted() const {
    for (auto c : counts)
      if (c != kFull) return true;
    return false;
  }
  int64_t bytes() const;
  std::string to_string() const;  // "f32[24, 64]", "q4_1[576, 576]"
  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace hierarchos
