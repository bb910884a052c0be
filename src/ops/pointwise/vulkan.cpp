// The SPIR-V of a chain, made when its Program is built. One invocation an element; equal expressions over operands of the same
// kinds share a pipeline, sizes and strides are arguments.
#include <algorithm>
#include <cstring>

#include "backend/vulkan/vulkan_backend.h"
#include "ops/operator.h"
#include "ops/pointwise/expr.h"
#include "ops/pointwise/pointwise.h"
#include "ops/pointwise/spirv_math.h"

namespace hierarchos::ops {
namespace {

using Id = SpirvBuilder::Id;

// Operands and result over a common, collapsed index space.
struct Layout {
  std::vector<uint32_t> extents;                // outermost first
  std::vector<std::vector<uint32_t>> strides;   // an operand each, elements
};

Layout collapse(const KernelRequest& request) {
  const Shape& out = request.outputs[0].shape;
  Layout layout;
  layout.strides.resize(request.inputs.size());
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides(request.inputs.size());
  for (int a = 0; a < out.rank(); ++a) {
    if (out[a] == 1) continue;
    std::vector<int64_t> here;
    for (const TensorDesc& d : request.inputs) {
      const int from = a - (out.rank() - d.shape.rank());
      here.push_back(from < 0 || d.shape[from] == 1 ? 0 : d.strides[static_cast<size_t>(from)]);
    }
    bool merge = !extents.empty();
    for (size_t i = 0; i < here.size() && merge; ++i) merge = strides[i].back() == here[i] * out[a];
    if (merge) {
      extents.back() *= out[a];
      for (size_t i = 0; i < here.size(); ++i) strides[i].back() = here[i];
    } else {
      extents.push_back(out[a]);
      for (size_t i = 0; i < here.size(); ++i) strides[i].push_back(here[i]);
    }
  }
  for (int64_t e : extents) layout.extents.push_back(static_cast<uint32_t>(e));
  for (size_t i = 0; i < strides.size(); ++i)
    for (int64_t s : strides[i]) {
      if (s < 0 || s > INT32_MAX) throw UnsupportedError("a stride of {} elements in a pointwise operand on Vulkan", s);
      layout.strides[i].push_back(static_cast<uint32_t>(s));
    }
  return layout;
}

enum class Access : uint8_t { Linear, Scalar, Strided };

Access access_of(const Layout& layout, size_t operand) {
  const auto& strides = layout.strides[operand];
  if (std::all_of(strides.begin(), strides.end(), [](uint32_t s) { return s == 0; })) return Access::Scalar;
  return strides.size() == 1 && strides[0] == 1 ? Access::Linear : Access::Strided;
}

class Writer {
 public:
  Writer(const KernelRequest& request, const PointwiseExpr& expr, const Layout& layout, const VulkanLimits& limits)
      : request_(request), expr_(expr), layout_(layout), limits_(limits), math_(b_) {}

  std::vector<uint32_t> run(uint32_t local_size, bool argument_buffer) {
    b_.capability(1);     // Shader
    b_.capability(5347);  // PhysicalStorageBufferAddresses
    b_.capability(11);    // Int64
    arguments(argument_buffer);
    const Id u32 = b_.type_u32(), vec3 = b_.type_vector(u32, 3);
    const Id group = b_.variable(b_.type_pointer(1, vec3), 1), local = b_.variable(b_.type_pointer(1, u32), 1);
    b_.decorate(group, {11, 26});  // BuiltIn WorkgroupId
    b_.decorate(local, {11, 29});  // BuiltIn LocalInvocationIndex
    b_.begin_function();
    base_ = argument_buffer ? b_.op(120, block_pointer_, {b_.op(61, b_.type_u64(), {push_member(push_, 9, b_.type_u64(), 0)})}) : push_;
    storage_ = argument_buffer ? 5349 : 9;
    const Id groups = b_.op(61, vec3, {group});
    const Id gx = b_.op(81, u32, {groups, 0}), gy = b_.op(81, u32, {groups, 1});
    const Id line = b_.op(128, u32, {b_.op(132, u32, {gy, b_.u32(32768)}), gx});
    const Id index = b_.op(128, u32, {b_.op(132, u32, {line, b_.u32(local_size)}), b_.op(61, u32, {local})});
    const Id inside = b_.op(176, b_.type_bool(), {index, argument(pointers(), u32)});
    const Id then = b_.label(), end = b_.label();
    b_.op_void(247, {end, 0});
    b_.op_void(250, {inside, then, end});
    b_.op_void(248, {then});
    body(index);
    b_.op_void(249, {end});
    b_.op_void(248, {end});
    return b_.finish(local_size, limits_.preserves_special, limits_.preserves_subnormal);
  }

 private:
  uint32_t pointers() const { return static_cast<uint32_t>(request_.inputs.size() + request_.outputs.size()); }

  // Block: pointers, element count, extents, then the strides of strided operands.
  void arguments(bool argument_buffer) {
    const Id u32 = b_.type_u32(), u64 = b_.type_u64();
    std::vector<Id> members(pointers(), u64);
    size_t words = 1 + layout_.extents.size();
    for (size_t i = 0; i < request_.inputs.size(); ++i)
      if (access_of(layout_, i) == Access::Strided) words += layout_.extents.size();
    members.insert(members.end(), words, u32);
    const Id block = b_.type_struct(members);
    b_.decorate(block, {2});  // Block
    uint32_t offset = 0;
    for (uint32_t m = 0; m < members.size(); ++m) {
      b_.decorate_member(block, m, {35, offset});
      offset += m < pointers() ? 8 : 4;
    }
    if (!argument_buffer) {
      push_ = b_.variable(b_.type_pointer(9, block), 9);
      return;
    }
    block_pointer_ = b_.type_pointer(5349, block);
    const Id holder = b_.type_struct({u64});
    b_.decorate(holder, {2});
    b_.decorate_member(holder, 0, {35, 0});
    push_ = b_.variable(b_.type_pointer(9, holder), 9);
  }

  Id push_member(Id base, uint32_t storage, Id type, uint32_t member) {
    return b_.op(65, b_.type_pointer(storage, type), {base, b_.u32(member)});
  }

  Id argument(uint32_t member, Id type) {
    const Id at = push_member(base_, storage_, type, member);
    if (storage_ == 9) return b_.op(61, type, {at});
    return b_.op(61, type, {at, 2, member < pointers() ? 8u : 4u});  // Aligned
  }

  Id address(uint32_t member, Id index, uint32_t bytes) {
    const Id u64 = b_.type_u64();
    const Id offset = b_.op(132, u64, {b_.op(113, u64, {index}), b_.u64(bytes)});
    return b_.op(128, u64, {argument(member, u64), offset});
  }

  Id load(uint32_t member, Id index, DType dtype) {
    const Id f32 = b_.type_f32(), u32 = b_.type_u32();
    const auto fetch = [&](Id type, uint32_t bytes) {
      return b_.op(61, type, {b_.op(120, b_.type_pointer(5349, type), {address(member, index, bytes)}), 2, bytes});
    };
    switch (dtype) {
      case DType::F32: return fetch(f32, 4);
      case DType::I32: return fetch(b_.type_i32(), 4);
      case DType::F16: need16(); return b_.op(115, f32, {fetch(b_.type_f16(), 2)});
      case DType::BF16:
        need16();
        return b_.op(124, f32, {b_.op(196, u32, {b_.op(113, u32, {fetch(b_.type_u16(), 2)}), b_.u32(16)})});
      case DType::Bool: need8(); return b_.op(124, b_.type_i32(), {b_.op(113, u32, {fetch(b_.type_u8(), 1)})});
      default: throw UnsupportedError("pointwise operands of type {} on Vulkan", name_of(dtype));
    }
  }

  void store(uint32_t member, Id index, DType dtype, Id value) {
    const Id u32 = b_.type_u32();
    const auto put = [&](Id type, uint32_t bytes, Id v) {
      b_.op_void(62, {b_.op(120, b_.type_pointer(5349, type), {address(member, index, bytes)}), v, 2, bytes});
    };
    switch (dtype) {
      case DType::F32: return put(b_.type_f32(), 4, value);
      case DType::I32: return put(b_.type_i32(), 4, value);
      case DType::F16: {
        need16();
        const Id half = b_.op(115, b_.type_f16(), {value});
        b_.decorate(half, {39, 0});  // rounds to nearest even
        return put(b_.type_f16(), 2, half);
      }
      case DType::BF16: {
        need16();
        // To nearest even; a NaN keeps its top bits and becomes quiet.
        const Id bits = b_.op(124, u32, {value});
        const Id odd = b_.op(199, u32, {b_.op(194, u32, {bits, b_.u32(16)}), b_.u32(1)});
        const Id rounded = b_.op(128, u32, {b_.op(128, u32, {bits, b_.u32(0x7FFF)}), odd});
        const Id nan = b_.op(172, b_.type_bool(), {b_.op(199, u32, {bits, b_.u32(0x7FFFFFFF)}), b_.u32(0x7F800000)});
        const Id chosen = b_.op(169, u32, {nan, b_.op(197, u32, {bits, b_.u32(0x400000)}), rounded});
        return put(b_.type_u16(), 2, b_.op(113, b_.type_u16(), {b_.op(194, u32, {chosen, b_.u32(16)})}));
      }
      case DType::Bool: {
        need8();
        const Id set = b_.op(171, b_.type_bool(), {value, b_.i32(0)});
        return put(b_.type_u8(), 1, b_.op(113, b_.type_u8(), {b_.op(169, u32, {set, b_.u32(1), b_.u32(0)})}));
      }
      default: throw UnsupportedError("pointwise results of type {} on Vulkan", name_of(dtype));
    }
  }

  void need16() {
    if (!limits_.storage16) throw UnsupportedError("16-bit tensors: this Vulkan device has no 16-bit storage");
    b_.capability(4433);  // StorageBuffer16BitAccess
  }
  void need8() {
    if (!limits_.storage8) throw UnsupportedError("8-bit tensors: this Vulkan device has no 8-bit storage");
    b_.capability(4448);  // StorageBuffer8BitAccess
  }

  void body(Id index) {
    const Id u32 = b_.type_u32();
    const auto rank = static_cast<uint32_t>(layout_.extents.size());
    // The index of each axis, where some operand is strided.
    std::vector<Id> position(rank, index);
    bool strided = false;
    for (size_t i = 0; i < request_.inputs.size(); ++i) strided = strided || access_of(layout_, i) == Access::Strided;
    if (strided) {
      Id rest = index;
      for (uint32_t a = rank; a-- > 1;) {
        const Id extent = argument(pointers() + 1 + a, u32);
        position[a] = b_.op(137, u32, {rest, extent});
        rest = b_.op(134, u32, {rest, extent});
      }
      if (rank) position[0] = rest;
    }
    std::vector<DType> dtypes;
    std::vector<Id> registers;
    uint32_t next = pointers() + 1 + rank;
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      dtypes.push_back(request_.inputs[i].dtype);
      Id at = b_.u32(0);
      switch (access_of(layout_, i)) {
        case Access::Scalar: break;
        case Access::Linear: at = index; break;
        case Access::Strided:
          for (uint32_t a = 0; a < rank; ++a)
            at = b_.op(128, u32, {at, b_.op(132, u32, {position[a], argument(next + a, u32)})});
          next += rank;
          break;
      }
      registers.push_back(load(static_cast<uint32_t>(i), at, request_.inputs[i].dtype));
    }
    const std::vector<bool> integer = integer_registers(expr_, dtypes);
    for (const PointwiseInstr& instr : expr_.code) {
      const auto reg = [&](int32_t r) { return r < 0 ? 0 : registers[static_cast<size_t>(r)]; };
      const int32_t judged = instr.op == PointwiseOp::Select ? instr.b : instr.a;
      registers.push_back(math_.emit(instr, reg(instr.a), reg(instr.b), reg(instr.c), judged >= 0 && integer[static_cast<size_t>(judged)]));
    }
    for (size_t o = 0; o < request_.outputs.size(); ++o) {
      const auto r = static_cast<size_t>(expr_.results[o]);
      const DType dtype = request_.outputs[o].dtype;
      Id value = registers[r];
      if (integer[r] != is_integer(dtype))
        value = integer[r] ? b_.op(111, b_.type_f32(), {value}) : b_.op(110, b_.type_i32(), {value});
      store(static_cast<uint32_t>(request_.inputs.size() + o), index, dtype, value);
    }
  }

  const KernelRequest& request_;
  const PointwiseExpr& expr_;
  const Layout& layout_;
  const VulkanLimits& limits_;
  SpirvBuilder b_;
  SpirvMath math_;
  Id push_ = 0, base_ = 0, block_pointer_ = 0;
  uint32_t storage_ = 9;
};

class PointwiseKernel final : public VulkanKernel {
 public:
  PointwiseKernel(VulkanBackend& backend, const KernelRequest& request) {
    const auto expr = PointwiseExpr::parse(request.attrs.s("expr"), static_cast<int>(request.inputs.size()));
    const int64_t elements = request.outputs[0].shape.elements();
    if (elements > INT32_MAX) throw UnsupportedError("a pointwise result of {} elements on Vulkan", elements);
    const Layout layout = collapse(request);
    words_.push_back(static_cast<uint32_t>(elements));
    words_.insert(words_.end(), layout.extents.begin(), layout.extents.end());
    for (size_t i = 0; i < request.inputs.size(); ++i)
      if (access_of(layout, i) == Access::Strided) words_.insert(words_.end(), layout.strides[i].begin(), layout.strides[i].end());
    const size_t bytes = 8 * (request.inputs.size() + request.outputs.size()) + 4 * words_.size();
    PipelineOptions options;
    options.argument_buffer = bytes > backend.limits().push_constant_bytes;
    const uint32_t local = std::min(256u, backend.limits().max_group_size);
    const auto code = Writer(request, expr, layout, backend.limits()).run(local, options.argument_buffer);
    pipeline_ = &backend.pipeline_from_code(code, "main", options);
    groups_ = fold_grid((elements + local - 1) / local);
    name_ = fmt::format("pointwise {}", expr.to_string());
    if (name_.size() > 60) name_ = name_.substr(0, 57) + "…";
  }

  std::string name() const override { return name_; }

  void record(VulkanRecorder& recorder, std::span<const Address> operands) const override {
    std::vector<std::byte> arguments(8 * operands.size() + 4 * words_.size());
    std::memcpy(arguments.data(), operands.data(), 8 * operands.size());
    std::memcpy(arguments.data() + 8 * operands.size(), words_.data(), 4 * words_.size());
    if (words_[0] == 0) return;
    recorder.dispatch(*pipeline_, std::span<const std::byte>(arguments), groups_.x, groups_.y);
  }

 private:
  const VulkanPipeline* pipeline_ = nullptr;
  std::vector<uint32_t> words_;
  FoldedGroups groups_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> pointwise_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  return std::make_unique<PointwiseKernel>(backend, request);
}

}  // namespace hierarchos::ops
