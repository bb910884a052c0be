// Products on the CPU. Few rows of x: dot products over rows of w as they lie, at the speed of memory. Else blocks of
// packed operands (gemm.h), whose sums are finished while they are in the cache. Blocks are cut by shape alone and sums
// over K by gemm::kDepth, so bits do not depend on threads. Weights in a layout of their own (prepared.h): x is first
// brought into the form that goes with it.
#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "ops/cpu_tasks.h"
#include "ops/matmul/matmul/gemm.h"
#include "ops/matmul/matmul/matmul.h"
#include "ops/matmul/matmul/prepared.h"
#include "ops/matmul/matmul/prepared_bf16.h"
#include "ops/operator.h"
#include "quant/layout.h"

namespace hierarchos::ops {
namespace {

constexpr int64_t kFewRows = 8;
// Rows of x up to which activations keep all their bits with prepared blocks. Past it, 16 bits in half the time: they
// move logits by some 1e-4 of their norm, which long prompts can afford.
constexpr int64_t kExactRows = 128;

gemm::Activation activation_of(const std::string& name) {
  using A = gemm::Activation;
  for (const auto& [known, act] : {std::pair{"none", A::None},
                                   {"silu", A::Silu},
                                   {"gelu", A::Gelu},
                                   {"gelu_tanh", A::GeluTanh},
                                   {"relu", A::Relu},
                                   {"relu2", A::Relu2},
                                   {"tanh", A::Tanh},
                                   {"sigmoid", A::Sigmoid}})
    if (name == known) return act;
  throw UnsupportedError("matmul: there is no activation \"{}\"", name);
}

// An operand as a batch of matrices.
struct Matrix {
  int operand = -1;
  gemm::Source source;                  // of the first matrix; data is set when running
  std::vector<int64_t> batch_elements;  // offset of each matrix, in elements (in blocks' elements for block storage)
  int64_t rows = 0, k = 0;
  bool rows_contiguous = false;  // k_stride is 1
  bool prepared = false;         // in the layout kRows16
};

// Merges the batch axes of x into rows where they are one run of memory.
bool flattens(const TensorDesc& t) {
  const int rank = t.shape.rank();
  const auto stride = [&](int a) { return t.strides[static_cast<size_t>(a)]; };
  if (t.shape.back() > 1 && stride(rank - 1) != 1) return false;
  for (int a = rank - 3; a >= 0; --a)
    if (t.shape[a] != 1 && stride(a) != stride(a + 1) * t.shape[a + 1]) return false;
  return true;
}

Matrix matrix_of(const TensorDesc& t, int operand, bool flatten, int64_t batches) {
  Matrix m;
  m.operand = operand;
  const int rank = t.shape.rank();
  m.k = t.shape.back();
  m.rows = flatten ? t.shape.rows() : t.shape[-2];
  m.source.dtype = t.dtype;
  m.source.storage = t.storage;
  m.source.columns = m.k;
  m.source.row_stride = t.strides[static_cast<size_t>(rank - 2)];
  m.source.k_stride = t.strides[static_cast<size_t>(rank - 1)];
  if (t.layout != kRowMajor) {
    if (t.layout != kRows16 || rank != 2 || !t.is_contiguous() || !has_rows16(t.dtype, t.storage))
      throw UnsupportedError("matmul on the CPU does not read this layout of weights ({})", t.layout);
    m.prepared = true;
  }
  if (t.storage != Storage::Plain) {
    if (!t.is_contiguous()) throw UnsupportedError("matmul takes no views of {} weights", name_of(t.storage));
    m.source.row_stride = m.k;
    m.source.k_stride = 1;
  } else if (t.shape[-2] <= 1) {  // strides of single rows and columns mean nothing
    if (m.source.k_stride == 1 || m.k <= 1) {
      m.source.row_stride = m.k;
      m.source.k_stride = 1;
    } else {
      m.source.row_stride = 1;
    }
  } else if (m.k <= 1) {
    m.source.k_stride = 1;
  }
  m.rows_contiguous = m.source.k_stride == 1;
  // Every batch index to an offset.
  m.batch_elements.assign(static_cast<size_t>(batches), 0);
  if (!flatten && rank > 2)
    for (int64_t b = 0; b < batches; ++b) {
      int64_t rest = b;
      for (int a = rank - 3; a >= 0; --a) {
        m.batch_elements[static_cast<size_t>(b)] += rest % t.shape[a] * t.strides[static_cast<size_t>(a)];
        rest /= t.shape[a];
      }
    }
  return m;
}

class MatmulKernel final : public CpuKernel {
 public:
  explicit MatmulKernel(const KernelRequest& request) : at_(matmul_operands(request.attrs)), inputs_(request.inputs) {
    const Attrs& attrs = request.attrs;
    epilogue_.act = activation_of(attrs.s("act"));
    epilogue_.gate = attrs.s("combine") == "gate";
    epilogue_.softcap = static_cast<float>(attrs.f_or("softcap", 0));
    alpha_[0] = static_cast<float>(attrs.f_or("alpha", 1));
    alpha_[1] = static_cast<float>(attrs.f_or("alpha2", 1));
    norm_offset_ = static_cast<float>(attrs.f_or("norm_offset", 0));
    out_ = request.outputs[0].dtype;
    const Shape& shape = request.outputs[0].shape;
    n_ = shape.back();
    const int64_t batch_rows = shape[-2];
    const bool shared = desc(at_.w1).shape.rank() == 2 && (at_.w2 < 0 || desc(at_.w2).shape.rank() == 2);
    const bool scale_repeats = at_.row_scale >= 0 && desc(at_.row_scale).shape.rank() == 1 && shape.rank() > 2;
    const bool flatten = shared && !scale_repeats && flattens(desc(at_.x1)) && (at_.x2 < 0 || flattens(desc(at_.x2)));
    m_ = flatten ? shape.rows() : batch_rows;
    batches_ = flatten ? 1 : batch_rows == 0 ? 0 : shape.rows() / batch_rows;
    row_scale_batched_ = at_.row_scale >= 0 && !scale_repeats;
    products_.push_back(
        {matrix_of(desc(at_.x1), at_.x1, flatten, batches_), matrix_of(desc(at_.w1), at_.w1, false, batches_)});
    if (at_.x2 >= 0)
      products_.push_back(
          {matrix_of(desc(at_.x2), at_.x2, flatten, batches_), matrix_of(desc(at_.w2), at_.w2, false, batches_)});
    for (Product& p : products_) {
      p.planes = m_ <= kExactRows ? 2 : 1;
      p.pairs = takes_pairs(p);
      p.scratch = scratch_;
      if (p.w.prepared) scratch_ += (scratch_of(p) + 63) / 64 * 64;
      prepared_ = prepared_ || p.w.prepared;
    }
    plan();
  }

  int64_t scratch_bytes() const override { return scratch_; }

  std::string name() const override {
    return fmt::format(
        "matmul_{} {}",
        prepared_   ? "prepared"
        : few_rows_ ? "rows"
                    : "tiles",
        desc(at_.w1).storage == Storage::Plain ? name_of(desc(at_.w1).dtype) : name_of(desc(at_.w1).storage));
  }

  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override {
    const int64_t row_blocks = (m_ + block_m_ - 1) / block_m_, column_blocks = (n_ + block_n_ - 1) / block_n_;
    const int64_t count = batches_ * row_blocks * column_blocks;
    for (size_t p = 0; p < products_.size(); ++p)
      if (products_[p].w.prepared && !(p == 1 && shares_activations(operands))) prepare_rows(pool, operands, p);
    for_tasks(pool, work_, count, [&](int64_t i) {
      const int64_t batch = i / (row_blocks * column_blocks), rest = i % (row_blocks * column_blocks);
      // Neighbours share a block of w.
      const int64_t m0 = rest % row_blocks * block_m_, n0 = rest / row_blocks * block_n_;
      block(operands, batch, m0, std::min(block_m_, m_ - m0), n0, std::min(block_n_, n_ - n0));
    });
  }

 private:
  struct Product {
    Matrix x, w;
    int planes = 1;       // of activations for prepared blocks
    bool pairs = false;   // bf16 activations as they are
    int64_t scratch = 0;  // where its activations begin
  };

  static int64_t padded(int64_t k) { return (k + kPieceColumns - 1) / kPieceColumns * kPieceColumns; }
  static bool blocks(const Product& p) { return p.w.source.storage != Storage::Plain; }
  // bf16 times bf16, where nothing happens to x before.
  bool takes_pairs(const Product& p) const {
    const bool first = p.x.operand == at_.x1;
    const bool bare = alpha_[first ? 0 : 1] == 1 && !(first && (at_.row_scale >= 0 || at_.norm_weight >= 0));
    return p.w.prepared && !blocks(p) && bare && p.x.source.dtype == DType::BF16 && gemm::has_bf16_pairs();
  }
  int64_t scratch_of(const Product& p) const {
    const int64_t rows = batches_ * m_;
    return blocks(p) ? gemm::QuantizedRows::bytes(rows * p.planes, p.x.k)
                     : rows * padded(p.x.k) * static_cast<int64_t>(p.pairs ? sizeof(uint16_t) : sizeof(float));
  }

  const TensorDesc& desc(int i) const { return inputs_[static_cast<size_t>(i)]; }

  void plan() {
    int64_t k = 0;
    few_rows_ = m_ <= kFewRows;
    for (const Product& p : products_) {
      k += p.x.k;
      few_rows_ = few_rows_ && (p.w.rows_contiguous || p.w.k <= 1);
    }
    work_ = static_cast<double>(batches_) * static_cast<double>(m_) * static_cast<double>(n_) *
            static_cast<double>(std::max<int64_t>(k, 1));
    if (prepared_) {
      plan_prepared(k);
      return;
    }
    if (few_rows_) {
      // Blocks of at least 32 KiB of w or so, few enough to cost nothing to hand out.
      block_m_ = std::max<int64_t>(m_, 1);
      const int64_t least = std::max<int64_t>(8, 8192 / std::max<int64_t>(k, 1));
      block_n_ = std::max(least, (n_ + 63) / 64);
      block_n_ = (block_n_ + 3) / 4 * 4;
      if (work_ <= kWorkOfOneThread) block_n_ = std::max<int64_t>(n_, 1);
      return;
    }
    const int64_t a = gemm::panel_rows_a(), b = gemm::panel_rows_b();
    const auto up = [](int64_t x, int64_t unit) { return (std::max<int64_t>(x, 1) + unit - 1) / unit * unit; };
    block_m_ = std::min(up(m_, a), 16 * a);
    block_n_ = std::min(up(n_, b), 16 * b);
    // About 16 blocks, so that every pool has work, unless they would be small.
    while (true) {
      const int64_t blocks = batches_ * ((m_ + block_m_ - 1) / block_m_) * ((n_ + block_n_ - 1) / block_n_);
      const double each = static_cast<double>(block_m_) * static_cast<double>(block_n_) * static_cast<double>(k);
      if (blocks >= 16 || each <= 4 * kWorkOfOneThread) break;
      if (block_n_ > block_m_ && block_n_ > b)
        block_n_ = up(block_n_ / 2, b);
      else if (block_m_ > a)
        block_m_ = up(block_m_ / 2, a);
      else
        break;
    }
  }

  // Groups of 16 rows of w stay in the first-level cache while up to 128 rows of x pass by. Few rows: long runs of w, 8
  // tasks or more of at most 256 KiB, since each begins without what the processor fetches ahead. Else about 32 tasks.
  void plan_prepared(int64_t k) {
    few_rows_ = few_rows_ && m_ <= kFewRows;
    block_m_ = std::clamp<int64_t>(m_, 1, 128);
    const int64_t groups = std::max<int64_t>((n_ + kGroupRows - 1) / kGroupRows, 1);
    const int64_t row_blocks = std::max<int64_t>(batches_ * ((m_ + block_m_ - 1) / block_m_), 1);
    const int64_t most =
        m_ <= kFewRows ? std::max<int64_t>(1, (int64_t{1} << 18) / (kGroupRows * std::max<int64_t>(k, 1))) : 16;
    const int64_t tasks = m_ <= kFewRows ? 8 : 32;
    const int64_t each = std::clamp<int64_t>((groups * row_blocks + tasks - 1) / tasks, 1, std::max<int64_t>(most, 1));
    block_n_ = (work_ <= kWorkOfOneThread ? groups : each) * kGroupRows;
  }

  // Row `i` of x as fp32, with its prologue, to `room` of k floats.
  void load_row(const gemm::Source& x, int64_t i, int64_t k, const gemm::Prologue& prologue, float* room) const {
    const auto size = static_cast<int64_t>(size_of(x.dtype));
    const std::byte* from = x.data + i * x.row_stride * size;
    if (x.k_stride == 1)
      gemm::load(from, x.dtype, k, room);
    else
      for (int64_t j = 0; j < k; ++j) gemm::load(from + j * x.k_stride * size, x.dtype, 1, room + j);
    const float factor = prologue.scale * (prologue.rows ? prologue.rows[i] : 1.0f);
    if (factor != 1 || prologue.columns)
      for (int64_t j = 0; j < k; ++j) room[j] *= factor * (prologue.columns ? prologue.columns[j] : 1.0f);
  }

  // Whether both products (gate and up) take the same form of the same x.
  bool shares_activations(std::span<std::byte* const> operands) const {
    const Product &a = products_[0], &b = products_[1];
    return a.w.prepared && b.w.prepared && a.w.source.storage == b.w.source.storage && a.pairs == b.pairs &&
           at_.row_scale < 0 && at_.norm_weight < 0 && alpha_[0] == alpha_[1] && desc(at_.x1) == desc(at_.x2) &&
           operands[static_cast<size_t>(at_.x1)] == operands[static_cast<size_t>(at_.x2)];
  }
  std::byte* activations(std::span<std::byte* const> operands, size_t p) const {
    const Product& owner = products_[p == 1 && shares_activations(operands) ? 0 : p];
    return operands[static_cast<size_t>(at_.count) + 1] + owner.scratch;
  }

  // All rows of x in the form that goes with prepared weights, to scratch memory.
  void prepare_rows(ThreadPool& pool, std::span<std::byte* const> operands, size_t p) const {
    const Product& product = products_[p];
    const int64_t k = product.x.k, width = padded(k), rows = batches_ * m_;
    std::byte* memory = activations(operands, p);
    gemm::QuantizedRows quantized;
    if (blocks(product)) quantized.place(memory, rows * product.planes, k);
    constexpr int64_t kRowsOfTask = 16;
    const int64_t per_batch = (m_ + kRowsOfTask - 1) / kRowsOfTask;
    for_tasks(pool, static_cast<double>(rows * k), batches_ * per_batch, [&](int64_t task) {
      const int64_t batch = task / per_batch, first = task % per_batch * kRowsOfTask;
      const int64_t last = std::min(m_, first + kRowsOfTask);
      const gemm::Prologue prologue = prologue_of(operands, static_cast<int>(p), batch, 0, m_);
      const gemm::Source x = source(operands, product.x, batch);
      for (int64_t i = first; i < last; ++i) {
        const int64_t row = batch * m_ + i;
        const bool as_it_is = blocks(product) && x.dtype == DType::F32 && x.k_stride == 1 && !prologue.rows &&
                              !prologue.columns && prologue.scale == 1;
        float* room = gemm::thread_buffer(2, width);
        const float* values = room;
        if (as_it_is) {
          values = reinterpret_cast<const float*>(x.data) + i * x.row_stride;
        } else {
          load_row(x, i, k, prologue, room);
          std::fill(room + k, room + width, 0.0f);
        }
        const DType dtype = product.pairs ? DType::BF16 : DType::F32;
        if (blocks(product))
          gemm::quantize_rows(values, k, row, 1, k, product.planes, product.w.source.storage, quantized);
        else
          gemm::store(room, width, dtype, memory + row * width * static_cast<int64_t>(size_of(dtype)));
      }
    });
  }

  void prepared_product(std::span<std::byte* const> operands, size_t p, int64_t batch, int64_t m0, int64_t m,
                        int64_t n0, int64_t n, float* sums, int64_t ldc, bool accumulate) const {
    const Product& product = products_[p];
    const int64_t k = product.x.k, first = batch * m_ + m0;
    const Storage storage = product.w.source.storage;
    const int planes = blocks(product) ? product.planes : 1;
    const std::byte* w = operands[static_cast<size_t>(product.w.operand)];
    std::byte* memory = activations(operands, p);
    const int64_t group_bytes = rows16_group_bytes(storage, k);
    gemm::QuantizedRows quantized;
    if (blocks(product)) quantized.place(memory, batches_ * m_ * planes, k);
    // One plane and nothing to add to: straight to the sums.
    const bool direct = planes == 1 && !accumulate;
    float* room = direct ? nullptr : gemm::thread_buffer(6, m * planes * kGroupRows);
    gemm::fetch_group(w + n0 / kGroupRows * group_bytes);
    for (int64_t j = 0; j < n; j += kGroupRows) {
      const std::byte* group = w + (n0 + j) / kGroupRows * group_bytes;
      float* to = direct ? sums + j : room;
      const int64_t stride = direct ? ldc : kGroupRows;
      if (blocks(product))
        gemm::multiply_group(storage, group, quantized, first * planes, m * planes, to, stride);
      else if (product.pairs)
        gemm::multiply_group_pairs(group, reinterpret_cast<const uint16_t*>(memory) + first * padded(k), padded(k), m,
                                   padded(k), to, stride);
      else
        gemm::multiply_group_bf16(group, reinterpret_cast<const float*>(memory) + first * padded(k), padded(k), m,
                                  padded(k), to, stride);
      if (!direct) add_planes(room, m, planes, sums + j, ldc, accumulate);
    }
  }

  static void add_planes(const float* from, int64_t m, int planes, float* to, int64_t ldc, bool accumulate) {
    for (int64_t i = 0; i < m; ++i, from += planes * kGroupRows, to += ldc)
      for (int64_t c = 0; c < kGroupRows; ++c) {
        const float sum = planes == 2 ? from[c] + from[kGroupRows + c] : from[c];
        to[c] = accumulate ? to[c] + sum : sum;
      }
  }

  const float* vector(std::span<std::byte* const> operands, int operand, int64_t from, int64_t n, float* room) const {
    if (operand < 0) return nullptr;
    const DType dtype = desc(operand).dtype;
    // Whole vectors of fp32 need no room behind them.
    if (dtype == DType::F32 && n % gemm::kVector == 0)
      return reinterpret_cast<const float*>(operands[static_cast<size_t>(operand)]) + from;
    gemm::load(operands[static_cast<size_t>(operand)] + from * static_cast<int64_t>(size_of(dtype)), dtype, n, room);
    return room;
  }

  gemm::Source source(std::span<std::byte* const> operands, const Matrix& m, int64_t batch) const {
    gemm::Source s = m.source;
    const int64_t elements = m.batch_elements[static_cast<size_t>(batch)];
    const int64_t bytes = s.storage == Storage::Plain ? elements * static_cast<int64_t>(size_of(s.dtype))
                                                      : elements / block_elements(s.storage) * block_bytes(s.storage);
    s.data = operands[static_cast<size_t>(m.operand)] + bytes;
    return s;
  }

  // Thread buffers: 0 and 1 sums, 2 packed A (or rows of x), 3 packed B, 4 vectors of the epilogue, 5 of the prologue.
  void block(std::span<std::byte* const> operands, int64_t batch, int64_t m0, int64_t m, int64_t n0, int64_t n) const {
    // An odd number of cache lines, so that rows do not fall on each other.
    const int64_t ldc = (n + gemm::kPad - 1) / gemm::kPad * gemm::kPad + gemm::kPad + 16;
    float* sums[2] = {gemm::thread_buffer(0, m * ldc), epilogue_.gate ? gemm::thread_buffer(1, m * ldc) : nullptr};
    if (!sums[1]) sums[1] = sums[0];
    bool written[2] = {false, false};
    for (size_t p = 0; p < products_.size(); ++p) {
      const int buffer = epilogue_.gate ? static_cast<int>(p) : 0;
      if (products_[p].x.k == 0) continue;
      if (products_[p].w.prepared) {
        prepared_product(operands, p, batch, m0, m, n0, n, sums[buffer], ldc, written[buffer]);
        written[buffer] = true;
        continue;
      }
      const gemm::Prologue prologue = prologue_of(operands, static_cast<int>(p), batch, m0, m);
      if (few_rows_)
        rows_product(operands, p, batch, m0, m, n0, n, prologue, sums[buffer], ldc, written[buffer]);
      else
        tiles_product(operands, p, batch, m0, m, n0, n, prologue, sums[buffer], ldc, written[buffer]);
      written[buffer] = true;
    }
    for (int i = 0; i <= static_cast<int>(epilogue_.gate); ++i)
      if (!written[i]) std::fill_n(sums[i], m * ldc, 0.0f);
    finish(operands, batch, m0, m, n0, n, sums, ldc);
  }

  // Factors of row m0 + i are at rows[i]; the sources below begin at row m0.
  gemm::Prologue prologue_of(std::span<std::byte* const> operands, int p, int64_t batch, int64_t m0, int64_t m) const {
    gemm::Prologue prologue;
    prologue.scale = alpha_[p];
    if (p != 0 || (at_.row_scale < 0 && at_.norm_weight < 0)) return prologue;
    const int64_t k = products_[0].x.k;
    float* room = gemm::thread_buffer(5, m + k);
    prologue.rows = vector(operands, at_.row_scale, m0 + (row_scale_batched_ ? batch * m_ : 0), m, room);
    prologue.columns = vector(operands, at_.norm_weight, 0, k, room + m);
    if (prologue.columns && norm_offset_ != 0) {
      for (int64_t i = 0; i < k; ++i) room[m + i] = prologue.columns[i] + norm_offset_;
      prologue.columns = room + m;
    }
    return prologue;
  }

  void tiles_product(std::span<std::byte* const> operands, size_t p, int64_t batch, int64_t m0, int64_t m, int64_t n0,
                     int64_t n, const gemm::Prologue& prologue, float* sums, int64_t ldc, bool accumulate) const {
    gemm::Source x = source(operands, products_[p].x, batch);
    const gemm::Source w = source(operands, products_[p].w, batch);
    x.data += m0 * x.row_stride * static_cast<int64_t>(size_of(x.dtype));
    const int64_t k = products_[p].x.k, depth = std::min(k, gemm::kDepth);
    float* a = gemm::thread_buffer(2, gemm::packed_floats_a(m, depth));
    float* b = gemm::thread_buffer(3, gemm::packed_floats_b(n, depth));
    for (int64_t k0 = 0; k0 < k; k0 += depth) {
      const int64_t some = std::min(depth, k - k0);
      gemm::pack_a(x, 0, m, k0, some, prologue, a);
      gemm::pack_b(w, n0, n, k0, some, b);
      gemm::multiply(m, n, some, a, b, sums, ldc, accumulate || k0 > 0);
    }
  }

  void rows_product(std::span<std::byte* const> operands, size_t p, int64_t batch, int64_t m0, int64_t m, int64_t n0,
                    int64_t n, const gemm::Prologue& prologue, float* sums, int64_t ldc, bool accumulate) const {
    const gemm::Source x = source(operands, products_[p].x, batch);
    const gemm::Source w = source(operands, products_[p].w, batch);
    const int64_t k = products_[p].x.k;
    const float* rows = reinterpret_cast<const float*>(x.data) + m0 * x.row_stride;
    int64_t ldx = x.row_stride;
    if (x.dtype != DType::F32 || x.k_stride != 1 || prologue.rows || prologue.columns || prologue.scale != 1) {
      float* room = gemm::thread_buffer(2, m * k);
      gemm::Source from = x;
      from.data += m0 * x.row_stride * static_cast<int64_t>(size_of(x.dtype));
      for (int64_t i = 0; i < m; ++i) load_row(from, i, k, prologue, room + i * k);
      rows = room;
      ldx = k;
    }
    if (!accumulate) {
      gemm::multiply_rows(rows, ldx, m, w, n0, n, k, sums, ldc);
      return;
    }
    float* more = gemm::thread_buffer(6, m * ldc);
    gemm::multiply_rows(rows, ldx, m, w, n0, n, k, more, ldc);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) sums[i * ldc + j] += more[i * ldc + j];
  }

  void finish(std::span<std::byte* const> operands, int64_t batch, int64_t m0, int64_t m, int64_t n0, int64_t n,
              float* const* sums, int64_t ldc) const {
    std::byte* out = operands[static_cast<size_t>(at_.count)];
    const auto size = static_cast<int64_t>(size_of(out_));
    float* room = gemm::thread_buffer(4, 3 * ldc);
    const float* bias = vector(operands, at_.bias, n0, n, room);
    const float* bias2 = vector(operands, at_.bias2, n0, n, room + ldc);
    const bool plain = epilogue_.act == gemm::Activation::None && !epilogue_.gate && epilogue_.softcap == 0 && !bias &&
                       at_.residual < 0;
    for (int64_t i = 0; i < m; ++i) {
      const int64_t place = (batch * m_ + m0 + i) * n_ + n0;
      float* row = sums[0] + i * ldc;
      if (!plain) {
        const float* residual = vector(operands, at_.residual, place, n, room + 2 * ldc);
        const bool direct = out_ == DType::F32 && n % gemm::kVector == 0;
        float* to = direct ? reinterpret_cast<float*>(out) + place : row;
        gemm::finish_row(epilogue_, n, row, sums[1] + i * ldc, bias, bias2, residual, to);
        if (direct) continue;
      }
      gemm::store(row, n, out_, out + place * size);
    }
  }

  MatmulOperands at_;
  std::vector<TensorDesc> inputs_;
  gemm::Epilogue epilogue_;
  float alpha_[2] = {1, 1};
  float norm_offset_ = 0;
  DType out_ = DType::F32;
  int64_t m_ = 0, n_ = 0, batches_ = 1;
  bool few_rows_ = false, prepared_ = false, row_scale_batched_ = false;
  int64_t scratch_ = 0;  // bytes of activations for prepared weights
  int64_t block_m_ = 1, block_n_ = 1;
  double work_ = 0;  // multiplications
  std::vector<Product> products_;
};

}  // namespace

std::unique_ptr<Kernel> matmul_cpu(CpuBackend&, const KernelRequest& request) {
  return std::make_unique<MatmulKernel>(request);
}

}  // namespace hierarchos::ops
