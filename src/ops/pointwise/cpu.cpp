// The expression's registers are tiles of 1024 elements, so a chain costs one pass over memory. Operands are loaded tile
// by tile according to how they lie there: in place, converted, one element for all, or strided.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/strided.h"
#include "ops/operator.h"
#include "ops/pointwise/tile.h"

namespace hierarchos::ops {
namespace {

constexpr int64_t kLanes = 16;  // no vector is wider; tiles are run up to a multiple of it
constexpr int64_t kLongRow = 256;  // rows of this length get tiles of their own

bool four_bytes(DType dtype) { return dtype == DType::F32 || dtype == DType::I32; }

struct Operand {
  DType dtype;
  std::vector<int64_t> strides;
  bool uniform = false;
  bool used = false;
  uint16_t buffer = 0;
};

struct Result {
  DType dtype;
  uint16_t buffer = 0;
  bool direct = false;  // the register may be written straight to memory
};

class PointwiseKernel final : public CpuKernel {
 public:
  PointwiseKernel(const PointwiseExpr& expr, const KernelRequest& request) : text_(expr.to_string()) {
    const cpu::Loops loops = cpu::Loops::over(request.outputs[0].shape, request.inputs);
    dims_ = loops.dims;
    elements_ = loops.elements();
    std::vector<DType> dtypes;
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const TensorDesc& d = request.inputs[i];
      dtypes.push_back(d.dtype);
      operands_.push_back({d.dtype, loops.strides[i], loops.uniform(i)});
    }
    for (const TensorDesc& d : request.outputs) results_.push_back({d.dtype});
    compile(expr, integer_registers(expr, dtypes));

    const int64_t row = dims_.back();
    tile_ = cpu::kTile;
    if (dims_.size() > 1 && row >= kLongRow) {
      tiles_a_row_ = (row + cpu::kTile - 1) / cpu::kTile;
      tile_ = std::min(cpu::kTile, row);
      tiles_ = elements_ / row * tiles_a_row_;
    } else {
      tiles_ = (elements_ + cpu::kTile - 1) / cpu::kTile;
    }
    tiles_a_task_ = std::max<int64_t>(1, cpu::kTaskElements / std::max<int64_t>(tile_, 1));
  }

  std::string name() const override { return "pointwise " + (text_.size() > 80 ? text_.substr(0, 77) + "..." : text_); }

  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override {
    if (elements_ == 0) return;
    pool.parallel_for((tiles_ + tiles_a_task_ - 1) / tiles_a_task_, [&](int64_t task, int) {
      run_tiles(operands, task * tiles_a_task_, std::min(tiles_, (task + 1) * tiles_a_task_));
    });
  }

 private:
  struct Constant {
    uint16_t buffer;
    bool integer;
    double value;
  };

  // Gives every register a buffer; buffers of registers that are no longer read are used again.
  void compile(const PointwiseExpr& expr, const std::vector<bool>& integer) {
    const auto inputs = static_cast<size_t>(expr.inputs), count = inputs + expr.code.size();
    constexpr size_t kForever = ~size_t{0};
    std::vector<size_t> last_read(count, 0);
    for (size_t k = 0; k < expr.code.size(); ++k)
      for (int32_t r : {expr.code[k].a, expr.code[k].b, expr.code[k].c})
        if (r >= 0) last_read[static_cast<size_t>(r)] = k;
    for (int32_t r : expr.results) last_read[static_cast<size_t>(r)] = kForever;

    std::vector<uint16_t> buffer(count, 0), free;
    const auto take = [&] {
      if (free.empty()) return static_cast<uint16_t>(buffers_++);
      const uint16_t b = free.back();
      free.pop_back();
      return b;
    };
    std::vector<bool> read(count, false);
    for (const PointwiseInstr& instr : expr.code)
      for (int32_t r : {instr.a, instr.b, instr.c})
        if (r >= 0) read[static_cast<size_t>(r)] = true;
    for (int32_t r : expr.results) read[static_cast<size_t>(r)] = true;
    for (size_t i = 0; i < inputs; ++i)
      if (read[i]) {
        operands_[i].used = true;
        operands_[i].buffer = buffer[i] = static_cast<uint16_t>(buffers_++);
      }
    for (size_t k = 0; k < expr.code.size(); ++k) {
      const PointwiseInstr& instr = expr.code[k];
      const size_t r = inputs + k;
      if (instr.op == PointwiseOp::Const || instr.op == PointwiseOp::IConst) {
        buffer[r] = static_cast<uint16_t>(buffers_++);  // filled once a task
        constants_.push_back({buffer[r], instr.op == PointwiseOp::IConst, instr.value});
        continue;
      }
      buffer[r] = take();
      const auto at = [&](int32_t operand) { return operand < 0 ? uint16_t{0} : buffer[static_cast<size_t>(operand)]; };
      code_.push_back({instr.op, integer[static_cast<size_t>(instr.a)], buffer[r], at(instr.a), at(instr.b), at(instr.c)});
      // An operand's buffer is free once its last reader is done, if it is no operand of the node or constant.
      std::array<int32_t, 3> done = {instr.a, instr.b, instr.c};
      std::sort(done.begin(), done.end());
      const auto end = std::unique(done.begin(), done.end());
      for (auto d = done.begin(); d != end; ++d) {
        if (*d < expr.inputs || last_read[static_cast<size_t>(*d)] != k) continue;
        const PointwiseOp op = expr.code[static_cast<size_t>(*d) - inputs].op;
        if (op != PointwiseOp::Const && op != PointwiseOp::IConst) free.push_back(buffer[static_cast<size_t>(*d)]);
      }
      if (last_read[r] == 0 && !read[r]) free.push_back(buffer[r]);
    }
    for (size_t o = 0; o < results_.size(); ++o) {
      const int32_t r = expr.results[o];
      results_[o].buffer = buffer[static_cast<size_t>(r)];
      const bool computed = r >= expr.inputs && expr.code[static_cast<size_t>(r) - inputs].op != PointwiseOp::Const &&
                            expr.code[static_cast<size_t>(r) - inputs].op != PointwiseOp::IConst;
      results_[o].direct = computed && four_bytes(results_[o].dtype) &&
                           std::count(expr.results.begin(), expr.results.end(), r) == 1;
    }
  }

  void run_tiles(std::span<std::byte* const> memory, int64_t first, int64_t last) const {
    float* base = cpu::thread_buffer(0, buffers_ * cpu::kTile);
    std::array<float*, 256> few;
    std::vector<float*> many;
    float** buffers = few.data();
    if (static_cast<size_t>(buffers_) > few.size()) {
      many.resize(static_cast<size_t>(buffers_));
      buffers = many.data();
    }
    for (int64_t b = 0; b < buffers_; ++b) buffers[b] = base + b * cpu::kTile;

    const int64_t filled = std::min(cpu::kTile, (std::min(tile_, elements_) + kLanes - 1) / kLanes * kLanes);
    for (const Constant& c : constants_) {
      if (c.integer)
        std::fill_n(reinterpret_cast<int32_t*>(buffers[c.buffer]), filled, static_cast<int32_t>(c.value));
      else
        std::fill_n(buffers[c.buffer], filled, static_cast<float>(c.value));
    }
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].used && operands_[i].uniform) {
        load(operands_[i].dtype, memory[i], buffers[operands_[i].buffer], 1);
        std::fill_n(reinterpret_cast<uint32_t*>(buffers[operands_[i].buffer]) + 1, filled - 1,
                    *reinterpret_cast<const uint32_t*>(buffers[operands_[i].buffer]));
      }

    for (int64_t t = first; t < last; ++t) {
      int64_t begin = t * cpu::kTile, count = std::min(cpu::kTile, elements_ - begin);
      if (tiles_a_row_ > 0) {
        const int64_t in_row = t % tiles_a_row_ * cpu::kTile;
        begin = t / tiles_a_row_ * dims_.back() + in_row;
        count = std::min(cpu::kTile, dims_.back() - in_row);
      }
      run_one(memory, buffers, base, begin, count);
    }
  }

  void run_one(std::span<std::byte* const> memory, float** buffers, float* base, int64_t begin, int64_t count) const {
    const bool whole = count % kLanes == 0;  // vectors do not reach beyond the tile
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& o = operands_[i];
      if (!o.used || o.uniform) continue;
      float* own = base + o.buffer * cpu::kTile;
      buffers[o.buffer] = own;
      const auto size = static_cast<int64_t>(size_of(o.dtype));
      cpu::for_runs(dims_, o.strides, begin, count, [&](int64_t at, int64_t n, int64_t offset) {
        const std::byte* from = memory[i] + offset * size;
        const int64_t stride = o.strides.back();
        if (n == count && stride == 1 && whole && four_bytes(o.dtype))
          buffers[o.buffer] = const_cast<float*>(reinterpret_cast<const float*>(from));  // instructions only read it
        else if (stride == 1 && n >= 8)
          load(o.dtype, from, own + at, n);
        else if (stride == 0)
          broadcast(o.dtype, from, own + at, n);
        else
          gather(o.dtype, from, stride, own + at, n);
      });
    }
    for (size_t o = 0; o < results_.size(); ++o)
      if (results_[o].direct)
        buffers[results_[o].buffer] = whole ? reinterpret_cast<float*>(memory[operands_.size() + o]) + begin
                                            : base + results_[o].buffer * cpu::kTile;
    cpu::run_tile(code_.data(), code_.size(), buffers, count);
    for (size_t o = 0; o < results_.size(); ++o)
      if (!(results_[o].direct && whole)) {
        const DType dtype = results_[o].dtype;
        store(dtype, buffers[results_[o].buffer], memory[operands_.size() + o] + begin * static_cast<int64_t>(size_of(dtype)), count);
      }
  }

  static void load(DType dtype, const std::byte* from, float* to, int64_t n) {
    if (dtype == DType::I32)
      std::memcpy(to, from, static_cast<size_t>(n) * 4);
    else if (dtype == DType::Bool)
      for (int64_t k = 0; k < n; ++k) reinterpret_cast<int32_t*>(to)[k] = static_cast<int32_t>(from[k]);
    else
      cpu::to_float(dtype, from, to, n);
  }

  static void broadcast(DType dtype, const std::byte* from, float* to, int64_t n) {
    load(dtype, from, to, 1);
    std::fill_n(reinterpret_cast<uint32_t*>(to), n, *reinterpret_cast<const uint32_t*>(to));
  }

  static void gather(DType dtype, const std::byte* from, int64_t stride, float* to, int64_t n) {
    switch (dtype) {
      case DType::F32:
      case DType::I32:
        for (int64_t k = 0; k < n; ++k)
          reinterpret_cast<uint32_t*>(to)[k] = reinterpret_cast<const uint32_t*>(from)[k * stride];
        break;
      case DType::BF16:
        for (int64_t k = 0; k < n; ++k) to[k] = bf16_to_f32(reinterpret_cast<const uint16_t*>(from)[k * stride]);
        break;
      case DType::F16:
        for (int64_t k = 0; k < n; ++k) to[k] = f16_to_f32(reinterpret_cast<const uint16_t*>(from)[k * stride]);
        break;
      default:
        for (int64_t k = 0; k < n; ++k) reinterpret_cast<int32_t*>(to)[k] = static_cast<int32_t>(from[k * stride]);
    }
  }

  static void store(DType dtype, const float* from, std::byte* to, int64_t n) {
    if (dtype == DType::I32)
      std::memcpy(to, from, static_cast<size_t>(n) * 4);
    else if (dtype == DType::Bool)
      for (int64_t k = 0; k < n; ++k) to[k] = std::byte{reinterpret_cast<const int32_t*>(from)[k] != 0};
    else
      cpu::from_float(dtype, from, to, n);
  }

  std::string text_;
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
  std::vector<Operand> operands_;
  std::vector<Result> results_;
  std::vector<cpu::TileInstr> code_;
  std::vector<Constant> constants_;
  int64_t buffers_ = 0;
  int64_t tile_ = 0, tiles_ = 0, tiles_a_task_ = 1;
  int64_t tiles_a_row_ = 0;  // 0: tiles run across rows
};

// Elements moved without a look at them: any type.
std::unique_ptr<Kernel> copy_kernel(const KernelRequest& request) {
  const cpu::Loops loops = cpu::Loops::over(request.outputs[0].shape, std::span(request.inputs).first(1));
  const size_t size = size_of(request.inputs[0].dtype), inputs = request.inputs.size(), outputs = request.outputs.size();
  const int64_t n = loops.elements();
  if (const auto blocked = cpu::BlockedCopy::make(loops, 0); blocked && n > 0)
    return cpu::make_kernel("copy_transposed", [=](ThreadPool& pool, std::span<std::byte* const> at) {
      cpu::parallel_rows(pool, blocked->blocks(), 1024, [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b)
          for (size_t o = 0; o < outputs; ++o) blocked->copy(at[0], size, b, at[inputs + o]);
      });
    });
  return cpu::make_kernel("copy", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    cpu::parallel_rows(pool, n, 1, [&](int64_t first, int64_t last) {
      for (size_t o = 0; o < outputs; ++o)
        cpu::copy_elements(at[0], size, loops.dims, loops.strides[0], first, last - first,
                           at[inputs + o] + first * static_cast<int64_t>(size));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> pointwise_cpu(CpuBackend&, const KernelRequest& request) {
  const auto expr = PointwiseExpr::parse(request.attrs.s("expr"), static_cast<int>(request.inputs.size()));
  for (const TensorDesc& d : request.inputs)
    if (d.storage != Storage::Plain) throw UnsupportedError("pointwise: an operand is {}", name_of(d.storage));
  if (expr.code.empty()) {
    const auto moved = [&](size_t o) { return expr.results[o] == 0 && request.outputs[o].dtype == request.inputs[0].dtype; };
    bool copies = true;
    for (size_t o = 0; o < request.outputs.size(); ++o) copies &= moved(o);
    if (copies) return copy_kernel(request);
  }
  return std::make_unique<PointwiseKernel>(expr, request);
}

}  // namespace hierarchos::ops
