// What HostTensor knows of its values, whatever their type: here and not beside it, because it needs the block codecs.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "quant/blocks.h"
#include "tensor/host_tensor.h"

namespace hierarchos {
namespace {

// How elements of a type are stored and what they are when computed with; integers are all int64.
template <DType D>
struct Element;
#define HIERARCHOS_ELEMENT(D, Stored_, Value_) \
  template <>                                  \
  struct Element<DType::D> {                   \
    using Stored = Stored_;                    \
    using Value = Value_;                      \
  }
HIERARCHOS_ELEMENT(F64, double, double);
HIERARCHOS_ELEMENT(F32, float, float);
HIERARCHOS_ELEMENT(F16, uint16_t, float);
HIERARCHOS_ELEMENT(BF16, uint16_t, float);
HIERARCHOS_ELEMENT(I64, int64_t, int64_t);
HIERARCHOS_ELEMENT(I32, int32_t, int64_t);
HIERARCHOS_ELEMENT(I16, int16_t, int64_t);
HIERARCHOS_ELEMENT(I8, int8_t, int64_t);
HIERARCHOS_ELEMENT(U8, uint8_t, int64_t);
HIERARCHOS_ELEMENT(Bool, uint8_t, int64_t);
#undef HIERARCHOS_ELEMENT

template <DType D>
typename Element<D>::Value load(typename Element<D>::Stored bits) {
  if constexpr (D == DType::F16)
    return f16_to_f32(bits);
  else if constexpr (D == DType::BF16)
    return bf16_to_f32(bits);
  else if constexpr (D == DType::Bool)
    return bits != 0;
  else
    return bits;
}

template <DType D, typename V>
typename Element<D>::Stored store(V v) {
  using Stored = typename Element<D>::Stored;
  if constexpr (D == DType::F16 || D == DType::BF16) {
    float narrow;
    if constexpr (std::is_same_v<V, float>)
      narrow = v;
    else
      narrow = static_cast<float>(round_to(D, static_cast<double>(v)));  // once; exact from here on
    return D == DType::F16 ? f32_to_f16(narrow) : f32_to_bf16(narrow);
  } else if constexpr (D == DType::Bool) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<Stored>) {
    return static_cast<Stored>(v);
  } else {
    using Limits = std::numeric_limits<Stored>;
    bool fits;
    if constexpr (std::is_floating_point_v<V>)  // the bounds are powers of two (or 0), which V holds; NaN fails
      fits = std::trunc(v) >= static_cast<V>(Limits::min()) && v < std::ldexp(V{1}, Limits::digits);
    else
      fits = v >= Limits::min() && v <= Limits::max();
    if (!fits) throw UserError("the value {} does not fit into type {}", v, name_of(D));
    return static_cast<Stored>(v);
  }
}

template <typename F>
void with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::F64:
      return f.template operator()<DType::F64>();
    case DType::F32:
      return f.template operator()<DType::F32>();
    case DType::F16:
      return f.template operator()<DType::F16>();
    case DType::BF16:
      return f.template operator()<DType::BF16>();
    case DType::I64:
      return f.template operator()<DType::I64>();
    case DType::I32:
      return f.template operator()<DType::I32>();
    case DType::I16:
      return f.template operator()<DType::I16>();
    case DType::I8:
      return f.template operator()<DType::I8>();
    case DType::U8:
      return f.template operator()<DType::U8>();
    case DType::Bool:
      return f.template operator()<DType::Bool>();
  }
}

// Elements may lie anywhere: files do not promise alignment.
template <DType From, DType To>
void convert(const std::byte* from, std::byte* to, size_t count) {
  typename Element<From>::Stored in;
  typename Element<To>::Stored out;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(&in, from + i * sizeof(in), sizeof(in));
    out = store<To>(load<From>(in));
    std::memcpy(to + i * sizeof(out), &out, sizeof(out));
  }
}

void convert(const HostTensor& from, DType dtype, std::byte* to) {
  const auto count = static_cast<size_t>(from.shape().elements());
  with_type(from.dtype(), [&]<DType From>() {
    with_type(dtype, [&]<DType To>() { convert<From, To>(from.bytes().data(), to, count); });
  });
}

}  // namespace

std::vector<double> HostTensor::to_doubles() const {
  std::vector<double> out(static_cast<size_t>(shape_.elements()));
  convert(dequantized(*this), DType::F64, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

HostTensor HostTensor::cast(DType dtype) const {
  HostTensor plain = dequantized(*this);
  if (plain.dtype() == dtype) return plain;
  HostTensor out(dtype, shape_);
  convert(plain, dtype, out.mutable_bytes().data());
  return out;
}

}  // namespace hierarchos
